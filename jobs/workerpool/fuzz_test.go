package workerpool

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/storage"
)

// A task row that can be read is the same after it is written and read again.
func FuzzDecodeRow(f *testing.F) {
	for _, r := range []row{
		{order: 1, key: "k", queue: "q", input: []byte("in")},
		{state: Dead, order: 1 << 60, priority: -1000, notBefore: 1 << 62, rare: rare{
			Run: jobs.Run{Number: 1, Attempt: 3}, Failures: []Failure{{Attempt: 1, At: time.Unix(1, 0).UTC(), Error: "boom"}}, Cancelling: true,
		}},
	} {
		b, err := r.append(nil)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte{rowVersion, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := decodeRow(7, b)
		if err != nil {
			if !errors.Is(err, storage.ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		again, err := r.append(nil)
		if err != nil {
			t.Fatal(err)
		}
		same, err := decodeRow(7, again)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(r, same, cmp.AllowUnexported(row{}), cmp.Comparer(func(a, b []byte) bool { return string(a) == string(b) }),
			cmp.Comparer(func(a, b []Failure) bool { return len(a) == len(b) }), cmp.Comparer(func(a, b jobs.Run) bool { return a.Number == b.Number })); d != "" {
			t.Error(d)
		}
	})
}

// The counters are decoded or refused too, for any number of lines that the row tells of.
func FuzzDecodeCounters(f *testing.F) {
	f.Add((&counters{submitted: 3, pending: 1, done: 2, changed: 5}).append(nil, &lines{}))
	f.Add((&counters{mode: 1, emptyDue: true}).append(nil, &lines{all: []*line{{name: "fast", pass: 9}}}))
	f.Add([]byte{rowVersion, 0, 0, 200, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		var c, same counters
		ls, again := &lines{}, &lines{}
		if err := c.decode(b, ls); err != nil {
			if !errors.Is(err, storage.ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		if err := same.decode(c.append(nil, ls), again); err != nil || same != c || len(again.all) != len(ls.all) {
			t.Fatalf("%+v and %d lines became %+v and %d, %v", c, len(ls.all), same, len(again.all), err)
		}
	})
}
