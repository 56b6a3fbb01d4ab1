package alarm

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

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
	want(t, r.objects(), 1, 2, 1) // no handler has run
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
