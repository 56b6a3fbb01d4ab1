package shardlog_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/memlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/shardlogtest"
)

// Proves N2 and N6: the next process finds all that was acknowledged, with an empty view, an old one and the one that was left.
func TestNextProcessFindsTheCommits(t *testing.T) {
	log := memlog.New()
	left := memstore.New()
	e := start(t, options(log, "a"), left)
	store(t, e, "1", "x", "y")
	old := left.Crash(1 << 30)
	store(t, e, "2", "y", "z")
	store(t, e, "3", "z")
	want := map[string]string{"x": "1", "y": "2", "z": "3"}
	for about, view := range map[string]*memstore.Store{"empty": memstore.New(), "old": old, "the same": left.Crash(1 << 30), "part of a record": left.Crash(4)} {
		next := start(t, options(log, about), view)
		holds(t, about, next, want)
		closeEngine(t, next)
		last := shardlogtest.Head(t, log, 0)
		if at, chain, err := shardlog.ViewPosition(view.Crash(1 << 30)); at != last.Last || chain != last.Chain || err != nil {
			t.Errorf("%s: the view that was left says %d %x, the log %d %x: %v", about, at, chain, last.Last, last.Chain, err)
		}
	}
	holds(t, "the log alone", replayed(t, log), want)
}

// Proves N2: batches that are not synced are in no record, and Close makes one of them.
func TestCloseAppendsTheRest(t *testing.T) {
	log := &scripted{Log: memlog.New()}
	e := start(t, options(log, "a"), memstore.New())
	apply(t, e, "x", "1")
	holds(t, "before Close", replayed(t, log.Log), map[string]string{})
	closeEngine(t, e)
	holds(t, "after Close", replayed(t, log.Log), map[string]string{"x": "1"})
}

// Proves N4: an empty round asks for the head exactly once, because it answers readers. Close asks for nothing, and a round with batches
// is its own proof.
func TestEmptyRoundIsOneHead(t *testing.T) {
	log := &scripted{Log: memlog.New()}
	e := start(t, options(log, "a"), memstore.New())
	store(t, e, "1", "x")
	for range 2 {
		heads, appends := log.heads.Load(), log.appends.Load()
		if err := e.Sync(); err != nil {
			t.Fatal(err)
		}
		if h, a := log.heads.Load()-heads, log.appends.Load()-appends; h != 1 || a != 0 {
			t.Errorf("an empty round made %d heads and %d appends, want 1 and 0", h, a)
		}
	}
	heads := log.heads.Load()
	store(t, e, "2", "x")
	closeEngine(t, e)
	if h := log.heads.Load() - heads; h != 0 {
		t.Errorf("a round with a batch and Close made %d heads", h)
	}
}

// Proves N4 and N5: an owner that was replaced answers no reader, though it has nothing to append.
func TestReplacedOwnerAnswersNoReader(t *testing.T) {
	log := memlog.New()
	e := start(t, options(log, "a"), memstore.New())
	store(t, e, "1", "x")
	next := start(t, options(log, "b"), memstore.New())
	defer closeEngine(t, next)
	err := e.Sync()
	is(t, "a reader at the owner before", err, shardlog.ErrFenced)
	if !strings.Contains(fmt.Sprint(err), "b ") {
		t.Errorf("the error names no new owner: %v", err)
	}
	is(t, "its next batch", e.Apply(put("x", "2")), shardlog.ErrFenced)
	is(t, "its end", e.Close(), shardlog.ErrFenced)
}

// Proves N1 and N3: the append of an owner that was replaced is an error that names the new owner, it ends engine and store, and the record of
// the owner before is in no log.
func TestReplacedOwnerCommitsNothing(t *testing.T) {
	log := memlog.New()
	s := openStore(t, log, "a")
	commit(t, s, "x", "1")
	next := start(t, options(log, "new"), memstore.New())
	var b storage.Batch
	b.Set([]byte("x"), []byte("2"))
	ticket, err := s.Commit(&b)
	if err == nil {
		err = s.WaitDurable(ticket)
	}
	is(t, "the commit", err, shardlog.ErrFenced)
	if !errors.Is(err, storage.ErrStorage) || !strings.Contains(err.Error(), "new ") {
		t.Errorf("the commit at the owner before: %v, want ErrStorage that names the new owner", err)
	}
	if s.Err() == nil {
		t.Fatal("the store of a replaced owner lives on")
	}
	<-s.Dead()
	is(t, "the store", s.Err(), shardlog.ErrFenced)
	is(t, "its end", s.Close(), shardlog.ErrFenced)
	if got := rows(t, next)["x"]; got != "1" {
		t.Errorf("the new owner reads %q, want the value before", got)
	}
	closeEngine(t, next)
}

// openStore opens a store over a log, with an empty view in memory.
func openStore(t testing.TB, log shardlog.Log, owner string) *storage.Store {
	t.Helper()
	s, err := storage.Open(storage.Options{Engine: start(t, options(log, owner), memstore.New()), Shards: 4})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// commit sets a key in a store and waits until that is durable.
func commit(t testing.TB, s *storage.Store, key, value string) {
	t.Helper()
	var b storage.Batch
	b.Set([]byte(key), []byte(value))
	ticket, err := s.Commit(&b)
	if err == nil {
		err = s.WaitDurable(ticket)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// The engine keeps the records that the log has acknowledged, and no others.
func TestKeptRecordsAreThoseOfTheLog(t *testing.T) {
	log := memlog.New()
	e := start(t, options(log, "a"), memstore.New())
	store(t, e, "1", "x")
	store(t, e, "2", "y")
	want := shardlogtest.Records(t, log, 0)
	start(t, options(log, "b"), memstore.New())
	apply(t, e, "z", "3")
	is(t, "an append after the end", e.Sync(), shardlog.ErrFenced)
	got := e.Kept()
	if len(got) != 2 || got[0].Chain != want[0].Chain || got[1].Chain != want[1].Chain {
		t.Errorf("the engine keeps %+v, the log has %+v", got, want)
	}
}
