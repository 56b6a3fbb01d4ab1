package debounce_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs/debounce"
)

// Proves D5, Case JB8: a Reduce changes the state in place, also beyond the part that it
// returns, and then refuses the event or panics. It has changed nothing: the waiting
// events, the next Reduce and the flush are as before.
func TestReduceThatRefuses(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		l := newLedger(s, config{Quiet: time.Hour, Reduce: func(ids []string, _ bool, e event) ([]string, error) {
			for i := range ids {
				if e.ID == "bad" || e.ID == "worse" {
					ids[i] = "spoilt"
				}
			}
			switch e.ID {
			case "bad":
				return nil, errors.New("refused")
			case "worse":
				panic("refused")
			}
			return append(ids, e.ID), nil
		}})
		kept := []string{"a"}
		l.add("a")
		for i, id := range []string{"bad", "worse"} {
			next := []string{"b", "c"}[i]
			_, err := l.job.Add(s.Context(), s, name, event{ID: id})
			s.Always("refused", err != nil, id)
			p, err := l.job.Pending(s.Context(), s, name)
			s.Always("what waits is as before", err == nil && slices.Equal(p.State, kept) && p.Count == len(kept), p, err)
			l.add(next)
			kept = append(kept, next)
		}
		s.Advance(2 * time.Hour)
		s.Finally("flushed", func() error { return l.flushedAs(debounce.ReasonQuiet) })
		s.Always("all, unspoilt", slices.Equal(l.flushes[1].State, kept), l.flushes[1])
	})
}
