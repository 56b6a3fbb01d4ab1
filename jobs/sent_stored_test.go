package jobs_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
)

// byBytes is a job type that is asked for a method by name and bytes.
type byBytes interface {
	CallBytes(ctx context.Context, h *object.Host, name, method string, arg []byte, opts ...object.CallOption) ([]byte, error)
}

// storedVerb returns a function that has a host handle a stored message, by the name of its
// method.
func storedVerb(s *harness.Sim) func(of byBytes, name, method, arg string) {
	return func(of byBytes, name, method, arg string) {
		s.OK(s.WithHost(func(ctx context.Context, h *object.Host) error {
			_, err := of.CallBytes(ctx, h, name, method, []byte(arg))
			return err
		}))
	}
}

// Messages of the verbs of a pool are handled with each field of their argument: the bytes
// are those that an earlier program has stored.
func TestStoredVerbsOfAPoolAreRead(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		j, call := newSendable(), storedVerb(s)
		s.Host(j.pool)
		s.OK(j.pool.Pause(s.Context(), s))
		status := func(number uint64) workerpool.Status[string] {
			st, err := j.pool.Status(s.Context(), s, workerpool.TaskID{Number: number})
			s.OK(err)
			return st
		}
		call(j.pool, "0", "enqueue", `{"In":{"To":"anna","Grams":250},"Options":{"Key":"k","Queue":"mail","Priority":5,"Delay":60000000000}}`)
		task := status(1)
		s.Always("the task has all options", task.Key == "k" && task.Queue == "mail" && task.Priority == 5, task)
		s.Always("the task waits for its delay", task.NotBefore.Equal(s.Now().Add(time.Minute)), task)

		const keyed = `{"In":{},"Options":{"At":"2100-01-01T00:00:00Z","Once":"once","OnceFor":3600000000000,"Unique":"only"}}`
		call(j.pool, "0", "enqueueBatch", `[{"In":{},"Options":{}},`+keyed+`]`)
		again := func(o workerpool.Option) bool {
			ref, err := j.pool.Enqueue(s.Context(), s, parcelA, o)
			s.OK(err)
			return ref.Repeated && ref.ID.Number == 3
		}
		s.Always("the task has its keys", again(workerpool.Idempotent("once", 0)) && again(workerpool.Unique("only")))
		s.Always("the task has its time", status(3).NotBefore.Equal(time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)), status(3))
		call(j.pool, "0", "cancel", "3")
		s.Always("the task is cancelled", status(3).State == workerpool.Cancelled, status(3))
		s.Advance(59 * time.Minute)
		s.Always("the key lasts as long as it says", again(workerpool.Idempotent("once", 0)))
		s.Advance(2 * time.Minute)
		s.Always("the key lasts no longer than it says", !again(workerpool.Idempotent("once", 0)))

		s.OK(j.pool.Resume(s.Context(), s))
		s.RunUntilIdle()
		s.Always("the work has the input", status(1).Result == "anna 250", status(1))
	})
}

// The same for the verbs of continuous jobs.
func TestStoredVerbsOfAContinuousJobAreRead(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		j, call := newSendable(), storedVerb(s)
		s.Host(j.clock)
		call(j.clock, "a", "start", `{"To":"anna","Grams":250}`)
		state, err := j.clock.State(s.Context(), s, "a")
		s.OK(err)
		s.Always("the job has its state", state == parcelA, state)
		for _, step := range []struct {
			method, arg string
			want        jobs.Status
		}{{"pause", "{}", jobs.Paused}, {"resume", "{}", jobs.Running}, {"stop", `"why"`, jobs.Stopped}, {"resume", "{}", jobs.Running}} {
			call(j.clock, "a", step.method, step.arg)
			st, err := j.clock.Status(s.Context(), s, "a")
			s.OK(err)
			s.Always("the job has moved", st.Meta.Status == step.want, step.method, st.Meta.Status)
			s.Always("the job knows the reason", step.method != "stop" || st.Meta.StopReason == "why", st.Meta)
		}
		call(j.clock, "a", "trigger", "{}")
		s.RunUntilIdle()
		st, err := j.clock.Status(s.Context(), s, "a")
		s.OK(err)
		s.Always("the job has run", st.Meta.RunCount == 1, st.Meta)
		call(j.clock, "a", "terminate", `"why"`)
		_, err = j.clock.Status(s.Context(), s, "a")
		s.Always("the job is gone", errors.Is(err, jobs.ErrNotFound), err)
	})
}

// The same for the verbs of debounce jobs.
func TestStoredVerbsOfADebounceAreRead(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		j, call := newSendable(), storedVerb(s)
		s.Host(j.heap)
		call(j.heap, "a", "add", `{"To":"anna","Grams":250}`)
		waiting, err := j.heap.Pending(s.Context(), s, "a")
		s.OK(err)
		s.Always("the event is stored", slices.Equal(waiting.Events, []parcel{parcelA}), waiting)
		for _, step := range []struct {
			method string
			want   jobs.Status
		}{{"pause", jobs.Paused}, {"resume", jobs.Running}} {
			call(j.heap, "a", step.method, "{}")
			st, err := j.heap.Status(s.Context(), s, "a")
			s.OK(err)
			s.Always("the job has moved", st.Meta.Status == step.want, step.method, st.Meta.Status)
		}
		call(j.heap, "a", "terminate", `"why"`)
		_, err = j.heap.Status(s.Context(), s, "a")
		s.Always("the job is gone", errors.Is(err, jobs.ErrNotFound), err)
	})
}
