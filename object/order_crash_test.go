package object_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// journal numbers its notes: the newest number is in a key that each note
// overwrites, and each note has a key of its own.
type journal struct {
	st     *object.State
	newest int
}

var journals = object.Define("journal", func(ctx context.Context, st *object.State) (*journal, error) {
	j := &journal{st: st}
	_, err := st.Storage().GetInto(ctx, "newest", &j.newest)
	return j, err
})

var note = object.Handle(journals, "note", func(j *journal, ctx context.Context, _ struct{}) (int, error) {
	j.newest++
	return j.newest, j.st.Storage().PutBatch(ctx, []object.Entry{{Key: "newest", Value: j.newest}, {Key: noteKey(j.newest), Value: true}})
})

func noteKey(n int) string { return fmt.Sprintf("note/%03d", n) }

// withoutGap checks a stored journal: it holds the notes up to the newest, and no
// other.
func withoutGap(store *storage.Store) error {
	id, newest := journals.ID("a"), 0
	if _, err := harness.Stored(store, id, "newest", &newest); err != nil && !errors.Is(err, storage.ErrNotFound) {
		return err
	}
	for n := 1; n <= newest+10; n++ {
		var there bool
		ok, err := harness.Stored(store, id, noteKey(n), &there)
		if err != nil {
			return err
		}
		if ok != (n <= newest) {
			return fmt.Errorf("S9: the newest note is %d, and note %d is stored: %t", newest, n, ok)
		}
	}
	return nil
}

// notes is the story of some callers of one journal, each of which leaves two notes without a wait and then one with it.
func notes(callers int) harness.Scenario {
	return func(s *harness.Sim) {
		s.Host(journals)
		told := 0
		for i := range callers {
			s.Go(fmt.Sprint("client ", i), func() {
				for range 2 {
					_, _ = note.Call(s.Context(), s, "a", struct{}{}, object.Unconfirmed())
				}
				s.OK(s.Retry(func() error {
					n, err := note.Call(s.Context(), s, "a", struct{}{}, object.Idempotent(fmt.Sprint(i), time.Hour))
					told = max(told, n)
					return err
				}))
			})
		}
		s.Advance(time.Minute)
		s.Finally("all that was told is stored", func() error {
			var newest int
			if _, err := harness.Stored(s.Store(), journals.ID("a"), "newest", &newest); err != nil || newest < told || newest > 3*callers {
				return fmt.Errorf("the newest note is %d, %v, and %d was told", newest, err, told)
			}
			return nil
		})
	}
}

// Proves O6, O7, S9. Case HN5: several callers of one object commit between two syncs.
// The commits that survive a crash are the first ones, in their order.
func TestCrashManyCallersOfOneSync(t *testing.T) {
	crashes.Try(t, notes(3), harness.Seed(1), crashes.Budget(400), harness.NoTornBatch, harness.Invariant("S9", withoutGap)) // internal/prove/reliability tries more
}

// Proves O6, O7, S9 over a log: many callers of one object share the records, so the next machine needs their batches in the order of
// the commits.
func TestTakeOverAmongManyCallers(t *testing.T) {
	harness.Exhaust(t, notes(8), harness.LogStore(), harness.Seed(1), crashes.Budget(250), harness.NoTornBatch, harness.Invariant("S9", withoutGap))
}
