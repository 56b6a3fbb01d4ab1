package object_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// feedClient is a program outside that goes through the feed from its beginning and keeps its cursor. It
// lives on when the process of the host dies.
type feedClient struct {
	*told
	after uint64
}

// read reads pages until the diaries have so many entries in all.
func (c *feedClient) read(entries int) {
	for c.total() < entries {
		_ = c.s.WithHost(func(ctx context.Context, h *object.Host) error {
			tap, err := h.Tap(object.TapOptions{}) // it only tells when there is more
			if err != nil {
				return err
			}
			defer tap.Close()
			for c.total() < entries {
				page, err := h.Feed(ctx, object.FeedOptions{After: c.after, Class: "diary", Limit: 2})
				if errors.Is(err, object.ErrEventsMissed) {
					c.resets++
				}
				if err != nil {
					return err
				}
				for _, e := range page.Events {
					c.take(e)
				}
				if c.after = page.Next; len(page.Events) > 0 || page.More {
					continue
				}
				if _, err := tap.Next(ctx); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// Two diaries have entries, while one client reads the feed in pages and another follows it by a tap.
// The process dies at each point. Neither client misses an entry, has one twice, or is told of a
// gap. Proves O25, V7.
func TestCrashFeed(t *testing.T) {
	exhaust(t, func(s *harness.Sim) {
		s.Host(diaries)
		const entries = 3
		newest := func() map[storage.ID]int { return map[storage.ID]int{} }
		reader := &feedClient{told: &told{s: s, newest: newest()}}
		tapped := &told{s: s, of: object.TapOptions{Class: "diary"}, newest: newest()}
		done := 0
		s.Go("reader", func() { reader.read(2 * entries); done++ })
		s.Go("tap", func() { tapped.follow(2 * entries); done++ })
		for _, name := range []string{"a", "b"} {
			s.Go("writer of "+name, func() {
				for i, n := range []int{1, 2} {
					s.OK(s.Retry(func() error {
						_, err := enter.Call(s.Context(), s, name, n, object.Idempotent(fmt.Sprint(i), time.Hour))
						return err
					}))
				}
				done++
			})
		}
		s.Advance(time.Minute)
		s.Finally("each client has each entry, and all that it was told of is stored", func() error {
			if done != 4 {
				return fmt.Errorf("O25: %d of 4 clients and writers have ended; the clients know of %v and %v", done, reader.newest, tapped.newest)
			}
			if len(reader.events) != 2*entries {
				return fmt.Errorf("O25: the reader got %d events, want each of %d once", len(reader.events), 2*entries)
			}
			if reader.resets+tapped.resets > 0 {
				return fmt.Errorf("O25: the clients were told of %d and %d gaps", reader.resets, tapped.resets)
			}
			return errors.Join(reader.stored(), tapped.stored())
		})
	}, harness.Seed(1), harness.HostOptions(func(o *object.Options) { o.Feed = true }))
}
