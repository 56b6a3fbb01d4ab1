package backup_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/debounce"
	"github.com/holdfast-dev/holdfast/object"
)

// flushed is a call of a Flush.
type flushed struct {
	generation uint64
	key        string
	events     []string
}

// A restored store numbers its generations as its source has done since the snapshot. The flush of one with other
// events has another key, so another system does not take it for a repeat: not that of the generation that was open at
// the snapshot, nor of a later one. A generation that was closed at the snapshot has the same events, and keeps its key.
//
// Proves S17. Proves D3.
func TestRestoredStoreGivesNoFlushKeyAgain(t *testing.T) {
	ctx := t.Context()
	calls, fails := make(chan flushed), true // fails is used by one Flush at a time
	mail := debounce.New(debounce.Config[string, struct{}]{
		Name: "mail", Quiet: time.Hour, Retry: jobs.Retry{MaxAttempts: 1},
		Flush: func(ctx context.Context, f *debounce.Flush[string, struct{}]) error {
			failing := f.ID == "failed" && fails
			calls <- flushed{f.Generation, f.Key, slices.Clone(f.Events)}
			if failing {
				return errors.New("no paper")
			}
			return nil
		},
	})
	p := newPrinters(t, mail)
	add := func(h *object.Host, id string, events ...string) {
		t.Helper()
		for _, event := range events {
			if _, err := mail.Add(ctx, h, id, event); err != nil {
				t.Fatal(err)
			}
		}
	}
	flush := func(h *object.Host, id string, want uint64, events ...string) (key string) {
		t.Helper()
		if _, err := mail.FlushNow(ctx, h, id); err != nil {
			t.Fatal(err)
		}
		f := <-calls
		if f.generation != want || !slices.Equal(f.events, events) {
			t.Errorf("generation %d with events %q is flushed, want %d with %q", f.generation, f.events, want, events)
		}
		return f.key
	}

	h := p.open("source")
	add(h, "open", "a")
	add(h, "failed", "x")
	closed := flush(h, "failed", 1, "x")
	p.end(h) // the failure is stored
	h = p.open("source")
	given := make(map[string]bool)
	p.restored(h, "copy", func() {
		add(h, "open", "b")
		given[flush(h, "open", 1, "a", "b")] = true
		add(h, "open", "c")
		given[flush(h, "open", 2, "c")] = true
		p.end(h)
	})
	p.wake("copy")
	h = p.open("copy")
	add(h, "open", "d")
	again := []string{flush(h, "open", 1, "a", "d")}
	add(h, "open", "e")
	for _, key := range append(again, flush(h, "open", 2, "e")) {
		if given[key] {
			t.Errorf("S17: the copy flushes other events under %s, as the source has done", key)
		}
	}
	fails = false
	if err := mail.Resume(ctx, h, "failed"); err != nil {
		t.Fatal(err)
	}
	if f := <-calls; f.key != closed || !slices.Equal(f.events, []string{"x"}) {
		t.Errorf("D3: the flush of %q that goes on in the copy has key %s, and had %s", f.events, f.key, closed)
	}
	p.end(h)
}
