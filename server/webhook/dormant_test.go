package webhook_test

import (
	"context"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/admin/backup"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server/webhook"
	"github.com/holdfast-dev/holdfast/storage"
)

// A restored store sends nothing before it is woken: no waiting delivery, and no event of its own. Then it sends each
// event with the id that it had before, and gives no id again that the source gave after the backup. Proves U1, O26, S17.
func TestDormant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer, ids := http.StatusInternalServerError, []string(nil)
		var sending sync.Mutex // of the senders alone: all of them have ended when a host has
		hooks := newHooks(t)
		hooks.SetSender(func(_ context.Context, _, id string, _ []byte, _ int) (int, error) {
			sending.Lock()
			defer sending.Unlock()
			ids = append(ids, id)
			return answer, nil
		})
		root := t.TempDir()
		run := func(dir string, f func(h *object.Host)) {
			t.Helper()
			h, err := object.Open(object.Options{Dir: filepath.Join(root, dir), Feed: true, Logger: slog.New(slog.DiscardHandler)}, append(hooks.Definitions(), carts)...)
			if err != nil {
				t.Fatal(err)
			}
			f(h)
			synctest.Wait()
			if err := h.Shutdown(context.Background()); err != nil {
				t.Error(err)
			}
		}
		var id string
		run("source", func(h *object.Host) {
			s, _, err := hooks.Add(t.Context(), h, webhook.Subscription{URL: "https://example.com"})
			if id = s.ID; err != nil {
				t.Fatal(err)
			}
			call(t, h, "alice", paid{Kind: "paid"})
			time.Sleep(time.Second)
		})
		if len(ids) != 1 {
			t.Fatalf("sent %q, want one delivery", ids)
		}
		repo, err := backup.Open(filepath.Join(root, "repo"), storage.Options{})
		if err != nil {
			t.Fatal(err)
		}
		made, err := repo.CreateFrom(t.Context(), filepath.Join(root, "source"))
		if err == nil {
			_, err = repo.Verify(t.Context(), made.Name, nil)
		}
		run("source", func(h *object.Host) {
			call(t, h, "carol", paid{Kind: "paid"})
			time.Sleep(time.Second)
		})
		lost := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return id == ids[0] })
		if ids = ids[:1]; len(lost) != 1 {
			t.Fatalf("sent %q, want one delivery of the lost time", lost)
		}
		copied := filepath.Join(root, "copy")
		if err == nil {
			_, err = repo.Restore(t.Context(), made.Name, copied)
		}
		if err != nil {
			t.Fatal(err)
		}
		run("copy", func(h *object.Host) {
			call(t, h, "bob", paid{Kind: "paid"})
			time.Sleep(24 * time.Hour)
			if s, err := hooks.Status(t.Context(), h, id); err != nil || s.Waiting != 1 || s.Delivered != 0 {
				t.Errorf("status %+v, %v", s, err)
			}
		})
		if len(ids) != 1 {
			t.Errorf("the dormant copy has sent %q", ids[1:])
		}
		if err := storage.Wake(storage.Options{Dir: copied}); err != nil {
			t.Fatal(err)
		}
		answer = http.StatusOK
		run("copy", func(h *object.Host) {
			time.Sleep(time.Hour)
			if s, err := hooks.Status(t.Context(), h, id); err != nil || s.Waiting != 0 || s.Delivered != 2 || s.Gaps != 0 {
				t.Errorf("after it was woken: status %+v, %v", s, err)
			}
		})
		if len(ids) != 3 || !slices.Contains(ids[1:], ids[0]) || ids[1] == ids[2] || slices.Contains(ids, lost[0]) {
			t.Errorf("sent %q, want the first again and one more, and not %q of the lost time", ids, lost)
		}
	})
}
