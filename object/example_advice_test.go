package object_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"time"

	"github.com/holdfast-dev/holdfast/object"
)

func ExampleIsPermanent() {
	err := fmt.Errorf("charge alice: %w", object.Permanent(errors.New("card is stolen")))
	fmt.Println(err, object.IsPermanent(err))
	// Output: charge alice: card is stolen true
}

func ExampleRetryDelay() {
	err := fmt.Errorf("charge alice: %w", object.RetryAfter(time.Minute, errors.New("busy")))
	fmt.Println(object.RetryDelay(err))
	// Output: 1m0s true
}

// A line that tells of a change is written once the change is committed.
func ExampleDriver_LogCommitted() {
	ctx := context.Background()
	type account struct{ st *object.State }
	class := object.Define("account", func(_ context.Context, st *object.State) (*account, error) { return &account{st}, nil })
	open := object.Handle(class, "open", func(a *account, ctx context.Context, owner string) (string, error) {
		if err := a.st.Storage().Put(ctx, "owner", owner); err != nil {
			return "", err
		}
		return owner, a.st.Driver().LogCommitted(ctx, slog.LevelInfo, "account opened", "owner", owner)
	})
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	plain := &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}
	host, err := object.Open(object.Options{Dir: dir, Logger: slog.New(slog.NewTextHandler(os.Stdout, plain))}, class)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := open.Call(ctx, host, "a-1", "alice"); err != nil {
		log.Fatal(err)
	}
	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: level=INFO msg="account opened" class=account object=a-1 owner=alice
}
