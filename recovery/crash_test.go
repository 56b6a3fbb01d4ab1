package recovery_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/recovery"
)

// Proves R1, R3, R5, R6: damage is found at the next open, or by a scrub with Repair, and
// either may be cut off at any point. The next one leaves nothing to find, and every job
// has run.
func TestCrashInRepair(t *testing.T) {
	names := []string{"healthy", "orphan", "unreachable"}
	damages := map[string]broken{
		"healthy":     {Meta: map[string]any{"status": "running"}, Armed: true},
		"orphan":      {Meta: map[string]any{"status": "running"}},
		"unreachable": {Meta: map[string]any{"status": "executing", "executingAt": "2026-01-01T00:00:00Z"}, Open: true},
	}
	crashes.Try(t, func(s *harness.Sim) {
		s.Host(raw)
		for _, name := range names {
			s.OK(s.Retry(func() error {
				_, err := put.Call(s.Context(), s, name, damages[name])
				return err
			}))
		}
		s.Restart(harness.WithCode(ticker))
		s.OK(s.Retry(func() error {
			return s.WithHost(func(ctx context.Context, h *object.Host) error {
				_, err := recovery.Scrub(ctx, h, recovery.ScrubOptions{Repair: true})
				return err
			})
		}))
		s.Advance(2 * time.Hour)
		s.Finally("all is well and has run", func() error {
			seen, err := recovery.ScrubStore(s.Store())
			if err != nil || seen.Objects != len(names) || seen.Suspects+len(seen.Findings) > 0 {
				return fmt.Errorf("%s, %v", list(seen), err)
			}
			for _, name := range names {
				st, err := ticker.Status(s.Context(), s, name)
				if err != nil || st.Meta.RunCount == 0 {
					return fmt.Errorf("%s is %+v, %v", name, st, err)
				}
			}
			return nil
		})
	}, harness.NoLostAck, harness.OneAlarm, crashes.Budget(1500)) // it has more points than other stories
}
