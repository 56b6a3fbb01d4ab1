package inbox

import (
	"errors"
	"fmt"
	"testing"

	"github.com/holdfast-dev/holdfast/storage"
)

// Proves M7. A count that is remembered follows the commits. Those that end while it is made count at most
// once, and so it is never too large: at most 2 too small here.
func TestLaterCountBesideCommits(t *testing.T) {
	var c LaterCounts
	to, newest := numbered(1), storage.Ticket(10)
	applied := func() storage.Ticket { return newest }
	c.Add(to, 5, 9)
	n, err := c.Count(to, applied, func() (int, error) {
		c.Add(to, 2, 10) // in the count, because it was applied before
		c.Add(to, -1, 10)
		newest = 14
		c.Add(to, 1, 11)  // perhaps in the count
		c.Add(to, -1, 12) // perhaps not in the count any more
		return 6, nil
	})
	if n != 5 || err != nil {
		t.Errorf("counted %d, %v", n, err)
	}
	counts := func(want int) {
		t.Helper()
		n, err := c.Count(to, applied, func() (int, error) { return 0, errors.New("it is remembered") })
		if n != want || err != nil {
			t.Errorf("counted %d, %v, want %d", n, err, want)
		}
	}
	c.Add(to, 3, 0) // of an earlier opening, counted by the snapshot
	for _, add := range []struct {
		n      int
		at     storage.Ticket
		counts int
	}{{1, 14, 5}, {1, 15, 6}, {-1, 10, 6}, {-1, 13, 5}, {-2, 16, 3}, {0, 17, 3}} {
		c.Add(to, add.n, add.at)
		counts(add.counts)
	}
	c.Add(numbered(2), 7, 18)
	counts(3)
}

// The counts of the newest 1,024 receivers are remembered. One that could not be made is not.
func TestLaterCountsRemembered(t *testing.T) {
	var c LaterCounts
	applied := func() storage.Ticket { return 1 }
	bad := errors.New("on purpose")
	if _, err := c.Count(numbered(0), applied, func() (int, error) { return 1, bad }); err != bad {
		t.Error(err)
	}
	count := func(i int) (read bool) {
		n, err := c.Count(numbered(i), applied, func() (int, error) { read = true; return i, nil })
		if n != i || err != nil {
			t.Errorf("%s: %d, %v", fmt.Sprint(i), n, err)
		}
		return read
	}
	for i := range remembered + 1 {
		if !count(i) || count(i) {
			t.Errorf("receiver %d is to be counted once", i)
		}
	}
	if !count(0) || count(remembered) {
		t.Error("the newest are remembered")
	}
}
