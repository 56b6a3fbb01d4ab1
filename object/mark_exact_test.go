package object_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/internal/testing/failing"
	"github.com/holdfast-dev/holdfast/internal/testing/loglines"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
)

// The filter of an object learns 32 stored marks with each look. Once it knows all of
// them, a look at a new key reads nothing.
func TestFilterLearnsInPieces(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const marks = 100
		f := newFixture(t).open()
		f.must("a", func(th *thing, ctx context.Context) (any, error) {
			for i := range marks {
				if err := th.st.Mark(ctx, fmt.Sprint(i), nil, time.Hour+time.Duration(i%3)*time.Hour); err != nil {
					return nil, err
				}
			}
			return nil, nil
		})
		f.end()
		f.mem = f.mem.Crash(0)
		d := failing.At(0)
		f.options.Storage.Engine = d.Engine(f.mem)
		f.open()
		defer f.end()
		look := func(key string) action {
			return func(th *thing, ctx context.Context) (any, error) {
				_, ok, err := th.st.Marked(ctx, key)
				return ok, err
			}
		}
		for i := range 5 { // the first asks the store, four learn of a piece each
			if n := reads(f, d, look("none")); n == 0 {
				t.Errorf("look %d reads nothing", i+1)
			}
		}
		for range 3 {
			if n := reads(f, d, look("none")); n != 0 {
				t.Errorf("a look when all are known reads %d times", n)
			}
		}
		for i := range marks {
			if f.must("a", look(fmt.Sprint(i))) != true {
				t.Errorf("D2: mark %d is lost", i)
			}
		}
	})
}

// A filter is not made when the memory of all filters is used up. An object that leaves
// memory gives the bytes of its filter back.
func TestFiltersShareTheirMemory(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const first = 64 // bytes of a filter's first part, and a quarter of all
		f := newFixture(t, object.ClassOptions{IdleAfter: time.Minute}).open()
		defer f.close()
		object.SetRecallBytes(f.host, 4*first)
		for i := range 6 {
			for n := range 3 {
				f.must(fmt.Sprint(i), func(th *thing, ctx context.Context) (any, error) {
					key := fmt.Sprint("m", n)
					if _, ok, err := th.st.Marked(ctx, key); ok || err != nil {
						return nil, fmt.Errorf("found %v, %w", ok, err)
					}
					return nil, th.st.Mark(ctx, key, nil, time.Hour)
				})
			}
			if got, want := object.RecallBytes(f.host), int64(first*min(i+1, 4)); got != want {
				t.Errorf("%d filters take %d bytes, want %d", i+1, got, want)
			}
		}
		pass(10 * time.Minute)
		if got := object.RecallBytes(f.host); got != 0 {
			t.Errorf("filters of objects out of memory take %d bytes", got)
		}
	})
}

// Proves O10: an object in memory that loses a mark and has a key stays in memory, as its
// instance was.
func TestExpiryLeavesMemoryAlone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t, object.ClassOptions{IdleAfter: 100 * time.Hour}).open()
		defer f.close()
		f.must("a", func(th *thing, ctx context.Context) (any, error) {
			th.n = 7
			return nil, th.st.Storage().PutBytes(ctx, "k", nil)
		})
		f.must("a", markFor("m", time.Hour))
		pass(lapsed)
		if n := f.must("a", func(th *thing, _ context.Context) (any, error) { return th.n, nil }); n != 7 {
			t.Errorf("O10: the instance is another one: %v", n)
		}
	})
}

// Proves O1: the alarm of an object stays when the last mark of the object expires,
// though its class is not registered.
func TestParkedAlarmOutlivesTheMarks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		f.must("a", setAlarm(100*time.Hour))
		f.must("a", markFor("m", time.Hour))
		f.must("b", markFor("m", time.Hour))
		f.close()
		o := f.options
		o.Storage = storage.Options{Engine: f.mem, Shards: 2}
		h, err := object.Open(o)
		if err != nil {
			t.Fatal(err)
		}
		f.host = h
		defer f.end()
		pass(lapsed)
		all, err := h.Objects(context.Background(), "thing", object.ObjectsOptions{Limit: 10})
		if err != nil || len(all) != 1 || all[0].ID.Name != "a" || all[0].Alarm.IsZero() {
			t.Errorf("O1: %+v, %v", all, err)
		}
		if err := h.Store().Check(); err != nil {
			t.Error(err)
		}
	})
}

// A timer for the expiry rings a minute after the first row expires. When no row is left
// that expires, no timer is armed.
func TestTimersOfTheExpiry(t *testing.T) {
	bubble(t, func(t *testing.T) {
		clock := &countingClock{Clock: seam.Seams{}.WithDefaults().Clock}
		f := newFixture(t, object.ClassOptions{IdleAfter: time.Minute})
		f.options.Seams.Clock, f.options.EventRetention = clock, time.Hour
		f.open()
		defer f.close()
		emit := func(th *thing, ctx context.Context) (any, error) { return nil, th.st.Emit(ctx, "e", 1) }
		f.must("a", emit)
		pass(time.Second)
		f.must("b", emit)
		pass(time.Second)
		f.must("c", markFor("m", 2*time.Hour))
		f.must("d", put("k", "v"))
		f.must("d", markFor("m", 2*time.Hour))
		events := func() (n int) {
			for _, name := range []string{"a", "b"} {
				all, err := f.host.Events(context.Background(), f.id(name), 0, 10)
				if err != nil {
					t.Fatal(err)
				}
				n += len(all)
			}
			return n
		}
		pass(time.Hour + time.Minute - 2*time.Second - 1)
		if n := events(); n != 2 {
			t.Errorf("%d events are left before a minute after their time", n)
		}
		pass(1)
		if n := events(); n != 0 {
			t.Errorf("%d events are left a minute after the first has expired", n)
		}
		pass(3 * time.Hour)
		all, err := f.host.Objects(context.Background(), "thing", object.ObjectsOptions{Limit: 10})
		if err != nil || len(all) != 1 || all[0].ID.Name != "d" {
			t.Errorf("the objects are %v, %v, want the one with a key", all, err)
		}
		pass(time.Hour)
		before := clock.timers.Load()
		pass(24 * time.Hour)
		if n := clock.timers.Load() - before; n != 0 {
			t.Errorf("%d timers were armed in a day in which nothing expires", n)
		}
	})
}

// Proves R6: a recovery that a turn reports is one line of the log once the turn is
// stored. The line names the task if there is one. A recovery that ended in giving up has
// no line.
func TestRecoveryIsLogged(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var r loglines.Recorder
		f := newFixture(t)
		f.options.Logger = r.Logger()
		f.open()
		defer f.close()
		for _, c := range []struct {
			r    object.Recovery
			end  error
			want string
		}{
			{object.Recovery{Cause: "c", Age: time.Second, Attempt: 2, Action: "retry"}, nil,
				"INFO recovered class=thing object=a cause=c age=1s attempt=2 action=retry"},
			{object.Recovery{Cause: "c", Task: "7", Attempt: 1, Action: "retry"}, nil,
				"INFO recovered class=thing object=a cause=c age=0s attempt=1 action=retry task=7"},
			{object.Recovery{Cause: "c", GivenUp: true}, nil, ""},
			{object.Recovery{Cause: "c"}, errOnPurpose, ""},
		} {
			before := len(r.From(slog.LevelInfo))
			_, _ = f.call("a", func(th *thing, ctx context.Context) (any, error) {
				err := th.st.Driver().Recovered(ctx, c.r)
				if err == nil {
					err = c.end
				}
				return nil, err
			})
			synctest.Wait()
			got := ""
			for _, line := range r.From(slog.LevelInfo)[before:] {
				got += line.String()
			}
			if got != c.want {
				t.Errorf("R6: logged %q, want %q", got, c.want)
			}
		}
		if lines, total := f.host.Recoveries(); total != 3 || lines[0].ID != f.id("a") || !lines[0].At.Equal(time.Now()) {
			t.Errorf("R6: the report has %+v, %d in all", lines, total)
		}
	})
}
