package alarm

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// placed makes an entry of an object that has its number as its name.
func (r *rig) placed(class string, object uint64, d time.Duration) Entry {
	e := r.entry(object, d)
	e.Class, e.Name = class, fmt.Sprint(object)
	return e
}

// wantPlace compares the place of an object.
func (r *rig) wantPlace(t *testing.T, class string, object uint64, want Place) {
	t.Helper()
	if d := cmp.Diff(want, r.s.Explain(0, class, fmt.Sprint(object))); d != "" {
		t.Errorf("O18: object %d of %s: -want +got\n%s", object, class, d)
	}
}

// Proves O18: an entry is absent, waits, is queued behind those of its class, and is in flight.
func TestPlaces(t *testing.T) {
	r := newRig(t, func(c *Config) { c.InFlight = 1 })
	r.wantPlace(t, "c", 1, Place{Where: Absent, Limit: 1})
	r.s.Start()
	r.wantPlace(t, "c", 1, Place{Where: Absent, Limit: 1}) // nothing has been read yet
	r.run()
	r.wantPlace(t, "c", 1, Place{Where: Absent, Limit: 1, All: true})
	due := r.Now().Add(time.Second)
	for object, class := range []string{"c", "c", "d", "c"} {
		e := r.placed(class, uint64(object), time.Second)
		e.Due = due
		r.set(e)
	}
	r.run()
	r.wantPlace(t, "c", 1, Place{Where: Waiting, Due: due, Limit: 1, Look: due, All: true})
	r.wantPlace(t, "d", 1, Place{Where: Absent, Limit: 1, Look: due, All: true}) // of another class
	r.advance(time.Second)
	r.wantPlace(t, "c", 0, Place{Where: InFlight, Due: due, InFlight: 1, Limit: 1, All: true})
	r.wantPlace(t, "c", 1, Place{Where: Queued, Due: due, Classes: 2, InFlight: 1, Limit: 1, All: true})
	r.wantPlace(t, "d", 2, Place{Where: Queued, Due: due, Classes: 2, InFlight: 1, Limit: 1, All: true})
	r.wantPlace(t, "c", 3, Place{Where: Queued, Due: due, Before: 1, Classes: 2, InFlight: 1, Limit: 1, All: true})
	r.handle()
	r.run()
	r.wantPlace(t, "c", 0, Place{Where: Absent, InFlight: 1, Limit: 1, All: true})
	r.wantPlace(t, "d", 2, Place{Where: InFlight, Due: due, InFlight: 1, Limit: 1, All: true}) // the classes take turns
	r.s.Stop()
	r.wantPlace(t, "c", 3, Place{Where: Absent, InFlight: 1, Limit: 1})
	r.wantPlace(t, "d", 2, Place{Where: InFlight, Due: due, InFlight: 1, Limit: 1})
}

// Proves O18: the place in the queue is counted up to MaxBefore.
func TestPlaceIsBounded(t *testing.T) {
	r := newRig(t, func(c *Config) { c.InFlight, c.LookAhead = 1, 2*MaxBefore })
	for object := range uint64(MaxBefore + 3) {
		r.x.put(r.placed("c", object, time.Duration(object)-time.Hour))
	}
	r.s.Start()
	r.run()
	for object, want := range map[uint64]int{1: 0, MaxBefore: MaxBefore - 1, MaxBefore + 1: MaxBefore, MaxBefore + 2: MaxBefore} {
		if p := r.s.Explain(0, "c", fmt.Sprint(object)); p.Where != Queued || p.Before != want {
			t.Errorf("O18: object %d: %+v, want %d before it", object, p, want)
		}
	}
}

// Proves O18: entries beyond the look-ahead are on disk, and Read says from where on, also
// while the next of them are read.
func TestPlacesOnDisk(t *testing.T) {
	r := newRig(t, func(c *Config) { c.LookAhead = 4 })
	began := r.Now()
	for object := range uint64(10) {
		r.x.put(r.placed("c", object, time.Duration(1+object)*time.Minute))
	}
	r.s.Start()
	r.run()
	look := began.Add(time.Minute)
	r.wantPlace(t, "c", 3, Place{Where: Waiting, Due: began.Add(4 * time.Minute), Limit: 1024, Look: look, Read: began.Add(4 * time.Minute)})
	r.wantPlace(t, "c", 4, Place{Where: Absent, Limit: 1024, Look: look, Read: began.Add(4 * time.Minute)})
	reads := 0
	r.x.during = func() {
		reads++
		p := r.s.Explain(0, "c", "9")
		if p.Where != Absent || p.All || p.Read.IsZero() {
			t.Errorf("O18: while the shard is read: %+v", p)
		}
	}
	for range 10 {
		r.advance(time.Minute)
		r.handle()
	}
	if p := r.s.Explain(0, "c", "9"); reads == 0 || p.Where != Absent || !p.All {
		t.Errorf("O18: after %d reads and all alarms: %+v", reads, p)
	}
}

// Proves O18, A9: an alarm that the wall clock has passed and the timer has not: it waits still,
// and the time of the look is past. The scheduler looks within Recheck.
func TestPlaceAfterAJumpOfTheClock(t *testing.T) {
	r := newRig(t, nil)
	r.s.Start()
	r.run()
	e := r.placed("c", 1, time.Hour)
	r.set(e)
	r.run()
	look := r.Now().Add(time.Minute)
	r.jump(2 * time.Hour)
	r.wantPlace(t, "c", 1, Place{Where: Waiting, Due: e.Due, Limit: 1024, Look: look, All: true})
	r.advance(time.Minute)
	r.wantPlace(t, "c", 1, Place{Where: InFlight, Due: e.Due, InFlight: 1, Limit: 1024, All: true})
}

// An object that was deleted while its alarm was in flight and made again has two entries. The
// one in flight is told.
func TestPlaceOfTwoLives(t *testing.T) {
	for range 20 { // the order of the map changes
		r := newRig(t, nil)
		r.s.Start()
		r.run()
		first := r.placed("c", 1, 0)
		r.set(first)
		r.run()
		second := r.placed("c", 2, time.Hour)
		second.Name = first.Name
		r.set(second)
		if p := r.s.Explain(0, "c", first.Name); p.Where != InFlight {
			t.Fatalf("the object is told as %+v, want in flight", p)
		}
	}
}
