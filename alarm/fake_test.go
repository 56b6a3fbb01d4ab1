package alarm

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/seam"
)

// world is a clock and an executor on one goroutine. Tasks run in the order in
// which they were started, when run or advance is called.
type world struct {
	mono   time.Duration // the time of the timers
	wall   time.Time     // at mono 0; jumps change it
	timers []*fakeTimer
	armed  int // timers ever made
	tasks  []func()
}

type fakeTimer struct {
	w  *world
	at time.Duration
	no int
	f  func()
}

func newWorld() *world { return &world{wall: time.Unix(1_000_000, 0).UTC()} }

func (w *world) seams() seam.Seams { return seam.Seams{Clock: w, Executor: w} }

func (w *world) Now() time.Time { return w.wall.Add(w.mono) }

func (w *world) AfterFunc(d time.Duration, f func()) seam.Timer {
	w.armed++
	t := &fakeTimer{w, w.mono + max(d, 0), w.armed, f}
	w.timers = append(w.timers, t)
	return t
}

func (t *fakeTimer) Stop() bool {
	i := slices.Index(t.w.timers, t)
	if i >= 0 {
		t.w.timers = slices.Delete(t.w.timers, i, i+1)
	}
	return i >= 0
}

func (w *world) Go(_ string, f func()) { w.tasks = append(w.tasks, f) }

func (w *world) Wait(_ context.Context, ready <-chan struct{}) error {
	for {
		select {
		case <-ready:
			return nil
		default:
		}
		if !w.step() {
			panic("a wait that nobody ends")
		}
	}
}

func (w *world) step() bool {
	if len(w.tasks) == 0 {
		return false
	}
	f := w.tasks[0]
	w.tasks = w.tasks[1:]
	f()
	return true
}

// run runs all tasks that are ready.
func (w *world) run() {
	for w.step() {
	}
}

// advance lets d pass, ringing each timer at its time.
func (w *world) advance(d time.Duration) {
	until := w.mono + d
	for w.run(); len(w.timers) > 0; w.run() {
		t := slices.MinFunc(w.timers, func(a, b *fakeTimer) int {
			return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.no, b.no))
		})
		if t.at > until {
			break
		}
		w.mono = max(w.mono, t.at)
		t.Stop()
		w.Go("timer", t.f)
	}
	w.mono = until
	w.run()
}

// jump changes the wall clock; timers do not notice.
func (w *world) jump(d time.Duration) { w.wall = w.wall.Add(d) }

// index is a stored time index.
type index struct {
	rows   map[int][]Entry // by shard, in order
	scans  int
	read   int // entries returned
	err    error
	during func() // called by Scan after it has read
}

func newIndex() *index { return &index{rows: make(map[int][]Entry)} }

func comparePos(a, b Entry) int { return posOf(&a).compare(posOf(&b)) }

func (x *index) put(e Entry) {
	x.delete(e.Shard, e.Object)
	i, _ := slices.BinarySearchFunc(x.rows[e.Shard], e, comparePos)
	x.rows[e.Shard] = slices.Insert(x.rows[e.Shard], i, e)
}

func (x *index) delete(shard int, object uint64) {
	x.rows[shard] = slices.DeleteFunc(x.rows[shard], func(e Entry) bool { return e.Object == object })
}

func (x *index) get(shard int, object uint64) (Entry, bool) {
	i := slices.IndexFunc(x.rows[shard], func(e Entry) bool { return e.Object == object })
	if i < 0 {
		return Entry{}, false
	}
	return x.rows[shard][i], true
}

func (x *index) len() (n int) {
	for _, rows := range x.rows {
		n += len(rows)
	}
	return n
}

func (x *index) Scan(shard int, after Position, limit int) ([]Entry, error) {
	x.scans++
	rows := x.rows[shard]
	i, found := slices.BinarySearchFunc(rows, Entry{Due: after.Due, Object: after.Object}, comparePos)
	if found {
		i++
	}
	got := slices.Clone(rows[i:min(i+limit, len(rows))])
	x.read += len(got)
	if x.during != nil {
		x.during()
	}
	return got, x.err
}
