package patterns

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
)

// twice calls fn twice, each time until there is an answer.
func twice(s *harness.Sim, fn func() error) {
	for range 2 {
		s.OK(s.Retry(fn))
	}
}

func TestCrashWorkIsUnique(t *testing.T) {
	harness.Exhaust(t, func(s *harness.Sim) {
		desk := NewDesk(
			func(ctx context.Context, t *workerpool.Task[string]) (int, error) {
				s.World().Do("report/"+t.In, nil)
				return 0, t.Sleep(ctx, time.Minute)
			},
			func(_ context.Context, t *workerpool.Task[string]) (int, error) {
				s.World().Do("mail/"+t.In, nil)
				return 0, nil
			})
		s.Host(desk.Reports, desk.Mails, desk.Feeds)
		var first, second workerpool.TaskRef
		twice(s, func() (err error) { first, err = desk.Order(s.Context(), s, "alice"); return err })
		twice(s, func() error { _, err := desk.Confirm(s.Context(), s, "order 1"); return err })
		created := 0
		twice(s, func() error {
			yes, err := desk.Follow(s.Context(), s, "news")
			if yes && err == nil {
				created++
			}
			return err
		})
		s.Sometimes("the start is told of as made", created == 1)
		s.Sometimes("the start was made, and its answer was lost", created == 0)
		s.Always("at most one start is told of as made", created <= 1)
		s.Advance(10 * time.Minute)
		s.OK(s.Retry(func() (err error) { second, err = desk.Order(s.Context(), s, "alice"); return err }))
		s.Always("the key is free again when its task has ended", second.ID != first.ID, first, second)
		twice(s, func() error { _, err := desk.Confirm(s.Context(), s, "order 1"); return err })
		s.Advance(10 * time.Minute)
		s.Finally("two reports, one mail", func() error {
			reports, err := desk.Reports.Stats(s.Context(), s)
			if err != nil {
				return err
			}
			mails, err := desk.Mails.Stats(s.Context(), s)
			if reports.Done != 2 || reports.Submitted != 2 || mails.Done != 1 || mails.Submitted != 1 {
				return fmt.Errorf("reports %+v, mails %+v, %v", reports, mails, err)
			}
			return err
		})
	}, harness.AtMostOncePerCrash("mail/"), harness.NoLostAck, harness.OneAlarm, harness.NeverOrphaned)
}
