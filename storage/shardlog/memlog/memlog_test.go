package memlog_test

import (
	"context"
	"errors"
	"testing"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/memlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/shardlogtest"
)

var ctx = context.Background()

// filled is a log with an owner and five records in shard 1.
func filled(t *testing.T) (*memlog.Log, *shardlogtest.Writer) {
	t.Helper()
	l := memlog.New()
	w := shardlogtest.Claim(t, l, 1, "node/1")
	for _, p := range []string{"1", "2", "3", "4", "5"} {
		if err := w.Append(p); err != nil {
			t.Fatal(err)
		}
	}
	return l, w
}

// ends compares the head and the records of shard 1 with the payloads that it must have.
func ends(t *testing.T, l *memlog.Log, first shardlog.Position, payloads ...string) shardlog.State {
	t.Helper()
	records := shardlogtest.Records(t, l, 1)
	h := shardlogtest.Head(t, l, 1)
	if h.First != first || h.Last != first+shardlog.Position(len(payloads))-1 || len(records) != len(payloads) {
		t.Fatalf("the head is %+v, with %d records", h, len(records))
	}
	for i, p := range payloads {
		if string(records[i].Payload) != p {
			t.Errorf("record %d is %q, want %q", records[i].At, records[i].Payload, p)
		}
	}
	return h
}

func TestRewindLosesTheNewestRecords(t *testing.T) {
	for _, c := range []struct {
		to       shardlog.Position
		payloads []string
	}{
		{0, nil},
		{1, []string{"1"}},
		{4, []string{"1", "2", "3", "4"}},
		{5, []string{"1", "2", "3", "4", "5"}},
		{6, []string{"1", "2", "3", "4", "5"}},
		{9, []string{"1", "2", "3", "4", "5"}},
	} {
		l, w := filled(t)
		r := w.Record("6")
		l.Rewind(1, c.to)
		h := ends(t, l, 1, c.payloads...)
		if h.Term != w.State.Term || h.Owner != w.State.Owner {
			t.Errorf("the rewind changed the owner: %+v", h)
		}
		err := l.Append(ctx, 1, w.State.Chain, r)
		if lost := c.to < 5; errors.Is(err, shardlog.ErrFenced) != lost {
			t.Errorf("after a rewind to %d the owner's next append returned %v", c.to, err)
		}
	}
}

// A repeat of a record that is lost is not taken for one that is stored.
func TestRewindForgetsTheRecord(t *testing.T) {
	l, w := filled(t)
	before := *w
	r := w.Record("6")
	if err := w.Append("6"); err != nil {
		t.Fatal(err)
	}
	l.Rewind(1, 5)
	ends(t, l, 1, "1", "2", "3", "4", "5")
	if err := before.Send(r); err != nil {
		t.Errorf("the same append again: %v", err)
	}
	ends(t, l, 1, "1", "2", "3", "4", "5", "6")
}

func TestRewindStopsAtTheFirstRecord(t *testing.T) {
	l, w := filled(t)
	if err := l.Truncate(ctx, 1, w.State.Term, 3); err != nil {
		t.Fatal(err)
	}
	third := shardlog.Next(shardlog.Next(shardlog.Next(0, []byte("1")), []byte("2")), []byte("3"))
	l.Rewind(1, 1)
	if h := ends(t, l, 4); h.Chain != third {
		t.Errorf("the chain is %x, that of record 3 is %x", h.Chain, third)
	}
	w.State.Last, w.State.Chain = 3, third
	if err := w.Append("other 4"); err != nil {
		t.Error(err)
	}
	ends(t, l, 4, "other 4")
}

// A read that began before a rewind gives the records as they were, although others take their places.
func TestRewindLeavesReadersTheirRecords(t *testing.T) {
	l, w := filled(t)
	var got []string
	err := l.Read(ctx, 1, 1, func(r shardlog.Record) error {
		if r.At == 1 {
			l.Rewind(1, 2)
			w.State = shardlogtest.Head(t, l, 1)
			if err := w.Append("other 3"); err != nil {
				t.Error(err)
			}
		}
		got = append(got, string(r.Payload))
		return nil
	})
	if err != nil || len(got) != 5 || got[2] != "3" {
		t.Errorf("read %q: %v", got, err)
	}
	ends(t, l, 1, "1", "2", "other 3")
}

func TestSetBaseTakesThePlaceOfRecords(t *testing.T) {
	l, w := filled(t)
	l.SetBase(1, 8, 77)
	h := ends(t, l, 9)
	if h.Chain != 77 || h.Term != w.State.Term {
		t.Errorf("the head over a base is %+v", h)
	}
	if err := l.Append(ctx, 1, 77, shardlog.Record{At: 8, Term: h.Term, Chain: shardlog.Next(77, nil)}); !errors.Is(err, shardlog.ErrFenced) {
		t.Errorf("an append at the end of the base: %v", err)
	}
	l.Rewind(1, 3)
	if again := ends(t, l, 9); again != h {
		t.Errorf("a rewind changed a log without records to %+v", again)
	}
}

func TestLogTakesNoWrongChain(t *testing.T) {
	l, w := filled(t)
	r := w.Record("6")
	r.Payload = []byte("damaged")
	if err := w.Send(r); !errors.Is(err, shardlog.ErrRefused) {
		t.Errorf("a record with the chain of another payload: %v", err)
	}
	ends(t, l, 1, "1", "2", "3", "4", "5")
}

// The log that has crashed does nothing any more, and its calls do not say that.
func TestCrashEndsTheLogBefore(t *testing.T) {
	l, w := filled(t)
	back := l.Crash()
	if err := w.Append("6"); !errors.Is(err, shardlog.ErrUnknown) {
		t.Errorf("append: %v", err)
	}
	if _, err := l.Head(ctx, 1); !errors.Is(err, shardlog.ErrUnknown) {
		t.Errorf("head: %v", err)
	}
	if _, err := l.Claim(ctx, 1, "node/2", w.State.Term); !errors.Is(err, shardlog.ErrUnknown) {
		t.Errorf("claim: %v", err)
	}
	if err := l.Read(ctx, 1, 1, func(shardlog.Record) error { return nil }); !errors.Is(err, shardlog.ErrUnknown) {
		t.Errorf("read: %v", err)
	}
	if err := l.Truncate(ctx, 1, w.State.Term, 2); !errors.Is(err, shardlog.ErrUnknown) {
		t.Errorf("truncate: %v", err)
	}
	if h := ends(t, back, 1, "1", "2", "3", "4", "5"); h != w.State {
		t.Errorf("the log that came back has %+v, its owner %+v", h, w.State)
	}
}

// A read whose context ends stops before the next record.
func TestReadEndsWithItsContext(t *testing.T) {
	l, _ := filled(t)
	ctx, end := context.WithCancel(ctx)
	n := 0
	err := l.Read(ctx, 1, 1, func(shardlog.Record) error {
		if n++; n == 2 {
			end()
		}
		return nil
	})
	if n != 2 || !errors.Is(err, context.Canceled) || !errors.Is(err, shardlog.ErrUnknown) {
		t.Errorf("after %d records: %v", n, err)
	}
}
