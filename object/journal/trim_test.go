package journal_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/object/journal"
)

// past checks At and Since of a book with the deeds these(1, last), the oldest state of
// which is as of event oldest.
func past(t *testing.T, b *book, ctx context.Context, oldest, last uint64) {
	t.Helper()
	for seq := range last + 1 {
		s, err := b.j.At(ctx, seq)
		var events []journal.Entry[deed]
		var failed error
		for e, err := range b.j.Since(ctx, seq) {
			if err != nil {
				failed = err
				break
			}
			events = append(events, e)
		}
		if seq < oldest {
			if !errors.Is(err, journal.ErrTrimmed) || !errors.Is(failed, journal.ErrTrimmed) || len(events) > 0 {
				t.Errorf("At(%d) said %v and Since %v, though the oldest state is that of %d", seq, err, failed, oldest)
			}
			continue
		}
		if err != nil || !same(s, folded(these(1, int(seq))...)) {
			t.Errorf("At(%d) of %d is %+v, %v", seq, last, s, err)
		}
		if failed != nil || len(events) != int(last-seq) {
			t.Errorf("Since(%d) of %d: %v, %v", seq, last, events, failed)
		}
		for i, e := range events {
			if n := int(seq) + 1 + i; e.Seq != uint64(n) || e.Event != the(n) {
				t.Errorf("Since(%d) has %v in place of event %d", seq, e, n)
			}
		}
	}
	if _, err := b.j.At(ctx, last+1); err == nil || errors.Is(err, journal.ErrTrimmed) || !strings.Contains(err.Error(), fmt.Sprintf("there is no event %d yet: the last one is %d", last+1, last)) {
		t.Error(err)
	}
	for e, err := range b.j.Since(ctx, last+1) {
		t.Error(e, err)
	}
}

// Proves E3: the last Keep events before the newest snapshot have their state and their
// events, the rest is removed with the oldest snapshot that is not needed.
func TestKeep(t *testing.T) {
	for _, test := range []struct {
		keep, last int
		oldest     uint64
		events     []uint64
		snapshots  []uint64
	}{
		{0, 2, 0, upTo(1, 2), nil},
		{0, 3, 3, nil, []uint64{3}},
		{0, 11, 9, upTo(10, 11), []uint64{9}},
		{1, 9, 6, upTo(7, 9), []uint64{6, 9}},
		{2, 9, 6, upTo(7, 9), []uint64{6, 9}},
		{3, 9, 6, upTo(7, 9), []uint64{6, 9}},
		{4, 9, 3, upTo(4, 9), []uint64{3, 6, 9}},
		{6, 9, 3, upTo(4, 9), []uint64{3, 6, 9}},
		{7, 9, 0, upTo(1, 9), []uint64{3, 6, 9}},
		{9, 9, 0, upTo(1, 9), []uint64{3, 6, 9}},
		{10, 9, 0, upTo(1, 9), []uint64{3, 6, 9}},
		{-1, 14, 0, upTo(1, 14), []uint64{3, 6, 9, 12}},
	} {
		d := newDesk(t, options{SnapshotEvery: 3, Keep: test.keep})
		d.each(these(1, test.last)...)
		if events, snapshots := d.rows(); !slices.Equal(events, test.events) || !slices.Equal(snapshots, test.snapshots) {
			t.Errorf("Keep %d of %d: events %v, snapshots %v, want %v, %v", test.keep, test.last, events, snapshots, test.events, test.snapshots)
		}
		look := func(b *book, ctx context.Context) (any, error) {
			past(t, b, ctx, test.oldest, uint64(test.last))
			return nil, nil
		}
		d.must(look)
		d.is(these(1, test.last)...)
		d.must(look)
	}
}

// A lower Keep removes the old rows with the next snapshots, so many at a time, and a higher
// one keeps more from then on.
func TestKeepThatChanges(t *testing.T) {
	d := newDesk(t, options{SnapshotEvery: 60, Keep: -1})
	for n := 0; n < 1200; n += 60 {
		if err := d.append(these(n+1, n+60)...); err != nil {
			t.Fatal(err)
		}
	}
	d.deploy(options{SnapshotEvery: 60})
	steps := []struct {
		oldest            uint64
		events, snapshots int
	}{
		{960, 1260 - 960, 6}, // 16 of 21 snapshots; 960 events are less than a batch removes
		{1320, 0, 1},
	}
	last := 1200
	for _, step := range steps {
		if err := d.append(these(last+1, last+60)...); err != nil {
			t.Fatal(err)
		}
		last += 60
		if events, snapshots := d.rows(); len(events) != step.events || len(snapshots) != step.snapshots {
			t.Errorf("after event %d there are %d events and %d snapshots, want %+v", last, len(events), len(snapshots), step)
		}
		d.must(func(b *book, ctx context.Context) (any, error) {
			if _, err := b.j.At(ctx, step.oldest); err != nil {
				t.Error(err)
			}
			if _, err := b.j.At(ctx, step.oldest-1); !errors.Is(err, journal.ErrTrimmed) {
				t.Error(err)
			}
			return nil, nil
		})
		d.is(these(1, last)...)
	}
	d.deploy(options{SnapshotEvery: 60, Keep: 60})
	for range 3 {
		if err := d.append(these(last+1, last+60)...); err != nil {
			t.Fatal(err)
		}
		last += 60
	}
	if events, snapshots := d.rows(); len(events) != 60 || !slices.Equal(snapshots, []uint64{1440, 1500}) {
		t.Errorf("with a higher Keep: %d events, snapshots %v", len(events), snapshots)
	}
	d.is(these(1, last)...)
}

// The batch of a snapshot removes at most 1,000 events, or twice as many as were appended if
// that is more. The next ones remove the rest.
func TestManyOldEventsGoInPortions(t *testing.T) {
	d := newDesk(t, options{SnapshotEvery: 5000, Keep: -1})
	if err := d.append(these(1, 4999)...); err != nil {
		t.Fatal(err)
	}
	d.deploy(options{SnapshotEvery: 1})
	last := 4999
	for _, left := range []int{0, 0} {
		last++
		d.each(the(last))
		if events, _ := d.rows(); len(events) != left {
			t.Errorf("%d events are left after event %d, want %d", len(events), last, left)
		}
	}
	d = newDesk(t, options{SnapshotEvery: 100, Keep: -1})
	for n := 0; n < 5000; n += 1000 {
		if err := d.append(these(n+1, n+1000)...); err != nil {
			t.Fatal(err)
		}
	}
	d.deploy(options{SnapshotEvery: 1})
	last = 5000
	for _, first := range []uint64{1001, 2001, 3001, 4001, 5001, 5007, 5008} {
		last++
		d.each(the(last))
		events, snapshots := d.rows()
		if want := upTo(first, uint64(last)); !slices.Equal(events, want) || !slices.Equal(snapshots, []uint64{uint64(last)}) {
			t.Errorf("after event %d there are %d events and snapshots %v, want events from %d on", last, len(events), snapshots, first)
		}
		d.is(these(1, last)...)
	}
}
