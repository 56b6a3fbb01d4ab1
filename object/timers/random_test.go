package timers_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object/timers"
)

// modelTimer is a timer of the model.
type modelTimer struct {
	due, scheduled time.Duration // since the begin
	every          time.Duration // fixed rate; 0: it fires once
	anchor, last   time.Duration
	taken          bool
	failures       int
	fails          int // attempts of the next occurrence that fail
}

// model is what the timers of one object must do: the rules of T1 to T4 in a few lines.
type model struct {
	timers map[string]*modelTimer
	clock  time.Duration // of the newest attempt
	fired  []string      // name@scheduled
	dead   []string
}

const modelAttempts, modelWait = 3, 7 * time.Second

// pass lets the model fire all that is due up to now.
func (m *model) pass(now time.Duration) {
	for {
		name := ""
		for n, x := range m.timers {
			if b := m.timers[name]; x.due <= now && (b == nil || x.due < b.due || x.due == b.due && n < name) {
				name = n
			}
		}
		if name == "" {
			return
		}
		m.fire(name)
	}
}

// fire runs one attempt. Virtual time stops at each time at which a timer is due, so an
// attempt is late only where it was due before its turn.
func (m *model) fire(name string) {
	x := m.timers[name]
	m.clock = max(m.clock, x.due)
	if x.every > 0 && !x.taken {
		x.scheduled = x.due
		x.last = max(x.due, m.clock) // RunOnce
	}
	if x.fails > 0 {
		x.fails--
		x.failures++
		x.taken = true
		if x.failures < modelAttempts {
			x.due = m.clock + modelWait
			return
		}
		m.dead = append(m.dead, fmt.Sprint(name, "@", x.scheduled))
	} else {
		m.fired = append(m.fired, fmt.Sprint(name, "@", x.scheduled))
	}
	if x.every == 0 {
		delete(m.timers, name)
		return
	}
	passed := x.last - x.anchor
	x.due = x.anchor + passed - passed%x.every + x.every
	x.taken, x.failures = false, 0
}

// list is how All must show the model.
func (m *model) list() string {
	names := make([]string, 0, len(m.timers))
	for n := range m.timers {
		names = append(names, n)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(m.timers[a].due, m.timers[b].due), strings.Compare(a, b))
	})
	var out []string
	for _, n := range names {
		out = append(out, fmt.Sprint(n, "@", m.timers[n].due, "!", m.timers[n].failures))
	}
	return strings.Join(out, " ")
}

// payload tells a timer how often it is to fail.
type payload struct{ Fails int }

// Proves T1, T3, T4, T5: random programs of At, On, Cancel and time do what the model does.
func TestRandomTimers(t *testing.T) {
	harness.Check(t, func(s *harness.Sim, rt *rapid.T) {
		o := timers.Options{Retry: alarm.Retry{MaxAttempts: modelAttempts, Backoff: alarm.Constant(modelWait)}}
		r := newRig(s, o, nil)
		begin := s.Now()
		m := &model{timers: map[string]*modelTimer{}}
		fails := map[string]int{}
		var fired []string
		r.fire = func(_ context.Context, _ *box, t timers.Timer) error {
			if fails[t.Name] > 0 {
				fails[t.Name]--
				return errNo
			}
			fired = append(fired, fmt.Sprint(t.Name, "@", t.Scheduled.Sub(begin)))
			return nil
		}
		names := []string{"a", "b", "c", "d", "e"}
		times := []time.Duration{0, time.Second, 7 * time.Second, 20 * time.Second, time.Minute, 5 * time.Minute}
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			name := rapid.SampledFrom(names).Draw(rt, "name")
			d := rapid.SampledFrom(times).Draw(rt, "time")
			now := s.Now().Sub(begin)
			n := rapid.SampledFrom([]int{0, 0, 0, 1, 2, 3}).Draw(rt, "fails")
			switch rapid.SampledFrom([]string{"at", "at", "on", "cancel", "advance", "advance", "restart"}).Draw(rt, "do") {
			case "at":
				fails[name] = n
				m.clock = now
				m.timers[name] = &modelTimer{due: now + d, scheduled: now + d, fails: n}
				r.must(func(ctx context.Context, b *box) error { return b.timers.At(ctx, name, begin.Add(now+d), payload{n}) })
			case "on":
				d += time.Second
				old := m.timers[name]
				if old == nil || old.every != d {
					fails[name] = n
					m.timers[name] = &modelTimer{due: now + d, every: d, anchor: now, fails: n}
				}
				r.must(func(ctx context.Context, b *box) error { return b.timers.On(ctx, name, jobs.Rate(d), nil) })
			case "cancel":
				_, had := m.timers[name]
				delete(m.timers, name)
				calls := 0
				r.must(func(ctx context.Context, b *box) error {
					was, err := b.timers.Cancel(ctx, name)
					// A repeat after a crash may follow one that was stored.
					if calls++; err == nil && was != had && calls == 1 {
						err = fmt.Errorf("Cancel is %t, the model has %t", was, had)
					}
					return err
				})
			case "advance":
				s.Advance(d)
			case "restart":
				s.Restart()
			}
			s.RunUntilIdle()
			if s.Crashes() > 0 {
				return // the next test has crashes; here the times are exact
			}
			m.pass(s.Now().Sub(begin))
			var got []string
			r.must(func(ctx context.Context, b *box) error {
				got = nil
				all, err := b.timers.All(ctx, timers.Timer{}, 10)
				for _, x := range all {
					got = append(got, fmt.Sprint(x.Name, "@", x.Due.Sub(begin), "!", x.Failures))
				}
				return err
			})
			if a, b := strings.Join(got, " "), m.list(); a != b {
				s.Fatalf("at %v the timers are %s\nthe model has %s", s.Now().Sub(begin), a, b)
			}
			if a, b := byName(fired), byName(m.fired); a != b {
				s.Fatalf("at %v fired %s\nthe model %s", s.Now().Sub(begin), a, b)
			}
			if len(r.letters()) != len(m.dead) {
				s.Fatalf("letters %+v, the model %v", r.letters(), m.dead)
			}
		}
	}, harness.OneAlarm, harness.EarliestTimer)
}

// byName tells the firings of each timer in their order. Those of different timers that are due
// at one instant have none that is promised.
func byName(fired []string) string {
	sorted := slices.Clone(fired)
	slices.SortStableFunc(sorted, func(a, b string) int { return cmp.Compare(a[0], b[0]) })
	return fmt.Sprint(sorted)
}

// Proves T1, T2, T4: a random program that is crashed at random points: a timer that was set
// once takes effect once, and one that was cancelled before its time not at all.
func TestRandomTimersWithCrashes(t *testing.T) {
	harness.Check(t, func(s *harness.Sim, rt *rapid.T) {
		r := newRig(s, quick, nil)
		begin := s.Now()
		r.fire = func(ctx context.Context, b *box, t timers.Timer) error {
			n := payload{}
			if err := t.Payload(&n); err != nil {
				return err
			}
			if err := count(ctx, b, t.Name); err != nil {
				return err
			}
			if t.Failures < n.Fails {
				return errNo
			}
			return nil
		}
		want := map[string]int{}
		for i := range rapid.IntRange(1, 12).Draw(rt, "timers") {
			name, n := fmt.Sprint(i), rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(rt, "fails")
			at := begin.Add(time.Hour + rapid.SampledFrom([]time.Duration{0, 0, time.Second, time.Minute}).Draw(rt, "after"))
			want[name] = 1
			r.must(func(ctx context.Context, b *box) error { return b.timers.At(ctx, name, at, payload{n}) })
			if rapid.SampledFrom([]bool{false, false, true}).Draw(rt, "cancelled") {
				want[name] = 0
				r.must(func(ctx context.Context, b *box) error { _, err := b.timers.Cancel(ctx, name); return err })
			}
		}
		s.Advance(begin.Add(2 * time.Hour).Sub(s.Now()))
		s.Finally("each as often as it should", func() error {
			dead := 0
			for name, n := range want {
				got := r.counted(name)
				if got != n {
					dead++
				}
				if got > n {
					return fmt.Errorf("timer %s has fired %d times, want %d", name, got, n)
				}
			}
			if letters := r.letters(); len(letters) != dead {
				return fmt.Errorf("%d timers have not fired, letters %+v", dead, letters)
			}
			return nil
		})
	}, harness.OneAlarm, harness.EarliestTimer, harness.NoTornBatch)
}
