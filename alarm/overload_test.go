package alarm

import (
	"testing"
	"time"
)

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

// Reports that arrive while a read hangs are not lost, however many they are.
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
