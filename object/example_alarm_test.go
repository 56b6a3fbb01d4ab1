package object_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// Reminder is an object that rings once.
type Reminder struct {
	st   *object.State
	rang chan<- object.AlarmInfo
	fail error
}

// Alarm handles the alarm. Its writes and the end of the alarm are one commit.
func (r *Reminder) Alarm(ctx context.Context, info object.AlarmInfo) error {
	select {
	case r.rang <- info:
	case <-ctx.Done(): // the example is over
	}
	return r.fail
}

// ring opens a host over a store in memory. Programs name a directory:
// object.Options{Dir: "data"}.
func ring(defs ...object.Definition) *object.Host {
	host, err := object.Open(object.Options{
		Storage: storage.Options{Engine: memstore.New()},
		Logger:  slog.New(slog.DiscardHandler),
	}, defs...)
	if err != nil {
		log.Fatal(err)
	}
	return host
}

// silence shuts a host down. A program gives Shutdown a context with a limit, because it
// waits for all that runs.
func silence(host *object.Host) {
	if err := host.Shutdown(context.Background()); err != nil {
		log.Fatal(err)
	}
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

// unheard is a class of reminders that are given up at once, with their dead letters.
func unheard() (*object.Class[Reminder], *object.Method[time.Duration, bool], <-chan object.DeadLetter) {
	rang, dead := make(chan object.AlarmInfo, 2), make(chan object.DeadLetter, 2)
	class, in := reminders(rang, object.Permanent(errors.New("nobody is home")), object.ClassOptions{
		OnDeadLetter: func(_ context.Context, d object.DeadLetter) { dead <- d },
	})
	return class, in, dead
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
	host := ring(class)
	defer silence(host)

	fmt.Println(in.Call(ctx, host, "tea", time.Hour))
	fmt.Println(never.Call(ctx, host, "tea", struct{}{}))
	// Output:
	// true <nil>
	// false <nil>
}

// An alarm that is given up becomes a dead letter, which waits to be replayed.
func ExampleHost_DeadLetters() {
	ctx := context.Background()
	class, in, dead := unheard()
	host := ring(class)
	defer silence(host)

	if _, err := in.Call(ctx, host, "tea", 0); err != nil {
		log.Fatal(err)
	}
	<-dead
	page, err := host.DeadLetters(ctx, object.DeadLettersOptions{Class: class.Name(), Kind: object.DeadAlarm, Error: "nobody"})
	if err != nil {
		log.Fatal(err)
	}
	for _, d := range page.Letters {
		fmt.Println(d.ID, d.Attempts, d.LastError, d.Reason)
	}
	fmt.Println(host.ReplayDeadLetter(ctx, page.Letters[0].ID, page.Letters[0].Seq))
	again := <-dead
	fmt.Println(again.Attempts)
	fmt.Println(host.DiscardDeadLetter(ctx, again.ID, again.Seq))
	// Output:
	// reminder/tea 1 nobody is home permanent error
	// <nil>
	// 1
	// <nil>
}

// A replay that a tool begins by itself keeps an alarm that the object has set meanwhile.
func ExampleHost_ReplayIfUnarmed() {
	ctx := context.Background()
	class, in, dead := unheard()
	host := ring(class)
	defer silence(host)

	if _, err := in.Call(ctx, host, "tea", 0); err != nil {
		log.Fatal(err)
	}
	letter := <-dead
	if _, err := in.Call(ctx, host, "tea", time.Hour); err != nil {
		log.Fatal(err)
	}
	fmt.Println(host.ReplayIfUnarmed(ctx, letter.ID, letter.Seq))
	// Output:
	// false <nil>
}

// An error can say when to try again.
func ExampleRetryAfter() {
	ctx := context.Background()
	rang := make(chan object.AlarmInfo, 1)
	class, in := reminders(rang, object.RetryAfter(time.Millisecond, errors.New("busy")))
	host := ring(class)
	defer silence(host)

	if _, err := in.Call(ctx, host, "tea", 0); err != nil {
		log.Fatal(err)
	}
	for range 3 {
		info := <-rang
		fmt.Printf("%d %q\n", info.Attempt, info.LastError)
	}
	if err := host.Delete(ctx, class.ID("tea")); err != nil {
		log.Fatal(err)
	}
	// Output:
	// 1 ""
	// 2 "busy"
	// 3 "busy"
}
