package harness_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
)

// toyRun stores the rows of a run by hand, so that it can store wrong ones.
type toyRun struct {
	st   *object.State
	meta jobs.Meta
}

// put stores the status, the label that belongs to it, and an output if there is one.
func (r *toyRun) put(ctx context.Context, status jobs.Status, output string) error {
	r.meta.Name, r.meta.ID = r.st.ID().Class, r.st.ID().Name
	r.meta.Type, r.meta.Status, r.meta.EndedAt = "workflow", status, time.Time{}
	if status.Ended() {
		r.meta.EndedAt = r.st.Now().UTC()
	}
	rows := r.st.Storage()
	err := errors.Join(rows.Put(ctx, jobs.MetaKey, r.meta), rows.Remove(ctx, "out"), r.st.Driver().SetLabel(ctx, status.Label()))
	if err == nil && output != "" {
		err = rows.Put(ctx, "out", output)
	}
	return err
}

// is is put with the event of the status.
func (r *toyRun) is(ctx context.Context, status jobs.Status, event, output string) error {
	return errors.Join(r.put(ctx, status, output), r.st.Emit(ctx, event, jobs.Event{}))
}

// toyEnds is a scenario: a run begins, ends in Rome, and is then changed by each of the functions in
// a turn of its own, each an hour later.
func toyEnds(changes ...func(r *toyRun, ctx context.Context) error) harness.Scenario {
	return func(s *harness.Sim) {
		trips := object.Define("trip", func(ctx context.Context, st *object.State) (*toyRun, error) {
			r := &toyRun{st: st}
			_, err := st.Storage().GetInto(ctx, jobs.MetaKey, &r.meta)
			return r, err
		})
		next := object.Handle(trips, "next", func(r *toyRun, ctx context.Context, to int) (int, error) {
			var at int
			if _, err := r.st.Storage().GetInto(ctx, "at", &at); err != nil || at >= to {
				return at, err
			}
			err := r.st.Storage().Put(ctx, "at", to)
			switch {
			case to == 1:
				return to, errors.Join(err, r.is(ctx, jobs.Running, jobs.EventCreated, ""))
			case to == 2:
				return to, errors.Join(err, r.is(ctx, jobs.Completed, jobs.EventCompleted, "Rome"))
			}
			return to, errors.Join(err, changes[to-3](r, ctx))
		})
		s.Host(trips)
		for to := 1; to <= len(changes)+2; to++ {
			s.OK(s.Retry(func() error { _, err := next.Call(s.Context(), s, "1", to); return err }))
			s.Advance(time.Hour)
		}
	}
}

// Proves F12. OneEnd finds each way in which a run can have more than one end, or half of one.
func TestOneEnd(t *testing.T) {
	begin := func(r *toyRun, ctx context.Context) error { return r.is(ctx, jobs.Running, jobs.EventResumed, "") }
	lives := func(r *toyRun, ctx context.Context) error {
		r.meta.CreationID = "second"
		return r.is(ctx, jobs.Running, jobs.EventCreated, "")
	}
	ends := func(r *toyRun, ctx context.Context) error { return r.is(ctx, jobs.Failed, jobs.EventFailed, "") }
	for name, c := range map[string]struct {
		changes []func(r *toyRun, ctx context.Context) error
		want    string // empty: it is right
	}{
		"one end":                    {nil, ""},
		"an end after another begin": {[]func(*toyRun, context.Context) error{begin, ends}, ""},
		"an end of another life":     {[]func(*toyRun, context.Context) error{lives, ends}, ""},
		"two ends": {[]func(*toyRun, context.Context) error{ends},
			"trip/1 has ended twice: it was completed at 1h0m0s, and failed at 2h0m0s"},
		"two ends after another begin": {[]func(*toyRun, context.Context) error{begin, ends, ends},
			"trip/1 has ended twice: it was failed at 3h0m0s, and failed at 4h0m0s"},
		"another output": {[]func(*toyRun, context.Context) error{func(r *toyRun, ctx context.Context) error {
			return r.st.Storage().Put(ctx, "out", "Oslo")
		}}, `trip/1 had completed at 1h0m0s with "Rome", and now has completed at 1h0m0s with "Oslo"`},
		"another time": {[]func(*toyRun, context.Context) error{func(r *toyRun, ctx context.Context) error {
			return r.put(ctx, jobs.Completed, "Rome")
		}}, `trip/1 had completed at 1h0m0s with "Rome", and now has completed at 2h0m0s with "Rome"`},
		"another error": {[]func(*toyRun, context.Context) error{begin, ends, func(r *toyRun, ctx context.Context) error {
			r.meta.LastError = "full"
			return r.st.Storage().Put(ctx, jobs.MetaKey, r.meta)
		}}, `trip/1 had failed at 3h0m0s with the error "", and now has failed at 3h0m0s with the error "full"`},
		"another status": {[]func(*toyRun, context.Context) error{func(r *toyRun, ctx context.Context) error {
			return r.put(ctx, jobs.Cancelled, "")
		}}, `trip/1 is cancelled, and its newest event of an end or a begin is "completed"`},
		"an end taken back": {[]func(*toyRun, context.Context) error{func(r *toyRun, ctx context.Context) error {
			return r.put(ctx, jobs.Running, "")
		}}, `trip/1 is running, and its newest event of an end or a begin is "completed"`},
		"an end without an event": {[]func(*toyRun, context.Context) error{begin, func(r *toyRun, ctx context.Context) error {
			return r.put(ctx, jobs.Failed, "")
		}}, "trip/1 is failed without an event of that end"},
		"an output of a failed run": {[]func(*toyRun, context.Context) error{begin, func(r *toyRun, ctx context.Context) error {
			return r.is(ctx, jobs.Failed, jobs.EventFailed, "Oslo")
		}}, "trip/1 is failed, and whether it has an output is true"},
		"no output": {[]func(*toyRun, context.Context) error{begin, func(r *toyRun, ctx context.Context) error {
			return r.is(ctx, jobs.Completed, jobs.EventCompleted, "")
		}}, "trip/1 is completed, and whether it has an output is false"},
		"a label of before": {[]func(*toyRun, context.Context) error{begin, func(r *toyRun, ctx context.Context) error {
			return errors.Join(r.is(ctx, jobs.Failed, jobs.EventFailed, ""), r.st.Driver().SetLabel(ctx, "paused"))
		}}, `trip/1 is failed with the label "paused"`},
	} {
		t.Run(name, func(t *testing.T) {
			if c.want == "" {
				harness.Exhaust(t, toyEnds(c.changes...), harness.OneEnd, harness.Depth(2), harness.Budget(200))
				harness.Exhaust(t, toyEnds(c.changes...), harness.OneEnd, harness.PebbleStore(), harness.Budget(20))
				return
			}
			mustSay(t, problemOf(t, toyEnds(c.changes...), harness.OneEnd), "OneEnd: "+c.want, "F12: A run has exactly one end")
		})
	}
}

// Proves F12. A process that computes the outcome again after a crash is found if the first outcome was
// durable. One that was lost with its commit may be another.
func TestOneEndAcrossACrash(t *testing.T) {
	scenario := func(again bool) harness.Scenario {
		return func(s *harness.Sim) {
			trips := object.Define("trip", func(_ context.Context, st *object.State) (*toyRun, error) { return &toyRun{st: st}, nil })
			end := object.Handle(trips, "end", func(r *toyRun, ctx context.Context, _ struct{}) (int, error) {
				_, err := r.st.Storage().GetInto(ctx, jobs.MetaKey, &r.meta)
				switch outcome := fmt.Sprint("of process ", s.Crashes()); {
				case err != nil:
					return 0, err
				case r.meta.Status == jobs.None:
					return 0, r.is(ctx, jobs.Running, jobs.EventCreated, "")
				case !r.meta.Status.Ended():
					return 0, r.is(ctx, jobs.Completed, jobs.EventCompleted, outcome)
				case again:
					return 0, r.st.Storage().Put(ctx, "out", outcome)
				}
				return 0, nil
			})
			s.Host(trips)
			for range 3 {
				s.OK(s.Retry(func() error { _, err := end.Call(s.Context(), s, "1", struct{}{}); return err }))
			}
		}
	}
	harness.Exhaust(t, scenario(false), harness.OneEnd, harness.Depth(2))
	harness.Run(t, scenario(true), harness.OneEnd) // without a crash nothing is wrong
	mustSay(t, problemOf(t, scenario(true), harness.OneEnd), `with "of process 0", and now has completed at 0s with "of process 1"`)
}

// Proves F12. The verbs that let a run that has ended begin again give it another end, and OneEnd allows it.
func TestOneEndAllowsAnotherBegin(t *testing.T) {
	harness.Exhaust(t, func(s *harness.Sim) {
		refuses := true
		w := workflow.New[string, string]("trip", workflow.Config{Retention: jobs.Retention{Completed: time.Hour}})
		w.Func(func(ctx *workflow.Context, to string) (string, error) {
			return workflow.Step(ctx, "book", func(context.Context) (string, error) {
				if refuses {
					return "", object.Permanent(errors.New("full"))
				}
				return to, nil
			})
		})
		s.Host(w)
		begin := func(id string) {
			s.OK(s.Retry(func() error { _, err := w.Start(s.Context(), s, id, "Rome"); return err }))
			s.Advance(time.Minute)
		}
		begin("retried")
		begin("terminated")
		refuses = false
		s.OK(s.Retry(func() error { return ignore(w.Retry(s.Context(), s, "retried"), jobs.ErrIllegalMove) }))
		s.OK(s.Retry(func() error { return ignore(w.Terminate(s.Context(), s, "terminated", ""), jobs.ErrNotFound) }))
		begin("terminated")
		s.OK(s.Retry(func() error { return ignore(w.Restart(s.Context(), s, "retried", "Oslo"), jobs.ErrIllegalMove) }))
		s.Advance(3 * time.Hour) // they are removed by their Retention
		begin("retried")
	}, harness.OneEnd, harness.NoStuck, harness.Budget(300))
}

// ignore returns the error unless it is one of a verb with an answer that was lost.
func ignore(err, lost error) error {
	if errors.Is(err, lost) {
		return nil
	}
	return err
}
