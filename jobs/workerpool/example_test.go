package workerpool_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
)

// shout is a pool as a program would define it, at package level.
var shout = workerpool.New(workerpool.Config[string, string]{
	Name:   "shout",
	Queues: map[string]int{"mail": 3, "reports": 1},
	Retry:  jobs.Retry{MaxAttempts: 2, Backoff: jobs.Constant(time.Millisecond)},
	Work: func(_ context.Context, t *workerpool.Task[string]) (string, error) {
		if t.In == "" {
			return "", errors.New("nothing to say")
		}
		return strings.ToUpper(t.In), nil
	},
})

// parcels is a pool for outside workers: it has no Work.
var parcels = workerpool.New(workerpool.Config[string, string]{Name: "parcels", Lease: time.Hour})

// withHost runs an example on a host in a new directory. A program names one that stays.
func withHost(example func(ctx context.Context, h *object.Host), defs ...object.Definition) {
	dir, err := os.MkdirTemp("", "workerpool")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	h := check(object.Open(object.Options{Dir: dir}, defs...))
	example(ctx, h)
	if err := h.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
}

// check returns the result of a call that may not fail.
func check[R any](r R, err error) R {
	if err != nil {
		log.Fatal(err)
	}
	return r
}

func ExamplePool_Enqueue() {
	withHost(func(ctx context.Context, h *object.Host) {
		task, err := shout.Enqueue(ctx, h, "hello",
			workerpool.Key("alice"),         // behind the other tasks of alice
			workerpool.Queue("mail"),        // one of Config.Queues
			workerpool.Priority(5),          // before tasks of the queue with less
			workerpool.Delay(5*time.Second), // or At
			workerpool.Idempotent("request-7", time.Hour))
		fmt.Println(task.ID, task.Repeated, err)
		task, err = shout.Enqueue(ctx, h, "hello", workerpool.Key("alice"), workerpool.Idempotent("request-7", time.Hour))
		fmt.Println(task.ID, task.Repeated, err)
	}, shout)
	// Output:
	// 0-1 false <nil>
	// 0-1 true <nil>
}

func ExamplePool_EnqueueBatch() {
	withHost(func(ctx context.Context, h *object.Host) {
		tasks, err := shout.EnqueueBatch(ctx, h, []workerpool.Item[string]{
			{In: "one"},
			{In: "two", Options: []workerpool.Option{workerpool.Priority(1)}},
		})
		fmt.Println(len(tasks), err)
		fmt.Println(shout.Wait(ctx, h, tasks[1].ID))
	}, shout)
	// Output:
	// 2 <nil>
	// TWO <nil>
}

func ExamplePool_Status() {
	withHost(func(ctx context.Context, h *object.Host) {
		task := check(shout.Enqueue(ctx, h, "hello"))
		check(shout.Wait(ctx, h, task.ID))
		info := check(shout.Status(ctx, h, task.ID))
		fmt.Println(info.State, info.Attempt, info.Result)
		_, err := shout.Status(ctx, h, workerpool.TaskID{Number: 99})
		fmt.Println(errors.Is(err, jobs.ErrNotFound))
	}, shout)
	// Output:
	// done 1 HELLO
	// true
}

func ExamplePool_Wait() {
	withHost(func(ctx context.Context, h *object.Host) {
		task := check(shout.Enqueue(ctx, h, ""))
		_, err := shout.Wait(ctx, h, task.ID)
		fmt.Println(errors.Is(err, workerpool.ErrFailed), err)
	}, shout)
	// Output: true shout: task 0-1: workerpool: task is dead: nothing to say
}

func ExamplePool_Cancel() {
	withHost(func(ctx context.Context, h *object.Host) {
		task := check(shout.Enqueue(ctx, h, "never mind", workerpool.Delay(time.Hour)))
		fmt.Println(shout.Cancel(ctx, h, task.ID))
	}, shout)
	// Output: cancelled <nil>
}

func ExamplePool_Stats() {
	withHost(func(ctx context.Context, h *object.Host) {
		check(shout.Wait(ctx, h, check(shout.Enqueue(ctx, h, "one")).ID))
		check(shout.Enqueue(ctx, h, "two", workerpool.Delay(time.Hour)))
		s := check(shout.Stats(ctx, h))
		fmt.Println(s.Submitted, "=", s.Pending, "+", s.Running, "+", s.Done, "+", s.Dead, "+", s.Cancelled)
		fmt.Println(s.Check())
	}, shout)
	// Output:
	// 2 = 1 + 0 + 1 + 0 + 0
	// <nil>
}

func ExamplePool_Pause() {
	withHost(func(ctx context.Context, h *object.Host) {
		fmt.Println(shout.Pause(ctx, h))
		task := check(shout.Enqueue(ctx, h, "hello"))
		fmt.Println(check(shout.Status(ctx, h, task.ID)).State, check(shout.Stats(ctx, h)).Mode)
	}, shout)
	// Output:
	// <nil>
	// pending paused
}

func ExamplePool_Resume() {
	withHost(func(ctx context.Context, h *object.Host) {
		if err := shout.Pause(ctx, h); err != nil {
			log.Fatal(err)
		}
		task := check(shout.Enqueue(ctx, h, "hello"))
		fmt.Println(shout.Resume(ctx, h))
		fmt.Println(shout.Wait(ctx, h, task.ID))
	}, shout)
	// Output:
	// <nil>
	// HELLO <nil>
}

func ExamplePool_Drain() {
	withHost(func(ctx context.Context, h *object.Host) {
		task := check(shout.Enqueue(ctx, h, "last words"))
		fmt.Println(shout.Drain(ctx, h)) // returns when all is done
		fmt.Println(check(shout.Status(ctx, h, task.ID)).State)
		_, err := shout.Enqueue(ctx, h, "too late")
		fmt.Println(errors.Is(err, workerpool.ErrDraining))
	}, shout)
	// Output:
	// <nil>
	// done
	// true
}

func ExamplePool_Discard() {
	withHost(func(ctx context.Context, h *object.Host) {
		if err := shout.Pause(ctx, h); err != nil {
			log.Fatal(err)
		}
		check(shout.Enqueue(ctx, h, "one"))
		check(shout.Enqueue(ctx, h, "two"))
		fmt.Println(shout.Discard(ctx, h))
	}, shout)
	// Output: 2 <nil>
}

func ExamplePool_DeadLetters() {
	withHost(func(ctx context.Context, h *object.Host) {
		task := check(shout.Enqueue(ctx, h, ""))
		if _, err := shout.Wait(ctx, h, task.ID); !errors.Is(err, workerpool.ErrFailed) {
			log.Fatal(err)
		}
		for _, d := range check(shout.DeadLetters(ctx, h, workerpool.TaskID{}, 100)) {
			fmt.Println(d.ID, d.Reason, len(d.Failures), d.Failures[0].Error)
		}
	}, shout)
	// Output: 0-1 attempts 2 nothing to say
}

func ExamplePool_Replay() {
	withHost(func(ctx context.Context, h *object.Host) {
		task := check(shout.Enqueue(ctx, h, ""))
		if _, err := shout.Wait(ctx, h, task.ID); !errors.Is(err, workerpool.ErrFailed) {
			log.Fatal(err)
		}
		fmt.Println(shout.Replay(ctx, h, task.ID))
		_, err := shout.Wait(ctx, h, task.ID)
		fmt.Println(errors.Is(err, workerpool.ErrFailed), check(shout.Status(ctx, h, task.ID)).Attempt)
	}, shout)
	// Output:
	// 1 <nil>
	// true 4
}

func ExamplePool_ReplayAll() {
	withHost(func(ctx context.Context, h *object.Host) {
		if _, err := shout.Wait(ctx, h, check(shout.Enqueue(ctx, h, "")).ID); !errors.Is(err, workerpool.ErrFailed) {
			log.Fatal(err)
		}
		if _, err := shout.Wait(ctx, h, check(shout.Enqueue(ctx, h, "")).ID); !errors.Is(err, workerpool.ErrFailed) {
			log.Fatal(err)
		}
		fmt.Println(shout.ReplayAll(ctx, h))
	}, shout)
	// Output: 2 <nil>
}

func ExamplePool_DiscardDead() {
	withHost(func(ctx context.Context, h *object.Host) {
		task := check(shout.Enqueue(ctx, h, ""))
		if _, err := shout.Wait(ctx, h, task.ID); !errors.Is(err, workerpool.ErrFailed) {
			log.Fatal(err)
		}
		fmt.Println(shout.DiscardDead(ctx, h, task.ID))
		fmt.Println(check(shout.Status(ctx, h, task.ID)).State)
	}, shout)
	// Output:
	// 1 <nil>
	// cancelled
}

func ExamplePool_Claim() {
	withHost(func(ctx context.Context, h *object.Host) {
		task := check(parcels.Enqueue(ctx, h, "to Lyon"))
		for _, c := range check(parcels.Claim(ctx, h, 10, 0)) {
			fmt.Println(c.ID == task.ID, c.Task.In, c.Task.Attempt)
		}
		fmt.Println(check(parcels.Status(ctx, h, task.ID)).State)
	}, parcels)
	// Output:
	// true to Lyon 1
	// running
}

func ExamplePool_Heartbeat() {
	withHost(func(ctx context.Context, h *object.Host) {
		check(parcels.Enqueue(ctx, h, "to Lyon"))
		claim := check(parcels.Claim(ctx, h, 1, 0))[0]
		lease, err := parcels.Heartbeat(ctx, h, claim.Lease)
		fmt.Println(!lease.Until.Before(claim.Until), lease.Cancelling, err)
	}, parcels)
	// Output: true false <nil>
}

func ExamplePool_Ack() {
	withHost(func(ctx context.Context, h *object.Host) {
		task := check(parcels.Enqueue(ctx, h, "to Lyon"))
		claim := check(parcels.Claim(ctx, h, 1, 0))[0]
		fmt.Println(parcels.Ack(ctx, h, claim.Lease, "signed"))
		fmt.Println(parcels.Wait(ctx, h, task.ID))
		err := parcels.Ack(ctx, h, claim.Lease, "signed twice")
		fmt.Println(errors.Is(err, jobs.ErrStaleExecution))
	}, parcels)
	// Output:
	// <nil>
	// signed <nil>
	// true
}

func ExamplePool_Nack() {
	withHost(func(ctx context.Context, h *object.Host) {
		task := check(parcels.Enqueue(ctx, h, "to Lyon"))
		claim := check(parcels.Claim(ctx, h, 1, 0))[0]
		fmt.Println(parcels.Nack(ctx, h, claim.Lease, errors.New("nobody at home")))
		info := check(parcels.Status(ctx, h, task.ID))
		fmt.Println(info.State, info.Failures[0].Error)
	}, parcels)
	// Output:
	// <nil>
	// pending nobody at home
}

func ExampleParseTaskID() {
	id, err := workerpool.ParseTaskID("3-17")
	fmt.Println(id.Partition, id.Number, err)
	_, err = workerpool.ParseTaskID("17")
	fmt.Println(errors.Is(err, jobs.ErrInvalid))
	// Output:
	// 3 17 <nil>
	// true
}

// The work of a task uses the task as the caller of other objects, and its
// OutsideKey where a repeat has to be recognised.
func ExampleTask_Invoke() {
	var letters = workerpool.New(workerpool.Config[string, string]{
		Name: "letters",
		Work: func(ctx context.Context, t *workerpool.Task[string]) (string, error) {
			ref, err := shout.Enqueue(ctx, t, t.In, workerpool.Idempotent(t.OutsideKey, time.Hour))
			if err != nil {
				return "", err
			}
			return shout.Wait(ctx, t, ref.ID)
		},
	})
	withHost(func(ctx context.Context, h *object.Host) {
		fmt.Println(letters.Wait(ctx, h, check(letters.Enqueue(ctx, h, "dear sir")).ID))
	}, shout, letters)
	// Output: DEAR SIR <nil>
}

func ExampleStats_Check() {
	fmt.Println(workerpool.Stats{Submitted: 3, Pending: 1, Done: 2}.Check())
	fmt.Println(workerpool.Stats{Submitted: 3, Done: 2}.Check() != nil)
	// Output:
	// <nil>
	// true
}
