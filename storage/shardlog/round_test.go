package shardlog_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/storage/engine"
	"github.com/holdfast-dev/holdfast/storage/memstore"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/memlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/shardlogtest"
)

// A round is split between batches into records of at most MaxRecordBytes. A batch that is longer is alone in one.
func TestRoundsAreSplitBetweenBatches(t *testing.T) {
	frame := len(shardlog.AppendBatch(nil, put("a", "0123456789")))
	for about, c := range map[string]struct {
		limit int
		want  []int // batches of each record
	}{
		"two fit":                {2 * frame, []int{2, 2, 1}},
		"two are a byte too big": {2*frame - 1, []int{1, 1, 1, 1, 1}},
		"one fits":               {frame, []int{1, 1, 1, 1, 1}},
		"none fits":              {frame - 1, []int{1, 1, 1, 1, 1}},
		"all fit":                {5 * frame, []int{5}},
		"all but one":            {5*frame - 1, []int{4, 1}},
	} {
		log := memlog.New()
		o := options(log, "a")
		o.MaxRecordBytes = c.limit
		e := start(t, o, memstore.New())
		store(t, e, "0123456789", "a", "b", "c", "d", "e")
		want := rows(t, e)
		closeEngine(t, e)
		records := shardlogtest.Records(t, log, 0)
		var got []int
		for _, r := range records {
			got = append(got, batches(t, r))
		}
		if len(got) != len(c.want) {
			t.Errorf("%s: the records have %v batches, want %v", about, got, c.want)
			continue
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("%s: the records have %v batches, want %v", about, got, c.want)
			}
		}
		holds(t, about, replayed(t, log), want)
	}
}

// A long batch between short ones is a record of its own, and the order stays.
func TestLongBatchIsARecordOfItsOwn(t *testing.T) {
	log := memlog.New()
	o := options(log, "a")
	o.MaxRecordBytes = 100
	e := start(t, o, memstore.New())
	apply(t, e, "k", "1")
	apply(t, e, "k", strings.Repeat("2", 1000))
	store(t, e, "3", "k", "l")
	closeEngine(t, e)
	var got []int
	for _, r := range shardlogtest.Records(t, log, 0) {
		got = append(got, batches(t, r))
	}
	if len(got) != 3 || got[0] != 1 || got[1] != 1 || got[2] != 2 {
		t.Errorf("the records have %v batches, want 1, 1 and 2", got)
	}
	holds(t, "the log", replayed(t, log), map[string]string{"k": "3", "l": "3"})
}

// Proves N2: within a round the order of batches is that of the commits.
func TestRoundKeepsTheOrder(t *testing.T) {
	log := memlog.New()
	e := start(t, options(log, "a"), memstore.New())
	for _, v := range []string{"1", "2", "3"} {
		apply(t, e, "k", v)
	}
	store(t, e, "4", "k")
	closeEngine(t, e)
	holds(t, "the log", replayed(t, log), map[string]string{"k": "4"})
}

// Any payload is a row of batches or damage, and batches are written as they are read.
func FuzzBatches(f *testing.F) {
	two := shardlog.AppendBatch(shardlog.AppendBatch(nil, put("k", "v")), put("key", strings.Repeat("v", 200)))
	f.Add(two)
	f.Add(two[:len(two)-1])
	f.Add([]byte{3, 0, 0, 0})
	f.Add(bytes.Repeat([]byte{0xff}, 11))
	f.Add([]byte{0x84, 0x00, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, payload []byte) {
		var again []byte
		var found [][]byte
		err := shardlog.Batches(payload, func(repr []byte) error {
			if len(repr) < engine.HeaderBytes {
				t.Fatalf("a batch of %d bytes", len(repr))
			}
			found = append(found, bytes.Clone(repr))
			again = shardlog.AppendBatch(again, repr)
			return nil
		})
		if err != nil {
			if !errors.Is(err, shardlog.ErrHole) {
				t.Fatal(err)
			}
			return
		}
		n := 0
		if err := shardlog.Batches(again, func(repr []byte) error {
			if n == len(found) || !bytes.Equal(repr, found[n]) {
				t.Fatalf("batch %d is read as %x, after it was written %x", n, repr, found)
			}
			n++
			return nil
		}); err != nil || n != len(found) {
			t.Fatalf("%d of %d batches are read: %v", n, len(found), err)
		}
	})
}
