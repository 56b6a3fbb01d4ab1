package object_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/holdfast-dev/holdfast/object"
)

// Timer is an object that rings once.
type Timer struct{ st *object.State }

// NewTimer reads nothing: the alarm is stored by itself.
func NewTimer(_ context.Context, st *object.State) (*Timer, error) { return &Timer{st}, nil }

// Set sets the alarm, in the same commit as all else that the turn stores. An object
// has one alarm; setting it again moves it.
func (t *Timer) Set(ctx context.Context, d time.Duration) (time.Time, error) {
	at := t.st.Now().Add(d)
	return at, t.st.SetAlarm(ctx, at)
}

// Alarm runs at the time or later, also in another process, and never before. It is
// tried again after an error. The end of the alarm and all that Alarm stores, here an
// event, are one commit.
func (t *Timer) Alarm(ctx context.Context, info object.AlarmInfo) error {
	return t.st.Emit(ctx, "rang", info.Attempt)
}

var (
	Timers = object.Define("timer", NewTimer)
	Set    = object.Handle(Timers, "set", (*Timer).Set)
)

// An alarm fires by itself, also after a restart.
func ExampleState_SetAlarm() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "timers") // a program names a directory that stays
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	host, err := object.Open(object.Options{Dir: dir}, Timers)
	if err != nil {
		log.Fatal(err)
	}

	at, err := Set.Call(ctx, host, "tea", 10*time.Millisecond)
	if err != nil {
		log.Fatal(err)
	}
	for e, err := range host.Watch(ctx, Timers.ID("tea"), 0) { // waits for events
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s at attempt %s, early: %t\n", e.Kind, e.Data, e.At.Before(at))
		break
	}

	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: rang at attempt 1, early: false
}
