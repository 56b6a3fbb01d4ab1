package journal_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// An entry tells when its event was appended.
func TestEntriesTellTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, options{})
		began := time.Now()
		d.each(the(1), the(2))
		d.must(func(b *book, ctx context.Context) (any, error) {
			for e, err := range b.j.Since(ctx, 0) {
				if err != nil || e.At.Before(began.Truncate(time.Microsecond)) || e.At.After(time.Now()) || e.At.Location() != time.UTC {
					t.Errorf("event %d was appended at %v, %v", e.Seq, e.At, err)
				}
				began = e.At
				if e.Seq == 1 {
					continue
				}
				break // a caller may stop early
			}
			return nil, nil
		})
	})
}

// At folds anew, so its result may be changed, and a state of the past does not change.
func TestAtBelongsToItsCaller(t *testing.T) {
	d := newDesk(t, options{SnapshotEvery: 2, Keep: -1})
	d.each(these(1, 5)...)
	d.must(func(b *book, ctx context.Context) (any, error) {
		for seq := range uint64(6) {
			s, err := b.j.At(ctx, seq)
			if err != nil {
				t.Error(err)
			}
			if s.Sums == nil {
				s.Sums = map[string]int{}
			}
			s.Sums["0"] = -1
		}
		past(t, b, ctx, 0, 5)
		return nil, b.j.Append(ctx, the(6))
	})
	d.is(these(1, 6)...)
}
