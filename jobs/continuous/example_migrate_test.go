package continuous_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/object"
)

// docs/OPERATIONS.md shows the code of this file.

// oldTokens is the definition before the deploy. Its states are one secret.
var oldTokens = continuous.New(continuous.Config[oldToken]{
	Name: "token", Version: "1", Schedule: jobs.Every(24 * time.Hour), StartLater: true,
	Run: func(context.Context, *continuous.Run[oldToken]) error { return nil },
})

type oldToken struct{ Secret string }

// Token is the state of a job that refreshes a token. Its first form had one secret:
// {"Secret": "..."}.
type Token struct{ Access, Refresh string }

var Tokens = continuous.New(continuous.Config[Token]{
	Name:     "token",
	Version:  "2",
	Migrate:  migrateToken,
	Schedule: jobs.Every(time.Hour),
	Run:      refresh,
})

// migrateToken makes a Token of one that another version stored.
func migrateToken(from string, raw []byte) (Token, error) {
	switch from {
	case "", "1": // stored before there were versions, and under version 1
		var old struct{ Secret string }
		err := json.Unmarshal(raw, &old)
		return Token{Access: old.Secret}, err
	}
	return Token{}, fmt.Errorf("no token of version %q is known here", from)
}

func refresh(ctx context.Context, run *continuous.Run[Token]) error {
	run.State.Access += "+" // stored, with version 2, when refresh returns nil
	return nil
}

// serve runs until ctx ends, as it does with the signal that asks the process to end.
func serve(ctx context.Context, dir string, work func(*object.Host)) error {
	host, err := object.Open(object.Options{Dir: dir, WaitForLock: time.Minute}, Tokens)
	if err != nil {
		return err
	}
	defer func() { // with a limit, since a Shutdown without one waits for work that never ends
		limit, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := host.Shutdown(limit); err != nil {
			log.Print(err)
		}
	}()
	if err := look(ctx, host); err != nil {
		return err
	}
	work(host)
	<-ctx.Done()
	return nil
}

// look makes a shorter schedule count at once, and tells of classes that this program
// does not have any more.
func look(ctx context.Context, host *object.Host) error {
	moved, err := Tokens.Rearm(ctx, host, jobs.RearmOptions{})
	if err != nil {
		return err
	}
	fmt.Printf("%d of %d jobs run earlier now\n", moved.Moved, moved.Jobs)
	parked, err := host.Parked()
	if len(parked) > 0 {
		log.Printf("the store has objects of classes that are not registered: %q", parked)
	}
	return err
}

// A deploy changes the type of a state and shortens the schedule.
func ExampleConfig_migrate() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	h, err := object.Open(object.Options{Dir: dir}, oldTokens)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := oldTokens.Start(context.Background(), h, "alice", oldToken{"s3cret"}); err != nil {
		log.Fatal(err)
	}
	if err := h.Shutdown(context.Background()); err != nil {
		log.Fatal(err)
	}

	ctx, stop := context.WithCancel(context.Background())
	err = serve(ctx, dir, func(host *object.Host) {
		defer stop()
		state, err := Tokens.State(ctx, host, "alice")
		fmt.Printf("%+v %v\n", state, err)
	})
	fmt.Println(err)
	// Output:
	// 1 of 1 jobs run earlier now
	// {Access:s3cret Refresh:} <nil>
	// <nil>
}
