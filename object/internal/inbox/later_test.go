package inbox

import (
	"errors"
	"fmt"
	"testing"

	"github.com/holdfast-dev/holdfast/storage"
)

// commits are the order of the commits of a store: the newest ticket and the newest number.
type commits struct {
	ticket storage.Ticket
	seq    uint64
}

func (c *commits) Applied() storage.Ticket { return c.ticket }
func (c *commits) NextSeq() uint64         { c.seq++; return c.seq }

// Proves M7. A count that is remembered follows the commits. Those that are under way while it is made count
// at most once, and so it is never too large, although a commit has its ticket only after its messages can be
// seen. Here it is 1 too small.
func TestLaterCountBesideCommits(t *testing.T) {
	var c LaterCounts
	to, store := numbered(1), &commits{ticket: 10, seq: 20}
	c.Add(to, 5, 19)
	seen, begun := uint64(0), uint64(0)
	n, err := c.Count(to, store, func() (int, error) {
		c.Add(to, 2, 20) // in the count, because its commit was applied before
		c.Remove(to, 1, 10)
		seen, begun = store.NextSeq(), store.NextSeq()
		c.Remove(to, 1, 12) // perhaps not in the count any more
		return 7, nil       // with the message of seen, which has no ticket yet
	})
	if n != 6 || err != nil {
		t.Errorf("counted %d, %v", n, err)
	}
	counts := func(want int) {
		t.Helper()
		n, err := c.Count(to, store, func() (int, error) { return 0, errors.New("it is remembered") })
		if n != want || err != nil {
			t.Errorf("counted %d, %v, want %d", n, err, want)
		}
	}
	c.Add(to, 3, 0) // of an earlier opening, counted by the snapshot
	counts(6)
	c.Add(to, 1, seen)
	counts(6)
	c.Add(to, 1, begun) // the one that is missing
	counts(6)
	for _, s := range []struct {
		remove int
		at     storage.Ticket
		counts int
	}{{1, 10, 6}, {1, 11, 5}, {2, 16, 3}, {0, 17, 3}} {
		c.Remove(to, s.remove, s.at)
		counts(s.counts)
	}
	c.Add(to, 1, store.NextSeq())
	counts(4)
	c.Add(numbered(2), 7, store.NextSeq())
	counts(4)
}

// The counts of the newest 1,024 receivers are remembered. One that could not be made is not.
func TestLaterCountsRemembered(t *testing.T) {
	var c LaterCounts
	store := &commits{ticket: 1}
	bad := errors.New("on purpose")
	if _, err := c.Count(numbered(0), store, func() (int, error) { return 1, bad }); err != bad {
		t.Error(err)
	}
	count := func(i int) (read bool) {
		n, err := c.Count(numbered(i), store, func() (int, error) { read = true; return i, nil })
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
