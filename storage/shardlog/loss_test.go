package shardlog_test

import (
	"fmt"
	"testing"

	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/memlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/shardlogtest"
)

// Proves N7: a view with a last record that the log has lost is refused, whether the log ends before it or has grown again, by few records or
// many, in the hands of another owner.
func TestLogThatLostRecordsIsRefused(t *testing.T) {
	for grown := range 8 {
		log := memlog.New()
		view := memstore.New()
		e := start(t, options(log, "a"), view)
		for i := range 5 {
			store(t, e, "a", fmt.Sprint(i))
		}
		log.Rewind(0, 3)
		other := start(t, options(log, "other"), memstore.New())
		for i := range grown {
			store(t, other, "other", fmt.Sprint(i))
		}
		if _, err := shardlog.Open(options(log, "a"), view.Crash(1<<30)); err == nil {
			t.Errorf("grown by %d: a view with lost records was opened", grown)
		} else {
			is(t, fmt.Sprint("grown by ", grown), err, storage.ErrAckedDataLost)
		}
		if grown == 0 {
			store(t, other, "other", "still the owner")
		}
		closeEngine(t, other)
	}
}

// Proves N7: an owner learns that the log has lost its last record at the next append and at the next reader, also if another owner
// has appended meanwhile.
func TestOwnerLearnsOfLostRecords(t *testing.T) {
	for about, c := range map[string]struct {
		batch  bool // the next round has a batch
		grown  int  // records of another owner
		wanted []error
	}{
		"append":                {true, 0, []error{shardlog.ErrFenced, storage.ErrAckedDataLost}},
		"append, hidden":        {true, 1, []error{shardlog.ErrFenced, storage.ErrAckedDataLost}},
		"append, hidden deeply": {true, 3, []error{shardlog.ErrFenced, storage.ErrAckedDataLost}},
		"reader":                {false, 0, []error{storage.ErrAckedDataLost}},
		"reader, hidden":        {false, 1, []error{storage.ErrAckedDataLost}},
		"reader, hidden deeply": {false, 3, []error{storage.ErrAckedDataLost}},
	} {
		log := memlog.New()
		e := start(t, options(log, "a"), memstore.New())
		for i := range 3 {
			store(t, e, "a", fmt.Sprint(i))
		}
		log.Rewind(0, 2)
		if c.grown > 0 {
			other := start(t, options(log, "other"), memstore.New())
			for i := range c.grown {
				store(t, other, "other", fmt.Sprint(i))
			}
			closeEngine(t, other)
		}
		if c.batch {
			apply(t, e, "x", "1")
		}
		is(t, about, e.Sync(), c.wanted...)
	}
}

// An owner that was replaced while the log kept all its records is told of no loss, also when they are truncated by now.
func TestReplacedOwnerIsToldOfNoLoss(t *testing.T) {
	for upTo := range shardlog.Position(6) {
		for _, batch := range []bool{false, true} {
			log := memlog.New()
			e := start(t, options(log, "a"), memstore.New())
			for i := range 3 {
				store(t, e, "a", fmt.Sprint(i))
			}
			other := start(t, options(log, "other"), memstore.New())
			store(t, other, "other", "1")
			store(t, other, "other", "2")
			closeEngine(t, other)
			shardlogtest.Truncate(t, log, 0, upTo)
			if batch {
				apply(t, e, "x", "1")
			}
			is(t, fmt.Sprint("truncated up to ", upTo), e.Sync(), shardlog.ErrFenced)
		}
	}
}

// A fenced owner that cannot look whether the log has its records says so.
func TestFencedOwnerWithoutAHead(t *testing.T) {
	log := &scripted{Log: memlog.New()}
	e := start(t, options(log, "a"), memstore.New())
	store(t, e, "1", "x")
	closeEngine(t, start(t, options(log.Log, "b"), memstore.New()))
	log.onHead = func(func() (shardlog.State, error)) (shardlog.State, error) { return shardlog.State{}, errCut }
	apply(t, e, "x", "2")
	err := e.Sync()
	is(t, "the append", err, shardlog.ErrFenced)
	if want := "whether the log has all that it acknowledged is not known"; err == nil || !contains(err, want) {
		t.Errorf("the error does not say that %s: %v", want, err)
	}
}
