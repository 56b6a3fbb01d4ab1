package transfer_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/admin/transfer"
	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/object/timers"
	"github.com/holdfast-dev/holdfast/storage"
)

// moved exports an object of the simulation and imports it again in its place.
func moved(s *harness.Sim, id storage.ID) {
	s.OK(s.WithHost(func(ctx context.Context, h *object.Host) error {
		var file bytes.Buffer
		if err := transfer.Export(ctx, h, id, &file, transfer.ExportOptions{}); err != nil {
			return err
		}
		_, err := transfer.Import(ctx, h, bytes.NewReader(file.Bytes()), transfer.ImportOptions{Alarms: true, Replace: true})
		return err
	}))
}

// letter is the one dead letter of an object.
func letter(s *harness.Sim, id storage.ID) (seq uint64) {
	s.OK(s.WithHost(func(ctx context.Context, h *object.Host) error {
		page, err := h.DeadLetters(ctx, object.DeadLettersOptions{Class: id.Class, Name: id.Name})
		if err == nil && len(page.Letters) != 1 {
			s.Fatalf("letters: %+v", page.Letters)
		}
		seq = page.Letters[0].Seq
		return err
	}))
	return seq
}

// bell is an object with a timer that fails.
type bell struct{ timers *timers.Timers }

func (b *bell) Alarm(ctx context.Context, info object.AlarmInfo) error {
	return b.timers.Alarm(ctx, info)
}

// Proves O27: the letter of a timer has a new number, under which its timer is replayed.
func TestDeadTimerIsReplayedThere(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		rings, broken := 0, true
		bells := object.Define("bell", func(ctx context.Context, st *object.State) (b *bell, err error) {
			b = new(bell)
			b.timers, err = timers.Attach(ctx, st, timers.Options{}, func(context.Context, timers.Timer) error {
				if broken {
					return object.Permanent(errors.New("broken"))
				}
				rings++
				return nil
			})
			return b, err
		}, timers.ClassOptions(object.ClassOptions{}))
		set := object.Handle(bells, "set", func(b *bell, ctx context.Context, at time.Time) (int, error) {
			return 0, b.timers.At(ctx, "ring", at, 1)
		})
		replay := object.Handle(bells, "replay", func(b *bell, ctx context.Context, seq uint64) (int, error) {
			return 0, b.timers.Replay(ctx, seq)
		})
		s.Host(bells)
		_, err := set.Call(s.Context(), s, "door", s.Now().Add(time.Minute))
		s.OK(err)
		s.Advance(time.Hour)
		before := letter(s, bells.ID("door"))
		moved(s, bells.ID("door"))
		after := letter(s, bells.ID("door"))
		s.Always("the letter has a greater number", after > before, before, after)
		broken = false
		_, err = replay.Call(s.Context(), s, "door", after)
		s.OK(err)
		s.Advance(time.Hour)
		s.Always("the timer rings once", rings == 1, rings)
	})
}

// Proves O27: a failed run of a workflow names its letter by the new number, so that Retry takes
// the letter away and goes on behind the steps that are recorded.
func TestFailedRunIsRetriedThere(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		steps, broken := 0, true
		orders := workflow.New[string, string]("order", workflow.Config{})
		orders.Func(func(ctx *workflow.Context, in string) (string, error) {
			if _, err := workflow.Step(ctx, "charge", func(context.Context) (int, error) { steps++; return 1, nil }); err != nil {
				return "", err
			}
			return workflow.Step(ctx, "ship", func(context.Context) (string, error) {
				if broken {
					return "", object.Permanent(errors.New("too heavy"))
				}
				return in, nil
			})
		})
		s.Host(orders)
		_, err := orders.Start(s.Context(), s, "7", "cup")
		s.OK(err)
		s.Advance(time.Hour)
		before := letter(s, orders.ID("7"))
		moved(s, orders.ID("7"))
		s.Always("the letter has a greater number", letter(s, orders.ID("7")) > before)
		broken = false
		s.OK(orders.Retry(s.Context(), s, "7"))
		s.Advance(time.Hour)
		out, err := orders.Wait(s.Context(), s, "7")
		s.OK(err)
		s.Always("the run has ended", out == "cup" && steps == 1, out, steps)
		s.OK(s.WithHost(func(ctx context.Context, h *object.Host) error {
			page, err := h.DeadLetters(ctx, object.DeadLettersOptions{})
			s.Always("no letter is left", len(page.Letters) == 0, page.Letters)
			return err
		}))
	})
}

// Proves O27: an execution that was open is lost as by a crash, once, and its run is run again. So
// a job goes on where it was.
func TestOpenExecutionIsLostOnce(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		runs := 0
		feeds := continuous.New(continuous.Config[int]{
			Name: "feed",
			Run: func(ctx context.Context, r *continuous.Run[int]) error {
				if runs++; runs == 1 {
					return r.Sleep(ctx, 100*time.Hour)
				}
				r.State++
				return nil
			},
		})
		s.Host(feeds)
		_, err := feeds.Start(s.Context(), s, "news", 1)
		s.OK(err)
		s.Advance(time.Second)
		moved(s, feeds.ID("news"))
		s.Advance(time.Hour)
		s.OK(s.WithHost(func(_ context.Context, h *object.Host) error {
			lines, _ := h.Recoveries()
			s.Always("one recovery of a crash", len(lines) == 1 && lines[0].Cause == "crash", lines)
			return nil
		}))
		state, err := feeds.State(s.Context(), s, "news")
		s.OK(err)
		s.Always("the run was run again", runs == 2 && state == 2, runs, state)
	})
}

// Proves O27: a partition of a worker pool is not exported.
func TestPartitionIsNotExported(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		images := workerpool.New(workerpool.Config[int, int]{
			Name: "image", Partitions: 1, Work: func(_ context.Context, t *workerpool.Task[int]) (int, error) { return t.In, nil },
		})
		s.Host(images)
		_, err := images.Enqueue(s.Context(), s, 1)
		s.OK(err)
		s.Advance(time.Second)
		s.OK(s.WithHost(func(ctx context.Context, h *object.Host) error {
			err := transfer.Export(ctx, h, images.ID("0"), new(bytes.Buffer), transfer.ExportOptions{})
			s.Always("it is refused", errors.Is(err, transfer.ErrNotCarried), err)
			return nil
		}))
	})
}
