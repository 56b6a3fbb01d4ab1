package continuous_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/object"
)

// report is the state of the example's jobs.
type report struct{ Lines int }

// Reports writes a line each hour, and stops after the third.
var Reports = continuous.New(continuous.Config[report]{
	Name:     "report",
	Schedule: jobs.Every(time.Hour),
	Retry:    jobs.Retry{MaxAttempts: 3, Backoff: jobs.Exponential(time.Second, time.Minute)},
	Timeout:  time.Minute,
	Run: func(_ context.Context, run *continuous.Run[report]) error {
		run.State.Lines++
		if run.Number == 3 {
			run.Stop("three lines are enough")
		}
		return nil
	},
})

// open opens a host for an example, in a directory that done removes.
func open(defs ...object.Definition) (h *object.Host, done func()) {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	if h, err = object.Open(object.Options{Dir: dir}, defs...); err != nil {
		log.Fatal(err)
	}
	return h, func() {
		err := h.Shutdown(context.Background())
		if err = errors.Join(err, os.RemoveAll(dir)); err != nil {
			log.Fatal(err)
		}
	}
}

// after waits until a job has emitted an event of a kind n times.
func after(h *object.Host, j *continuous.Job[report], id, kind string, n int) {
	for e, err := range h.Watch(context.Background(), j.ID(id), 0) {
		if err != nil {
			log.Fatal(err)
		}
		if e.Kind == kind {
			n--
		}
		if n == 0 {
			return
		}
	}
}

func ExampleJob_Start() {
	h, done := open(Reports)
	defer done()
	ctx := context.Background()

	if _, err := Reports.Start(ctx, h, "north", report{Lines: 10}); err != nil {
		log.Fatal(err)
	}
	after(h, Reports, "north", jobs.EventSuccess, 1) // the first run begins at once
	state, err := Reports.State(ctx, h, "north")
	fmt.Println(state.Lines, err)
	// Output: 11 <nil>
}

func ExampleJob_Trigger() {
	h, done := open(Reports)
	defer done()
	ctx := context.Background()

	if _, err := Reports.Start(ctx, h, "north", report{}); err != nil {
		log.Fatal(err)
	}
	after(h, Reports, "north", jobs.EventSuccess, 1)
	fmt.Println(Reports.Trigger(ctx, h, "north"))
	after(h, Reports, "north", jobs.EventSuccess, 2)
	state, err := Reports.State(ctx, h, "north")
	fmt.Println(state.Lines, err)
	// Output:
	// <nil>
	// 2 <nil>
}

func ExampleJob_Status() {
	h, done := open(Reports)
	defer done()
	ctx := context.Background()

	_, err := Reports.Status(ctx, h, "north")
	fmt.Println(errors.Is(err, jobs.ErrNotFound))
	if _, err := Reports.Start(ctx, h, "north", report{}); err != nil {
		log.Fatal(err)
	}
	after(h, Reports, "north", jobs.EventSuccess, 1)
	st, err := Reports.Status(ctx, h, "north")
	fmt.Println(st.Meta.Status, st.Meta.RunCount, st.Due.Sub(st.Meta.LastSuccessfulAt), err)
	// Output:
	// true
	// running 1 1h0m0s <nil>
}

func ExampleJob_State() {
	h, done := open(Reports)
	defer done()
	ctx := context.Background()

	if _, err := Reports.Start(ctx, h, "north", report{}); err != nil {
		log.Fatal(err)
	}
	for n := 2; n <= 3; n++ {
		after(h, Reports, "north", jobs.EventSuccess, n-1)
		if err := Reports.Trigger(ctx, h, "north"); err != nil {
			log.Fatal(err)
		}
	}
	after(h, Reports, "north", jobs.EventStopped, 1) // by its own wish
	state, err := Reports.State(ctx, h, "north")
	fmt.Println(state.Lines, err)
	// Output: 3 <nil>
}

func ExampleJob_Pause() {
	h, done := open(Reports)
	defer done()
	ctx := context.Background()

	if _, err := Reports.Start(ctx, h, "north", report{}); err != nil {
		log.Fatal(err)
	}
	after(h, Reports, "north", jobs.EventSuccess, 1)
	fmt.Println(Reports.Pause(ctx, h, "north"))
	fmt.Println(Reports.Trigger(ctx, h, "north"))
	// Output:
	// <nil>
	// jobs: illegal move of report/north from paused to executing: Resume it first
}

func ExampleJob_Resume() {
	h, done := open(Reports)
	defer done()
	ctx := context.Background()

	if _, err := Reports.Start(ctx, h, "north", report{}); err != nil {
		log.Fatal(err)
	}
	after(h, Reports, "north", jobs.EventSuccess, 1)
	fmt.Println(Reports.Pause(ctx, h, "north"), Reports.Resume(ctx, h, "north"))
	st, err := Reports.Status(ctx, h, "north")
	fmt.Println(st.Meta.Status, err)
	// Output:
	// <nil> <nil>
	// running <nil>
}

func ExampleJob_Stop() {
	h, done := open(Reports)
	defer done()
	ctx := context.Background()

	if _, err := Reports.Start(ctx, h, "north", report{Lines: 7}); err != nil {
		log.Fatal(err)
	}
	after(h, Reports, "north", jobs.EventSuccess, 1)
	fmt.Println(Reports.Stop(ctx, h, "north", "moved south"))
	st, err := Reports.Status(ctx, h, "north")
	if err != nil {
		log.Fatal(err)
	}
	state, err := Reports.State(ctx, h, "north")
	fmt.Println(st.Meta.Status, st.Meta.StopReason, state.Lines, err)
	// Output:
	// <nil>
	// stopped moved south 8 <nil>
}

func ExampleJob_Terminate() {
	h, done := open(Reports)
	defer done()
	ctx := context.Background()

	if _, err := Reports.Start(ctx, h, "north", report{}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(Reports.Terminate(ctx, h, "north", "closed"))
	err := Reports.Terminate(ctx, h, "north", "closed")
	fmt.Println(errors.Is(err, jobs.ErrNotFound))
	started, err := Reports.Start(ctx, h, "north", report{}) // the id may start again
	fmt.Println(started.Created, err)
	// Output:
	// <nil>
	// true
	// true <nil>
}

func ExampleRun_NextAt() {
	var pollNow = continuous.New(continuous.Config[report]{
		Name:     "poll",
		Schedule: jobs.Every(24 * time.Hour),
		Run: func(_ context.Context, run *continuous.Run[report]) error {
			run.State.Lines++
			if run.State.Lines < 3 {
				run.NextAt(run.Scheduled) // there is more: at once
			}
			return nil
		},
	})
	h, done := open(pollNow)
	defer done()
	ctx := context.Background()

	if _, err := pollNow.Start(ctx, h, "feed", report{}); err != nil {
		log.Fatal(err)
	}
	after(h, pollNow, "feed", jobs.EventSuccess, 3)
	st, err := pollNow.Status(ctx, h, "feed")
	fmt.Println(st.Meta.RunCount, st.Due.Sub(st.Meta.LastSuccessfulAt), err)
	// Output: 3 24h0m0s <nil>
}

func ExampleJob_StartAll() {
	h, done := open(Reports)
	defer done()
	for _, r := range Reports.StartAll(context.Background(), h, []continuous.Start[report]{{ID: "north"}, {ID: "south"}}) {
		fmt.Println(r.Started.Created, r.Err)
	}
	// Output:
	// true <nil>
	// true <nil>
}

func ExampleJob_Rearm() {
	h, done := open(Reports)
	defer done()
	ctx := context.Background()
	if _, err := Reports.Start(ctx, h, "north", report{}); err != nil {
		log.Fatal(err)
	}
	r, err := Reports.Rearm(ctx, h, jobs.RearmOptions{})
	fmt.Println(r.Jobs, r.Moved, err)
	// Output: 1 0 <nil>
}

func ExampleJob_Scheduled() {
	byHand := continuous.New(continuous.Config[report]{
		Name: "by-hand",
		Run:  func(context.Context, *continuous.Run[report]) error { return nil },
	})
	fmt.Println(byHand.Scheduled(), Reports.Scheduled())
	// Output: false true
}
