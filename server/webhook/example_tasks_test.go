package webhook_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server/webhook"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// The outcome of a task is posted to the URL of the task, on a host that the pool names, signed with the secret of the pool.
func ExampleWebhooks_Tasks() {
	ctx := context.Background()
	hooks, err := webhook.New(webhook.Config{
		Key:          []byte("32 random bytes of the program..")[:32], // from a file or the environment
		AllowPrivate: true,                                            // because the receiver is on this machine
	})
	if err != nil {
		log.Fatal(err)
	}
	posts, err := hooks.Tasks("127.0.0.1", "*.example.com")
	if err != nil {
		log.Fatal(err)
	}
	images := workerpool.New(workerpool.Config[string, string]{
		Name: "images", Webhooks: posts,
		Work: func(_ context.Context, t *workerpool.Task[string]) (string, error) { return "small " + t.In, nil },
	})
	host, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}}, append(hooks.Definitions(), images)...)
	if err != nil {
		log.Fatal(err)
	}
	_, secret, err := hooks.Add(ctx, host, webhook.Subscription{Pool: "images"})
	if err != nil {
		log.Fatal(err)
	}
	verifier, err := standard.NewWebhook(secret)
	if err != nil {
		log.Fatal(err)
	}
	got := make(chan string)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- fmt.Sprint(verifier.Verify(body, r.Header) == nil, " ", string(body[:24]))
	}))

	if _, err := images.Enqueue(ctx, host, "cat", workerpool.Webhook(receiver.URL+"/images")); err != nil {
		log.Fatal(err)
	}
	fmt.Println(<-got)
	_, err = images.Enqueue(ctx, host, "cat", workerpool.Webhook("http://example.org"))
	fmt.Println(err)
	receiver.Close()
	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// true {"type":"task.completed"
	// workerpool: invalid: webhook of a task of the pool images: webhook: invalid: the host "example.org" is none that the pool names
}
