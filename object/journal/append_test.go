package journal_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/object"
)

// padded is a deed whose row has so many bytes: 11 of the journal and JSON.
func padded(bytes int) deed {
	const bare = 11 + len(`{"Key":"","N":1,"Bad":"","Pad":""}`)
	return deed{N: 1, Pad: strings.Repeat("x", bytes-bare)}
}

// refuses fails the test unless err is the wanted one and names the journal and the row.
func refuses(t *testing.T, err, want error, row string) {
	t.Helper()
	if !errors.Is(err, want) || !strings.Contains(err.Error(), "journal: "+row) {
		t.Errorf("the error is %v: it is to be %v of %q", err, want, row)
	}
}

// Proves E1: an event, a snapshot or a turn that is too large is refused before anything is
// written, and one that is just not too large is stored.
func TestSizesAreCheckedFirst(t *testing.T) {
	small := func(o *object.Options) { o.MaxValueBytes, o.MaxBatchBytes = 400, 2000 }
	d := newDesk(t, options{SnapshotEvery: 1000}, small)
	refuses(t, d.append(padded(401)), object.ErrValueTooLarge, "event 1: ")
	d.is()
	if err := d.append(padded(400)); err != nil {
		t.Error(err)
	}
	d.is(padded(400))
	five := slices.Repeat([]deed{padded(350)}, 6)
	refuses(t, d.append(five...), object.ErrBatchTooLarge, "event 7: ")
	d.is(padded(400))
	refuses(t, d.append(padded(350), padded(401)), object.ErrValueTooLarge, "event 3: ")
	d.is(padded(400))

	// The turn has written by itself, and goes on after the error.
	d.must(func(b *book, ctx context.Context) (any, error) {
		for _, key := range []string{"a", "b", "c", "d"} {
			if err := b.st.Storage().PutBytes(ctx, key, make([]byte, 400)); err != nil {
				return nil, err
			}
		}
		refuses(t, b.j.Append(ctx, padded(400)), object.ErrBatchTooLarge, "event 2: ")
		return nil, b.j.Append(ctx, padded(100))
	})
	d.is(padded(400), padded(100))
}

// Proves E1: a state that has become too large for its snapshot refuses the event that is due
// to store it, and changes nothing; a greater limit heals it.
func TestSnapshotThatIsTooLarge(t *testing.T) {
	small := func(o *object.Options) { o.MaxValueBytes = 400 }
	d := newDesk(t, options{SnapshotEvery: 3}, small)
	deeds := []deed{padded(200), padded(200)}
	d.each(deeds...)
	for range 2 {
		refuses(t, d.append(padded(200)), object.ErrValueTooLarge, "snapshot 3: ")
		d.is(deeds...)
	}
	refuses(t, d.append(padded(200), the(2)), object.ErrValueTooLarge, "snapshot 4: ")
	d.deploy(options{SnapshotEvery: 3})
	d.is(deeds...)
	d.each(padded(200))
	if _, snapshots := d.rows(); !slices.Equal(snapshots, []uint64{3}) {
		t.Error(snapshots)
	}
	d.is(append(deeds, padded(200))...)
}

// Proves E1 and E3: a turn with no room for the removals stores its events and its snapshot all
// the same, and a later one removes the old rows.
func TestRemovalsWaitForRoom(t *testing.T) {
	small := func(o *object.Options) { o.MaxBatchBytes = 1200 }
	d := newDesk(t, options{SnapshotEvery: 50}, small)
	d.each(these(1, 120)...)
	if events, snapshots := d.rows(); !slices.Equal(events, upTo(1, 120)) || !slices.Equal(snapshots, []uint64{50, 100}) {
		t.Errorf("%d events and snapshots %v", len(events), snapshots)
	}
	d.is(these(1, 120)...)
	d.must(func(b *book, ctx context.Context) (any, error) {
		past(t, b, ctx, 0, 120)
		return nil, nil
	})
	d.deploy(options{SnapshotEvery: 50})
	d.each(these(121, 150)...)
	if events, snapshots := d.rows(); len(events) > 0 || !slices.Equal(snapshots, []uint64{150}) {
		t.Errorf("%d events and snapshots %v", len(events), snapshots)
	}
	d.is(these(1, 150)...)
}
