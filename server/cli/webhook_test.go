package cli

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server"
	"github.com/holdfast-dev/holdfast/server/auth"
	"github.com/holdfast-dev/holdfast/server/webhook"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// The verbs of webhook agree with the routes, and print a secret once. Proves U10.
func TestWebhook(t *testing.T) {
	ids := make(chan string, 100)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		ids <- r.Header.Get("webhook-id")
	}))
	defer receiver.Close()
	hooks, err := webhook.New(webhook.Config{Key: make([]byte, 32), AllowPrivate: true, Timeout: 24 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	class, put := cartClass(object.ClassOptions{})
	host, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}, Feed: true}, server.Definitions(append(hooks.Definitions(), class)...)...)
	if err != nil {
		t.Fatal(err)
	}
	defer host.Shutdown(t.Context())
	srv, err := server.New(host, server.Config{Auth: auth.Insecure(), Webhooks: hooks})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(srv)
	defer web.Close()
	does := func(want int, args ...string) string {
		t.Helper()
		o := run(t, Program{Name: "holdfast"}, append([]string{"--addr", web.URL, "webhook"}, args...)...)
		if o.code != want {
			t.Fatalf("%q: code %d, want %d\n%s%s", args, o.code, want, o.out, o.errs)
		}
		return o.out + o.errs
	}
	var made struct{ ID, Secret string }
	out := does(Fine, "add", receiver.URL, "--class", "cart", "--kind", "put", "-o", "json")
	if err := json.Unmarshal([]byte(out), &made); err != nil || !strings.HasPrefix(made.Secret, "whsec_") {
		t.Fatalf("%s: %v", out, err)
	}
	if _, err := put.Call(t.Context(), host, "alice", order{Key: "a"}); err != nil {
		t.Fatal(err)
	}
	id, id0 := <-ids, made.ID
	for !strings.Contains(does(Fine, "ls", "-o", "json"), `"delivered": 1`) {
	}
	if out := does(Fine, "ls"); !strings.Contains(out, made.ID) || !strings.Contains(out, "put of cart/*") || !strings.Contains(out, "enabled") || strings.Contains(out, made.Secret) {
		t.Errorf("ls: %s", out)
	}
	if out := does(Fine, "show", made.ID); !strings.Contains(out, id) || !strings.Contains(out, "200") || !strings.Contains(out, "cart/alice") || !strings.Contains(out, "1 delivered") {
		t.Errorf("show: %s", out)
	}
	does(Fine, "resend", made.ID, id)
	if again := <-ids; again != id {
		t.Errorf("resend sent %s", again)
	}
	does(Fine, "replay", made.ID, "--last", "1h")
	if again := <-ids; again != id {
		t.Errorf("replay sent %s", again)
	}
	does(Fine, "disable", made.ID)
	if out := does(Fine, "ls"); !strings.Contains(out, "disabled by hand") {
		t.Errorf("ls: %s", out)
	}
	does(Fine, "enable", made.ID)
	if out := does(Fine, "rotate", made.ID); !strings.Contains(out, "whsec_") || strings.Contains(out, made.Secret) {
		t.Errorf("rotate: %s", out)
	}
	does(Usage, "add", "ftp://x")
	out = does(Fine, "add", "--pool", "thumb", "-o", "json")
	if err := json.Unmarshal([]byte(out), &made); err != nil || made.ID != "pool.thumb" || !strings.HasPrefix(made.Secret, "whsec_") {
		t.Errorf("add --pool: %s: %v", out, err)
	}
	if out := does(Fine, "ls"); !strings.Contains(out, "pool.thumb") || !strings.Contains(out, "outcomes of tasks of thumb") || strings.Contains(out, made.Secret) {
		t.Errorf("ls: %s", out)
	}
	if out := does(Fine, "show", "pool.thumb"); !strings.Contains(out, "outcomes of tasks of thumb") || !strings.Contains(out, "0 delivered") {
		t.Errorf("show: %s", out)
	}
	does(Usage, "add", receiver.URL, "--pool", "thumb")
	does(Usage, "add", "--pool", "thumb", "--class", "cart")
	does(Usage, "add", "--pool", "thumb") // there is one
	does(Usage, "add")
	does(Fine, "rm", "pool.thumb")
	made.ID = id0
	does(Usage, "replay", made.ID)
	does(Fine, "rm", made.ID)
	if out := does(Fine, "ls"); !strings.Contains(out, "no subscriptions") {
		t.Errorf("ls: %s", out)
	}
	does(Refused, "rm", made.ID)
}
