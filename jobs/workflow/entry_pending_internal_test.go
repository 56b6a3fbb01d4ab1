package workflow

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/jobs/internal/history"
)

// Proves F1, F14. Pending entries and variables go in parts of no more than the limit, or in
// single ones that are larger: first the entries in order, and then the variables, none twice. All that is no more than the
// limit is one part.
func TestPendingParts(t *testing.T) {
	const limit = 1000
	for _, sizes := range [][]int{{100, 200}, {900, 100}, {900, 101}, {900}, {901}, {500, 500, 500, 500}, {5000}, {5000, 1, 5000}, {}} {
		for _, shown := range [][]int{{}, {100}, {600, 300, 600}, {5000, 5000}} {
			var p pending
			for i, size := range sizes {
				e := &history.Entry{Seq: uint64(i), Kind: history.Step}
				e.Value = make([]byte, max(size-e.Bytes(), 0))
				p.entries, p.bytes = append(p.entries, e), p.bytes+e.Bytes()
			}
			for i, size := range shown {
				p.set(fmt.Sprint("v", i), nil)
				p.set(fmt.Sprint("v", i), []byte(strings.Repeat("x", size-2)))
			}
			next, seen, turns := uint64(0), []string{}, 0
			one := p.bytes+p.varBytes <= limit
			for ; !p.empty(); turns++ {
				entries, vars := p.part(limit)
				n, bytes := len(entries)+len(vars), 0
				for _, e := range entries {
					if bytes += e.Bytes(); e.Seq != next {
						t.Errorf("%v: entry %d is stored in place of %d", sizes, e.Seq, next)
					}
					next++
				}
				for name, v := range vars {
					bytes += len(name) + len(v)
					seen = append(seen, name)
				}
				p.forget(entries)
				if n == 0 || n > 1 && bytes > limit || len(vars) > 0 && len(p.entries) > 0 || turns > 10 {
					t.Fatalf("%v and %v: %d of %d bytes in turn %d, %d entries follow", sizes, shown, n, bytes, turns, len(p.entries))
				}
			}
			if one && turns > 1 {
				t.Errorf("%v and %v take %d turns, want one", sizes, shown, turns)
			}
			if slices.Sort(seen); int(next) != len(sizes) || len(slices.Compact(seen)) != len(shown) || p.bytes != 0 || p.varBytes != 0 {
				t.Errorf("%v and %v: %d entries and %v, and %+v is left", sizes, shown, next, seen, p)
			}
		}
	}
}
