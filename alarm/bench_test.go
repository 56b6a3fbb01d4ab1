package alarm

import (
	"fmt"
	"testing"
	"time"
)

// idle is a source that has nothing.
type idle struct{}

func (idle) Scan(int, Position, int) ([]Entry, error) { return nil, nil }

func newBench(b *testing.B, edit func(*Config)) *rig {
	return newRig(b, func(c *Config) {
		c.Shards, c.Source, c.Fire = 64, idle{}, func([]Entry) {}
		edit(c)
	})
}

// BenchmarkSet reports the commit of an alarm: of one beyond the look-ahead, of one that
// moves within it, and of new ones, which cause drops.
func BenchmarkSet(b *testing.B) {
	entry := func(r *rig, i int, d time.Duration) Entry {
		return Entry{Due: r.Now().Add(d), Shard: i & 63, Object: uint64(i), Class: "c"}
	}
	for _, stored := range []uint64{1_000, 1_000_000, 10_000_000} {
		b.Run(fmt.Sprintf("beyond/stored=%d", stored), func(b *testing.B) {
			r := newBench(b, func(*Config) {})
			r.s.cfg.Source = &stair{first: r.Now(), n: stored}
			r.s.Start()
			r.run()
			e := entry(r, 1<<40, 24*time.Hour)
			b.ReportAllocs()
			for b.Loop() {
				r.s.Set(e)
			}
		})
	}
	b.Run("move", func(b *testing.B) {
		r := newBench(b, func(*Config) {})
		r.s.Start()
		r.run()
		i := 0
		b.ReportAllocs()
		for b.Loop() {
			i++
			r.s.Set(entry(r, i%10_000, time.Hour+time.Duration(i%1000)*time.Second))
		}
	})
	b.Run("new", func(b *testing.B) {
		r := newBench(b, func(*Config) {})
		r.s.Start()
		r.run()
		i := 0
		b.ReportAllocs()
		for b.Loop() {
			i++
			r.s.Set(entry(r, i, time.Hour-time.Duration(i)))
			r.tasks = r.tasks[:0]
		}
	})
}

// BenchmarkFire is the life of one alarm: read or set, fired, cleared, done.
func BenchmarkFire(b *testing.B) {
	b.Run("stored", func(b *testing.B) {
		r := newBench(b, func(*Config) {})
		r.s.cfg.Fire = func(batch []Entry) {
			for i := range batch {
				r.s.Clear(batch[i].Shard, batch[i].Object)
				r.s.Done(batch[i])
			}
		}
		r.s.cfg.Source = &stair{first: time.Unix(0, 0), n: uint64(b.N/64) + 1}
		b.ReportAllocs()
		b.ResetTimer()
		r.s.Start()
		r.run()
	})
	b.Run("set", func(b *testing.B) {
		r := newBench(b, func(*Config) {})
		r.s.cfg.Fire = func(batch []Entry) { r.got = append(r.got, batch...) }
		r.s.Start()
		r.run()
		i := 0
		b.ReportAllocs()
		for b.Loop() {
			r.s.Set(Entry{Due: r.Now(), Shard: i & 63, Object: uint64(i), Class: "c"})
			if i++; i%1000 > 0 {
				continue
			}
			r.run()
			for _, e := range r.got {
				r.s.Clear(e.Shard, e.Object)
				r.s.Done(e)
			}
			r.got = r.got[:0]
			r.run()
		}
	})
}

func BenchmarkDecodeRow(b *testing.B) {
	row := AppendRow(nil, someRow)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := DecodeRow(row); err != nil {
			b.Fatal(err)
		}
	}
}
