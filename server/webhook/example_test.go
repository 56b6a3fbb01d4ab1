package webhook_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server/webhook"
)

// A receiver verifies a delivery with the library of the specification.
func Example() {
	ctx := context.Background()
	hooks, err := webhook.New(webhook.Config{
		Key:          []byte("32 random bytes of the program..")[:32], // from a file or the environment
		AllowPrivate: true,                                            // because the receiver is on this machine
	})
	if err != nil {
		panic(err)
	}
	dir, err := os.MkdirTemp("", "webhook-example-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	orders := object.Define("order", func(_ context.Context, st *object.State) (*object.State, error) { return st, nil })
	pay := object.Handle(orders, "pay", func(o *object.State, ctx context.Context, cents int) (struct{}, error) {
		return struct{}{}, o.Emit(ctx, "paid", map[string]int{"cents": cents})
	})
	host, err := object.Open(object.Options{Dir: dir, Feed: true}, append(hooks.Definitions(), orders)...)
	if err != nil {
		panic(err)
	}
	defer host.Shutdown(ctx)

	var verifier *standard.Webhook
	got := make(chan string)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- fmt.Sprint(verifier.Verify(body, r.Header) == nil, " ", string(body[:14]))
	}))
	defer receiver.Close()

	status, secret, err := hooks.Add(ctx, host, webhook.Subscription{URL: receiver.URL, Class: "order", Kinds: []string{"paid"}})
	if err != nil {
		panic(err)
	}
	if verifier, err = standard.NewWebhook(secret); err != nil {
		panic(err)
	}
	if _, err := pay.Call(ctx, host, "4711", 499); err != nil {
		panic(err)
	}
	fmt.Println(<-got)

	// The receiver has lost its data of the last hour: send all of it again.
	if err := hooks.Replay(ctx, host, status.ID, time.Now().Add(-time.Hour), time.Now()); err != nil {
		panic(err)
	}
	fmt.Println(<-got)
	if err := hooks.Remove(ctx, host, status.ID); err != nil {
		panic(err)
	}
	// Output:
	// true {"type":"paid"
	// true {"type":"paid"
}
