package shardlog_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/memlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/shardlogtest"
)

// killer kills a process at its n-th point: from then on each task of it ends at its next point.
type killer struct {
	seam.Executor
	mu     sync.Mutex
	n      int    // the point at which the process dies, counted from now; 0: none
	reason string // the point at which it died
}

// killedAt are the seams of a process that dies at its n-th point. The first has the number 1; at 0 it does not die.
func killedAt(n int) (*killer, seam.Seams) {
	k := &killer{Executor: seam.Seams{}.WithDefaults().Executor, n: n}
	return k, seam.Seams{Executor: k, Probe: k}
}

func (k *killer) At(p seam.Point) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.n > 0 && k.reason == "" {
		if k.n--; k.n == 0 {
			k.reason = p.Name
		}
	}
	if k.reason != "" {
		panic(seam.Killed{})
	}
}

func (k *killer) Go(name string, f func()) { k.Executor.Go(name, func() { k.run(f) }) }

// run runs a task of the process until that dies.
func (k *killer) run(f func()) {
	defer func() {
		if v := recover(); v != nil && v != any(seam.Killed{}) {
			panic(v)
		}
	}()
	f()
}

// diedAt is the point at which the process died, or "".
func (k *killer) diedAt() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.reason
}

// Proves N6: a process that follows, claims and appends dies at each of its points in turn, and its view keeps any part. The owner before goes on
// unless the claim was made, and the next opening of the view has all that was acknowledged, in one new term.
func TestWaitingProcessDies(t *testing.T) {
	met := map[string]bool{}
	for n := 1; ; n++ {
		over := false
		for _, keep := range []int{0, 1, 3, 1 << 30} {
			bubble(t, func(t *testing.T) {
				log, view := memlog.New(), memstore.New()
				owner := start(t, options(log, "owner"), memstore.New())
				for i := range 4 {
					store(t, owner, "owner", fmt.Sprint(i))
				}
				k, seams := killedAt(n)
				o := options(log, "waiting")
				turns := 0
				o.Seams = seams
				o.Turn = func() (bool, uint64, error) {
					if turns++; turns == 2 {
						store(t, owner, "late", "3") // what a follower may not have
					}
					return turns >= 3, 1, nil
				}
				acked := map[string]string{"0": "owner", "1": "owner", "2": "owner", "3": "late"}
				k.run(func() {
					e := start(t, o, view)
					store(t, e, "waiting", "4")
					acked["4"] = "waiting"
				})
				about := fmt.Sprintf("killed at point %d, %s, %d batches kept", n, k.diedAt(), keep)
				met[k.diedAt()] = true
				over = k.diedAt() == ""
				if h := shardlogtest.Head(t, log, 0); h.Term == 1 {
					if turns < 2 {
						acked["3"] = "owner"
					}
					store(t, owner, "goes on", "5")
					acked["5"] = "goes on"
				} else if h.Term != 2 {
					t.Errorf("%s: the log has term %d", about, h.Term)
				}
				if k.diedAt() == "append/before" {
					keep = min(keep, view.Unsynced()-1) // the barrier keeps the batch off the disk
				}
				want := rows(t, replayed(t, log))
				e := start(t, options(log, "next"), view.Crash(keep))
				holds(t, about, e, want)
				for key, value := range acked {
					if want[key] != value {
						t.Errorf("%s: the log has %q for %s, want %q", about, want[key], key, value)
					}
				}
				closeEngine(t, e)
			})
		}
		if over {
			break
		}
	}
	for _, point := range []string{"follow", "claim/before", "claim/after", "append/before", "append/after"} {
		if !met[point] {
			t.Errorf("no process died at %s: %v", point, met)
		}
	}
}

// Proves N7: a process that dies before it has told of a loss tells of it at the next opening of its view, and a rescue file is there as a whole
// or not at all.
func TestDeathBeforeTheQuarantine(t *testing.T) {
	for n := 1; ; n++ {
		over := false
		bubble(t, func(t *testing.T) {
			log, view := memlog.New(), memstore.New()
			o := reporting(t, log, log, "a")
			k, seams := killedAt(0)
			o.Seams = seams
			e := start(t, o, view)
			for i := range 3 {
				store(t, e, "a", fmt.Sprint(i))
			}
			log.Rewind(0, 1)
			k.mu.Lock()
			k.n = n
			k.mu.Unlock()
			k.run(func() { is(t, "the owner", e.Sync(), storage.ErrAckedDataLost) })
			synctest.Wait()
			names, err := filepath.Glob(filepath.Join(o.RescueDir, "*.rescue"))
			if err != nil {
				t.Fatal(err)
			}
			told, files := shardlogtest.Head(t, log, 0).Lost != "", len(names)
			var want string
			switch point := k.diedAt(); point {
			case "quarantine":
				want = "false 0"
			case "rescue":
				want = "true 0"
			case "":
				over, want = true, "true 1"
			default:
				t.Fatalf("an unknown point %s", point)
			}
			if got := fmt.Sprint(told, " ", files); got != want {
				t.Errorf("died at %q: told and files are %s, want %s", k.diedAt(), got, want)
			}
			o.Seams = seam.Seams{}
			_, err = shardlog.Open(o, view.Crash(1<<30))
			is(t, "the next opening", err, storage.ErrAckedDataLost)
			if h := shardlogtest.Head(t, log, 0); !strings.HasPrefix(h.Lost, "record 3 ") {
				t.Errorf("died at %q: the quarantine says %q after the next opening", k.diedAt(), h.Lost)
			}
		})
		if over {
			return
		}
	}
}

// An opening that dies at the quarantine leaves a view that tells of the loss the next time.
func TestOpeningDiesAtTheQuarantine(t *testing.T) {
	log, view := memlog.New(), memstore.New()
	e := start(t, options(log, "a"), view)
	store(t, e, "a", "x")
	log.Rewind(0, 0)
	view = view.Crash(1 << 30)
	k, seams := killedAt(1)
	o := reporting(t, log, log, "b")
	o.Seams = seams
	k.run(func() { _, _ = shardlog.Open(o, view) })
	if h := shardlogtest.Head(t, log, 0); k.diedAt() != "quarantine" || h.Lost != "" {
		t.Fatalf("died at %q, the head is %+v", k.diedAt(), h)
	}
	o.Seams = seam.Seams{}
	_, err := shardlog.Open(o, view.Crash(0))
	if h := shardlogtest.Head(t, log, 0); !errors.Is(err, storage.ErrAckedDataLost) || h.Lost == "" {
		t.Errorf("the next opening: %v, the head is %+v", err, h)
	}
	if _, err := os.Stat(o.RescueDir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an opening, which has kept no record, made a directory for rescue files: %v", err)
	}
}
