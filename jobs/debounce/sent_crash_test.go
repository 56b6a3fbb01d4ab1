package debounce_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
	"github.com/holdfast-dev/holdfast/jobs/debounce"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// page is an object that counts its edits, and adds an event for each with the commit
// that counts it.
type page struct {
	st    *object.State
	edits int
}

// newPages returns the class of pages, and its method edit. The text of an edit is the id of its event.
func newPages(j *debounce.Job[string, none]) (*object.Class[page], *object.Method[string, int]) {
	class := object.Define("page", func(ctx context.Context, st *object.State) (*page, error) {
		p := &page{st: st}
		_, err := st.Storage().GetInto(ctx, "edits", &p.edits)
		return p, err
	})
	return class, object.Handle(class, "edit", func(p *page, ctx context.Context, text string) (int, error) {
		for range 1 + len(text)%2 { // a text of an odd length is sent twice
			ack, err := j.Add(ctx, p.st.Outbox(), name, text, debounce.EventID(text))
			if err != nil || ack != (debounce.Ack{Sent: true}) {
				return 0, errors.Join(err, fmt.Errorf("the answer is %+v", ack))
			}
		}
		n := p.edits + 1
		if err := p.st.Storage().Put(ctx, "edits", n); err != nil {
			return 0, err
		}
		p.edits = n
		return n, nil
	})
}

type none struct{}

// eventsOrMessages is checked in each stored state: each edit has its event, or a message
// that is under way.
func eventsOrMessages(store *storage.Store) error {
	var edits int
	if _, err := harness.Stored(store, storage.ID{Class: "page", Name: "p"}, "edits", &edits); err != nil {
		return err
	}
	rows, err := storedRows(store)
	if err != nil {
		return err
	}
	events, err := debounce.CountEvents(rows)
	if err != nil {
		return err
	}
	sent, err := crashes.UnderWay(store, "hooks")
	if err == nil && (events > edits || events+sent < edits) {
		err = fmt.Errorf("%d edits, %d events and %d messages", edits, events, sent)
	}
	return err
}

// Proves J19. Case JB15. A row and the event that belongs to it are one commit. An event with an
// id that is sent twice is flushed once.
func TestCrashEventsAreSentWithTheTurn(t *testing.T) {
	exhaust(t, func(s *harness.Sim) {
		flushed := map[uint64][]string{} // by generation; a flush that is repeated shows the same events
		j := debounce.New(debounce.Config[string, none]{
			Name: "hooks", Quiet: seconds(5), Dedup: time.Hour,
			Flush: func(_ context.Context, f *debounce.Flush[string, none]) error {
				s.World().Do(fmt.Sprintf("flush/%d/%d", f.Generation, f.Attempt), func() { flushed[f.Generation] = f.Events })
				return nil
			},
		})
		pages, change := newPages(j)
		s.Host(pages, j)
		for _, text := range []string{"one", "four"} {
			s.OK(s.Retry(func() error {
				_, err := change.Call(s.Context(), s, "p", text, object.Idempotent(text, time.Hour))
				return err
			}))
		}
		s.Advance(seconds(30))
		s.Finally("each event is flushed once", func() error {
			all := slices.Sorted(slices.Values(slices.Concat(slices.Collect(maps.Values(flushed))...)))
			if fmt.Sprint(all) != "[four one]" {
				return fmt.Errorf("J19: flushed %v", flushed)
			}
			if n, err := crashes.UnderWay(s.Store(), "hooks"); n != 0 || err != nil {
				return fmt.Errorf("%d messages never arrived, %v", n, err)
			}
			return nil
		})
	}, harness.NoLostMessage, harness.Invariant("an event or its message", eventsOrMessages))
}
