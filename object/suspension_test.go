package object_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage/memstore"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/memlog"
)

// longWork is work that goes on until its context ends, and notes how that was.
type longWork struct {
	mu    sync.Mutex
	began int
	cause []error // of the ends of the contexts
}

// start is a handler that begins the work.
func (w *longWork) start(th *thing, ctx context.Context) (any, error) {
	return nil, th.st.Go(ctx, "work", func(ctx context.Context) {
		w.mu.Lock()
		w.began++
		w.mu.Unlock()
		<-ctx.Done()
		w.mu.Lock()
		defer w.mu.Unlock()
		w.cause = append(w.cause, context.Cause(ctx))
	})
}

// counts returns how many have begun, and how many a suspension has cut off.
func (w *longWork) counts() (began, suspended int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, cause := range w.cause {
		if errors.Is(cause, object.ErrSuspended) {
			suspended++
		}
	}
	return w.began, suspended
}

// working opens a host over a log with a long work, and stops right after the log has confirmed something.
func working(t *testing.T, opts ...object.ClassOptions) (*fixture, *quietLog, *longWork) {
	t.Helper()
	f := newFixture(t, opts...)
	log, w := f.work("a")
	return f, log, w
}

// work opens the host over a log and has a thing begin a long work. It stops right after the log has confirmed something.
func (f *fixture) work(name string) (*quietLog, *longWork) {
	f.t.Helper()
	log, w := f.overLog(), new(longWork)
	f.open()
	f.must(name, w.start)
	pass(time.Second)
	return log, w
}

// A host with work suspends when the log has not answered for two seconds, and not before.
//
// Proves N5 and O14 over a log.
func TestSuspendsAfterTwoSeconds(t *testing.T) {
	for _, c := range []struct {
		silent time.Duration
		cut    int
	}{{1900 * time.Millisecond, 0}, {2100 * time.Millisecond, 1}} {
		bubble(t, func(t *testing.T) {
			f, log, w := working(t)
			defer f.end()
			defer f.stopWork("a")
			answer := log.Stop()
			pass(c.silent)
			if _, cut := w.counts(); cut != c.cut {
				t.Errorf("silent for %v: %d works are cut off, want %d", c.silent, cut, c.cut)
			}
			answer()
			pass(time.Minute)
			if began, cut := w.counts(); began != 1 || cut != c.cut {
				t.Errorf("silent for %v: %d works have begun and %d are cut off, want 1 and %d", c.silent, began, cut, c.cut)
			}
		})
	}
}

// stopWork resets an object, which ends its works.
func (f *fixture) stopWork(name string) {
	_, _ = f.call(name, func(*thing, context.Context) (any, error) { panic("ends its works") })
	synctest.Wait()
}

// A host asks the log each second while anything runs, unless its commits tell it anyway. An idle host asks nothing.
//
// Proves N5.
func TestConfirmsEachSecondWhileAnythingRuns(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, log, w := working(t)
		defer f.end()
		asked := func(d time.Duration) int64 {
			before := log.Heads.Load()
			pass(d)
			return log.Heads.Load() - before
		}
		if n := asked(10 * time.Second); n < 9 || n > 11 {
			t.Errorf("a host with work asks %d times in 10 s", n)
		}
		for range 20 {
			f.must("b", put("k", "v"))
			before := log.Heads.Load()
			pass(500 * time.Millisecond)
			if n := log.Heads.Load() - before; n != 0 {
				t.Errorf("a host that commits twice a second asks %d times", n)
			}
		}
		f.stopWork("a")
		pass(3 * time.Second)
		if n := asked(time.Hour); n != 0 {
			t.Errorf("an idle host asks %d times in an hour", n)
		}
		f.must("c", w.start)
		if n := asked(10 * time.Second); n < 9 || n > 11 {
			t.Errorf("a host that works again asks %d times in 10 s", n)
		}
		if _, cut := w.counts(); cut != 0 {
			t.Errorf("%d works were cut off, although the log answers", cut)
		}
		f.stopWork("c")
	})
}

// Nothing begins while a host is suspended: due alarms and new works wait, and so do unconfirmed replies. All go on when the log
// answers, and an instance with work that was cut off is made anew.
//
// Proves N5 and O9 over a log.
func TestNothingBeginsInASuspendedHost(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, log, w := working(t)
		defer f.end()
		var rang, made atomic.Int64
		f.handleAlarm(func(*thing, context.Context, object.AlarmInfo) error { rang.Add(1); return nil })
		f.must("r", setAlarm(2500*time.Millisecond))
		f.handleConstruct(func(context.Context, *thing) error { made.Add(1); return nil })
		synctest.Wait()
		answer := log.Stop()
		pass(1900 * time.Millisecond)
		f.must("a", nothing, object.Unconfirmed())
		pass(200 * time.Millisecond)
		unconfirmed := aside(func() error { _, err := f.call("a", nothing, object.Unconfirmed()); return err })
		if n := made.Load(); n != 1 {
			t.Errorf("the object with work that was cut off is constructed %d times by the next call, want once", n)
		}
		work := aside(func() error { _, err := f.call("b", w.start); return err })
		pass(5 * time.Second)
		if began, _ := w.counts(); rang.Load() != 0 || began != 1 {
			t.Errorf("%d alarms and %d works in a suspended host, want 0 and 1", rang.Load(), began)
		}
		answer()
		for what, c := range map[string]<-chan ending{"an unconfirmed call": unconfirmed, "a call with work": work} {
			if e := <-c; e.err != nil || e.after < 5*time.Second {
				t.Errorf("%s of a suspended host ended after %v: %v", what, e.after, e.err)
			}
		}
		pass(3 * time.Second)
		if began, cut := w.counts(); rang.Load() != 1 || began != 2 || cut != 1 {
			t.Errorf("%d alarms, %d works and %d cut off when the log answers, want 1, 2 and 1", rang.Load(), began, cut)
		}
		f.stopWork("b")
	})
}

// An answer tells of the moment at which its question began. While that is two seconds ago the host stays suspended, and work
// that the log has acknowledged meanwhile waits.
//
// Proves N5.
func TestStaleAnswerResumesNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, log, w := working(t)
		defer f.end()
		answer := log.Stop()
		pass(2100 * time.Millisecond)
		work := aside(func() error { _, err := f.call("b", w.start); return err })
		pass(3 * time.Second)
		next := log.Stop() // the question behind the one that is answered now; the work is in that
		answer()
		pass(3 * time.Second)
		after := log.Stop()
		next()
		pass(time.Second)
		if began, _ := w.counts(); began != 1 {
			t.Errorf("%d works have begun after an answer that is three seconds old, want 1", began)
		}
		after()
		if e := <-work; e.err != nil {
			t.Errorf("the call with work ended after %v: %v", e.after, e.err)
		}
		pass(3 * time.Second)
		if began, _ := w.counts(); began != 2 {
			t.Errorf("%d works have begun when the log answers, want 2", began)
		}
		f.stopWork("b")
	})
}

// A class that prefers overlap keeps its works, and begins them, while the log does not answer.
//
// Proves N5.
func TestOverlapWhileUnconfirmed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, log, w := working(t, object.ClassOptions{OverlapWhileUnconfirmed: true})
		defer f.end()
		answer := log.Stop()
		pass(time.Minute)
		answer()
		pass(2 * time.Second)
		if began, cut := w.counts(); began != 1 || cut != 0 {
			t.Errorf("%d works have begun and %d are cut off, want 1 and 0", began, cut)
		}
		f.stopWork("a")
	})
}

// A host that finds after an outage that it was replaced ends, and begins nothing of what it has held back.
//
// Proves N5 and O13 over a log.
func TestReplacedWhileSuspended(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, log, w := working(t)
		defer f.host.Shutdown(ended()) // it has failed
		answer := log.Stop()
		pass(3 * time.Second)
		work := aside(func() error { _, err := f.call("b", w.start); return err })
		log.claim(t)
		answer()
		if e := <-work; !errors.Is(e.err, object.ErrUnknown) && !errors.Is(e.err, shardlog.ErrFenced) {
			t.Errorf("a call with work: %v", e.err)
		}
		pass(time.Minute)
		if began, cut := w.counts(); began != 1 || cut != 1 {
			t.Errorf("%d works have begun and %d are cut off, want 1 and 1", began, cut)
		}
		if err := f.host.Err(); !errors.Is(err, shardlog.ErrFenced) {
			t.Errorf("the host has ended with %v", err)
		}
	})
}

// An unconfirmed reply is never older than two seconds, at an idle host too: it waits for the log if nothing was confirmed for so
// long.
//
// Proves N4.
func TestUnconfirmedReplyOfAReplacedHost(t *testing.T) {
	for _, c := range []struct {
		quiet  time.Duration
		answer bool
	}{{1900 * time.Millisecond, true}, {2100 * time.Millisecond, false}} {
		bubble(t, func(t *testing.T) {
			f := newFixture(t)
			log := f.overLog()
			f.open()
			defer f.host.Shutdown(ended()) // it may have failed
			f.must("a", put("k", "v"))
			log.claim(t)
			pass(c.quiet)
			_, err := f.call("a", get("k"), object.Unconfirmed())
			if (err == nil) != c.answer || err != nil && !errors.Is(err, shardlog.ErrFenced) {
				t.Errorf("an unconfirmed read %v after the last confirmation: %v", c.quiet, err)
			}
		})
	}
}

// A shutdown of a suspended host gives up the works that wait, and cuts off nothing else.
//
// Proves O14 over a log.
func TestShutdownOfASuspendedHost(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, log, w := working(t)
		_ = log.Stop()
		pass(3 * time.Second)
		work := aside(func() error { _, err := f.call("b", w.start); return err })
		down := aside(func() error { return f.host.Shutdown(ended()) })
		<-work
		if e := <-down; e.after > 11*time.Second {
			t.Errorf("the shutdown took %v: %v", e.after, e.err)
		}
		if began, _ := w.counts(); began != 1 {
			t.Errorf("%d works have begun, want 1", began)
		}
	})
}

// owners are the owners of one log, one after another. Each but the last was replaced while it was at work.
type owners struct {
	*fixture
	log  *memlog.Log
	last []*object.Host
}

// next has a node take the store over.
func (o *owners) next(node string) {
	o.t.Helper()
	e, err := shardlog.Open(shardlog.Options{Log: o.log, Owner: node}, memstore.New())
	if err != nil {
		o.t.Fatal(err)
	}
	if o.host != nil {
		o.last = append(o.last, o.host)
	}
	o.options.Storage.Engine = e
	o.open()
	pass(5 * time.Second) // the owner before has learnt of it
	for _, h := range o.last {
		_ = h.Shutdown(ended()) // it has failed
	}
	o.last = nil
}

// An alarm and a message that are handled while their owner is replaced by another node have a count of that of their own, and run
// with the next owner at once. The 20th such loss in a row that is counted makes them dead letters. The first of a message is not,
// because a message that was sent in the same opening stands in no flight row.
//
// Proves A3, A5 and A8 over a log.
func TestOwnersLost(t *testing.T) {
	for what, losses := range map[string]int64{"alarm": 20, "message": 21} {
		bubble(t, func(t *testing.T) {
			var runs, told atomic.Int64
			f := newFixture(t)
			hang := func(ctx context.Context) error { runs.Add(1); <-ctx.Done(); return context.Cause(ctx) }
			f.handleAlarm(func(_ *thing, ctx context.Context, info object.AlarmInfo) error {
				if int64(info.OwnersLost) == runs.Load() {
					told.Add(1)
				}
				return hang(ctx)
			})
			poke := object.Handle(f.class, "poke", func(_ *thing, ctx context.Context, _ int) (int, error) { return 0, hang(ctx) })
			begin := setAlarm(time.Second)
			if what == "message" {
				begin = func(th *thing, ctx context.Context) (any, error) { return nil, poke.Send(ctx, th.st, "m", 1) }
			}
			o := &owners{fixture: f, log: memlog.New()}
			o.next("a")
			f.must("m", begin)
			pass(2 * time.Second)
			for n := int64(1); n <= losses; n++ {
				if runs.Load() != n {
					t.Errorf("%s: its handler has run %d times before loss %d", what, runs.Load(), n)
					break
				}
				o.next([]string{"a", "b"}[n%2])
			}
			letters, err := f.host.DeadLetters(t.Context(), object.DeadLettersOptions{})
			if err != nil || len(letters.Letters) != 1 || letters.Letters[0].Reason != "owners lost" || letters.Letters[0].Crashes != 0 {
				t.Errorf("%s: after its losses the dead letters are %+v, %v", what, letters, err)
			}
			if runs.Load() != losses || what == "alarm" && told.Load() != 20 {
				t.Errorf("%s: its handler has run %d times, and was told the right number of losses %d times", what, runs.Load(), told.Load())
			}
			f.end()
		})
	}
}

// A node that takes over from itself has crashed, and that counts as a crash.
//
// Proves A8 over a log.
func TestCrashOverALog(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t)
		f.handleAlarm(func(_ *thing, ctx context.Context, _ object.AlarmInfo) error { <-ctx.Done(); return context.Cause(ctx) })
		o := &owners{fixture: f, log: memlog.New()}
		o.next("a")
		f.must("m", setAlarm(time.Second))
		pass(2 * time.Second)
		for _, c := range []struct {
			node          string
			crashes, lost int
		}{{"a", 1, 0}, {"b", 1, 1}, {"b", 2, 1}} {
			o.next(c.node)
			in, err := f.host.Inspect(t.Context(), f.id("m"))
			if err != nil || in.Alarm == nil || in.Alarm.Crashes != c.crashes || in.Alarm.OwnersLost != c.lost {
				t.Errorf("after a take-over by %s the alarm is %+v, %v; want %d crashes and %d owners lost", c.node, in.Alarm, err, c.crashes, c.lost)
			}
		}
		_ = f.host.Shutdown(ended())
	})
}
