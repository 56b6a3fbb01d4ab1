package journal_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/object/journal"
)

// total is an object with numbers as events and their sum as its state.
type total struct {
	st *object.State
	j  *journal.Journal[int, int]
}

// FORMAT.md has the bytes of the rows that the code writes.
func TestLayout(t *testing.T) {
	format, err := os.ReadFile("../../FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	class := object.Define("total", func(ctx context.Context, st *object.State) (*total, error) {
		j, err := journal.Attach(ctx, st, journal.Options[int, int]{
			SnapshotEvery: 2, Keep: 2, Version: 3, StateVersion: 5,
			Apply: func(sum, n int) (int, error) { return sum + n, nil },
		})
		return &total{st, j}, err
	})
	rows := object.Handle(class, "rows", func(b *total, ctx context.Context, _ struct{}) (rows []string, err error) {
		for range 3 {
			if err := b.j.Append(ctx, 499, 499); err != nil {
				return nil, err
			}
		}
		for item, err := range b.st.Storage().List(ctx, object.ListOptions{}) {
			if err != nil {
				return nil, err
			}
			rows = append(rows, fmt.Sprintf("`%x` | `%x`", item.Key, item.Value))
		}
		return rows, nil
	})
	harness.Run(t, func(s *harness.Sim) {
		s.Host(class)
		s.Always("the time of the rows", s.Now().Equal(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), s.Now())
		found, err := rows.Call(s.Context(), s, "b", struct{}{})
		s.OK(err)
		s.Always("two snapshots and two events", len(found) == 4, found)
		for _, row := range []string{found[1], found[3]} { // snapshot 6 and event 6
			s.Always("FORMAT.md has the bytes", strings.Contains(string(format), row), row)
		}
	})
}
