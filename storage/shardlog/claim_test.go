package shardlog_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/memlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/shardlogtest"
)

// A claim of unknown outcome is the owner's whether it landed or not, and makes one term.
func TestUnknownClaim(t *testing.T) {
	for _, landed := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			log := &scripted{Log: logOf(t, 2)}
			seen := shardlogtest.Head(t, log.Log, 0)
			log.onClaim = func(do func() (shardlog.State, error)) (shardlog.State, error) {
				log.onClaim = nil
				if landed {
					if _, err := do(); err != nil {
						return shardlog.State{}, err
					}
				}
				return shardlog.State{}, errCut
			}
			e := start(t, options(log, "a"), memstore.New())
			if h := shardlogtest.Head(t, log.Log, 0); h.Term != seen.Term+1 {
				t.Errorf("landed %v: term %d follows %d", landed, h.Term, seen.Term)
			}
			store(t, e, "a", "1")
			closeEngine(t, e)
			holds(t, "the log", replayed(t, log.Log), map[string]string{"1": "a", "2": "first"})
		})
	}
}

// A claim of unknown outcome that landed is the owner's too if the head does not answer at once.
func TestUnknownClaimWithoutAHead(t *testing.T) {
	bubble(t, func(t *testing.T) {
		log := &scripted{Log: logOf(t, 1)}
		log.onClaim = func(do func() (shardlog.State, error)) (shardlog.State, error) {
			if _, err := do(); err != nil {
				return shardlog.State{}, err
			}
			n := 3
			log.onHead = func(do func() (shardlog.State, error)) (shardlog.State, error) {
				if n--; n >= 0 {
					return shardlog.State{}, errCut
				}
				return do()
			}
			return shardlog.State{}, errCut
		}
		e := start(t, options(log, "a"), memstore.New())
		store(t, e, "a", "1")
		closeEngine(t, e)
	})
}

// One of two processes with one name wins, also if the outcome of the other's claim was unknown.
func TestUnknownClaimOfTheSameName(t *testing.T) {
	bubble(t, func(t *testing.T) {
		log := &scripted{Log: logOf(t, 1)}
		var other *shardlog.Engine
		log.onClaim = func(func() (shardlog.State, error)) (shardlog.State, error) {
			log.onClaim = nil
			other = start(t, options(log.Log, "same"), memstore.New())
			return shardlog.State{}, errCut
		}
		_, err := shardlog.Open(options(log, "same"), memstore.New())
		is(t, "the claim of the loser", err, shardlog.ErrFenced)
		store(t, other, "other", "1")
		closeEngine(t, other)
	})
}

// A claim that another process has overtaken is refused at once. The view stays the caller's, and opens with the next try.
func TestOvertakenClaim(t *testing.T) {
	log := &scripted{Log: logOf(t, 1)}
	var other *shardlog.Engine
	log.onClaim = func(do func() (shardlog.State, error)) (shardlog.State, error) {
		log.onClaim = nil
		other = start(t, options(log.Log, "other"), memstore.New())
		store(t, other, "other", "2")
		return do()
	}
	view := memstore.New()
	_, err := shardlog.Open(options(log, "a"), view)
	is(t, "the claim", err, shardlog.ErrFenced)
	e := start(t, options(log, "a"), view)
	holds(t, "the next try", e, map[string]string{"1": "first", "2": "other"})
	closeEngine(t, e)
	closeEngine(t, other)
}

// Records that the owner before has appended between the first look and the claim are in the view.
func TestRecordsBeforeTheClaimAreRead(t *testing.T) {
	log := &scripted{Log: memlog.New()}
	before := start(t, options(log.Log, "before"), memstore.New())
	store(t, before, "1", "x")
	log.onClaim = func(do func() (shardlog.State, error)) (shardlog.State, error) {
		store(t, before, "2", "x", "y")
		return do()
	}
	e := start(t, options(log, "a"), memstore.New())
	holds(t, "the new owner", e, map[string]string{"x": "2", "y": "2"})
	store(t, e, "3", "x")
	closeEngine(t, e)
}

// A process with a view that cannot be used takes the log from no other.
func TestBadViewClaimsNothing(t *testing.T) {
	log := memlog.New()
	owner := start(t, options(log, "owner"), memstore.New())
	store(t, owner, "1", "x")
	ahead := memstore.New()
	e := start(t, options(logOf(t, 5), "a"), ahead)
	if err := e.Sync(); err != nil {
		t.Fatal(err)
	}
	_, err := shardlog.Open(options(log, "b"), ahead.Crash(1<<30))
	is(t, "a view of another log", err, storage.ErrAckedDataLost)
	store(t, owner, "2", "x")
	closeEngine(t, owner)
}

// A log in quarantine is refused, and its reason told.
func TestLostLogIsRefused(t *testing.T) {
	log := logOf(t, 3)
	log.SetLost(0, "record 4, found by node 7")
	_, err := shardlog.Open(options(log, "a"), memstore.New())
	is(t, "a log in quarantine", err, storage.ErrAckedDataLost)
	if !strings.Contains(err.Error(), "record 4, found by node 7") {
		t.Errorf("the error does not say where: %v", err)
	}
	alive := logOf(t, 3)
	e := start(t, options(alive, "a"), memstore.New())
	alive.SetLost(0, "record 4")
	is(t, "a reader once the log is in quarantine", e.Sync(), storage.ErrAckedDataLost)
}

// An opening over a log that does not answer ends with ErrUnknown after Options.Patience.
func TestOpenOverASilentLog(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := options(silentLog{}, "a")
		o.Patience = time.Minute
		began := time.Now()
		_, err := shardlog.Open(o, memstore.New())
		is(t, "a silent log", err, shardlog.ErrUnknown)
		if took := time.Since(began); took != time.Minute {
			t.Errorf("the opening took %v", took)
		}
	})
}

// silentLog answers nothing.
type silentLog struct{ shardlog.Log }

func (silentLog) Head(context.Context, int) (shardlog.State, error) { return shardlog.State{}, errCut }
