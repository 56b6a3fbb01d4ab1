package killtest

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
)

// book is a sum of money, and how often each operation has changed it.
type book struct {
	st    *object.State
	total int
}

// answer of an operation tells the sum after it, so no two operations have the same.
type answer struct {
	Total int `json:"total"`
	Times int `json:"times"` // that the operation took effect, with this one
}

var (
	books = object.Define("book", func(ctx context.Context, st *object.State) (*book, error) {
		b := &book{st: st}
		_, err := st.Storage().GetInto(ctx, "total", &b.total)
		return b, err
	})
	// add adds one and knows nothing of keys: called twice, it counts twice.
	_ = object.Handle(books, "add", func(b *book, ctx context.Context, operation string) (answer, error) {
		times := 0
		if _, err := b.st.Storage().GetInto(ctx, "times/"+operation, &times); err != nil {
			return answer{}, err
		}
		b.total++
		if err := b.st.Storage().Put(ctx, "total", b.total); err != nil {
			return answer{}, err
		}
		return answer{b.total, times + 1}, b.st.Storage().Put(ctx, "times/"+operation, times+1)
	})
	times = object.Handle(books, "times", func(b *book, ctx context.Context, operation string) (answer, error) {
		a := answer{Total: b.total}
		_, err := b.st.Storage().GetInto(ctx, "times/"+operation, &a.Times)
		return a, err
	})
)

// everyone lets all requests call.
type everyone struct{}

func (everyone) Authenticate(*http.Request) (auth.Principal, error) {
	return auth.Principal{ID: "client", Grants: []auth.Grant{{Class: "book"}}}, nil
}

// childVariable makes the test binary the program; its value is the directory of the store.
const childVariable = "HOLDFAST_SERVER_KILLTEST_DIR"

// program serves the store until SIGINT, or until its standard input ends, because its parent
// is gone then. It prints its address, and an error to standard error.
func program(dir string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(3)
	}()
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	host, err := object.Open(object.Options{Dir: dir, WaitForLock: time.Minute, Logger: logger}, books)
	if err == nil {
		var srv *server.Server
		srv, err = server.New(host, server.Config{
			Auth: everyone{}, Logger: logger,
			Objects:   []server.Exposed{server.Class(books, "add")},
			Listening: func(at []net.Addr) { fmt.Println(at[0]) },
		})
		if err == nil {
			err = srv.Serve(ctx, "127.0.0.1:0")
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
