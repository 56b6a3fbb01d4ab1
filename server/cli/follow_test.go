package cli

import (
	"bufio"
	"context"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server"
	"github.com/holdfast-dev/holdfast/server/auth"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// A stream that was cut goes on behind its last event: none is missing, and none comes twice. A server that never answered is an error.
func TestFollowComesBack(t *testing.T) {
	class, put := cartClass(object.ClassOptions{})
	host, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}}, server.Definitions(class)...)
	must(t, err)
	defer host.Shutdown(t.Context())
	srv, err := server.New(host, server.Config{Auth: auth.Insecure()})
	must(t, err)
	web := httptest.NewServer(srv)
	defer web.Close()
	add := func(key string) {
		_, err := put.Call(t.Context(), host, "alice", order{Key: key})
		must(t, err)
	}
	ctx, end := context.WithCancel(t.Context())
	r, w := io.Pipe()
	over := make(chan int, 1)
	go func() {
		over <- Run(ctx, Program{}, []string{"--addr", web.URL, "events", "cart/alice", "-f"}, strings.NewReader(""), w, io.Discard)
		_ = w.Close() // it never fails
	}()
	lines := bufio.NewReader(r)
	for _, key := range []string{"one", "two", "three"} {
		add(key)
		line, err := lines.ReadString('\n')
		must(t, err)
		if !strings.Contains(line, `"`+key+`"`) {
			t.Errorf("the event after the cut is %q, want %s", line, key)
		}
		web.CloseClientConnections()
	}
	end()
	go func() { _, _ = io.Copy(io.Discard, r) }() // the rest
	if code := <-over; code != Interrupted {
		t.Errorf("exit %d", code)
	}
	web.Close()
	run(t, Program{}, "--addr", web.URL, "events", "cart/alice", "-f").must(t, Unopened, "cannot reach")
}
