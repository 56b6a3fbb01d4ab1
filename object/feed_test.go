package object_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
)

// newFed is a fixture with the feed, which is not open yet.
func newFed(t testing.TB) *fixture {
	f := newFixture(t)
	f.options.Feed = true
	return f
}

// page is a page of the feed as name=payload.
func (f *fixture) page(o object.FeedOptions) (said []string, page object.FeedPage, err error) {
	page, err = f.host.Feed(context.Background(), o)
	for _, e := range page.Events {
		said = append(said, fmt.Sprintf("%s=%s", e.ID.Name, e.Data))
	}
	return said, page, err
}

// wantPage compares a page, and returns its Next.
func (f *fixture) wantPage(o object.FeedOptions, more bool, want ...string) uint64 {
	f.t.Helper()
	said, page, err := f.page(o)
	if err != nil || !slices.Equal(said, want) || page.More != more || page.Next < o.After {
		f.t.Errorf("O25: %+v gives %q, next %#x, more %v, %v; want %q, more %v", o, said, page.Next, page.More, err, want, more)
	}
	return page.Next
}

// wantMissed expects that the feed tells of a gap, and returns the place behind it.
func (f *fixture) wantMissed(o object.FeedOptions) uint64 {
	f.t.Helper()
	said, page, err := f.page(o)
	if !errors.Is(err, object.ErrEventsMissed) || said != nil {
		f.t.Errorf("O25: %+v gives %q, %v; want ErrEventsMissed", o, said, err)
	}
	return page.Next
}

// saying emits an event of a kind.
func saying(kind string, payload int, opts ...object.EmitOption) action {
	return func(th *thing, ctx context.Context) (any, error) {
		return nil, th.st.Emit(ctx, kind, payload, opts...)
	}
}

// The feed has the events of all objects in pages, and those that a filter asks for. Its cursor goes
// on over a restart and a crash. Proves O25.
func TestFeed(t *testing.T) {
	f := newFed(t).open()
	defer func() { f.close() }()
	start := f.wantPage(object.FeedOptions{}, false)
	f.must("a", say(1, 2))
	f.must("b", saying("shout", 3))
	f.must("ab", say(4, 1))
	end := f.wantPage(object.FeedOptions{After: start}, false, "a=1", "a=2", "b=3", "ab=4")
	f.wantPage(object.FeedOptions{}, false, "a=1", "a=2", "b=3", "ab=4")
	f.wantPage(object.FeedOptions{Limit: 4}, false, "a=1", "a=2", "b=3", "ab=4")
	next := f.wantPage(object.FeedOptions{Limit: 3}, true, "a=1", "a=2", "b=3")
	f.wantPage(object.FeedOptions{After: next, Limit: 3}, false, "ab=4")
	for _, o := range []object.FeedOptions{{Class: "other"}, {Kinds: []string{"none"}}, {Prefix: "abc"}, {After: end}} {
		if got := f.wantPage(o, false); got != end {
			t.Errorf("O25: %+v ends at %#x, want %#x", o, got, end)
		}
	}
	f.wantPage(object.FeedOptions{Class: "thing", Prefix: "a"}, false, "a=1", "a=2", "ab=4")
	f.wantPage(object.FeedOptions{Kinds: []string{"none", "shout"}}, false, "b=3")

	f.close()
	f.open()
	f.must("c", say(5, 1))
	f.crash()
	f.open()
	f.must("c", say(6, 1))
	f.wantPage(object.FeedOptions{After: next}, false, "ab=4", "c=5", "c=6")
	_, page, err := f.page(object.FeedOptions{})
	if err != nil || len(page.Events) != 6 || page.Events[0].Cursor <= start || page.Events[5].Cursor != page.Next {
		t.Errorf("O25: the cursors of %+v, %v", page, err)
	}
}

// A page ends after its rows also if the filter passes over all of them, and after about 1 MiB of
// payloads. Proves O25.
func TestFeedPagesAreBounded(t *testing.T) {
	f := newFed(t).open()
	defer f.close()
	const rows = 4096 // that one page looks at
	start := f.wantPage(object.FeedOptions{}, false)
	f.must("a", say(1, rows))
	f.wantPage(object.FeedOptions{After: start, Class: "other"}, false)
	f.must("a", say(0, 1))
	next := f.wantPage(object.FeedOptions{After: start, Class: "other"}, true)
	f.wantPage(object.FeedOptions{After: next}, false, "a=0")
	for range 4 {
		f.must("big", func(th *thing, ctx context.Context) (any, error) {
			return nil, th.st.Emit(ctx, "big", strings.Repeat("x", 600<<10))
		})
	}
	if _, page, err := f.page(object.FeedOptions{Class: "thing", Kinds: []string{"big"}, After: next}); err != nil || len(page.Events) != 3 || !page.More {
		t.Errorf("O25: a page of large events has %d, more %v, %v", len(page.Events), page.More, err)
	}
}

// Mistakes in the options are errors, and a host without the feed has none to read.
func TestFeedOptions(t *testing.T) {
	f := newFed(t).open()
	for _, o := range []object.FeedOptions{{Limit: -1}, {Class: "a/b"}, {Class: strings.Repeat("c", 129)}} {
		if _, err := f.host.Feed(t.Context(), o); err == nil || !strings.HasPrefix(err.Error(), "object: Feed: ") {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if _, err := f.host.Feed(ended(), object.FeedOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v", err)
	}
	f.close()
	if _, err := f.host.Feed(t.Context(), object.FeedOptions{}); !errors.Is(err, object.ErrShutdown) {
		t.Errorf("after Shutdown: %v", err)
	}
	f = newFixture(t).open()
	defer f.close()
	if _, err := f.host.Feed(t.Context(), object.FeedOptions{}); err == nil || !strings.Contains(err.Error(), "Options.Feed") {
		t.Errorf("without the feed: %v", err)
	}
}

// A turn that ends without its commit leaves nothing in the feed and holds up no reader, whichever way
// it ends. Proves O25.
func TestFeedAfterEachWayOut(t *testing.T) {
	for name, end := range map[string]func(f *fixture, th *thing, ctx context.Context) error{
		"error": func(*fixture, *thing, context.Context) error { return errors.New("no") },
		"panic": func(*fixture, *thing, context.Context) error { panic("no") },
		"batch too large": func(f *fixture, th *thing, ctx context.Context) error {
			return fill(func(int) error { return th.st.Emit(ctx, "many", 1) })
		},
		"reset": func(f *fixture, th *thing, ctx context.Context) error {
			if err := f.host.Delete(context.Background(), f.id("a")); err != nil {
				return err
			}
			return th.st.Emit(ctx, "after", 1)
		},
		"transaction": func(f *fixture, th *thing, ctx context.Context) error {
			return th.st.Storage().Transaction(ctx, func(ctx context.Context, _ *object.Storage) error {
				return errors.Join(th.st.Emit(ctx, "undone", 1), errors.New("no"))
			})
		},
		"no space": func(f *fixture, th *thing, ctx context.Context) error { return object.ErrNoSpace },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFed(t)
			f.options.MaxBatchBytes = limitBytes
			f.open()
			defer f.close()
			_, _ = f.call("a", func(th *thing, ctx context.Context) (any, error) {
				err := th.st.Emit(ctx, "lost", 1)
				if failed := end(f, th, ctx); failed != nil || err != nil {
					return nil, errors.Join(err, failed)
				}
				return nil, errors.New("the turn fails")
			})
			f.must("b", say(2, 1))
			f.wantPage(object.FeedOptions{}, false, "b=2")
		})
	}
}

// An opening without the feed, and rows that have expired, are told, and the reader goes on
// behind them. A new reader misses nothing. Proves O25.
func TestFeedTellsOfGaps(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFed(t)
		f.options.EventRetention = time.Hour
		f.open()
		defer func() { f.close() }()
		start := f.wantPage(object.FeedOptions{}, false)
		f.wantMissed(object.FeedOptions{After: start + 1}) // a position that no commit has
		f.wantMissed(object.FeedOptions{After: math.MaxUint64})
		f.wantMissed(object.FeedOptions{After: 1}) // of a store of before
		f.must("a", say(1, 2))
		pass(time.Hour - time.Second)
		f.must("a", say(3, 1))
		f.wantPage(object.FeedOptions{After: start}, false, "a=1", "a=2", "a=3")
		first := f.wantPage(object.FeedOptions{Limit: 1}, true, "a=1")
		second := f.wantPage(object.FeedOptions{After: first, Limit: 1}, true, "a=2")
		pass(2 * time.Minute)
		f.wantPage(object.FeedOptions{}, false, "a=3")
		f.wantPage(object.FeedOptions{After: second}, false, "a=3") // it has had all that is gone
		for _, after := range []uint64{start, first} {
			if next := f.wantMissed(object.FeedOptions{After: after}); next != second {
				t.Errorf("O25: behind the gap is %#x, want %#x", next, second)
			}
		}

		f.close()
		f.options.Feed = false
		f.open()
		f.must("a", say(4, 1))
		f.close()
		f.options.Feed = true
		f.open()
		f.must("a", say(5, 1))
		next := f.wantMissed(object.FeedOptions{After: second})
		f.wantPage(object.FeedOptions{After: next}, false, "a=5")
		f.wantPage(object.FeedOptions{}, false, "a=5")
		pass(2 * time.Hour)
		end := f.wantPage(object.FeedOptions{}, false)
		f.wantMissed(object.FeedOptions{After: next})
		f.wantPage(object.FeedOptions{After: end}, false)
	})
}

// An event that goes before its row, because of KeepFor or a shorter EventRetention of a later
// opening, is told at its place, after the events before it. Proves O25, V7.
func TestFeedTellsOfEventsThatGoEarlier(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFed(t).open()
		defer f.close()
		start := f.wantPage(object.FeedOptions{}, false)
		f.must("a", say(1, 1))
		f.must("a", saying("short", 2, object.KeepFor(time.Minute)))
		f.must("b", saying("short", 3, object.KeepFor(time.Minute)))
		f.must("a", say(4, 1))
		f.wantPage(object.FeedOptions{After: start}, false, "a=1", "a=2", "b=3", "a=4")
		pass(3 * time.Minute)
		f.wantPage(object.FeedOptions{}, false, "a=1", "a=4")
		f.wantPage(object.FeedOptions{After: start, Kinds: []string{"said"}}, false, "a=1", "a=4")
		next := f.wantPage(object.FeedOptions{After: start}, true, "a=1")
		next = f.wantMissed(object.FeedOptions{After: next})
		f.wantPage(object.FeedOptions{After: next}, false, "a=4")

		tap := f.listen(object.TapOptions{Class: "thing", After: start})
		said, _ := hear(t, tap, 1)
		wantSaid(t, said, "a=1")
		wait, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if events, err := tap.Next(wait); !errors.Is(err, object.ErrEventsMissed) {
			t.Errorf("V7: a tap gives %+v, %v", events, err)
		}
	})
}

// A tap to all objects or to a class goes on over a restart with the feed, and tells if an opening
// without it was between. Proves O25, V7.
func TestFedTap(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFed(t).open()
		defer func() { f.close() }()
		f.must("a", say(1, 1)) // before anyone listens
		tap, other := f.listen(object.TapOptions{Class: "thing"}), f.listen(object.TapOptions{Class: "other"})
		f.must("a", say(2, 2))
		said, cursors := hear(t, tap, 2)
		wantSaid(t, said, "a=2", "a=3")
		for _, tap := range []*object.Tap{tap, other} {
			wait, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := tap.Next(wait); !errors.Is(err, context.DeadlineExceeded) || tap.Cursor() != cursors[1] {
				t.Errorf("V7: a tap without news is at %#x, want %#x, %v", tap.Cursor(), cursors[1], err)
			}
		}
		var waiting sync.WaitGroup
		waiting.Go(func() {
			said, _ := hear(t, tap, 1)
			wantSaid(t, said, "b=4")
			if _, err := tap.Next(context.Background()); !errors.Is(err, object.ErrShutdown) {
				t.Errorf("V9: at Shutdown a tap ends with %v", err)
			}
		})
		pass(time.Second)
		f.must("b", say(4, 1))
		pass(time.Second)
		f.close()
		waiting.Wait()

		f.open()
		f.must("b", say(5, 1))
		said, _ = hear(t, f.listen(object.TapOptions{After: cursors[0]}), 3)
		wantSaid(t, said, "a=3", "b=4", "b=5")
		f.close()
		f.options.Feed = false
		f.open()
		wait, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := f.listen(object.TapOptions{After: cursors[1]}).Next(wait); !errors.Is(err, object.ErrEventsMissed) {
			t.Errorf("V7: without the feed a cursor of it gives %v", err)
		}
		memory := f.listen(object.TapOptions{}).Cursor()
		f.close()
		f.options.Feed = true
		f.open()
		for _, after := range []uint64{cursors[1], memory} {
			if _, err := f.listen(object.TapOptions{After: after}).Next(wait); !errors.Is(err, object.ErrEventsMissed) {
				t.Errorf("V7: after an opening without the feed the cursor %#x gives %v", after, err)
			}
		}
	})
}

// A store that fails ends the taps that read the feed.
func TestFedTapEndsWithTheStore(t *testing.T) {
	f := newFed(t).open()
	tap := f.listen(object.TapOptions{})
	ended := make(chan error, 1)
	go func() {
		_, err := tap.Next(context.Background())
		ended <- err
	}()
	f.crash()
	if err := <-ended; !errors.Is(err, object.ErrShutdown) && !errors.Is(err, object.ErrStorage) {
		t.Errorf("V9: the tap ends with %v", err)
	}
}

// late holds up the commits of an object, and tells when the first has begun.
type late struct {
	object         string
	began, release chan struct{}
	once           sync.Once
}

func (l *late) At(p seam.Point) {
	if p.Name == "commit/before" && p.Object == l.object {
		l.once.Do(func() { close(l.began); <-l.release })
	}
}

// A tap does not pass a commit that is applied late, and a commit of another class that ends
// last wakes it. Proves O25, V7.
func TestFedTapWaitsForAnOlderCommit(t *testing.T) {
	l := &late{object: "other/slow", began: make(chan struct{}), release: make(chan struct{})}
	f := newFed(t)
	f.options.Seams = seam.Seams{Probe: l}
	others := object.Define("other", func(ctx context.Context, st *object.State) (*thing, error) { return &thing{st: st}, nil })
	emit := object.Handle(others, "emit", func(th *thing, ctx context.Context, n int) (int, error) { return n, th.st.Emit(ctx, "said", n) })
	f.open(others)
	defer f.close()
	start := f.wantPage(object.FeedOptions{}, false)
	tap := f.listen(object.TapOptions{Class: "thing"})
	var slow sync.WaitGroup
	slow.Go(func() {
		if _, err := emit.Call(context.Background(), f.host, "slow", 1); err != nil {
			t.Error(err)
		}
	})
	<-l.began
	f.must("a", say(2, 1))
	if next := f.wantPage(object.FeedOptions{After: start}, false); next != start {
		t.Errorf("O25: a reader passes a commit that is not applied: it is at %#x, was at %#x", next, start)
	}
	heard := make(chan []string)
	go func() {
		said, _ := hear(t, tap, 1)
		heard <- said
	}()
	close(l.release)
	wantSaid(t, <-heard, "a=2")
	slow.Wait()
	f.wantPage(object.FeedOptions{After: start}, false, "slow=1", "a=2")
}

// Without the option events leave no row of the feed. Proves O25.
func TestNoFeedCostsNothing(t *testing.T) {
	f := newFixture(t).open()
	f.must("a", say(1, 2))
	f.close()
	s, err := storage.Open(storage.Options{Engine: f.mem.Crash(0), Shards: 2, Feed: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Feed(0, math.MaxUint64, func(e storage.FeedEntry) bool { t.Errorf("O25: a row of the feed: %+v", e); return true }); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
