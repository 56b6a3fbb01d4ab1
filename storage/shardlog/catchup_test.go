package shardlog_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/memlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/shardlogtest"
)

// changed makes the log give record 3 of 5 as change leaves it, or not at all.
func (l *scripted) changed(change func(*shardlog.Record) (give bool)) {
	l.onRead = func(_ shardlog.Position, f func(shardlog.Record) error, do func(func(shardlog.Record) error) error) error {
		return do(func(r shardlog.Record) error {
			r.Payload = append([]byte(nil), r.Payload...)
			if r.At == 3 && !change(&r) {
				return nil
			}
			return f(r)
		})
	}
}

// Proves N6 and N7: a reader trusts nothing. Each record that does not follow from the one before is ErrHole, and no owner comes of it.
func TestDamagedLogIsRefused(t *testing.T) {
	// Record 3 has an owner of its own, so that the terms are 1, 1, 2, 3, 3.
	log := memlog.New()
	for term, keys := range [][]string{{"1", "2"}, {"3"}, {"4", "5"}} {
		e := start(t, options(log, fmt.Sprint(term)), memstore.New())
		for _, k := range keys {
			store(t, e, "v", k)
		}
		closeEngine(t, e)
	}
	damages := map[string]func(*shardlog.Record) bool{
		"a record is skipped":   func(*shardlog.Record) bool { return false },
		"a position is skipped": func(r *shardlog.Record) bool { r.At++; return true },
		"a record comes twice":  func(r *shardlog.Record) bool { r.At--; return true },
		"a byte is flipped":     func(r *shardlog.Record) bool { r.Payload[len(r.Payload)-1] ^= 1; return true },
		"a byte and its chain are of others": func(r *shardlog.Record) bool {
			r.Payload[len(r.Payload)-1] ^= 1
			r.Chain = shardlog.Next(7, r.Payload)
			return true
		},
		"the chain is foreign":          func(r *shardlog.Record) bool { r.Chain++; return true },
		"the term falls":                func(r *shardlog.Record) bool { r.Term = 0; return true },
		"the term rises above the head": func(r *shardlog.Record) bool { r.Term = 100; return true },
	}
	for about, change := range damages {
		damaged := &scripted{Log: log}
		damaged.changed(change)
		seen := shardlogtest.Head(t, log, 0)
		_, err := shardlog.Open(options(damaged, "a"), memstore.New())
		is(t, about, err, shardlog.ErrHole)
		if h := shardlogtest.Head(t, log, 0); h != seen {
			t.Errorf("%s: the log was claimed, its head is %+v", about, h)
		}
	}
}

// A log that ends before its head, and a last record that is not that of the head, are ErrHole.
func TestLogEndsAtItsHead(t *testing.T) {
	log := &scripted{Log: logOf(t, 3)}
	log.onRead = func(_ shardlog.Position, f func(shardlog.Record) error, do func(func(shardlog.Record) error) error) error {
		return do(func(r shardlog.Record) error {
			if r.At == 3 {
				return nil
			}
			return f(r)
		})
	}
	_, err := shardlog.Open(options(log, "a"), memstore.New())
	is(t, "a log that ends early", err, shardlog.ErrHole)

	log = &scripted{Log: logOf(t, 3)}
	log.onHead = func(do func() (shardlog.State, error)) (shardlog.State, error) {
		h, err := do()
		h.Chain++
		return h, err
	}
	_, err = shardlog.Open(options(log, "a"), memstore.New())
	is(t, "a head with another chain", err, shardlog.ErrHole)
}

// A record beyond the head that the log has told of may not be durable, so it is not read.
func TestRecordBeyondTheHeadIsLeft(t *testing.T) {
	log := &scripted{Log: logOf(t, 3)}
	h := shardlogtest.Head(t, log.Log, 0)
	chain := shardlog.Next(h.Chain, shardlog.AppendBatch(nil, put("ghost", "1")))
	log.onRead = func(_ shardlog.Position, f func(shardlog.Record) error, do func(func(shardlog.Record) error) error) error {
		if err := do(f); err != nil {
			return err
		}
		return f(shardlog.Record{At: h.Last + 1, Term: h.Term, Chain: chain, Payload: shardlog.AppendBatch(nil, put("ghost", "1"))})
	}
	e := start(t, options(log, "a"), memstore.New())
	holds(t, "the view", e, map[string]string{"1": "first", "2": "first", "3": "first"})
	closeEngine(t, e)
}

// Proves N7: a log may give its records in pages, and lose the connection between two of them: the reader goes on behind the last.
func TestRecordsComeInPages(t *testing.T) {
	bubble(t, func(t *testing.T) {
		errPage := errors.New("the page ends")
		for about, end := range map[string]error{"pages": nil, "cuts": errCut} {
			log := &scripted{Log: logOf(t, 20)}
			log.onRead = func(_ shardlog.Position, f func(shardlog.Record) error, do func(func(shardlog.Record) error) error) error {
				n := 0
				err := do(func(r shardlog.Record) error {
					if n++; n > 3 {
						return errPage
					}
					return f(r)
				})
				if errors.Is(err, errPage) {
					return end
				}
				return err
			}
			e := start(t, options(log, "a"), memstore.New())
			if got := len(rows(t, e)); got != 20 || log.reads.Load() != 7 {
				t.Errorf("%s: %d rows after %d reads, want 20 after 7", about, got, log.reads.Load())
			}
			closeEngine(t, e)
		}
	})
}

// A log that takes much longer to read than Options.Timeout and Options.Patience is read to its end, because each record is an answer.
func TestLongLogIsReadToItsEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		log := &scripted{Log: logOf(t, 100)}
		log.onRead = func(_ shardlog.Position, f func(shardlog.Record) error, do func(func(shardlog.Record) error) error) error {
			return do(func(r shardlog.Record) error {
				time.Sleep(3 * time.Second)
				return f(r)
			})
		}
		o := options(log, "a")
		o.Patience = 30 * time.Second
		began := time.Now()
		e := start(t, o, memstore.New())
		if took := time.Since(began); took < 300*time.Second || len(rows(t, e)) != 100 {
			t.Errorf("%d rows after %v", len(rows(t, e)), took)
		}
		closeEngine(t, e)
	})
}

// A hole is a hole, and no unknown outcome, also if a call before it was lost.
func TestHoleAfterACut(t *testing.T) {
	bubble(t, func(t *testing.T) {
		log := &scripted{Log: logOf(t, 5)}
		log.changed(func(r *shardlog.Record) bool { r.Chain++; return true })
		read := log.onRead
		log.onRead = func(shardlog.Position, func(shardlog.Record) error, func(func(shardlog.Record) error) error) error {
			log.onRead = read
			return errCut
		}
		_, err := shardlog.Open(options(log, "a"), memstore.New())
		is(t, "a hole after a cut", err, shardlog.ErrHole)
	})
}

// A view that fails while the log is read ends the opening with its own error, at once.
func TestViewFailsDuringTheReplay(t *testing.T) {
	log := &scripted{Log: logOf(t, 2)}
	view := memstore.New()
	log.onRead = func(_ shardlog.Position, f func(shardlog.Record) error, do func(func(shardlog.Record) error) error) error {
		_ = view.Close()
		return do(f)
	}
	_, err := shardlog.Open(options(log, "a"), view)
	is(t, "a view that is closed", err)
	if log.reads.Load() != 1 {
		t.Errorf("%d reads", log.reads.Load())
	}
}

// Proves N7: a log that begins after a base needs a view that has the base, also if the log gives the records after it to any reader. A
// view that ends at the base opens, also if there is no record after it.
func TestLogWithABase(t *testing.T) {
	for _, records := range []int{1, 3} {
		log := memlog.New()
		view := memstore.New()
		e := start(t, options(log, "first"), view)
		store(t, e, "first", "1")
		atBase := view.Crash(1 << 30)
		for i := 1; i < records; i++ {
			store(t, e, "first", fmt.Sprint(i+1))
		}
		closeEngine(t, e)
		shardlogtest.Truncate(t, log, 0, 1)
		_, err := shardlog.Open(options(log, "a"), memstore.New())
		is(t, "an empty view", err, shardlog.ErrTruncated)
		lenient := &scripted{Log: log}
		lenient.onRead = func(_ shardlog.Position, f func(shardlog.Record) error, _ func(func(shardlog.Record) error) error) error {
			return log.Read(t.Context(), 0, 2, f)
		}
		_, err = shardlog.Open(options(lenient, "a"), memstore.New())
		is(t, "an empty view and a log that reads on", err, shardlog.ErrTruncated)
		e = start(t, options(log, "a"), atBase)
		if got := rows(t, e); len(got) != records {
			t.Errorf("a view at the base has %d rows, want %d", len(got), records)
		}
		store(t, e, "a", "1")
		closeEngine(t, e)
	}
}

// A view that ends before the base is too old. One that has another base is refused, because records are lost to it.
func TestViewBeforeTheBase(t *testing.T) {
	log := logOf(t, 3)
	view := memstore.New()
	e := start(t, options(logOf(t, 1), "a"), view)
	closeEngine(t, e)
	old := view.Crash(1 << 30) // of a log that has the same first record
	shardlogtest.Truncate(t, log, 0, 2)
	_, err := shardlog.Open(options(log, "a"), old)
	is(t, "a view that ends before the base", err, shardlog.ErrTruncated)

	log = memlog.New()
	log.SetBase(0, 1, 42)
	_, err = shardlog.Open(options(log, "a"), old)
	is(t, "a view of another base", err, storage.ErrAckedDataLost)
}
