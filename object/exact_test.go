package object_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/holdfast-dev/holdfast/internal/testing/failing"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage/engine"
)

// Proves A4, O8: a handler that lends its turn out still removes its own alarm at its
// end, and keeps an alarm that another turn set meanwhile. A turn that no alarm began
// leaves the object's alarm alone.
func TestReleaseBesideAnAlarm(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.close()
		release := func(th *thing, ctx context.Context) (any, error) {
			return nil, th.st.Release(ctx, func(context.Context) error { time.Sleep(time.Second); return nil })
		}
		fired := 0
		f.handleAlarm(func(th *thing, ctx context.Context, _ object.AlarmInfo) error {
			fired++
			_, err := release(th, ctx)
			return err
		})
		f.must("a", setAlarm(time.Minute))
		f.must("a", release)
		pass(time.Hour)
		if fired != 1 {
			t.Errorf("A4: the alarm fired %d times", fired)
		}
		f.must("a", setAlarm(time.Minute))
		time.Sleep(time.Minute + time.Second/2)
		f.must("a", setAlarm(time.Minute)) // while the handler is in Release
		pass(time.Hour)
		if fired != 3 {
			t.Errorf("A5: with an alarm that was set meanwhile they fired %d times, want 3", fired)
		}
	})
}

// Proves O13: the store dies during a call to another object that wrote nothing. The call
// returns ErrStorage all the same.
func TestCalledTurnOfADyingStore(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t)
		d := f.slow()
		f.open()
		for _, name := range []string{"a", "b", "c"} {
			f.must(name, nothing)
		}
		var inner error
		_, err := f.call("a", func(th *thing, ctx context.Context) (any, error) {
			_, inner = f.do.Call(ctx, th.st, "b", func(*thing, context.Context) (any, error) {
				d.fail.Store(true)
				_, err := f.call("c", put("k", "v"))
				return nil, errors.Join(nil, ignore(err))
			})
			return nil, nil
		})
		if !errors.Is(inner, object.ErrStorage) || !errors.Is(err, object.ErrStorage) {
			t.Errorf("O13: the inner call says %v, the outer one %v", inner, err)
		}
		_ = f.host.Shutdown(context.Background())
	})
}

func ignore(error) error { return nil }

// Proves O13: a call that only reads, and depends on a commit that cannot be synced, is
// not acknowledged.
func TestReadOfWhatCannotBeSynced(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t)
		d := f.slow()
		f.open()
		f.must("a", put("k", "1"))
		f.must("a", put("k", "2"), object.Unconfirmed())
		d.fail.Store(true)
		if v, err := f.call("a", get("k")); !errors.Is(err, object.ErrStorage) {
			t.Errorf("O13: the read says %v, %v", v, err)
		}
		<-f.host.Done()
		_ = f.host.Shutdown(context.Background())
	})
}

// Proves O13: a commit cannot be synced, and a later handler of the object fails. Its
// caller gets the error of the store, and not the handler's, which may come from a read
// of that commit.
func TestErrorAboutWhatCannotBeSynced(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t)
		d := f.slow()
		f.open()
		f.must("a", put("k", "1"))
		f.must("a", put("k", "2"), object.Unconfirmed())
		d.fail.Store(true)
		_, err := f.call("a", func(*thing, context.Context) (any, error) { return nil, errOnPurpose })
		if !errors.Is(err, object.ErrStorage) || errors.Is(err, errOnPurpose) {
			t.Errorf("O13: the call says %v", err)
		}
		_ = f.host.Shutdown(context.Background())
	})
}

// Proves O13: the host ends by itself when its store dies beside all calls.
func TestStoreDiesBesideCalls(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t)
		d := f.slow()
		f.open()
		f.must("a", put("k", "1"), object.Unconfirmed())
		d.fail.Store(true)
		pass(2 * time.Second) // the host syncs by itself
		select {
		case <-f.host.Done():
		default:
			t.Error("O13: the host goes on")
		}
		_ = f.host.Shutdown(context.Background())
	})
}

// Proves O16: a mark is found up to the moment at which it expires.
func TestMarkExpiresToTheNanosecond(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.close()
		f.must("a", func(th *thing, ctx context.Context) (any, error) { return nil, th.st.Mark(ctx, "m", nil, time.Hour) })
		for _, want := range []bool{true, false} {
			time.Sleep(time.Hour - 1)
			if !want {
				time.Sleep(2 - time.Hour)
			}
			got := f.must("a", func(th *thing, ctx context.Context) (any, error) {
				_, ok, err := th.st.Marked(ctx, "m")
				return ok, err
			})
			if got != want {
				t.Errorf("at the time of its expiry and before, found is %v, want %v", got, want)
			}
			time.Sleep(time.Nanosecond)
		}
	})
}

// Proves O1: an object ends with the turn that removes its last key, by whichever verb.
func TestObjectEndsWithItsLastKey(t *testing.T) {
	f := newFixture(t).open()
	defer f.close()
	for name, fn := range map[string]func(ctx context.Context, s *object.Storage) error{
		"Remove":       func(ctx context.Context, s *object.Storage) error { return s.Remove(ctx, "k") },
		"Delete":       func(ctx context.Context, s *object.Storage) error { _, err := s.Delete(ctx, "k"); return err },
		"DeletePrefix": func(ctx context.Context, s *object.Storage) error { return s.DeletePrefix(ctx, "k") },
		"DeleteAll":    func(ctx context.Context, s *object.Storage) error { return s.DeleteAll(ctx) },
	} {
		f.must(name, put("k", "v"))
		f.must(name, func(th *thing, ctx context.Context) (any, error) { return nil, fn(ctx, th.st.Storage()) })
		in, err := f.host.Inspect(context.Background(), f.id(name))
		if err != nil || in.Exists {
			t.Errorf("O1: after %s of its last key: %+v, %v", name, in, err)
		}
	}
}

// Proves A6: how often an alarm has failed is 0 without an alarm and for a new one.
func TestAlarmFailures(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.close()
		f.handleAlarm(func(*thing, context.Context, object.AlarmInfo) error { return errors.New("boom") })
		failures := func(th *thing, ctx context.Context) (any, error) { return th.st.Driver().AlarmFailures(ctx) }
		want := func(step string, n int) {
			t.Helper()
			if got := f.must("a", failures); got != n {
				t.Errorf("A6: %s: %v failures, want %d", step, got, n)
			}
		}
		want("no alarm", 0)
		f.must("a", setAlarm(time.Second))
		want("a new alarm", 0)
		pass(1500 * time.Millisecond)
		want("after one failure", 1)
		pass(3 * time.Second)
		want("after two", 2)
		f.must("a", func(th *thing, ctx context.Context) (any, error) {
			if err := th.st.SetAlarm(ctx, th.st.Now().Add(time.Hour)); err != nil {
				return nil, err
			}
			if n, err := th.st.Driver().AlarmFailures(ctx); n != 0 || err != nil {
				t.Errorf("A6: in the turn that sets it: %d, %v", n, err)
			}
			return nil, th.st.DeleteAlarm(ctx)
		})
		want("after it was deleted", 0)
	})
}

// Proves O4: the error of a block that a work asks for reaches the work.
func TestBlockOfAWork(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.close()
		cause := errors.New("boom")
		var got error
		f.must("a", func(th *thing, ctx context.Context) (any, error) {
			return nil, th.st.Go(ctx, "work", func(ctx context.Context) {
				got = th.st.BlockConcurrencyWhile(ctx, func(context.Context) error { return cause })
			})
		})
		synctest.Wait()
		if !errors.Is(got, cause) {
			t.Errorf("O4: the work is told %v", got)
		}
	})
}

// Proves O9: a work that panics, and one that ends its goroutine, are logged once each.
func TestWorkThatPanicsIsLoggedOnce(t *testing.T) {
	for name, fn := range map[string]func(){"panic": func() { panic("boom") }, "Goexit": runtime.Goexit} {
		bubble(t, func(t *testing.T) {
			f := newFixture(t)
			var log bytes.Buffer
			f.options.Logger = slog.New(slog.NewTextHandler(&log, nil))
			f.open()
			f.must("a", func(th *thing, ctx context.Context) (any, error) {
				return nil, th.st.Go(ctx, "my work", func(context.Context) { fn() })
			})
			synctest.Wait()
			f.close()
			if got := strings.Count(log.String(), "work panicked"); got != 1 || !strings.Contains(log.String(), "my work") {
				t.Errorf("%s: %d lines:\n%s", name, got, &log)
			}
		})
	}
}

// Proves O6: a handler changes memory, writes, and then ends its goroutine. Both changes
// are gone.
func TestGoexitResetsMemory(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.close()
		f.must("a", nothing)
		var wg sync.WaitGroup
		wg.Go(func() {
			_, _ = f.call("a", func(th *thing, ctx context.Context) (any, error) {
				th.n = 7
				_ = th.st.Storage().PutBytes(ctx, "k", nil)
				runtime.Goexit()
				return nil, nil
			})
		})
		wg.Wait()
		if n := f.must("a", func(th *thing, _ context.Context) (any, error) { return th.n, nil }); n != 0 {
			t.Errorf("O6: memory still holds %v", n)
		}
	})
}

// Proves O8: a turn asks the host for something that needs a turn of the same object. It
// gets ErrDeadlock, and does not hang.
func TestOwnDeadLetterFromATurn(t *testing.T) {
	f := newFixture(t).open()
	defer f.close()
	_, err := f.call("a", func(th *thing, ctx context.Context) (any, error) {
		return nil, f.host.DiscardDeadLetter(ctx, th.st.ID(), 1)
	})
	if !errors.Is(err, object.ErrDeadlock) {
		t.Errorf("O8: %v", err)
	}
}

// Proves S7: an event is refused exactly when its rows might not fit into the turn's
// batch.
func TestEmitAtTheBound(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const name, kind, payload = "a name", "hello", 100
		row, err := json.Marshal(map[string]any{"t": time.Now().UnixNano(), "k": kind, "d": []byte(`"` + strings.Repeat("x", payload) + `"`)})
		if err != nil {
			t.Fatal(err)
		}
		const record = 24 // beside the user's bytes; two records, each with class and name, and two numbers of up to 24
		bound := len(row) + 2*len("thing"+name) + 2*record + 2*24
		for most, fits := range map[int]bool{bound: true, bound - 1: false} {
			f := newFixture(t)
			f.options.MaxBatchBytes = most
			f.open()
			_, err := f.call(name, func(th *thing, ctx context.Context) (any, error) {
				return nil, th.st.Emit(ctx, kind, strings.Repeat("x", payload))
			})
			if fits && err != nil || !fits && !errors.Is(err, object.ErrBatchTooLarge) {
				t.Errorf("S7: a turn of %d bytes, where the event needs %d: %v", most, bound, err)
			}
			f.close()
		}
	})
}

// reads is how many operations of the store something costs.
func reads(f *fixture, d *failing.Disk, fn action) int64 {
	f.t.Helper()
	var n int64
	f.must("a", func(th *thing, ctx context.Context) (any, error) {
		synctest.Wait() // for the tasks of the host, which read too
		before := d.Count()
		v, err := fn(th, ctx)
		n = d.Count() - before
		return v, err
	})
	return n
}

// An object in memory knows its place and its alarm without a read. It looks for a mark
// with a read at first, and with a filter from the second look on.
func TestReadsOfAnObjectInMemory(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t)
		d := failing.At(0)
		f.options.Storage.Engine = d.Engine(f.mem)
		f.open()
		defer f.end()
		f.must("a", put("k", "v"))
		if _, err := f.host.Inspect(context.Background(), f.id("a")); err != nil {
			t.Fatal(err)
		}
		f.must("a", setAlarm(time.Hour))
		f.must("a", func(th *thing, ctx context.Context) (any, error) {
			return nil, th.st.Mark(ctx, "other", nil, time.Hour)
		})
		f.end()
		f.mem = f.mem.Crash(0)
		f.options.Storage.Engine = d.Engine(f.mem)
		f.open()
		alarmAt := func(th *thing, ctx context.Context) (any, error) { _, ok, err := th.st.Alarm(ctx); return ok, err }
		marked := func(th *thing, ctx context.Context) (any, error) {
			_, ok, err := th.st.Marked(ctx, "m")
			return ok, err
		}
		f.must("a", nothing)
		synctest.Wait()
		before := d.Count()
		f.must("a", nothing)
		synctest.Wait()
		if n := d.Count() - before; n != 0 {
			t.Errorf("an empty turn of an object in memory reads %d times", n)
		}
		if first, second := reads(f, d, alarmAt), reads(f, d, alarmAt); first > 1 || second != 0 {
			t.Errorf("the alarm is read %d times, and then %d times", first, second)
		}
		if n := reads(f, d, get("k")); n != 1 {
			t.Errorf("a key is read %d times", n)
		}
		if reads(f, d, marked); object.RecallBytes(f.host) != 0 {
			t.Error("one look at the marks makes a filter")
		}
		if reads(f, d, marked); object.RecallBytes(f.host) == 0 {
			t.Error("the second look makes no filter")
		}
		if n := reads(f, d, marked); n != 0 {
			t.Errorf("the filter reads %d times", n)
		}
	})
}

// The times of tasks are those that were told, and never less than zero.
func TestTimesOfTasks(t *testing.T) {
	f := newFixture(t).open()
	defer f.close()
	f.must("a", func(th *thing, _ context.Context) (any, error) {
		b := th.st.Driver().Backlog()
		b.Set(object.Tasks{Pending: 1})
		b.Waited(2 * time.Second)
		b.Waited(-time.Second)
		b.Ran(3 * time.Second)
		b.Ran(-time.Second)
		return nil, nil
	})
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(f.host.Collector())
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, family := range families {
		if h := family.GetMetric()[0].GetHistogram(); h != nil && h.GetSampleCount() > 0 {
			got[family.GetName()] = fmt.Sprint(h.GetSampleCount(), " ", h.GetSampleSum())
		}
	}
	for name, want := range map[string]string{"holdfast_task_wait_seconds": "2 2", "holdfast_task_run_seconds": "2 3"} {
		if got[name] != want {
			t.Errorf("%s has count and sum %q, want %q: all %v", name, got[name], want, got)
		}
	}
}

// recorder notes the records of each batch.
type recorder struct {
	engine.Engine
	last []engine.Record
}

func (r *recorder) Apply(repr []byte) error {
	r.last = nil
	_ = engine.ReadBatch(repr, func(rec engine.Record) { r.last = append(r.last, rec) })
	return r.Engine.Apply(repr)
}

// A new mark removes nothing, and the next one in its bucket has no entry in the expiry
// index any more.
func TestRecordsOfMarks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t)
		r := &recorder{Engine: f.mem}
		f.options.Storage.Engine = r
		f.open()
		defer f.end()
		f.must("a", put("k", "v"))
		for i, want := range []int{2, 1, 1} { // the mark, and the entry of its bucket
			f.must("a", func(th *thing, ctx context.Context) (any, error) {
				return nil, th.st.Mark(ctx, fmt.Sprint(i), nil, time.Hour)
			})
			if len(r.last) != want {
				t.Errorf("mark %d: %d records, want %d: %+v", i, len(r.last), want, r.last)
			}
			for _, rec := range r.last {
				if rec.Deleted {
					t.Errorf("mark %d removes %x", i, rec.Key)
				}
			}
		}
		f.must("a", func(th *thing, ctx context.Context) (any, error) { return nil, th.st.Mark(ctx, "0", nil, 9*time.Hour) })
		if len(r.last) != 3 {
			t.Errorf("a mark that goes to another bucket has %d records: %+v", len(r.last), r.last)
		}
	})
}
