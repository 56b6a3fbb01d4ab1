package transfer_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/admin/transfer"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// fedBy is the payloads of a page of the feed and the position behind it.
func fedBy(t *testing.T, h *object.Host, after uint64) (said []string, next uint64) {
	t.Helper()
	page, err := h.Feed(context.Background(), object.FeedOptions{After: after})
	if err != nil {
		t.Error(err)
	}
	for _, e := range page.Events {
		if e.ID != bob {
			t.Errorf("O25: an event of %v", e.ID)
		}
		said = append(said, string(e.Data))
	}
	return said, page.Next
}

// Proves O25, S16: the feed has the events of an imported object, also one of a class that is not
// registered, and tells the taps that wait. An event that had expired before the import is not in
// the feed, so no reader is told that it has missed it.
func TestImportFeedsItsEvents(t *testing.T) {
	for _, parked := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var classes []object.Definition
			if !parked {
				classes = append(classes, newShop().carts)
			}
			_, _, file := filled(t, time.Now().Add(time.Hour))
			h, err := object.Open(object.Options{
				Feed: true, Storage: storage.Options{Engine: memstore.New()}, Logger: slog.New(slog.DiscardHandler),
			}, classes...)
			if err != nil {
				t.Fatal(err)
			}
			defer h.Shutdown(context.Background())
			_, start := fedBy(t, h, 0)
			tap, err := h.Tap(object.TapOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer tap.Close()
			told := make(chan int, 1)
			go func() {
				wait, cancel := context.WithTimeout(t.Context(), time.Minute) // of the clock of the bubble
				defer cancel()
				events, _ := tap.Next(wait)
				told <- len(events)
			}()
			synctest.Wait() // until the tap waits

			old := object.CopiedEvent{Event: object.Event{At: time.Now().Add(-time.Hour), Kind: "old", Data: []byte("0")}, Expires: time.Now().Add(-time.Minute)}
			gone := object.Copy{ID: bob, Events: []object.CopiedEvent{old}}
			if err := h.Import(context.Background(), object.Import{Copy: gone, Rows: oneKey}); err != nil {
				t.Fatal(err)
			}
			if said, _ := fedBy(t, h, start); said != nil {
				t.Errorf("O25: the feed has %q, which had expired", said)
			}
			if err := imported(h, file, transfer.ImportOptions{Replace: true}); err != nil {
				t.Fatal(err)
			}
			if n := <-told; n != 2 {
				t.Errorf("V7: parked %v: the tap is told of %d events", parked, n)
			}
			said, next := fedBy(t, h, start)
			if want := []string{`"\u003ca\u003e"`, "2"}; !slices.Equal(said, want) {
				t.Errorf("O25: the feed has %q, want %q", said, want)
			}
			synctest.Wait() // until the event that has expired is gone
			if err := h.Store().Check(); err != nil {
				t.Error(err)
			}
			if said, again := fedBy(t, h, next); said != nil || again != next {
				t.Errorf("O25: behind %#x the feed has %q up to %#x", next, said, again)
			}
		})
	}
}

// oneKey is the rows of an object with a key.
func oneKey(_ map[uint64]uint64, key func(string, []byte) error, _ func(string, time.Time, []byte) error) error {
	return key("k", nil)
}

// Proves O28: dead letters that cannot be stored, or of which one would replace another, are refused before
// anything is stored. The letters stay as the caller has made them.
func TestImportRefusesLetters(t *testing.T) {
	h := newShop().open(t, object.Options{})
	letters := func(d ...object.DeadLetter) error {
		return h.Import(context.Background(), object.Import{Copy: object.Copy{ID: bob, Letters: d}, Rows: oneKey})
	}
	for want, d := range map[string][]object.DeadLetter{
		"dead letter 9: object: value is too large": {{Seq: 9, Data: json.RawMessage(`"` + strings.Repeat("x", object.MaxDeadData-1) + `"`)}},
		"dead letter 7: another":                    {{Seq: 7}, {Seq: 8}, {Seq: 7}},
		"dead letter 1: json":                       {{Seq: 1, Data: json.RawMessage("{")}},
		"dead letter 2: json":                       {{Seq: 2, Died: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}},
	} {
		if err := letters(d...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("O28: %d letters give %.200v, want %q", len(d), err, want)
		}
	}
	if err := transfer.Export(context.Background(), h, bob, io.Discard, transfer.ExportOptions{}); err == nil {
		t.Error("O28: a refused import has stored something")
	}
	large := object.Copy{ID: bob, Execution: &object.OpenExecution{Since: far, Data: make([]byte, 16<<20)}}
	if err := h.Import(context.Background(), object.Import{Copy: large, Rows: oneKey}); !errors.Is(err, object.ErrBatchTooLarge) {
		t.Errorf("O28: an open execution of 16 MiB gives %v", err)
	}
	two := []object.DeadLetter{
		{Seq: 7, Reason: "a", Data: json.RawMessage(`"` + strings.Repeat("x", object.MaxDeadData-2) + `"`)}, {Seq: 8, Reason: "b"},
	}
	if err := letters(two...); err != nil || two[0].ID != (storage.ID{}) {
		t.Errorf("O27: %v, and a letter of the caller is of %v", err, two[0].ID)
	}
	if file := exported(t, h, bob); strings.Count(file, `{"letter"`) != 2 {
		t.Errorf("O27: two letters are\n%s", file)
	}
}
