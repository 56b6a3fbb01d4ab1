package shardlog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/memlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/shardlogtest"
)

// bubble runs a test in a bubble of synctest, in which time jumps.
func bubble(t *testing.T, f func(*testing.T)) { synctest.Test(t, f) }

// cutAppends makes the next n appends lose their answer, after the log has them or before.
func (l *scripted) cutAppends(n int, landed bool) {
	l.onAppend = func(_ shardlog.Record, do func() error) error {
		if n--; n < 0 {
			return do()
		}
		if landed {
			if err := do(); err != nil {
				return err
			}
		}
		return errCut
	}
}

// Proves N8: an append of unknown outcome is made again until the log answers, and stored once.
func TestUnknownAppendIsRepeated(t *testing.T) {
	for _, landed := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			log := &scripted{Log: memlog.New()}
			e := start(t, options(log, "a"), memstore.New())
			store(t, e, "1", "x")
			log.cutAppends(3, landed)
			began := log.appends.Load()
			store(t, e, "2", "x", "y")
			if n := log.appends.Load() - began; n != 4 {
				t.Errorf("landed %v: %d calls, want 4", landed, n)
			}
			closeEngine(t, e)
			if r := shardlogtest.Records(t, log.Log, 0); len(r) != 2 || batches(t, r[1]) != 2 {
				t.Errorf("landed %v: the log has %d records", landed, len(r))
			}
			holds(t, "the log", replayed(t, log.Log), map[string]string{"x": "2", "y": "2"})
		})
	}
}

// Proves N8: if another owner comes after an append of unknown outcome, its callers learn that the outcome is unknown, because the record may
// be in the log. Without such an append they learn that it is not.
func TestFencedAfterAnUnknownOutcome(t *testing.T) {
	for _, landed := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			log := &scripted{Log: memlog.New()}
			e := start(t, options(log, "a"), memstore.New())
			store(t, e, "1", "x")
			want := map[string]string{"x": "1"}
			var next *shardlog.Engine
			log.onAppend = func(_ shardlog.Record, do func() error) error {
				log.onAppend = nil
				if landed {
					want["x"] = "2"
					if err := do(); err != nil {
						return err
					}
				}
				next = start(t, options(log.Log, "b"), memstore.New())
				return errCut
			}
			apply(t, e, "x", "2")
			err := e.Sync()
			is(t, fmt.Sprint("landed ", landed), err, shardlog.ErrFenced, shardlog.ErrUnknown)
			holds(t, "the new owner", next, want)
			closeEngine(t, next)
			is(t, "its end", e.Close(), shardlog.ErrFenced, shardlog.ErrUnknown)
		})
	}
}

// patience of the tests below, with pauses that do not divide it.
const patience = 7*time.Minute + 123*time.Millisecond

// waited returns how long a sync takes over a log that loses all calls until a time, and its error.
func waited(t *testing.T, until time.Duration) (time.Duration, error) {
	log := &scripted{Log: memlog.New()}
	o := options(log, "a")
	o.Patience = patience
	e := start(t, o, memstore.New())
	began := time.Now()
	log.onAppend = func(_ shardlog.Record, do func() error) error {
		if time.Since(began) < until {
			return errCut
		}
		return do()
	}
	apply(t, e, "x", "1")
	err := e.Sync()
	took := time.Since(began)
	if err == nil {
		closeEngine(t, e)
		holds(t, "the log", replayed(t, log.Log), map[string]string{"x": "1"})
	} else {
		is(t, "the end of the engine", e.Close(), shardlog.ErrUnknown)
	}
	return took, err
}

// An append is repeated for Options.Patience, and no longer. Then the engine fails, and the outcome is unknown.
func TestPatience(t *testing.T) {
	bubble(t, func(t *testing.T) {
		if took, err := waited(t, patience-time.Millisecond); err != nil || took > patience {
			t.Errorf("a log that answers just in time: %v after %v", err, took)
		}
		if took, err := waited(t, patience); err != nil || took != patience {
			t.Errorf("a log that answers the last call: %v after %v", err, took)
		}
		took, err := waited(t, patience+time.Millisecond)
		is(t, "a log that answers too late", err, shardlog.ErrUnknown)
		if took != patience || !errors.Is(err, errCut) {
			t.Errorf("the engine failed after %v, want %v, with %v", took, patience, err)
		}
	})
}

// A call of the log that hangs is ended by Options.Timeout, and made again.
func TestTimeoutEndsACall(t *testing.T) {
	bubble(t, func(t *testing.T) {
		log := &hanging{scripted: scripted{Log: memlog.New()}}
		o := options(log, "a")
		o.Timeout = 3 * time.Second
		e := start(t, o, memstore.New())
		apply(t, e, "x", "1")
		log.hangs = true
		began := time.Now()
		if err := e.Sync(); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < 3*time.Second || took > 4*time.Second {
			t.Errorf("the call that hangs and its repeat took %v, want 3 s and a pause", took)
		}
		closeEngine(t, e)
	})
}

// hanging is a log with one append that waits for the end of its context.
type hanging struct {
	scripted
	hangs bool
}

func (l *hanging) Append(ctx context.Context, shard int, before uint64, r shardlog.Record) error {
	if l.hangs {
		l.hangs = false
		<-ctx.Done()
		return ctx.Err()
	}
	return l.scripted.Append(ctx, shard, before, r)
}

// Proves O17 and N8: while the log has no space Full says so and appends are repeated, for much longer than Options.Patience. Space ends both.
func TestNoSpaceInTheLog(t *testing.T) {
	bubble(t, func(t *testing.T) {
		log := &scripted{Log: memlog.New()}
		e := start(t, options(log, "a"), memstore.New())
		if err := e.Full(); err != nil {
			t.Errorf("a log with space is full: %v", err)
		}
		began := time.Now()
		log.onAppend = func(_ shardlog.Record, do func() error) error {
			if time.Since(began) < time.Hour {
				return fmt.Errorf("%w: 53100", shardlog.ErrNoSpace)
			}
			return do()
		}
		apply(t, e, "x", "1")
		synced := make(chan error)
		go func() { synced <- e.Sync() }()
		time.Sleep(time.Minute)
		if err := e.Full(); !errors.Is(err, shardlog.ErrNoSpace) {
			t.Errorf("Full while the log has no space: %v", err)
		}
		if err := <-synced; err != nil {
			t.Fatal(err)
		}
		if err := e.Full(); err != nil {
			t.Errorf("Full once the log has space: %v", err)
		}
		closeEngine(t, e)
	})
}

// The time without space does not count towards Options.Patience, and the time without an answer after it does.
func TestPatienceBeginsAfterNoSpace(t *testing.T) {
	bubble(t, func(t *testing.T) {
		log := &scripted{Log: memlog.New()}
		o := options(log, "a")
		o.Patience = time.Minute
		e := start(t, o, memstore.New())
		began := time.Now()
		log.onAppend = func(shardlog.Record, func() error) error {
			if time.Since(began) < time.Hour {
				return shardlog.ErrNoSpace
			}
			return errCut
		}
		apply(t, e, "x", "1")
		is(t, "a log that is full and then silent", e.Sync(), shardlog.ErrUnknown)
		if took := time.Since(began) - time.Hour; took < time.Minute-time.Second || took > time.Minute {
			t.Errorf("the engine failed %v after the log had space again, want a minute", took)
		}
		is(t, "its end", e.Close(), shardlog.ErrUnknown)
	})
}

// Proves O13: a log that refuses for a reason that no repeat changes ends the store with that reason, at once.
func TestRefusalEndsTheStore(t *testing.T) {
	bubble(t, func(t *testing.T) {
		log := &scripted{Log: memlog.New()}
		s := openStore(t, log, "a")
		reason := errors.New("relation does not exist")
		log.onAppend = func(shardlog.Record, func() error) error { return errors.Join(shardlog.ErrRefused, reason) }
		before := log.appends.Load()
		var b storage.Batch
		b.Set([]byte("x"), []byte("1"))
		ticket, err := s.Commit(&b)
		if err != nil {
			t.Fatal(err)
		}
		err = s.WaitDurable(ticket)
		is(t, "the commit", err, shardlog.ErrRefused)
		if n := log.appends.Load() - before; n != 1 || !errors.Is(err, reason) || !errors.Is(err, storage.ErrStorage) {
			t.Errorf("%d calls, want 1; the error is %v", n, err)
		}
		<-s.Dead()
		is(t, "the end", s.Close(), shardlog.ErrRefused)
	})
}

// GiveUp ends a Sync that waits for the log, and each later one.
func TestGiveUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		log := &scripted{Log: memlog.New()}
		e := start(t, options(log, "a"), memstore.New())
		log.onAppend = func(shardlog.Record, func() error) error { return errCut }
		apply(t, e, "x", "1")
		synced := make(chan error)
		go func() { synced <- e.Sync() }()
		time.Sleep(10 * time.Second)
		began := time.Now()
		e.GiveUp()
		is(t, "the sync that waits", <-synced, shardlog.ErrUnknown)
		is(t, "a later one", e.Sync(), shardlog.ErrUnknown)
		is(t, "Close", e.Close(), shardlog.ErrUnknown)
		if took := time.Since(began); took != 0 {
			t.Errorf("the end took %v", took)
		}
	})
}

// A log that does not answer is told of at once and then each minute, and once when it answers again. A log that answers is not told of.
func TestSilentLogIsToldOf(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var lines bytes.Buffer
		log := &scripted{Log: memlog.New()}
		o := options(log, "a")
		o.Patience, o.Shard = time.Hour, 3
		o.Logger = slog.New(slog.NewTextHandler(&lines, nil))
		e := start(t, o, memstore.New())
		store(t, e, "1", "x")
		if lines.Len() > 0 {
			t.Errorf("a log that answers is told of:\n%s", &lines)
		}
		for _, silent := range []time.Duration{59 * time.Second, 3*time.Minute + 30*time.Second} {
			lines.Reset()
			began := time.Now()
			log.onAppend = func(_ shardlog.Record, do func() error) error {
				if time.Since(began) < silent {
					return errCut
				}
				return do()
			}
			store(t, e, "2", "x")
			text := lines.String()
			want := 1 + int(silent/time.Minute)
			if n := strings.Count(text, "the log does not answer"); n != want || strings.Count(text, "the log answers again") != 1 || strings.Count(text, "shard=3") != want+1 {
				t.Errorf("after a silence of %v:\n%s", silent, text)
			}
		}
		closeEngine(t, e)
	})
}

// A log without space is told of as such, and not as one that does not answer.
func TestFullLogIsToldOf(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var lines bytes.Buffer
		log := &scripted{Log: memlog.New()}
		o := options(log, "a")
		o.Logger = slog.New(slog.NewTextHandler(&lines, nil))
		e := start(t, o, memstore.New())
		began := time.Now()
		log.onAppend = func(_ shardlog.Record, do func() error) error {
			if time.Since(began) < 3*time.Minute+30*time.Second {
				return shardlog.ErrNoSpace
			}
			return do()
		}
		store(t, e, "1", "x")
		text := lines.String()
		if strings.Contains(text, "answer") || strings.Count(text, "the log has no space left") != 4 || strings.Count(text, "the log has space again") != 1 {
			t.Errorf("the lines are:\n%s", text)
		}
		lines.Reset()
		log.cutAppends(1, false)
		store(t, e, "2", "x")
		if text := lines.String(); strings.Contains(text, "space") || strings.Count(text, "the log answers again") != 1 {
			t.Errorf("after a cut the lines are:\n%s", text)
		}
		closeEngine(t, e)
	})
}
