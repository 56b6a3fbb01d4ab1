package linearize

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/testing/leaks"
)

var (
	count = flag.Int("histories", 20, "how many histories are made")
	size  = flag.Int64("ops", 2000, "how many calls a history has")
)

func TestMain(m *testing.M) { leaks.Main(m) }

// one makes and checks a history. Even seeds are on the map and odd ones on Pebble.
func one(h *history) (figures, error) {
	d := newMapDisk()
	if h.seed%2 == 1 {
		d = newPebbleDisk()
	}
	seen, err := h.play(d)
	if err == nil {
		err = h.check(seen)
	}
	return h.figures(seen), err
}

// Proves O2, O3, O6, O7, O14, O16, S8, S9: on goroutines, with crashes, restarts,
// evictions and deletions, every answer that was told fits one order of the calls,
// and no crash takes it back.
func TestHistories(t *testing.T) {
	var (
		sum  figures
		mu   sync.Mutex
		all  sync.WaitGroup
		next atomic.Int64
	)
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for n := next.Add(1); n <= int64(*count); n = next.Add(1) {
				f, err := one(&history{seed: uint64(n), ops: *size})
				if err != nil {
					t.Errorf("seed %d: %v", n, err)
				}
				mu.Lock()
				sum.add(f)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	line, err := json.Marshal(sum)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(string(line))
	if sum.Crashes == 0 || sum.Unknown == 0 || sum.Restarts == 0 {
		t.Errorf("the histories do not reach their cases: %s", line)
	}
}

// A sync that does nothing, and a reply that does not wait for it, are found.
func TestHistoriesFindBugs(t *testing.T) {
	const most = 20
	for name, planted := range map[string]bug{"no sync": noSync, "no gate": noGate} {
		found := errors.New("nothing")
		for seed := uint64(1); seed <= most; seed++ {
			if _, found = one(&history{seed: seed, ops: 1000, bug: planted, pages: t.TempDir()}); found != nil {
				t.Logf("%s: %v", name, found)
				break
			}
		}
		if found == nil {
			t.Errorf("%s: not found in %d histories", name, most)
		}
	}
}
