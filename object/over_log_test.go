package object_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/internal/testing/silent"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/memlog"
)

// quietLog is a log that stops to answer, and that another process can take over.
type quietLog struct{ silent.Log }

// claim takes the log over, as another process does.
func (l *quietLog) claim(t *testing.T) {
	t.Helper()
	head, err := l.Log.Log.Head(t.Context(), 0)
	if err == nil {
		_, err = l.Claim(t.Context(), 0, "another", head.Term)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// overLog makes f a fixture over a log. Its host is to be opened.
func (f *fixture) overLog() *quietLog {
	f.t.Helper()
	log := &quietLog{silent.Log{Log: memlog.New()}}
	e, err := shardlog.Open(shardlog.Options{Log: log, Owner: "this"}, memstore.New())
	if err != nil {
		f.t.Fatal(err)
	}
	f.options.Storage.Engine = e
	return log
}

// aside runs a call on a goroutine of its own, and waits until it waits.
func aside(call func() error) <-chan ending {
	began, ended := time.Now(), make(chan ending, 1)
	go func() {
		err := call()
		ended <- ending{time.Since(began), err}
	}()
	synctest.Wait()
	return ended
}

// ending is how long a call took, and its error.
type ending struct {
	after time.Duration
	err   error
}

// mustBeUnknown fails unless the call has left the log in time, and says that its outcome is unknown.
func (e ending) mustBeUnknown(t *testing.T, what string, least, most time.Duration) {
	t.Helper()
	if !errors.Is(e.err, object.ErrUnknown) || errors.Is(e.err, object.ErrShutdown) || errors.Is(e.err, object.ErrStorage) || object.Retryable(e.err) {
		t.Errorf("%s: %v", what, e.err)
	}
	if e.after <= least || e.after > most {
		t.Errorf("%s: left after %v, want more than %v and at most %v", what, e.after, least, most)
	}
}

// A call leaves a log that does not answer after 10 s, or about a second after its context has ended, and its outcome
// is unknown. All that waited goes on when the log answers, and finds the commit.
//
// Proves O7, O11 and N8 over a log.
func TestCallsLeaveASilentLog(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t)
		log := f.overLog()
		f.open()
		defer f.end()
		f.must("a", put("k", "old"))
		answer := log.Stop()
		ctx, cancel := context.WithCancel(t.Context())
		read := func(r object.Reader) error { _, err := r.StoredClasses(ctx); return err }
		calls := map[string]<-chan ending{
			"a commit": aside(func() error { _, err := f.call("a", put("k", "new")); return err }),
			"a read":   aside(func() error { _, err := f.call("a", get("k")); return err }),
			"an error": aside(func() error {
				_, err := f.call("a", func(*thing, context.Context) (any, error) { return nil, errOnPurpose })
				return err
			}),
			"a look": aside(func() error { return f.host.Read(t.Context(), read) }),
			"a relay": aside(func() error {
				_, err := f.call("b", func(th *thing, ctx context.Context) (any, error) {
					return f.do.Call(ctx, th.st, "c", put("k", "relayed"))
				})
				return err
			}),
			"a Sync":    aside(func() error { _, err := f.call("d", (*thing).sync); return err }),
			"a Release": aside(func() error { _, err := f.call("e", (*thing).release); return err }),
		}
		hurried := map[string]<-chan ending{
			"a commit": aside(func() error { _, err := f.do.Call(ctx, f.host, "f", put("k", "hurried")); return err }),
			"a read":   aside(func() error { _, err := f.do.Call(ctx, f.host, "a", get("k")); return err }),
			"a look":   aside(func() error { return f.host.Read(ctx, read) }),
		}
		time.Sleep(500 * time.Millisecond)
		cancel()
		for what, c := range hurried {
			(<-c).mustBeUnknown(t, "hurried: "+what, 500*time.Millisecond, 1500*time.Millisecond)
		}
		for what, c := range calls {
			(<-c).mustBeUnknown(t, what, 10*time.Second, 22*time.Second) // a Sync and then the reply: twice
		}
		unconfirmed := aside(func() error { _, err := f.call("a", get("k"), object.Unconfirmed()); return err })
		(<-unconfirmed).mustBeUnknown(t, "an unconfirmed read", 10*time.Second, 12*time.Second) // it would be older than two seconds
		answer()
		for name, want := range map[string]string{"a": "new", "c": "relayed", "f": "hurried"} {
			if v := f.must(name, get("k")); v != want {
				t.Errorf("%s holds %v when the log answers, want %v", name, v, want)
			}
		}
		if err := f.host.Err(); err != nil {
			t.Errorf("the host: %v", err)
		}
	})
}

// sync commits in the middle of the turn.
func (th *thing) sync(ctx context.Context) (any, error) { return nil, th.st.Sync(ctx) }

var errReleased = errors.New("the function of Release ran")

// release lends the turn out.
func (th *thing) release(ctx context.Context) (any, error) {
	return nil, th.st.Release(ctx, func(context.Context) error { return errReleased })
}

// Alarms and works do not begin while the log does not answer, and no event is told. All go on when it answers.
//
// Proves O7, O9, V8 and N8 over a log.
func TestNothingBeginsOverASilentLog(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t)
		log := f.overLog()
		f.open()
		defer f.end()
		var rang, worked, told atomic.Int64
		f.handleAlarm(func(*thing, context.Context, object.AlarmInfo) error { rang.Add(1); return nil })
		f.must("a", setAlarm(time.Second))
		tap := f.listen(object.TapOptions{})
		ctx, stop := context.WithCancel(t.Context())
		heard := aside(func() error {
			for {
				events, err := tap.Next(ctx)
				if err != nil {
					return err
				}
				told.Add(int64(len(events)))
			}
		})
		defer func() { stop(); <-heard }() // before the tap is closed
		answer := log.Stop()
		work := func(th *thing, ctx context.Context) (any, error) {
			return nil, th.st.Go(ctx, "work", func(context.Context) { worked.Add(1) })
		}
		withEvent := func(th *thing, ctx context.Context) (any, error) {
			return nil, th.st.Emit(ctx, "happened", 1)
		}
		calls := []<-chan ending{
			aside(func() error { _, err := f.call("b", work); return err }),
			aside(func() error { _, err := f.call("c", withEvent); return err }),
		}
		pass(time.Minute)
		if rang.Load()+worked.Load()+told.Load() != 0 {
			t.Errorf("%d alarms, %d works and %d events over a log that does not answer", rang.Load(), worked.Load(), told.Load())
		}
		for _, c := range calls {
			(<-c).mustBeUnknown(t, "a call", 10*time.Second, 11*time.Second)
		}
		answer()
		pass(2 * time.Second)
		if rang.Load() != 1 || worked.Load() != 1 || told.Load() != 1 {
			t.Errorf("%d alarms, %d works and %d events when the log answers", rang.Load(), worked.Load(), told.Load())
		}
	})
}

// A host over a log that does not answer is shut down about 10 s after it may cut off calls. The outcome of a call
// that has committed is unknown, and never that of a call that was refused.
//
// Proves O7, O14 and N8 over a log.
func TestShutdownOverASilentLog(t *testing.T) {
	for what, c := range map[string]struct {
		ctx  func() context.Context
		ends time.Duration
	}{
		"a shutdown that cuts calls off": {ended, 10*time.Second + 200*time.Millisecond},
		"a shutdown that waits":          {context.Background, 21 * time.Second},
	} {
		bubble(t, func(t *testing.T) {
			f := newFixture(t)
			log := f.overLog()
			f.open()
			f.must("a", nothing)
			_ = log.Stop()
			commit := aside(func() error { _, err := f.call("a", put("k", "v")); return err })
			down := aside(func() error { return f.host.Shutdown(c.ctx()) })
			if e := <-commit; !errors.Is(e.err, object.ErrUnknown) || errors.Is(e.err, object.ErrShutdown) || e.after > 11*time.Second {
				t.Errorf("%s: the call left after %v: %v", what, e.after, e.err)
			}
			if e := <-down; e.err == nil || e.after > c.ends {
				t.Errorf("%s took %v: %v", what, e.after, e.err)
			}
		})
	}
}

// A call that only reads asks the log for its head once, and an unconfirmed one does not ask. Reads at the same time share a
// head or two.
func TestReadsAskForTheHead(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t)
		log := f.overLog()
		f.open()
		defer f.end()
		f.must("a", put("k", "v"))
		pass(time.Second / 2) // so that the watch of the log does not look while the host syncs for the reads
		before := log.Heads.Load()
		for range 3 {
			f.must("a", get("k"), object.Unconfirmed())
		}
		pass(2 * time.Second) // in which the host would sync for them
		if n := log.Heads.Load() - before; n != 0 {
			t.Errorf("three unconfirmed reads asked for %d heads", n)
		}
		for n := range int64(3) {
			before := log.Heads.Load()
			f.must("a", get("k"))
			if asked := log.Heads.Load() - before; asked != 1 {
				t.Errorf("read %d asked for %d heads", n, asked)
			}
		}
		before = log.Heads.Load()
		answer := log.Stop()
		var reads []<-chan ending
		for range 100 {
			reads = append(reads, aside(func() error { _, err := f.call("a", get("k")); return err }))
		}
		answer()
		for _, r := range reads {
			if e := <-r; e.err != nil {
				t.Error(e.err)
			}
		}
		if n := log.Heads.Load() - before; n > 2 {
			t.Errorf("100 reads at a time asked for %d heads", n)
		}
	})
}

// A host whose log another process has claimed lets nothing out, and its end has that as its cause. Calls that may have committed
// have an unknown outcome.
//
// Proves O7, O8, O9, O12, O13, N1, N3 and N5 over a log.
func TestReplacedHostIsMute(t *testing.T) {
	var let atomic.Value // why something was let out
	for what, c := range map[string]struct {
		run     action
		unknown bool
	}{
		"a read":   {get("k"), false},
		"an error": {func(*thing, context.Context) (any, error) { return nil, errOnPurpose }, false},
		"a panic":  {func(*thing, context.Context) (any, error) { panic("on purpose") }, false},
		"a Sync": {func(th *thing, ctx context.Context) (any, error) {
			err := th.st.Sync(ctx)
			if err == nil {
				let.Store("Sync")
			}
			return nil, err
		}, false},
		"a Release": {func(th *thing, ctx context.Context) (any, error) {
			return nil, th.st.Release(ctx, func(context.Context) error { let.Store("Release"); return nil })
		}, false},
		"an Await": {func(th *thing, ctx context.Context) (any, error) {
			ready := make(chan struct{}, 1)
			ready <- struct{}{}
			err := th.st.Await(ctx, ready)
			if len(ready) == 0 {
				let.Store("Await")
			}
			return nil, err
		}, false},
		"a Go": {func(th *thing, ctx context.Context) (any, error) {
			return nil, th.st.Go(ctx, "work", func(context.Context) { let.Store("Go") })
		}, false},
		"a commit": {put("k", "v"), true},
		"a commit and a Go": {func(th *thing, ctx context.Context) (any, error) {
			return nil, errors.Join(th.st.Storage().PutBytes(ctx, "k", nil), th.st.Go(ctx, "work", func(context.Context) { let.Store("Go") }))
		}, true},
		"a Sync of writes": {func(th *thing, ctx context.Context) (any, error) {
			return nil, errors.Join(th.st.Storage().PutBytes(ctx, "k", nil), th.st.Sync(ctx))
		}, true},
		"a call of another": {func(th *thing, ctx context.Context) (any, error) {
			return th.fix.do.Call(ctx, th.st, "other", put("k", "v"))
		}, true},
		"an alarm": {setAlarm(time.Millisecond), true},
	} {
		bubble(t, func(t *testing.T) {
			f := newFixture(t)
			log := f.overLog()
			f.open()
			defer f.host.Shutdown(ended()) // it has failed
			f.handleAlarm(func(*thing, context.Context, object.AlarmInfo) error { let.Store("alarm"); return nil })
			f.must("a", nothing)
			log.claim(t)
			v, err := f.call("a", c.run)
			if v != nil || !errors.Is(err, object.ErrStorage) || !errors.Is(err, shardlog.ErrFenced) || errors.Is(err, object.ErrShutdown) {
				t.Errorf("%s gives %v and %v", what, v, err)
			}
			if errors.Is(err, object.ErrUnknown) != c.unknown {
				t.Errorf("%s: that its outcome is unknown should be %v: %v", what, c.unknown, err)
			}
			if strings.Contains(err.Error(), "on purpose") {
				t.Errorf("%s tells of its handler: %v", what, err)
			}
			pass(time.Minute)
			select {
			case <-f.host.Done():
			default:
				t.Errorf("%s: the host goes on", what)
			}
			if err := f.host.Err(); !errors.Is(err, shardlog.ErrFenced) || !strings.Contains(err.Error(), "another") {
				t.Errorf("%s: the cause of the host's end is %v", what, err)
			}
			if out := let.Swap(""); out != nil && out != "" {
				t.Errorf("%s: %v was let out", what, out)
			}
		})
	}
}

// An error with which a block refuses the calls that wait may tell something that it has read. So those calls wait for the
// log too.
//
// Proves O7 and N4 over a log.
func TestRefusedCallsOfAReplacedHost(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t)
		log := f.overLog()
		f.open()
		defer f.host.Shutdown(ended()) // it has failed
		f.must("a", nothing)
		goOn := make(chan struct{})
		block := aside(func() error {
			_, err := f.call("a", func(th *thing, ctx context.Context) (any, error) {
				return nil, th.st.BlockConcurrencyWhile(ctx, func(context.Context) error { <-goOn; return errOnPurpose })
			})
			return err
		})
		waits := aside(func() error { _, err := f.call("a", nothing); return err })
		log.claim(t)
		close(goOn)
		for what, c := range map[string]<-chan ending{"the block": block, "a call that waits": waits} {
			if e := <-c; errors.Is(e.err, errOnPurpose) || !errors.Is(e.err, shardlog.ErrFenced) {
				t.Errorf("%s: %v", what, e.err)
			}
		}
	})
}

// Looks from outside of a host that was replaced tell nothing.
func TestLooksOfAReplacedHost(t *testing.T) {
	for what, look := range map[string]func(f *fixture) error{
		"Inspect": func(f *fixture) error { _, err := f.host.Inspect(context.Background(), f.id("a")); return err },
		"Keys": func(f *fixture) error {
			_, err := f.host.Keys(context.Background(), f.id("a"), object.KeysOptions{})
			return err
		},
		"Events": func(f *fixture) error { _, err := f.host.Events(context.Background(), f.id("a"), 0, 10); return err },
		"Export": func(f *fixture) error {
			return f.host.Export(context.Background(), f.id("a"), func(object.Copy, *storage.Snapshot) error { t.Error("the object was given out"); return nil })
		},
	} {
		bubble(t, func(t *testing.T) {
			f := newFixture(t)
			log := f.overLog()
			f.open()
			defer f.host.Shutdown(ended()) // it has failed
			f.must("a", put("k", "v"))
			log.claim(t)
			if err := look(f); !errors.Is(err, shardlog.ErrFenced) {
				t.Errorf("%s: %v", what, err)
			}
		})
	}
}
