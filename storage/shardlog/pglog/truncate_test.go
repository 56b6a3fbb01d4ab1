package pglog

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/storage/shardlog/shardlogtest"
)

// One statement removes at most 1,000 records, and no more once they have 16 MiB, so that it ends within Options.Timeout however much there is
// to remove. Together they remove all.
func TestTruncateRemovesPortions(t *testing.T) {
	pair := shared(t)
	l := open(t, options(t, pair))
	const half = deleteBytes / 2
	for shard, c := range []struct {
		empty int   // records without bytes that are removed
		sizes []int // of further records that are removed; one more stays
		want  []int64
	}{
		{0, []int{half, half, 1, 1}, []int64{2, 2, 0}},
		{0, []int{half, half - 1, 1, 1}, []int64{3, 1, 0}},
		{0, []int{deleteBytes + 1, 1}, []int64{1, 1, 0}},
		{deleteRecords, nil, []int64{deleteRecords, 0}},
		{deleteRecords + 1, nil, []int64{deleteRecords, 1, 0}},
	} {
		t.Run(fmt.Sprint("shard ", shard), func(t *testing.T) {
			t.Parallel() // so that they share statements
			if c.empty > 0 {
				many(t, l, shard, c.empty)
			}
			w := shardlogtest.Claim(t, l, shard, "a")
			for _, size := range append(slices.Clip(c.sizes), 1) {
				must(t, w.Append(strings.Repeat("x", size)))
			}
			must(t, l.beginBehind(t.Context(), int32(shard), w.State.Term, w.State.Last-1))
			var got []int64
			var err error
			for n := int64(1); n > 0; got = append(got, n) {
				n, err = l.change(t.Context(), l.sql.delete, shard, deleteRecords, deleteBytes)
				must(t, err)
			}
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("statements remove %v records, want %v", got, c.want)
			}
			if kept := shardlogtest.Records(t, l, shard); len(kept) != 1 {
				t.Errorf("the log has %d records, want 1", len(kept))
			}
		})
	}
}
