package patterns

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
)

// meter counts the concurrent runs in the living process, and when it started.
type meter struct {
	s       *harness.Sim
	process int
	running map[string]int
	last    time.Time
}

func (m *meter) begin(subject string, most int) {
	if m.running == nil || m.process != m.s.Crashes() {
		m.process, m.running, m.last = m.s.Crashes(), make(map[string]int), time.Time{}
	}
	m.running[subject]++
	m.s.Always("the limit holds", m.running[subject] <= most, subject, m.running)
	m.s.Sometimes("the limit of "+subject+" is reached", m.running[subject] == most)
}

func TestCrashPollsKeepTheirLimits(t *testing.T) {
	harness.Exhaust(t, func(s *harness.Sim) {
		m := &meter{s: s}
		polls := NewPolls(func(ctx context.Context, run *continuous.Run[Feed]) error {
			m.begin("poll", 2)
			now := s.Now()
			// After crashes in a row runs are held back, and they count as started from then on (J17).
			s.Always("a second lies between two starts", s.Crashes() > 1 || m.last.IsZero() || now.Sub(m.last) >= time.Second, m.last, now)
			m.last = now
			err := run.Sleep(ctx, 3*time.Second)
			m.running["poll"]--
			return err
		})
		s.Host(polls)
		for i := range 4 {
			s.OK(s.Retry(func() error {
				_, err := polls.Start(s.Context(), s, fmt.Sprint("account ", i), Feed{})
				return err
			}))
		}
		s.Advance(time.Minute)
		s.Finally("each has been asked", func() error {
			for i := range 4 {
				st, err := polls.Status(s.Context(), s, fmt.Sprint("account ", i))
				if err != nil || st.Meta.RunCount != 1 {
					return fmt.Errorf("account %d: %+v, %v", i, st, err)
				}
			}
			return nil
		})
	}, harness.NoLostAck, harness.OneAlarm, harness.NeverOrphaned)
}

func TestCrashHooksOfOneCustomerKeepTheirOrder(t *testing.T) {
	harness.Exhaust(t, func(s *harness.Sim) {
		m := &meter{s: s}
		hooks := NewHooks(func(ctx context.Context, t *workerpool.Task[string]) (int, error) {
			m.begin(t.Key, 1)
			err := t.Sleep(ctx, time.Second)
			m.running[t.Key]--
			if err == nil {
				s.World().Do(t.In, nil)
			}
			return 0, err
		})
		s.Host(hooks)
		events := []string{"anna 1", "ben 1", "anna 2", "ben 2"}
		for _, e := range events {
			s.OK(s.Retry(func() error { return Notify(s.Context(), s, hooks, e[:len(e)-2], e) }))
		}
		s.Advance(time.Minute)
		s.Finally("each customer has had all, in order", func() error {
			for _, customer := range []string{"anna", "ben"} {
				var got []string
				for _, e := range s.World().Log() {
					if e.Key[:len(e.Key)-2] == customer && !slices.Contains(got, e.Key) {
						got = append(got, e.Key)
					}
				}
				if !slices.Equal(got, []string{customer + " 1", customer + " 2"}) {
					return fmt.Errorf("%s has had %q", customer, got)
				}
			}
			return nil
		})
	}, harness.NoLostAck, harness.OneAlarm, harness.NeverOrphaned)
}
