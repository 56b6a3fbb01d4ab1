package debounce

import (
	"context"
	"encoding/binary"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/internal/row"
	disks "github.com/holdfast-dev/holdfast/internal/testing/failing"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// The defaults are those of the documentation. A value that is set stays, however small.
func TestDefaults(t *testing.T) {
	c := (&Config[int, int]{}).untyped().withDefaults()
	if c.Dedup != 24*time.Hour || c.MaxPending != 100_000 {
		t.Errorf("Dedup %v, MaxPending %d", c.Dedup, c.MaxPending)
	}
	c = (&Config[int, int]{Dedup: 1, MaxPending: 1, Timeout: 3, Retry: jobs.Retry{MaxAttempts: 7}}).untyped().withDefaults()
	if c.Dedup != 1 || c.MaxPending != 1 || c.execution().Timeout != 3 || c.execution().Retry.MaxAttempts != 7 || !c.execution().LazyAlarm {
		t.Errorf("%+v", c)
	}
}

// Proves D1: the smallest waits count too.
func TestDueAfterANanosecond(t *testing.T) {
	for _, c := range []struct {
		limits limits
		why    Reason
	}{{limits{quiet: 1}, ReasonQuiet}, {limits{maxWait: 1}, ReasonMaxWait}} {
		if got, why := c.limits.due(collected(c.limits, 0)); !got.Equal(at(0).Add(1)) || why != c.why {
			t.Errorf("%+v: due %v for %q", c.limits, got, why)
		}
	}
	full := limits{quiet: time.Hour, maxEvents: 1}
	if got, why := full.due(collected(full, 7)); !got.Equal(at(7)) || why != ReasonMaxEvents {
		t.Errorf("one event is all: due %v for %q", got, why)
	}
}

// Proves S9: a reason that is longer than the rest of its row is damage.
func TestReasonLongerThanItsRow(t *testing.T) {
	g := generation{number: 4, count: 1, first: at(1), last: at(1)}
	w := row.Writer{bufferVersion}
	w = appendGeneration(w, g)
	begin := w[: len(w)-1 : len(w)-1] // without the length of the reason
	for n, bad := range map[uint64]bool{0: false, 5: false, 6: true} {
		if _, err := decodeBuffer(append(binary.AppendUvarint(begin, n), "quiet"...)); n > 0 && errors.Is(err, jobs.ErrInvalid) != bad {
			t.Errorf("a reason of %d bytes where 5 are left: %v", n, err)
		}
		if _, _, err := splitRow(append(binary.AppendUvarint(begin, n), "quiet"...)); errors.Is(err, errDamaged) != bad {
			t.Errorf("an event's row with a reason of %d bytes where 5 are left: %v", n, err)
		}
	}
}

// scratch is an object with turns that run a given function.
type scratch struct{ st *object.State }

// inScratch runs f in a turn of an object over a disk that counts.
func inScratch(t *testing.T, d *disks.Disk, f func(ctx context.Context, s *object.Storage)) {
	t.Helper()
	c := object.Define("scratch", func(_ context.Context, st *object.State) (*scratch, error) { return &scratch{st}, nil })
	do := object.Handle(c, "do", func(s *scratch, ctx context.Context, f func(context.Context, *object.Storage)) (bool, error) {
		f(ctx, s.st.Storage())
		return true, nil
	})
	h, err := object.Open(object.Options{Storage: storage.Options{Engine: d.Engine(memstore.New()), Shards: 1}}, c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := do.Call(t.Context(), h, "a", f); err != nil {
		t.Error(err)
	}
	if err := h.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

// Up to 256 events are removed without a look at them.
func TestSmallGenerationIsRemovedUnread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for count, reads := range map[int]bool{256: false, 257: true} {
			d := disks.At(0)
			inScratch(t, d, func(ctx context.Context, s *object.Storage) {
				for i := range count {
					if err := s.PutBytes(ctx, eventKey(7, i), nil); err != nil {
						t.Fatal(err)
					}
				}
				other := eventKey(8, 0)
				if err := s.PutBytes(ctx, other, []byte("other")); err != nil {
					t.Fatal(err)
				}
				synctest.Wait() // for the tasks of the host, which read too
				before := d.Count()
				if err := deleteRows(ctx, s, generation{number: 7, count: count}); err != nil {
					t.Error(err)
				}
				if got := d.Count() != before; got != reads {
					t.Errorf("%d events: the store is read: %v", count, got)
				}
				left := 0
				for item, err := range s.List(ctx, object.ListOptions{}) {
					if left++; err != nil || item.Key != other {
						t.Errorf("%d events: %q is left, %v", count, item.Key, err)
					}
				}
				if left != 1 {
					t.Errorf("%d events: %d rows are left", count, left)
				}
			})
		}
	})
}

// Proves S9: rows of a generation that do not fit together are damage, and no other
// events.
func TestDamagedGeneration(t *testing.T) {
	g := generation{number: 7, count: 2, first: at(1), last: at(2)}
	other := g
	other.number = 6
	for name, c := range map[string]struct {
		rows         map[string][]byte
		newest, read bool // reading it is an error
	}{
		"whole":             {map[string][]byte{eventKey(7, 0): appendRow(nil, g, nil), eventKey(7, 1): appendRow(nil, g, nil)}, false, false},
		"one is missing":    {map[string][]byte{eventKey(7, 0): appendRow(nil, g, nil)}, false, true},
		"one too many":      {map[string][]byte{eventKey(7, 0): appendRow(nil, g, nil), eventKey(7, 1): appendRow(nil, g, nil), eventKey(7, 2): appendRow(nil, g, nil)}, false, true},
		"another version":   {map[string][]byte{eventKey(7, 0): appendRow(nil, g, nil), eventKey(7, 1): {9}}, true, true},
		"of another number": {map[string][]byte{eventKey(7, 0): appendRow(nil, g, nil), eventKey(7, 1): appendRow(nil, other, nil)}, true, false},
	} {
		inScratch(t, disks.At(0), func(ctx context.Context, s *object.Storage) {
			for key, row := range c.rows {
				if err := s.PutBytes(ctx, key, row); err != nil {
					t.Fatal(err)
				}
			}
			row, err := newestRow(ctx, s, 7)
			if err == nil {
				_, err = caughtUp(generation{number: 7}, row)
			}
			if errors.Is(err, errDamaged) != c.newest {
				t.Errorf("%s: the newest row: %v", name, err)
			}
			if r, err := readRows(ctx, s, g); errors.Is(err, errDamaged) != c.read || err == nil && len(r.events) != 2 {
				t.Errorf("%s: all rows: %d, %v", name, len(r.events), err)
			}
		})
	}
	folded := generation{number: 7, count: 2, folded: true}
	inScratch(t, disks.At(0), func(ctx context.Context, s *object.Storage) {
		if _, err := readRows(ctx, s, folded); !errors.Is(err, errDamaged) {
			t.Errorf("a state that is missing: %v", err)
		}
	})
}

// Proves S9: a number that has no end, as the last byte of a buffer, is damage.
func TestBufferEndsInANumber(t *testing.T) {
	if _, err := decodeBuffer([]byte{bufferVersion, 1, 0x80}); !errors.Is(err, jobs.ErrInvalid) {
		t.Errorf("read with %v", err)
	}
	if b, err := decodeBuffer([]byte{bufferVersion, 1, 2}); err != nil || b.open.count != 1 {
		t.Errorf("a number that is whole: %+v, %v", b, err)
	}
}
