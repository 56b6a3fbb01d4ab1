package alarm

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// rig is a scheduler over a fake world; each fired entry is kept in got.
type rig struct {
	*world
	x   *index
	s   *Scheduler
	got []Entry
	gen uint64
}

func newRig(t testing.TB, edit func(*Config)) *rig {
	t.Helper()
	r := &rig{world: newWorld(), x: newIndex()}
	cfg := Config{
		Seams:   r.seams(),
		Shards:  1,
		Source:  r.x,
		Fire:    func(batch []Entry) { r.got = append(r.got, batch...) },
		OnError: func(err error) { t.Error(err) },
	}
	if edit != nil {
		edit(&cfg)
	}
	var err error
	if r.s, err = NewScheduler(cfg); err != nil {
		t.Fatal(err)
	}
	return r
}

// entry makes an entry that is due in d.
func (r *rig) entry(object uint64, d time.Duration) Entry {
	r.gen++
	return Entry{Due: r.Now().Add(d), Object: object, Gen: r.gen, Class: "c"}
}

// set commits an entry and reports it.
func (r *rig) set(e Entry) {
	r.x.put(e)
	r.s.Set(e)
}

func (r *rig) clear(e Entry) {
	r.x.delete(e.Shard, e.Object)
	r.s.Clear(e.Shard, e.Object)
}

// handle ends the turns of all that was fired, successfully.
func (r *rig) handle() (objects []uint64) {
	for _, e := range r.got {
		objects = append(objects, e.Object)
		r.clear(e)
		r.s.Done(e)
	}
	r.got = nil
	return objects
}

func (r *rig) objects() (objects []uint64) {
	for _, e := range r.got {
		objects = append(objects, e.Object)
	}
	return objects
}

func TestFiresStoredAndNewWhenDueA3(t *testing.T) {
	r := newRig(t, nil)
	r.x.put(r.entry(1, -time.Hour))
	r.x.put(r.entry(2, 2*time.Second))
	r.s.Start()
	r.run()
	want(t, r.handle(), 1)
	r.set(r.entry(3, time.Second))
	r.advance(time.Second - 1)
	want(t, r.handle())
	r.advance(1)
	want(t, r.handle(), 3)
	r.advance(time.Second)
	want(t, r.handle(), 2)
	if st := r.s.Stats(); st != (Stats{}) {
		t.Errorf("at the end: %+v", st)
	}
}

func TestOrderWithinClass(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Shards, c.LookAhead, c.Batch = 3, 100, 7 })
	for i := range uint64(90) {
		e := r.entry(i, time.Duration((i*37)%90)*time.Second)
		e.Shard = int(i % 3)
		r.x.put(e)
	}
	r.s.Start()
	r.run()
	r.advance(2 * time.Minute)
	if len(r.got) != 90 || !slices.IsSortedFunc(r.got, func(a, b Entry) int { return a.Due.Compare(b.Due) }) {
		t.Errorf("%d fired, not in order: %v", len(r.got), r.objects())
	}
}

func TestTimerIsKeptWhenTheHeadIsUnchanged(t *testing.T) {
	r := newRig(t, nil)
	r.s.Start()
	r.run()
	if len(r.timers) != 0 {
		t.Fatal("a timer for an empty index")
	}
	r.set(r.entry(1, 10*time.Second))
	for i := range uint64(100) {
		r.set(r.entry(2+i, 20*time.Second))
	}
	r.set(r.entry(1, 15*time.Second)) // later: the timer may ring in vain, once
	if r.armed != 1 {
		t.Errorf("%d timers made for one head", r.armed)
	}
	r.set(r.entry(1, 5*time.Second))
	if r.armed != 2 || len(r.timers) != 1 {
		t.Errorf("%d timers made, %d armed, for an earlier head", r.armed, len(r.timers))
	}
	for i := range uint64(101) {
		r.clear(Entry{Object: 1 + i})
	}
	if len(r.timers) != 0 {
		t.Error("a timer remains after the last entry was cleared")
	}
}

func TestSameInstantFiresAgainA5(t *testing.T) {
	r := newRig(t, nil)
	r.s.Start()
	e := r.entry(1, 0)
	r.set(e)
	r.run()
	want(t, r.objects(), 1)
	again := e
	again.Gen++
	r.set(again) // by the handler
	r.run()
	want(t, r.objects(), 1) // not beside itself
	r.s.Done(e)
	r.run()
	want(t, r.objects(), 1, 1)
	if r.got[1] != again {
		t.Errorf("fired %v, want %v", r.got[1], again)
	}
	r.s.Done(e) // of the former entry: means nothing now
	if st := r.s.Stats(); st.InFlight != 1 {
		t.Errorf("in flight: %d", st.InFlight)
	}
}

func TestClearInFlightForgetsTheNextA5(t *testing.T) {
	r := newRig(t, nil)
	r.s.Start()
	e := r.entry(1, 0)
	r.set(e)
	r.run()
	r.set(r.entry(1, 0))
	r.clear(e)
	r.s.Done(e)
	r.advance(time.Hour)
	want(t, r.objects(), 1)
}

func TestReturnedEntryFiresAgainUnlessChanged(t *testing.T) {
	r := newRig(t, nil)
	r.s.Start()
	for i := range uint64(3) {
		r.set(r.entry(1+i, 0))
	}
	r.run()
	want(t, r.objects(), 1, 2, 3)
	first := slices.Clone(r.got)
	r.set(r.entry(2, time.Minute))
	r.clear(first[2])
	for _, e := range first {
		r.s.Return(e)
		r.s.Return(e) // means nothing any more
	}
	r.run()
	want(t, r.objects(), 1, 2, 3, 1)
	r.advance(time.Minute)
	want(t, r.objects(), 1, 2, 3, 1, 2)
}

// A set, a move or a clear takes effect also on an entry that is due and waits
// for a slot.
func TestMoveWhileQueuedA6(t *testing.T) {
	r := newRig(t, func(c *Config) { c.InFlight = 1 })
	r.s.Start()
	for i := range uint64(4) {
		r.set(r.entry(1+i, -time.Second))
	}
	r.run()
	r.set(r.entry(2, time.Hour))
	r.clear(Entry{Object: 3})
	r.run()
	want(t, r.handle(), 1)
	r.run()
	want(t, r.handle(), 4)
	r.advance(time.Hour - 1)
	want(t, r.handle())
	r.advance(1)
	want(t, r.handle(), 2)
}

func TestStats(t *testing.T) {
	r := newRig(t, func(c *Config) { c.InFlight = 1 })
	r.s.Start()
	r.set(r.entry(1, -3*time.Second))
	r.set(r.entry(2, -2*time.Second))
	r.set(r.entry(3, time.Minute))
	r.run()
	got := r.s.Stats()
	wanted := Stats{Held: 2, Queued: 1, InFlight: 1, Next: r.Now().Add(-2 * time.Second), Lag: 2 * time.Second}
	if d := cmp.Diff(wanted, got); d != "" {
		t.Error(d)
	}
	r.handle()
	r.run()
	r.handle()
	if got = r.s.Stats(); got.Lag != 0 || !got.Next.Equal(r.Now().Add(time.Minute)) {
		t.Errorf("%+v", got)
	}
}

func want(t *testing.T, got []uint64, wanted ...uint64) {
	t.Helper()
	if !slices.Equal(got, wanted) {
		t.Errorf("fired %s, want %s", fmt.Sprint(got), fmt.Sprint(wanted))
	}
}
