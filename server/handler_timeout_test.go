package server

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// slug is an object with a method that takes as long as its argument says, or until its context ends.
type slug struct{}

// crawled is how a handler of a slug has ended.
type crawled struct {
	after time.Duration
	why   error
}

// Proves V19: the handler of a call goes on when the wait for its answer has ended, and its context ends after
// Config.HandlerTimeout, not before it, and with the host.
func TestHandlerTimeout(t *testing.T) {
	for _, c := range []struct {
		name        string
		work, limit string // of the handler; empty: the default
		shut        time.Duration
		want        time.Duration
		ends        error
		status      int
	}{
		{name: "ends before it", work: "59.999s", want: 60*time.Second - time.Millisecond, status: http.StatusGatewayTimeout},
		{name: "would end after it", work: "60.001s", want: time.Minute, ends: object.ErrTimeout, status: http.StatusGatewayTimeout},
		{name: "of the Config", work: "2s", limit: "500ms", want: 500 * time.Millisecond, ends: object.ErrTimeout, status: http.StatusOK},
		{name: "with the host", work: "59s", shut: 10 * time.Second, want: 10 * time.Second, ends: object.ErrShutdown, status: http.StatusGatewayTimeout},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ended := make(chan crawled, 1)
				class := object.Define("slug", func(context.Context, *object.State) (*slug, error) { return &slug{}, nil })
				object.Handle(class, "crawl", func(_ *slug, ctx context.Context, work time.Duration) (bool, error) {
					began := time.Now()
					select {
					case <-ctx.Done():
					case <-time.After(work):
					}
					ended <- crawled{time.Since(began), context.Cause(ctx)}
					return true, nil
				})
				host, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}}, Definitions(class)...)
				if err != nil {
					t.Fatal(err)
				}
				config := Config{Auth: people{"all": principal("slug")}, Objects: []Exposed{Class(class)}, Timeout: time.Second}
				config.HandlerTimeout, _ = time.ParseDuration(c.limit) // empty: zero
				srv, err := New(host, config)
				if err != nil {
					t.Fatal(err)
				}
				work, _ := time.ParseDuration(c.work)
				r := httptest.NewRequest("POST", "http://localhost/v1/objects/slug/a/call/crawl", strings.NewReader(strconv.FormatInt(int64(work), 10)))
				r.Header.Set("Authorization", "Bearer all")
				w, began := httptest.NewRecorder(), time.Now()
				srv.ServeHTTP(w, r)
				if took := time.Since(began); w.Code != c.status || took > time.Second {
					t.Errorf("V19: after %v: %d %s", took, w.Code, w.Body)
				}
				end := context.Background()
				if c.shut > 0 {
					ctx, cancel := context.WithDeadline(end, began.Add(c.shut))
					defer cancel()
					end = ctx
				}
				if err := host.Shutdown(end); err != nil {
					t.Error(err)
				}
				if got := <-ended; got.after != c.want || !errors.Is(got.why, c.ends) || (got.why == nil) != (c.ends == nil) {
					t.Errorf("V19: the handler ended after %v, its context with %v; want %v, %v", got.after, got.why, c.want, c.ends)
				}
			})
		})
	}
}
