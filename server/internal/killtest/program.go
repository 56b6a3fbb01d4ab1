package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server"
	"github.com/holdfast-dev/holdfast/server/auth"
	"github.com/holdfast-dev/holdfast/server/internal/patience"
)

// account is a count of the operations that have changed it.
type account struct {
	st    *object.State
	total int
}

// answer of an operation tells the count after it, so no two operations have the same.
type answer struct {
	Total int `json:"total"`
	Times int `json:"times"` // that the operation took effect, with this one
}

// change is the payload of the event of an operation.
type change struct {
	Operation string `json:"operation"`
	Total     int    `json:"total"`
}

const timesPrefix = "times/"

var (
	accounts = object.Define("account", func(ctx context.Context, st *object.State) (*account, error) {
		a := &account{st: st}
		_, err := st.Storage().GetInto(ctx, "total", &a.total)
		return a, err
	})
	// add adds one and knows nothing of keys: called twice, it counts twice.
	_ = object.Handle(accounts, "add", func(a *account, ctx context.Context, operation string) (answer, error) {
		times := 0
		if _, err := a.st.Storage().GetInto(ctx, timesPrefix+operation, &times); err != nil {
			return answer{}, err
		}
		a.total++
		if err := a.st.Storage().Put(ctx, "total", a.total); err != nil {
			return answer{}, err
		}
		if err := a.st.Storage().Put(ctx, timesPrefix+operation, times+1); err != nil {
			return answer{}, err
		}
		return answer{a.total, times + 1}, a.st.Emit(ctx, "added", change{operation, a.total})
	})
)

// client is the principal of all requests.
type client struct{}

func (client) Authenticate(*http.Request) (auth.Principal, error) {
	return auth.Principal{ID: "client", Role: auth.Reader, Grants: []auth.Grant{{Class: accounts.Name()}}}, nil
}

// childVariable makes the binary the program; its value is the directory of the store.
const childVariable = "HOLDFAST_SERVER_KILLTEST_DIR"

// program serves the store until SIGINT, or until its standard input ends, because its parent
// is gone then. It prints its address, and an error to standard error.
func program(dir string) int {
	patience.Have() // a call that fails while the program runs is a mistake
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(3)
	}()
	if err := serve(ctx, dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func serve(ctx context.Context, dir string) error {
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	host, err := object.Open(object.Options{Dir: dir, WaitForLock: time.Minute, Logger: logger}, server.Definitions(accounts)...)
	if err != nil {
		return err
	}
	srv, err := server.New(host, server.Config{
		Auth: client{}, Logger: logger,
		Objects:   []server.Exposed{server.Class(accounts, "add")},
		Listening: func(at []net.Addr) { fmt.Println(at[0]) },
	})
	if err != nil {
		return err
	}
	return srv.Serve(ctx, "127.0.0.1:0")
}
