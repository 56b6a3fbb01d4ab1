package workerpool_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"

	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// ledger is an object that takes the outcome of one task.
type ledger struct{ st *object.State }

var (
	ledgers = object.Define("ledger", func(_ context.Context, st *object.State) (*ledger, error) { return &ledger{st}, nil })
	enter   = object.Handle(ledgers, "enter", func(l *ledger, ctx context.Context, o workerpool.Outcome) (struct{}, error) {
		return struct{}{}, l.st.Storage().Put(ctx, "outcome", fmt.Sprintf("%s %s", o.State, o.Result))
	})
	read = object.Handle(ledgers, "read", func(l *ledger, ctx context.Context, _ struct{}) (text string, err error) {
		_, err = l.st.Storage().GetInto(ctx, "outcome", &text)
		return text, err
	})
)

// toLedgers sends outcomes to ledgers, whose names are the URLs. Package server/webhook has the Webhooks that post them by
// HTTP.
type toLedgers struct{}

func (toLedgers) Allow(url string) error {
	if !strings.HasPrefix(url, "ledger:") {
		return errors.New("it is no ledger")
	}
	return nil
}

func (toLedgers) Send(ctx context.Context, st *object.State, url string, o workerpool.Outcome) error {
	return enter.Send(ctx, st, url, o) // with the commit of the turn
}

func (toLedgers) State(context.Context, object.Caller, workerpool.Outcome) (workerpool.WebhookStatus, error) {
	return workerpool.WebhookStatus{}, errors.New("a ledger tells it")
}

// The outcome of a task goes to the URL that it was added with, in the commit that ends the task.
func ExampleWebhook() {
	ctx := context.Background()
	images := workerpool.New(workerpool.Config[string, string]{
		Name: "images", Webhooks: toLedgers{},
		Work: func(_ context.Context, t *workerpool.Task[string]) (string, error) { return "small " + t.In, nil },
	})
	host, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}}, images, ledgers)
	if err != nil {
		log.Fatal(err)
	}
	_, err = images.Enqueue(ctx, host, "cat", workerpool.Webhook("https://example.com"))
	fmt.Println(err)
	if _, err := images.Enqueue(ctx, host, "cat", workerpool.Webhook("ledger:alice")); err != nil {
		log.Fatal(err)
	}
	outcome := ""
	for outcome == "" { // until the task has ended, and the message has come
		if outcome, err = read.Call(ctx, host, "ledger:alice", struct{}{}); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(outcome)
	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// workerpool: invalid: webhook of a task of the pool images: it is no ledger
	// done "small cat"
}
