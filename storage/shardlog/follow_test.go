package shardlog_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/engine"
	"github.com/holdfast-dev/holdfast/storage/memstore"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/memlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/shardlogtest"
)

// waiting is a process that waits for its turn. Its Turn takes half a second, and says that the owner of term observed is silent once
// silent is set, as often as it is asked, because it does not look whether another process has claimed meanwhile.
type waiting struct {
	view     *memstore.Store
	observed uint64
	silent   *atomic.Bool
	turns    atomic.Int64
	opened   chan opened
}

// opened is the outcome of an Open.
type opened struct {
	e   *shardlog.Engine
	err error
}

// wait opens an engine that waits for the silence of an owner, until the test ends. The options are changed by change, if it is not nil.
func wait(t *testing.T, log shardlog.Log, name string, observed uint64, silent *atomic.Bool, change func(*shardlog.Options)) *waiting {
	w := &waiting{view: memstore.New(), observed: observed, silent: silent, opened: make(chan opened, 1)}
	o := options(log, name)
	ctx, cancel := context.WithCancel(t.Context())
	o.Turn, o.Context = w.turn, ctx
	if change != nil {
		change(&o)
	}
	done := make(chan struct{})
	t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		e, err := shardlog.Open(o, w.view)
		w.opened <- opened{e, err}
	}()
	return w
}

func (w *waiting) turn() (bool, uint64, error) {
	w.turns.Add(1)
	time.Sleep(shardlog.LookEvery)
	return w.silent.Load(), w.observed, nil
}

// hasOpened reports whether Open has returned, when all goroutines wait.
func (w *waiting) hasOpened() bool {
	synctest.Wait()
	return len(w.opened) > 0
}

// Proves N6: of five waiting processes one claims the log after a silence, for one new term, although each goes on to say that the owner of the
// term before is silent. Their heads come one after the other.
func TestFiveWaitOneClaims(t *testing.T) {
	bubble(t, func(t *testing.T) {
		log := memlog.New()
		owner := start(t, options(log, "owner"), memstore.New())
		store(t, owner, "1", "x")
		var silent atomic.Bool
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var all []*waiting
		for i := range 5 {
			late := &scripted{Log: log}
			late.onHead = func(do func() (shardlog.State, error)) (shardlog.State, error) {
				time.Sleep(time.Duration(i) * 10 * time.Millisecond)
				return do()
			}
			all = append(all, wait(t, late, fmt.Sprint("waiting ", i), owner.Term(), &silent, func(o *shardlog.Options) { o.Context = ctx }))
		}
		time.Sleep(10 * time.Second)
		for i, w := range all {
			if w.hasOpened() || w.turns.Load() < 15 || w.turns.Load() > 21 {
				t.Fatalf("process %d: opened %v, after %d turns in 10 s", i, w.hasOpened(), w.turns.Load())
			}
		}
		store(t, owner, "2", "x")
		silent.Store(true)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if h := shardlogtest.Head(t, log, 0); h.Term != owner.Term()+1 {
			t.Errorf("the log has term %d after one silence in term %d", h.Term, owner.Term())
		}
		cancel()
		owners := 0
		for i, w := range all {
			r := <-w.opened
			if r.err != nil {
				if !errors.Is(r.err, context.Canceled) {
					t.Errorf("process %d: %v", i, r.err)
				}
				continue
			}
			owners++
			holds(t, "the new owner", r.e, map[string]string{"x": "2"})
			store(t, r.e, "3", "x")
			closeEngine(t, r.e)
		}
		if owners != 1 {
			t.Errorf("%d processes own the log", owners)
		}
		is(t, "the owner before", owner.Sync(), shardlog.ErrFenced)
	})
}

// Proves N6: a process has its turn only if two calls say so with the same term, the second after it has caught up and after Check.
func TestTurnIsAskedTwice(t *testing.T) {
	type answer struct {
		claim bool
		seen  uint64
	}
	for about, c := range map[string]struct {
		second answer
		claims bool
	}{
		"both":         {answer{true, 1}, true},
		"heard again":  {answer{false, 1}, false},
		"another term": {answer{true, 2}, false},
	} {
		bubble(t, func(t *testing.T) {
			log := logOf(t, 3)
			done := errors.New("the test ends")
			checked := 0
			o := options(log, "a")
			o.Check = func(view engine.Engine) error {
				checked++
				holds(t, about+": the view that is checked", view, map[string]string{"1": "first", "2": "first", "3": "first"})
				return nil
			}
			turns := 0
			o.Turn = func() (bool, uint64, error) {
				switch turns++; turns {
				case 1:
					return true, 1, nil
				case 2:
					if checked != 1 {
						t.Errorf("%s: %d checks before the second call", about, checked)
					}
					return c.second.claim, c.second.seen, nil
				}
				return false, 0, done
			}
			e, err := shardlog.Open(o, memstore.New())
			if c.claims {
				if err != nil || e.Term() != 2 || turns != 2 {
					t.Fatalf("%s: %v after %d turns", about, err, turns)
				}
				closeEngine(t, e)
				return
			}
			if !errors.Is(err, done) || shardlogtest.Head(t, log, 0).Term != 1 {
				t.Errorf("%s: %v, the head is %+v", about, err, shardlogtest.Head(t, log, 0))
			}
		})
	}
}

// Proves N6: a process with a view that Check refuses claims nothing, whether it waits or not, and leaves the turn to another.
func TestCheckThatFailsClaimsNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		log := logOf(t, 2)
		bad := errors.New("the definitions are older than the store")
		refuse := func(o *shardlog.Options) { o.Check = func(engine.Engine) error { return bad } }
		var silent atomic.Bool
		silent.Store(true)
		w := wait(t, log, "bad", 1, &silent, refuse)
		if r := <-w.opened; !errors.Is(r.err, bad) {
			t.Errorf("the process that waits: %v", r.err)
		}
		o := options(log, "bad")
		refuse(&o)
		if _, err := shardlog.Open(o, memstore.New()); !errors.Is(err, bad) {
			t.Errorf("the process that does not wait: %v", err)
		}
		if h := shardlogtest.Head(t, log, 0); h.Term != 1 {
			t.Errorf("the log was claimed, its head is %+v", h)
		}
		r := <-wait(t, log, "good", 1, &silent, nil).opened
		if r.err != nil {
			t.Fatal(r.err)
		}
		closeEngine(t, r.e)
	})
}

// Proves N6: a waiting process with a view that cannot be brought up to date claims nothing.
func TestWaitingWithABadLogClaimsNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		damaged := &scripted{Log: logOf(t, 5)}
		damaged.changed(func(r *shardlog.Record) bool { r.Chain++; return true })
		var silent atomic.Bool
		silent.Store(true)
		is(t, "a damaged log", (<-wait(t, damaged, "a", 1, &silent, nil).opened).err, shardlog.ErrHole)
		truncated := logOf(t, 5)
		shardlogtest.Truncate(t, truncated, 0, 3)
		is(t, "a log that is truncated", (<-wait(t, truncated, "a", 1, &silent, nil).opened).err, shardlog.ErrTruncated)
		for _, log := range []shardlog.Log{damaged.Log, truncated} {
			if h := shardlogtest.Head(t, log, 0); h.Term != 1 {
				t.Errorf("the log was claimed, its head is %+v", h)
			}
		}
	})
}

// Proves N6: a follower has each record that a later one follows, and not the last one, which a fail-over may replace. It goes on with the
// record in its place. While it follows it asks for no head.
func TestFollowerLeavesTheLastRecord(t *testing.T) {
	bubble(t, func(t *testing.T) {
		log := &scripted{Log: memlog.New()}
		owner := start(t, options(log.Log, "owner"), memstore.New())
		var silent atomic.Bool
		w := wait(t, log, "follower", 2, &silent, nil)
		follows := func(about string, want map[string]string) {
			t.Helper()
			time.Sleep(2 * time.Second)
			if w.hasOpened() {
				t.Fatal(about, (<-w.opened).err)
			}
			holds(t, about, w.view, want)
		}
		follows("an empty log", map[string]string{})
		store(t, owner, "1", "a")
		follows("one record", map[string]string{})
		store(t, owner, "2", "b")
		follows("two records", map[string]string{"a": "1"})
		at, chain, err := shardlog.ViewPosition(w.view)
		if r := shardlogtest.Records(t, log.Log, 0)[0]; at != 1 || chain != r.Chain || err != nil {
			t.Errorf("the position row says %d, %x: %v", at, chain, err)
		}
		if n := log.heads.Load(); n != 0 {
			t.Errorf("a follower asked for %d heads", n)
		}
		log.Log.(*memlog.Log).Rewind(0, 1) // record 2 was not acknowledged by the standby that is promoted
		other := start(t, options(log.Log, "other"), memstore.New())
		store(t, other, "other", "b", "c")
		store(t, other, "3", "c")
		follows("another record in its place", map[string]string{"a": "1", "b": "other", "c": "other"})
		silent.Store(true)
		r := <-w.opened
		if r.err != nil {
			t.Fatal(r.err)
		}
		holds(t, "the owner", r.e, map[string]string{"a": "1", "b": "other", "c": "3"})
		closeEngine(t, r.e)
	})
}

// A follower of a log that loses a record which it has, because a later one was there, ends with ErrAckedDataLost: when the log ends before
// it, and when it has another one in its place.
func TestFollowerMeetsALoss(t *testing.T) {
	for _, grown := range []int{0, 1, 3} {
		bubble(t, func(t *testing.T) {
			log := memlog.New()
			owner := start(t, options(log, "owner"), memstore.New())
			for i := range 3 {
				store(t, owner, "owner", fmt.Sprint(i))
			}
			var silent atomic.Bool
			w := wait(t, log, "follower", 9, &silent, nil)
			time.Sleep(time.Second)
			log.Rewind(0, 1)
			other := start(t, options(log, "other"), memstore.New())
			for i := range grown {
				store(t, other, "other", fmt.Sprint(i))
			}
			is(t, fmt.Sprint("grown by ", grown), (<-w.opened).err, storage.ErrAckedDataLost)
		})
	}
}

// A log that is truncated up to the position of a follower goes on there. Beyond it the follower ends with ErrTruncated.
func TestFollowerOfATruncatedLog(t *testing.T) {
	bubble(t, func(t *testing.T) {
		log := memlog.New()
		owner := start(t, options(log, "owner"), memstore.New())
		for i := range 4 {
			store(t, owner, "1", fmt.Sprint(i))
		}
		var silent atomic.Bool
		w := wait(t, log, "follower", 9, &silent, nil)
		time.Sleep(time.Second)
		shardlogtest.Truncate(t, log, 0, 3)
		time.Sleep(5 * time.Second)
		if w.hasOpened() {
			t.Fatalf("a log that is truncated up to the position: %v", (<-w.opened).err)
		}
		store(t, owner, "2", "x")
		time.Sleep(time.Second)
		synctest.Wait()
		if got := len(rows(t, w.view)); got != 4 {
			t.Errorf("the follower has %d rows after it, want 4", got)
		}
		store(t, owner, "3", "x")
		shardlogtest.Truncate(t, log, 0, 5)
		is(t, "a log that is truncated beyond the position", (<-w.opened).err, shardlog.ErrTruncated)
	})
}

// A log that does not answer ends no process that waits, however long that takes, and each of its calls. It claims when the log is back.
func TestWaitingOverASilentLog(t *testing.T) {
	bubble(t, func(t *testing.T) {
		log := &scripted{Log: logOf(t, 3)}
		var down, silent atomic.Bool
		claimed := false
		cut := func(do func() (shardlog.State, error)) (shardlog.State, error) {
			if down.Load() {
				return shardlog.State{}, errCut
			}
			return do()
		}
		log.onHead = cut
		log.onRead = func(_ shardlog.Position, f func(shardlog.Record) error, do func(func(shardlog.Record) error) error) error {
			if down.Load() {
				return errCut
			}
			return do(f)
		}
		log.onClaim = func(do func() (shardlog.State, error)) (shardlog.State, error) {
			if !claimed { // it lands, and the log goes down before its answer
				claimed = true
				_, err := do()
				down.Store(true)
				return shardlog.State{}, errors.Join(errCut, err)
			}
			return cut(do)
		}
		down.Store(true)
		w := wait(t, log, "a", 1, &silent, func(o *shardlog.Options) { o.Patience = time.Minute })
		for _, about := range []string{"follows", "has claimed"} {
			time.Sleep(time.Hour)
			if turns := w.turns.Load(); w.hasOpened() || turns < 1000 {
				t.Fatalf("a process that %s over a silent log ended, or had %d turns", about, turns)
			}
			down.Store(false)
			silent.Store(true)
			time.Sleep(5 * time.Second)
		}
		r := <-w.opened
		if r.err != nil {
			t.Fatal(r.err)
		}
		if h := shardlogtest.Head(t, log.Log, 0); h.Term != 2 || r.e.Term() != 2 {
			t.Errorf("the engine has term %d, the head is %+v", r.e.Term(), h)
		}
		closeEngine(t, r.e)
	})
}

// An error of Turn ends Open with it, also while the log does not answer. So does the end of the context, with its cause.
func TestTurnAndContextEndAnOpen(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ends := errors.New("the node ends")
		for about, log := range map[string]shardlog.Log{"a log": logOf(t, 2), "a silent log": &scripted{Log: silentReads{silentLog{logOf(t, 1)}}}} {
			n := 0
			o := options(log, "a")
			o.Turn = func() (bool, uint64, error) {
				if n++; n == 5 {
					return false, 0, ends
				}
				return n == 3, 1, nil // at the third call it goes on to the head
			}
			if _, err := shardlog.Open(o, memstore.New()); !errors.Is(err, ends) {
				t.Errorf("%s: an error of Turn: %v", about, err)
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Minute, func() { cancel(ends) })
			o.Context, o.Turn = ctx, func() (bool, uint64, error) { return false, 0, nil }
			began := time.Now()
			if _, err := shardlog.Open(o, memstore.New()); !errors.Is(err, ends) || time.Since(began) != time.Minute {
				t.Errorf("%s: the end of the context after %v: %v", about, time.Since(began), err)
			}
		}
	})
}

// silentReads is a silent log with reads that do not answer either.
type silentReads struct{ silentLog }

func (silentReads) Read(context.Context, int, shardlog.Position, func(shardlog.Record) error) error {
	return errCut
}

// The end of the context ends no engine that is open.
func TestContextEndsTheOpeningAlone(t *testing.T) {
	log := memlog.New()
	ctx, cancel := context.WithCancel(t.Context())
	o := options(log, "a")
	o.Context = ctx
	e := start(t, o, memstore.New())
	cancel()
	store(t, e, "1", "x")
	closeEngine(t, e)
}

// A Turn that answers at once is asked ten times a second at most.
func TestTurnThatDoesNotWait(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ends := errors.New("the node ends")
		log := &scripted{Log: logOf(t, 2)}
		began, n := time.Now(), 0
		o := options(log, "a")
		o.Turn = func() (bool, uint64, error) {
			if n++; n == 101 {
				return false, 0, ends
			}
			return false, 1, nil
		}
		_, err := shardlog.Open(o, memstore.New())
		if took := time.Since(began); !errors.Is(err, ends) || took != 10*time.Second || log.reads.Load() != 101 {
			t.Errorf("101 turns and %d reads took %v: %v", log.reads.Load(), took, err)
		}
	})
}

// A process that reads a long log calls Turn between two steps of five seconds, and goes on where it was.
func TestTurnWhileALongLogIsRead(t *testing.T) {
	bubble(t, func(t *testing.T) {
		log := &scripted{Log: logOf(t, 100)}
		log.onRead = func(_ shardlog.Position, f func(shardlog.Record) error, do func(func(shardlog.Record) error) error) error {
			return do(func(r shardlog.Record) error {
				time.Sleep(500 * time.Millisecond)
				return f(r)
			})
		}
		var silent atomic.Bool
		w := wait(t, log, "a", 1, &silent, nil)
		time.Sleep(90 * time.Second)
		if turns, got := w.turns.Load(), len(rows(t, w.view)); got != 99 || turns < 12 || turns > 30 {
			t.Errorf("%d rows after %d turns", got, turns)
		}
		silent.Store(true)
		r := <-w.opened
		if r.err != nil {
			t.Fatal(r.err)
		}
		closeEngine(t, r.e)
	})
}

// Claimed is told once, with the engine and the state that the claim has found.
func TestClaimedIsTold(t *testing.T) {
	log := logOf(t, 3)
	found := shardlogtest.Head(t, log, 0)
	var told []shardlog.State
	var engines []*shardlog.Engine
	o := options(log, "a")
	o.Claimed = func(e *shardlog.Engine, before shardlog.State) {
		told, engines = append(told, before), append(engines, e)
		store(t, e, "a", "claimed")
	}
	e := start(t, o, memstore.New())
	if len(told) != 1 || told[0] != found || engines[0] != e {
		t.Errorf("told of %+v, want %+v once", told, found)
	}
	closeEngine(t, e)
}

// The engine tells any goroutine of its term, its place, the bytes that it has appended, and the begin of the last call that succeeded.
func TestProgressOfAnEngine(t *testing.T) {
	bubble(t, func(t *testing.T) {
		log := &scripted{Log: logOf(t, 3)}
		before := time.Now()
		e := start(t, options(log, "a"), memstore.New())
		is := func(about string, answered time.Time, records int) {
			t.Helper()
			all := shardlogtest.Records(t, log.Log, 0)
			last, bytes := all[len(all)-1], 0
			for _, r := range all[len(all)-records:] {
				bytes += len(r.Payload)
			}
			at, chain := e.Place()
			if at != last.At || chain != last.Chain || e.Term() != 2 || e.AppendedBytes() != uint64(bytes) || !e.Answered().Equal(answered) {
				t.Errorf("%s: place %d %x, term %d, %d bytes of %d, answered %v after the opening", about, at, chain, e.Term(), e.AppendedBytes(), bytes, e.Answered().Sub(before))
			}
		}
		is("after Open", before, 0)
		time.Sleep(time.Second)
		log.onAppend = func(_ shardlog.Record, do func() error) error {
			time.Sleep(time.Second)
			return do()
		}
		store(t, e, "1", "x")
		is("after an append that took a second", before.Add(time.Second), 1)
		log.onAppend = nil
		store(t, e, "2", "x", "y")
		is("after the next", before.Add(2*time.Second), 2)
		time.Sleep(time.Second)
		if err := e.Sync(); err != nil {
			t.Fatal(err)
		}
		is("after a head", before.Add(3*time.Second), 2)
		log.cutAppends(1, false)
		store(t, e, "3", "x")
		is("after an append that was made again", before.Add(3*time.Second+20*time.Millisecond), 3)
		closeEngine(t, e)
	})
}

// A view remembers its cluster, and is refused by another before the log is asked. Without a name nothing is compared.
func TestViewOfAnotherCluster(t *testing.T) {
	log := &scripted{Log: logOf(t, 2)}
	view := memstore.New()
	open := func(cluster string) error {
		o := options(log, "a")
		o.Cluster = cluster
		e, err := shardlog.Open(o, view)
		if err == nil {
			closeEngine(t, e)
			view = view.Crash(1 << 30)
		}
		return err
	}
	for _, cluster := range []string{"", "blue", "blue", ""} {
		if err := open(cluster); err != nil {
			t.Errorf("cluster %q: %v", cluster, err)
		}
	}
	heads := log.heads.Load()
	if err := open("green"); !errors.Is(err, shardlog.ErrOtherCluster) || !contains(err, `"blue"`) || !contains(err, `"green"`) {
		t.Errorf("another cluster: %v", err)
	}
	if log.heads.Load() != heads {
		t.Error("the log was asked by the view of another cluster")
	}
	// The base of a log has no name of another cluster.
	at, chain, err := shardlog.ViewPosition(view)
	if err == nil {
		err = shardlog.SetViewPosition(view, at, chain)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := open("green"); err != nil {
		t.Errorf("the base of another cluster: %v", err)
	}
}
