package alarm

import (
	"errors"
	"fmt"
	"slices"
	"strings"
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

func TestFairBetweenClassesA9(t *testing.T) {
	r := newRig(t, func(c *Config) { c.InFlight, c.LookAhead, c.Batch = 4, 1000, 4 })
	for i := range uint64(500) {
		e := r.entry(i, -time.Hour)
		e.Class = "flood"
		r.x.put(e)
	}
	r.s.Start()
	r.run()
	for i := range uint64(10) {
		e := r.entry(1000+i, -time.Minute)
		e.Class = "drop"
		r.set(e)
	}
	flood, drops := 0, 0
	for drops < 10 {
		for _, o := range r.handle() {
			if o >= 1000 {
				drops++
			} else {
				flood++
			}
		}
		r.run()
	}
	if flood > 20 {
		t.Errorf("%d of the flood went before 10 of the other class", flood)
	}
}

func TestClockBackA9(t *testing.T) {
	r := newRig(t, func(c *Config) { c.InFlight = 1 })
	r.s.Start()
	r.set(r.entry(1, 0))
	r.set(r.entry(2, 0)) // due, and waits for a slot
	r.set(r.entry(3, time.Second))
	r.run()
	r.jump(-time.Hour)
	made := r.armed
	want(t, r.handle(), 1)
	r.advance(time.Hour - 1)
	want(t, r.handle())
	if n := r.armed - made; n > 62 {
		t.Errorf("%d timers in an hour", n)
	}
	r.advance(1)
	want(t, r.handle(), 2)
	r.advance(time.Second)
	want(t, r.handle(), 3)
}

func TestClockAheadA9(t *testing.T) {
	r := newRig(t, nil)
	r.s.Start()
	r.set(r.entry(1, 24*time.Hour))
	r.set(r.entry(2, 48*time.Hour))
	r.advance(10 * time.Second)
	made := r.armed
	r.jump(25 * time.Hour)
	r.advance(50 * time.Second)
	want(t, r.handle(), 1)
	if n := r.armed - made; n > 1 {
		t.Errorf("%d timers for a jump", n)
	}
	r.jump(1000 * 24 * time.Hour)
	r.advance(time.Minute)
	want(t, r.handle(), 2)
}

// stair is a source with n entries a shard, a millisecond apart, that takes no memory.
type stair struct {
	first time.Time
	n     uint64
	read  int
}

func (x *stair) Scan(shard int, after Position, limit int) ([]Entry, error) {
	var got []Entry
	for o := after.Object + 1; o <= x.n && len(got) < limit; o++ {
		due := x.first.Add(time.Duration(o) * time.Millisecond)
		got = append(got, Entry{Due: due, Shard: shard, Object: o, Class: "c"})
	}
	x.read += len(got)
	return got, nil
}

func TestMillionOverdueIsBoundedA9(t *testing.T) {
	const shards, each = 8, 125_000
	var x *stair
	r := newRig(t, func(c *Config) { c.Shards, c.LookAhead, c.InFlight = shards, 64, 100 })
	x = &stair{first: r.Now().Add(-24 * time.Hour), n: each}
	r.s.cfg.Source = x
	fired := 0
	r.s.cfg.Fire = func(batch []Entry) {
		fired += len(batch)
		r.got = append(r.got, batch...)
		if st := r.s.Stats(); st.Held > shards*2*64 || st.InFlight > 100 {
			t.Fatalf("%+v", st)
		}
	}
	r.s.Start()
	for r.run(); len(r.got) > 0; r.run() {
		for _, e := range r.got {
			r.s.Clear(e.Shard, e.Object)
			r.s.Done(e)
		}
		r.got = r.got[:0]
	}
	if fired != shards*each || x.read != fired {
		t.Errorf("%d fired of %d, %d read", fired, shards*each, x.read)
	}
}

func TestHundredMillionStoredTakeNoMemory(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Shards = 64 })
	x := &stair{first: r.Now().Add(time.Hour), n: 100_000_000 / 64}
	r.s.cfg.Source = x
	r.s.Start()
	r.run()
	if st := r.s.Stats(); st.Held != 64*256 || x.read != st.Held {
		t.Errorf("%+v after %d entries read", st, x.read)
	}
}

func TestDropAndRefillAcrossTheBound(t *testing.T) {
	r := newRig(t, func(c *Config) { c.LookAhead = 4 })
	r.s.Start()
	r.run()
	for i := range uint64(100) { // the latest first, so that each drop is of older sets
		r.set(r.entry(100-i, time.Duration(100-i)*time.Second))
	}
	if st := r.s.Stats(); st.Held > 8 {
		t.Errorf("%d held", st.Held)
	}
	read := r.x.read
	r.set(r.entry(1000, time.Hour))
	if r.run(); r.x.read != read {
		t.Error("a set beyond the bound was read back at once")
	}
	for i := range uint64(100) {
		r.advance(time.Second)
		want(t, r.handle(), i+1)
	}
	r.advance(time.Hour)
	want(t, r.handle(), 1000)
	if r.x.read > 110 {
		t.Errorf("%d entries read for 101", r.x.read)
	}
}

func TestSetInThePastIsNotLostByADrop(t *testing.T) {
	r := newRig(t, func(c *Config) { c.LookAhead, c.InFlight = 2, 1 })
	for i := range uint64(50) {
		r.x.put(r.entry(i, time.Hour))
	}
	r.s.Start()
	r.run()
	for i := range uint64(50) {
		r.set(r.entry(100+i, -time.Duration(i)*time.Second))
	}
	seen := map[uint64]bool{}
	for r.run(); len(r.got) > 0; r.run() {
		for _, o := range r.handle() {
			seen[o] = true
		}
	}
	if len(seen) != 50 {
		t.Errorf("%d of 50 fired", len(seen))
	}
}

// What is reported while a read hangs is not lost, however much it is.
func TestReadIsMadeAgainWhenTooMuchHappened(t *testing.T) {
	r := newRig(t, func(c *Config) { c.LookAhead = 4 })
	for i := range uint64(10) {
		r.x.put(r.entry(i, time.Second))
	}
	r.x.during = func() {
		r.x.during = nil
		for i := range uint64(maxTouched) {
			r.s.Clear(0, 1_000_000+i)
		}
		r.clear(Entry{Object: 3})
		r.set(r.entry(50, 2*time.Second))
	}
	r.s.Start()
	r.run()
	if st := r.s.Stats(); st.Held != 4 {
		t.Errorf("%d held", st.Held)
	}
	r.advance(time.Second)
	want(t, r.handle(), 0, 1, 2, 4, 5, 6, 7, 8, 9)
	r.advance(time.Second)
	want(t, r.handle(), 50)
}

func TestReadOfAFormerStartIsVoid(t *testing.T) {
	r := newRig(t, nil)
	r.x.put(r.entry(1, 0))
	r.x.err = errors.New("not owner")
	r.x.during = func() {
		r.x.during = func() { r.x.err = nil } // by the second read
		r.s.StopShard(0)
		r.s.StartShard(0)
	}
	r.s.Start()
	r.run()
	want(t, r.objects(), 1)
}

func TestStopShardKeepsSlotsAndStartReadsAgain(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Shards, c.InFlight = 2, 1 })
	r.x.put(r.entry(1, 0))
	other := r.entry(2, 0)
	other.Shard = 1
	r.x.put(other)
	r.s.StartShard(0)
	r.s.StartShard(0)
	r.run()
	want(t, r.objects(), 1)
	r.s.StopShard(0)
	r.s.StopShard(0)
	r.s.StartShard(1)
	r.run()
	want(t, r.objects(), 1) // the slot is not free yet
	r.s.Done(r.got[0])
	r.run()
	want(t, r.objects(), 1, 2)
	r.s.Done(r.got[1])
	r.s.StartShard(0)
	r.run()
	want(t, r.objects(), 1, 2, 1) // nobody has handled it
}

func TestStopWaitsForThePump(t *testing.T) {
	r := newRig(t, nil)
	r.x.put(r.entry(1, 0))
	r.x.put(r.entry(2, time.Second))
	r.s.Start()
	r.s.Stop() // the pump had been started
	if len(r.tasks) > 0 {
		t.Error("Stop returned before the pump ended")
	}
	r.s.Stop()
	r.s.Start()
	r.set(r.entry(3, 0))
	r.advance(time.Hour)
	want(t, r.objects())
	if len(r.timers) > 0 || r.x.scans > 0 {
		t.Errorf("after Stop: %d timers, %d scans", len(r.timers), r.x.scans)
	}
}

func TestSourceErrorStops(t *testing.T) {
	broken := errors.New("no disk")
	for name, edit := range map[string]func(*rig){
		"error":        func(r *rig) { r.x.err = broken },
		"out of order": func(r *rig) { slices.Reverse(r.x.rows[0]) },
		"wrong shard":  func(r *rig) { r.x.rows[0][1].Shard = 7 },
	} {
		t.Run(name, func(t *testing.T) {
			var told []error
			var r *rig
			r = newRig(t, func(c *Config) {
				c.OnError = func(err error) { told = append(told, err); r.s.Stop() }
			})
			r.x.put(r.entry(1, time.Second))
			r.x.put(r.entry(2, time.Second))
			edit(r)
			r.s.Start()
			r.run()
			if len(told) != 1 || !(errors.Is(told[0], broken) || errors.Is(told[0], ErrCorrupt)) {
				t.Fatalf("told of %v", told)
			}
			if !strings.HasPrefix(told[0].Error(), "alarm: scan shard 0: ") {
				t.Errorf("error reads %q", told[0])
			}
			r.set(r.entry(3, 0))
			r.advance(time.Hour)
			want(t, r.objects())
		})
	}
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

func TestConfigIsChecked(t *testing.T) {
	fire := func([]Entry) {}
	for i, c := range []Config{
		{},
		{Shards: 1, Fire: fire},
		{Shards: 1, Source: newIndex()},
		{Shards: -1, Source: newIndex(), Fire: fire},
		{Shards: 1, Source: newIndex(), Fire: fire, Batch: -1},
	} {
		if _, err := NewScheduler(c); err == nil || !strings.HasPrefix(err.Error(), "alarm: config: ") {
			t.Errorf("config %d: %v", i, err)
		}
	}
}

func want(t *testing.T, got []uint64, wanted ...uint64) {
	t.Helper()
	if !slices.Equal(got, wanted) {
		t.Errorf("fired %s, want %s", fmt.Sprint(got), fmt.Sprint(wanted))
	}
}
