package object_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/holdfast-dev/holdfast/object"
)

// Reminder is an object that rings once.
type Reminder struct {
	st   *object.State
	rang chan<- object.AlarmInfo
	fail error
}

// Alarm handles the alarm. What it stores and the end of the alarm are one commit.
func (r *Reminder) Alarm(ctx context.Context, info object.AlarmInfo) error {
	select {
	case r.rang <- info:
	case <-ctx.Done(): // nobody listens any more
	}
	return r.fail
}

// reminders is a class of reminders that tell when they ring, and a method that
// sets one.
func reminders(rang chan<- object.AlarmInfo, fail error, o ...object.ClassOptions) (*object.Class[Reminder], *object.Method[time.Duration, bool]) {
	class := object.Define("reminder", func(_ context.Context, st *object.State) (*Reminder, error) {
		return &Reminder{st, rang, fail}, nil
	}, o...)
	return class, object.Handle(class, "in", func(r *Reminder, ctx context.Context, d time.Duration) (bool, error) {
		if err := r.st.SetAlarm(ctx, r.st.Now().Add(d)); err != nil {
			return false, err
		}
		_, set, err := r.st.Alarm(ctx)
		return set, err
	})
}

// An alarm fires by itself, also after a restart.
func ExampleState_SetAlarm() {
	ctx := context.Background()
	rang := make(chan object.AlarmInfo, 1)
	class, in := reminders(rang, nil)
	host := memory(class)
	defer host.Shutdown(ctx)

	fmt.Println(in.Call(ctx, host, "tea", time.Millisecond))
	fmt.Println("attempt", (<-rang).Attempt)
	// Output:
	// true <nil>
	// attempt 1
}

func ExampleState_DeleteAlarm() {
	ctx := context.Background()
	rang := make(chan object.AlarmInfo, 1)
	class, in := reminders(rang, nil)
	never := object.Handle(class, "never", func(r *Reminder, ctx context.Context, _ struct{}) (bool, error) {
		if err := r.st.DeleteAlarm(ctx); err != nil {
			return false, err
		}
		_, set, err := r.st.Alarm(ctx)
		return set, err
	})
	host := memory(class)
	defer host.Shutdown(ctx)

	fmt.Println(in.Call(ctx, host, "tea", time.Hour))
	fmt.Println(never.Call(ctx, host, "tea", struct{}{}))
	// Output:
	// true <nil>
	// false <nil>
}

// An alarm that is given up becomes a dead letter, which waits to be replayed.
func ExampleHost_DeadLetters() {
	ctx := context.Background()
	rang, dead := make(chan object.AlarmInfo, 2), make(chan object.DeadLetter, 2)
	class, in := reminders(rang, object.Permanent(errors.New("nobody is home")), object.ClassOptions{
		OnDeadLetter: func(_ context.Context, d object.DeadLetter) { dead <- d },
	})
	host := memory(class)
	defer host.Shutdown(ctx)

	in.Call(ctx, host, "tea", 0)
	<-dead
	letters, err := host.DeadLetters(ctx)
	for _, d := range letters {
		fmt.Println(d.ID, d.Attempts, d.LastError, d.Reason)
	}
	fmt.Println(host.ReplayDeadLetter(ctx, letters[0].ID, letters[0].Seq), err)
	again := <-dead
	fmt.Println(again.Attempts)
	fmt.Println(host.DiscardDeadLetter(ctx, again.ID, again.Seq))
	// Output:
	// reminder/tea 1 nobody is home permanent error
	// <nil> <nil>
	// 1
	// <nil>
}

// An error can say when to try again.
func ExampleRetryAfter() {
	ctx := context.Background()
	rang := make(chan object.AlarmInfo, 1)
	class, in := reminders(rang, object.RetryAfter(time.Millisecond, errors.New("busy")))
	host := memory(class)
	defer host.Shutdown(ctx)

	in.Call(ctx, host, "tea", 0)
	for range 3 {
		info := <-rang
		fmt.Printf("%d %q\n", info.Attempt, info.LastError)
	}
	host.Delete(ctx, class.ID("tea"))
	// Output:
	// 1 ""
	// 2 "busy"
	// 3 "busy"
}

// What is stored can be looked at and deleted from outside; no user code runs.
func ExampleHost_Objects() {
	ctx := context.Background()
	host := memory(Counters)
	defer host.Shutdown(ctx)
	for _, name := range []string{"a", "b"} {
		Add.Call(ctx, host, name, 7)
	}

	infos, err := host.Objects(ctx, "counter", "", 10)
	fmt.Println(len(infos), err)
	in, _ := host.Inspect(ctx, Counters.ID("a"))
	fmt.Printf("%s=%s\n", in.Keys[0].Key, in.Keys[0].Value)
	fmt.Println(host.Delete(ctx, Counters.ID("a")))
	in, _ = host.Inspect(ctx, Counters.ID("a"))
	fmt.Println(in.Exists)
	parked, err := host.Parked()
	fmt.Println(parked, err)
	// Output:
	// 2 <nil>
	// n=7
	// <nil>
	// false
	// [] <nil>
}

// Wake activates an object anew, so that its constructor looks at what is stored.
func ExampleHost_Wake() {
	ctx := context.Background()
	class := object.Define("lamp", func(_ context.Context, st *object.State) (*Shelf, error) {
		fmt.Println("awake:", st.Activation().Reason)
		return &Shelf{st}, nil
	})
	host := memory(class)
	defer host.Shutdown(ctx)

	fmt.Println(host.Wake(ctx, class.ID(host.NewName())))
	// Output:
	// awake: fresh
	// <nil>
}

// Events are stored with the change they tell of, and read from a cursor.
func ExampleState_Emit() {
	ctx := context.Background()
	class, do := shelf(func(s *Shelf, ctx context.Context) error {
		return errors.Join(s.st.Emit(ctx, "placed", "Emma"), s.st.Emit(ctx, "placed", "Ulysses"))
	})
	host := memory(class)
	defer host.Shutdown(ctx)
	do.Call(ctx, host, "a", struct{}{})

	first, err := host.Events(ctx, class.ID("a"), 0, 1)
	fmt.Printf("%s %s %v\n", first[0].Kind, first[0].Data, err)
	for e, err := range host.Watch(ctx, class.ID("a"), first[0].Seq) {
		fmt.Printf("%s %s %v\n", e.Kind, e.Data, err)
		break // else it waits for more
	}
	// Output:
	// placed "Emma" <nil>
	// placed "Ulysses" <nil>
}

// The host's metrics go where the program's go.
func ExampleHost_Collector() {
	ctx := context.Background()
	host := memory(Counters)
	defer host.Shutdown(ctx)
	Add.Call(ctx, host, "a", 1)

	registry := prometheus.NewRegistry()
	registry.MustRegister(host.Collector())
	families, err := registry.Gather()
	for _, f := range families {
		if f.GetName() == "holdfast_objects_live" {
			fmt.Println(f.GetMetric()[0].GetGauge().GetValue(), err)
		}
	}
	// Output: 1 <nil>
}
