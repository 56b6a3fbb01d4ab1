package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/internal/testing/loglines"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// sick is an object with the rows of a job, and nothing else of one.
type sick struct{ st *object.State }

// sickRows are the rows that a call gives to it.
type sickRows struct {
	Meta  jobs.Meta
	Junk  bool // in the place of Meta
	Label string
}

// inWard runs f in a bubble with a host and a function that stores the rows of an object.
func inWard(t *testing.T, f func(t *testing.T, h *object.Host, give func(name string, r sickRows))) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		class := object.Define("sick", func(_ context.Context, st *object.State) (*sick, error) { return &sick{st}, nil })
		give := object.Handle(class, "give", func(s *sick, ctx context.Context, r sickRows) (int, error) {
			var value any = r.Meta
			if r.Junk {
				value = 7
			}
			return 0, errors.Join(s.st.Storage().Put(ctx, jobs.MetaKey, value), s.st.Driver().SetLabel(ctx, r.Label))
		})
		h, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New(), Shards: 4}, Logger: slog.New(slog.DiscardHandler)}, class)
		if err != nil {
			t.Fatal(err)
		}
		f(t, h, func(name string, r sickRows) {
			if _, err := give.Call(t.Context(), h, name, r); err != nil {
				t.Fatal(err)
			}
		})
		if err := h.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// stuckSince is the metadata of a job that is stuck since a second.
func stuckSince(second int) jobs.Meta {
	at := noon.Add(time.Duration(second) * time.Second)
	return jobs.Meta{Status: jobs.Stuck, Run: jobs.Run{Number: 1, FirstAt: at, RetryAt: at.Add(time.Minute)}}
}

// Proves F10: the stuck jobs are tried in the order in which they got stuck, each once, however
// few of them are held in memory; those that rest, or are no longer stuck, are not. In each
// portion are ten, and from one to the next it takes 100 ms: never more than 100 a second.
func TestHealing(t *testing.T) {
	for _, most := range []int{1, 3, 24, 25, 26, 1000} {
		inWard(t, func(t *testing.T, h *object.Host, give func(string, sickRows)) {
			const n = 25
			var want []string
			for i := range n {
				name := fmt.Sprintf("%02d", (i*7)%n)
				give(name, sickRows{Meta: stuckSince(i / 2), Label: "stuck"})
				want = append(want, fmt.Sprintf("%03d %s", i/2, name))
			}
			slices.Sort(want)
			rests, gone := stuckSince(0), stuckSince(0)
			rests.Run.RetryAt, gone.Status = time.Time{}, jobs.Executing
			give("rests", sickRows{Meta: rests, Label: "stuck"})
			give("executing", sickRows{Meta: gone, Label: "stuck"})
			give("other", sickRows{Meta: stuckSince(0), Label: "failed"})
			give("junk", sickRows{Junk: true, Label: "stuck"})
			want = append([]string{"000 junk"}, want...)
			began := time.Now()
			var mu sync.Mutex // the tries of a portion run at the same time
			var names []string
			at := make(map[string]time.Duration)
			w := healing{host: h, class: "sick", most: most, try: func(_ context.Context, name string) error {
				mu.Lock()
				defer mu.Unlock()
				names = append(names, name)
				at[name] = time.Since(began)
				return nil
			}}
			if err := w.all(t.Context()); err != nil || w.tried != n+1 || w.failed != 0 {
				t.Errorf("%d in memory: %d tried, %d failed, %v", most, w.tried, w.failed, err)
			}
			for i, name := range namesOf(want) {
				if after := time.Duration(i/healPortion) * healEvery; most == 1000 && at[name] != after {
					t.Errorf("%s is tried after %v, want %v", name, at[name], after)
				}
				if i > 0 && at[name] < at[want[i-1][4:]] {
					t.Errorf("%d in memory: %s is tried before %s", most, name, want[i-1])
				}
			}
			if took := time.Since(began); took < (n+1)/10*healEvery {
				t.Errorf("%d in memory: %d in %v", most, n+1, took)
			}
			if len(names) != n+1 || at["junk"] != 0 {
				t.Errorf("%d in memory: tried are %s", most, names)
			}
			if most == 1 && fmt.Sprint(names) != fmt.Sprint(namesOf(want)) {
				t.Errorf("tried are %s, want %s", names, namesOf(want))
			}
		})
	}
}

// namesOf leaves out the times of the lines.
func namesOf(lines []string) (names []string) {
	for _, l := range lines {
		names = append(names, l[4:])
	}
	return names
}

// Proves F10: a slow portion puts off the next one and no later one comes sooner for it, a try
// that fails is counted and holds up nothing, and the end of the context ends the walk. One
// line of the log has the counts, and there is none if no job was stuck.
func TestHealingTellsItsCounts(t *testing.T) {
	inWard(t, func(t *testing.T, h *object.Host, give func(string, sickRows)) {
		var log loglines.Recorder
		began := time.Now()
		var mu sync.Mutex // the tries of a portion run at the same time
		var last time.Duration
		tries := 0
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		try := func(_ context.Context, name string) error {
			at := time.Since(began)
			if at == 0 {
				time.Sleep(350 * time.Millisecond)
			}
			mu.Lock()
			defer mu.Unlock()
			last = max(last, at)
			if tries++; name == "03" || name == "04" {
				return errors.New("no " + name)
			}
			return nil
		}
		Heal(ctx, h, log.Logger(), "sick", try)
		if text := log.Text(slog.LevelDebug); text != "" {
			t.Errorf("without a stuck job the log says %s", text)
		}
		for i := range 25 {
			give(fmt.Sprintf("%02d", i), sickRows{Meta: stuckSince(i), Label: "stuck"})
		}
		Heal(ctx, h, log.Logger(), "sick", try)
		if text := log.Text(slog.LevelDebug); tries != 25 || last != 450*time.Millisecond ||
			!strings.HasPrefix(text, "INFO stuck jobs were tried again tried=25 failed=2 error=no 0") || strings.Contains(text, "\n") {
			t.Errorf("%d tries, the last after %v; the log says %s", tries, last, text)
		}
		tries, log = 0, loglines.Recorder{}
		Heal(ctx, h, log.Logger(), "sick", func(context.Context, string) error {
			mu.Lock()
			defer mu.Unlock()
			if tries++; tries == 15 {
				cancel()
			}
			return nil
		})
		if text := log.Text(slog.LevelDebug); tries != 20 || text != "INFO stuck jobs were tried again tried=20 failed=0 error=context canceled" {
			t.Errorf("%d tries until the end of the context; the log says %s", tries, text)
		}
		Heal(ctx, h, log.Logger(), "sick", func(context.Context, string) error { tries++; return nil })
		if tries != 20 {
			t.Errorf("%d tries after the end of the context", tries-20)
		}
	})
}

// Proves O12: the end of a walk matches the cause of its context and also context.Canceled: of
// Heal before a job that it reads and behind a portion that it has tried, of Rearm behind a page.
func TestWalksMatchBothEnds(t *testing.T) {
	inWard(t, func(t *testing.T, h *object.Host, give func(string, sickRows)) {
		give("a", sickRows{Meta: stuckSince(0), Label: "stuck"})
		gone := errors.New("the operator has gone")
		ended, end := context.WithCancelCause(t.Context())
		end(gone)
		walk, stop := context.WithCancelCause(t.Context())
		defer stop(nil)
		for ctx, tried := range map[context.Context]int{ended: 0, walk: 1} {
			w := healing{host: h, class: "sick", most: 1, try: func(context.Context, string) error {
				stop(gone)
				return nil
			}}
			if err := w.all(ctx); !errors.Is(err, gone) || !errors.Is(err, context.Canceled) || w.tried != tried {
				t.Errorf("O12: %d are tried, want %d: %v", w.tried, tried, err)
			}
		}
		r := rearm{host: h, class: "sick"}
		if err := r.wake(ended, nil); !errors.Is(err, gone) || !errors.Is(err, context.Canceled) {
			t.Errorf("O12: Rearm: %v", err)
		}
	})
}
