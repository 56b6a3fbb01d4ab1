// Command restate is the service that a Restate server calls: counters with alarms, and
// workflows. On a second port it tells how late the alarms were, at /late, and how long the
// steps of workflows took, at /steps.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"time"

	restate "github.com/restatedev/sdk-go"
	"github.com/restatedev/sdk-go/server"

	"github.com/holdfast-dev/holdfast/bench/peers/internal/steps"
)

// fired collects how late the alarms were, in milliseconds.
type fired struct {
	mu   sync.Mutex
	late []float64 // guarded by mu
}

// ServeHTTP answers how many have fired, or with ?all how late each was.
func (f *fired) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var v any = map[string]int{"n": len(f.late)}
	if r.URL.RawQuery == "all" {
		v = f.late
	}
	_ = json.NewEncoder(w).Encode(v) // the client is gone if it fails
}

// Counter is a virtual object.
type Counter struct{ fired *fired }

// Increment adds one.
func (Counter) Increment(ctx restate.ObjectContext) (int64, error) {
	n, err := restate.Get[int64](ctx, "n")
	if err != nil {
		return 0, err
	}
	restate.Set(ctx, "n", n+1)
	return n + 1, nil
}

// Alarm is sent with a delay; due is in milliseconds of Unix time.
func (c Counter) Alarm(_ restate.ObjectContext, due int64) error {
	late := float64(time.Now().UnixMicro()-due*1000) / 1e3
	c.fired.mu.Lock()
	defer c.fired.mu.Unlock()
	c.fired.late = append(c.fired.late, late)
	return nil
}

func main() {
	address := flag.String("address", "", "for the Restate server")
	late := flag.String("late", "", "address for questions about alarms and steps")
	flag.Parse()
	f, timer := &fired{late: []float64{}}, &steps.Timer{}
	questions := http.NewServeMux()
	questions.Handle("/late", f)
	questions.Handle("/steps", timer)
	errs := make(chan error, 2)
	go func() { errs <- http.ListenAndServe(*late, questions) }()
	go func() {
		errs <- server.NewRestate().WithLogger(slog.DiscardHandler, false).
			Bind(restate.Reflect(Counter{f})).Bind(restate.Reflect(Steps{timer})).Start(context.Background(), *address)
	}()
	slog.Error("stopped", "error", <-errs)
	os.Exit(1)
}
