package admin_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/admin"
	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
)

// Proves G3. Case WP6: after a crash in the midst of a replay of all dead work a new count has
// the letters that are left, so that each task is replayed exactly once.
func TestCrashBulkIsCountedAnew(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		healed := false
		images := workerpool.New(workerpool.Config[int, int]{
			Name: "image", Partitions: 2, Retention: jobs.Retention{Completed: 100 * time.Hour, Cancelled: 100 * time.Hour},
			Work: func(_ context.Context, task *workerpool.Task[int]) (int, error) {
				if !healed {
					return 0, object.Permanent(errors.New("ill"))
				}
				s.World().Do(task.OutsideKey, nil)
				return task.In, nil
			},
		})
		s.Host(images)
		const tasks = 3
		ids := make([]workerpool.TaskID, tasks)
		for i := range tasks {
			s.OK(s.Retry(func() error {
				ref, err := images.Enqueue(s.Context(), s, i, workerpool.Idempotent(fmt.Sprint(i), time.Hour*100))
				ids[i] = ref.ID
				return err
			}))
		}
		s.Advance(2 * time.Hour) // for those that crashes in a row hold back
		healed = true
		left := -1
		for left != 0 {
			s.OK(s.Retry(func() error {
				return s.WithHost(func(ctx context.Context, h *object.Host) error {
					a := admin.Live(h, images)
					count, err := a.CountDead(ctx, true, object.DeadLettersOptions{})
					if err != nil {
						return err
					}
					left = count.Matches
					p, err := a.Run(ctx, count.Token, nil)
					if err == nil && (p.Done != count.Matches || p.Skipped+p.Refused > 0) {
						s.Errorf("of %d letters: %+v", count.Matches, p)
					}
					return err
				})
			}))
		}
		s.Advance(2 * time.Hour)
		replayed := 0
		for _, id := range ids {
			s.OK(s.Retry(func() error {
				st, err := images.Status(s.Context(), s, id)
				if err == nil {
					s.Always("each task was replayed and is done", st.State == workerpool.Done, st)
				}
				return err
			}))
		}
		s.OK(s.Retry(func() error {
			return s.WithHost(func(ctx context.Context, h *object.Host) error {
				replayed = 0
				for part := range 2 {
					events, err := h.Events(ctx, images.ID(fmt.Sprint(part)), 0, object.MaxPage)
					if err != nil {
						return err
					}
					for _, e := range events {
						if e.Kind == workerpool.EventReplayed {
							replayed++
						}
					}
				}
				return nil
			})
		}))
		s.Always("each task was replayed once", replayed == tasks, replayed)
	}, harness.NoLostAck, harness.NeverOrphaned)
}
