package shardlog_test

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/storage/memstore"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/memlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/shardlogtest"
)

// Proves N11: Export fences the owner, has all that was acknowledged also between its head and its claim, and nothing is appended after it.
func TestExportEndsTheLog(t *testing.T) {
	log := &scripted{Log: memlog.New()}
	e := start(t, options(log, "a"), memstore.New())
	store(t, e, "1", "x")
	log.onClaim = func(do func() (shardlog.State, error)) (shardlog.State, error) {
		store(t, e, "2", "y") // the owner goes on until the claim
		return do()
	}
	view := memstore.New()
	head, err := shardlog.Export(options(log, ""), view, false)
	if err != nil || !head.Exported() || head.Last != 2 {
		t.Fatalf("the export ends with %+v: %v", head, err)
	}
	got := rows(t, view)
	if bits := got["\xff\xff\x00"+shardlog.ExportRow]; !head.ExportedTo([]byte(bits)) || head.ExportedTo([]byte(bits[1:])) || head.ExportedTo(nil) {
		t.Errorf("the bits %q are not those of the owner %s alone", bits, head.Owner)
	}
	delete(got, "\xff\xff\x00"+shardlog.ExportRow)
	if want := rows(t, replayed(t, log.Log)); !maps.Equal(got, want) {
		t.Errorf("the view has %q, the log %q", got, want)
	}
	apply(t, e, "z", "3")
	is(t, "the owner before", e.Sync(), shardlog.ErrFenced)
	_, err = shardlog.Open(options(log, "b"), memstore.New())
	is(t, "the next owner", err, shardlog.ErrExported)
	if h := shardlogtest.Head(t, log.Log, 0); h.Last != 2 || h.Term != head.Term {
		t.Errorf("the log has %+v, want %+v", h, head)
	}
}

// An export whose claim has an unknown outcome, or that another process fences, goes on with the same view.
func TestExportGoesOn(t *testing.T) {
	log := &scripted{Log: memlog.New()}
	view := memstore.New()
	other := start(t, options(log, "a"), memstore.New())
	store(t, other, "1", "x")
	log.onClaim = func(do func() (shardlog.State, error)) (shardlog.State, error) {
		log.onClaim = nil
		closeEngine(t, start(t, options(log, "b"), memstore.New()))
		return do()
	}
	_, err := shardlog.Export(options(log, ""), view, false)
	is(t, "an export that is fenced", err, shardlog.ErrFenced)
	log.onClaim = func(do func() (shardlog.State, error)) (shardlog.State, error) {
		log.onClaim = nil
		return shardlog.State{}, errors.Join(second(do()), shardlog.ErrRefused) // landed, and the process ends
	}
	_, err = shardlog.Export(options(log, ""), view, false)
	is(t, "an export that is cut", err, shardlog.ErrRefused)
	_, err = shardlog.Export(options(log, ""), memstore.New(), false)
	is(t, "another view", err, shardlog.ErrExported)
	head, err := shardlog.Export(options(log, ""), view, false)
	if err != nil || head.Last != 1 {
		t.Errorf("the same view: %+v: %v", head, err)
	}
	if err := other.Close(); !errors.Is(err, shardlog.ErrFenced) && err != nil {
		t.Error(err)
	}
}

func second[T any](_ T, err error) error { return err }

// A process may not have a name that ends a log.
func TestNoOwnerIsNamedExported(t *testing.T) {
	for name, ok := range map[string]bool{"exported": false, "exported 1": false, "exported-eu": true, "node exported": true} {
		e, err := shardlog.Open(options(memlog.New(), name), memstore.New())
		if ok != (err == nil) || !ok && !strings.Contains(fmt.Sprint(err), "Options.Owner") {
			t.Errorf("an owner %q: %v", name, err)
		}
		if err == nil {
			closeEngine(t, e)
		}
	}
}
