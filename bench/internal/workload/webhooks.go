package workload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server/webhook"
)

// order is an object with an event in each turn.
type order struct{ st *object.State }

var (
	orders = object.Define("order", func(_ context.Context, st *object.State) (*order, error) { return &order{st}, nil })
	place  = object.Handle(orders, "place", func(o *order, ctx context.Context, n int) (struct{}, error) {
		return struct{}{}, o.st.Emit(ctx, "placed", n)
	})
)

// Webhooks is a host that sends its events to a receiver on the loopback, which answers 200, by some subscriptions.
type Webhooks struct {
	*Host
	subscriptions int
	receiver      *httptest.Server
	got           atomic.Int64
	want          atomic.Int64
	all           chan struct{} // has a value when as many have come as are wanted
}

// OpenWebhooks opens such a host.
func OpenWebhooks(dir string, subscriptions int) (*Webhooks, error) {
	hooks, err := webhook.New(webhook.Config{Key: make([]byte, 32), AllowPrivate: true})
	if err != nil {
		return nil, err
	}
	h, err := OpenHost(dir, object.Options{Feed: true}, append(hooks.Definitions(), orders)...)
	if err != nil {
		return nil, err
	}
	w := &Webhooks{Host: h, subscriptions: subscriptions, all: make(chan struct{}, 1)}
	w.receiver = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if w.got.Add(1) == w.want.Load() {
			w.all <- struct{}{}
		}
	}))
	for i := range subscriptions {
		if _, _, err := hooks.Add(context.Background(), h.Host, webhook.Subscription{URL: w.receiver.URL, Class: "order", Prefix: fmt.Sprint(i, "/")}); err != nil {
			return nil, errors.Join(err, w.Close())
		}
	}
	return w, nil
}

// Deliver emits n events from 64 callers and 1,000 objects, and waits until the receiver has them all.
func (w *Webhooks) Deliver(ctx context.Context, n int) error {
	w.want.Store(w.got.Load() + int64(n))
	const callers = 64
	var next atomic.Int64
	errs := make(chan error, callers)
	var done sync.WaitGroup
	for range callers {
		done.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if _, err := place.Call(ctx, w, fmt.Sprint(i%w.subscriptions, "/", i%1000), i); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	done.Wait()
	close(errs)
	if err := <-errs; err != nil {
		return err
	}
	select {
	case <-w.all:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close ends the host and the receiver.
func (w *Webhooks) Close() error {
	err := w.Host.Close()
	w.receiver.Close()
	return err
}
