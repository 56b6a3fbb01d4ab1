package cluster_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-dev/holdfast/cluster"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// An owner with a store that breaks lets go of the log at once, so another node need not wait for its silence.
//
// Proves N6.
func TestBrokenOwnerLetsGo(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a := w.machine("a")
		a.edit = func(o *cluster.Options) { o.Append.Patience, o.Append.Timeout = 3*time.Second, time.Second }
		a.join()
		a.serves()
		b := w.machine("b")
		b.join()
		time.Sleep(2 * time.Second)
		a.link().hang(true)
		go func() { _, _ = add.Call(t.Context(), a.node(), "x", 1) }()
		within(t, "the take-over", b.serves(), 3*time.Second, 5*time.Second)
		a.link().hang(false)
		time.Sleep(3 * time.Second)
		a.mustBeMoved("b")
	})
}

// A node with an opening that fails after its claim claims again after 1, 2, 4 and at most 60 s. Another node need not wait for that.
//
// Proves N6.
func TestPausesAfterAClaim(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		n := w.start("a")
		a := n["a"].link()
		a.mu.Lock()
		a.refuse = true
		a.mu.Unlock()
		_, err := add.Call(t.Context(), n["a"].node(), "x", 1)
		if err == nil {
			t.Error("a call succeeds without its append")
		}
		// Claims follow after pauses of 1, 2, 4, 8, 16, 32, 60 and 60 s, and about a third of a second each.
		began := time.Now()
		for _, pause := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
			term := w.head().Term
			w.within("the claim", 70*time.Second, func() bool { return w.head().Term > term })
			within(t, "claim after a pause", time.Since(began), pause*time.Second-20*time.Millisecond, pause*time.Second+time.Second)
			began = time.Now()
		}
		b := w.machine("b")
		b.join()
		within(t, "the take-over by a good node", b.serves(), 0, 2*time.Second)
		term := w.head().Term
		time.Sleep(10 * time.Minute)
		if got := w.head().Term; got != term {
			t.Errorf("a node that cannot open took the log %d times from one that can", got-term)
		}
	})
}

// smallDisk is a disk with a limited amount of free space.
type smallDisk struct {
	vfs.FS
	free *atomic.Uint64
}

func (d smallDisk) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: d.free.Load(), TotalBytes: 1 << 40}, nil
}

// A node without space on its disk when it is to claim does not, and does when there is space: on both sides of the floor.
//
// Proves N6.
func TestNodeWithoutSpaceClaimsNothing(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start("a")
		const floor = 1 << 20
		var free atomic.Uint64
		free.Store(1 << 30)
		b := w.machine("b")
		b.edit = func(o *cluster.Options) {
			o.Storage.MinFreeBytes, o.Storage.Pebble.FS = floor, smallDisk{b.disk, &free}
		}
		b.join()
		time.Sleep(3 * time.Second)
		free.Store(floor - 1)
		w.nodes["a"].kill()
		time.Sleep(time.Minute)
		if term := w.head().Term; term != 1 {
			t.Errorf("term %d: the node claims the log without space", term)
		}
		free.Store(floor)
		b.serves()
	})
}

// A log in quarantine has no owner until it is recovered, and then it has one again.
//
// Proves N7.
func TestQuarantineHasNoOwner(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		n := w.start("a", "b")
		n["a"].add("x")
		if err := w.log.Quarantine(t.Context(), 0, "record 9, seen by an operator"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if now := w.active(); len(now) != 0 {
			t.Errorf("%d nodes serve in quarantine", len(now))
		}
		status, err := n["b"].node().Status(t.Context())
		if err != nil || status.Quarantine != "record 9, seen by an operator" || !strings.Contains(status.String(), "IN QUARANTINE") {
			t.Errorf("the status says %q: %v", status.Quarantine, err)
		}
		head := w.head()
		if _, err := w.log.Recover(t.Context(), 0, head.Term, head.Chain, nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		now := w.active()
		if len(now) != 1 {
			t.Fatalf("%d nodes serve after the recovery", len(now))
		}
		if got := now[0].add("x"); got != 2 {
			t.Errorf("the count is %d, want 2", got)
		}
	})
}

// Join waits while the log does not answer, until its context ends, and takes no longer part in the cluster then.
func TestJoinWaitsForTheLog(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a := w.machine("a")
		down := w.newLink()
		down.set(requests)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := cluster.Join(ctx, a.options(down), counters); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("without an answer Join returns %v", err)
		}
		down.set(whole)
		time.Sleep(time.Minute)
		if look, err := w.log.Look(t.Context(), 0); err != nil || len(look.Nodes) != 0 || look.State.Term != 0 {
			t.Errorf("a node that has not joined left %+v: %v", look, err)
		}
		late := w.newLink()
		late.set(requests)
		time.AfterFunc(10*time.Second, func() { late.set(whole) })
		node, err := cluster.Join(t.Context(), a.options(late), counters)
		if err != nil {
			t.Fatal(err)
		}
		if err := node.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A view of another cluster is refused.
//
// Proves N9.
func TestViewOfAnotherCluster(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a := w.machine("a")
		a.join()
		a.serves()
		if err := a.node().Close(); err != nil {
			t.Fatal(err)
		}
		w.log.SetCluster("0123456789abcdef0123456789abcdef")
		if _, err := cluster.Join(t.Context(), a.options(w.newLink()), counters); !errors.Is(err, shardlog.ErrOtherCluster) {
			t.Errorf("the view is taken: %v", err)
		}
	})
}

// Two processes over one directory: the second is refused and harms nothing, although it has the id of the first.
func TestDirectoryThatIsInUse(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		n := w.start("a")
		if _, err := cluster.Join(t.Context(), n["a"].options(w.newLink()), counters); !errors.Is(err, storage.ErrLocked) {
			t.Errorf("the directory is taken twice: %v", err)
		}
		time.Sleep(time.Minute)
		if got := n["a"].add("x"); got != 1 || w.head().Term != 1 {
			t.Errorf("the first process answers %d in term %d", got, w.head().Term)
		}
	})
}

// A drain ends in bounded time, also when the log does not answer.
func TestDrainOfANodeWithoutItsLog(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		n := w.start("a", "b")
		for _, m := range n {
			m.link().set(requests)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		go func() { _, _ = add.Call(t.Context(), n["a"].node(), "x", 1) }()
		for _, id := range []string{"a", "b"} {
			began := time.Now()
			_ = n[id].node().Drain(ctx) // the host says that its store did not close in order
			within(t, "the drain of "+id, time.Since(began), 0, 25*time.Second)
		}
	})
}

// hangsAfterClaim is a probe that has the appends of a node hang once it has claimed the log.
type hangsAfterClaim struct{ process *process }

func (p *hangsAfterClaim) of(process *process) { p.process = process }
func (p *hangsAfterClaim) At(at seam.Point) {
	if at.Name == "claim/after" {
		p.process.link.hang(true)
	}
}

// A drain ends in bounded time, also while the node opens the store and the log does not answer any more.
func TestDrainWhileTheNodeOpens(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a := w.machine("a")
		a.probe = new(hangsAfterClaim)
		a.join()
		time.Sleep(3 * time.Second)
		if _, ok := a.node().Active(); ok || w.head().Term != 1 {
			t.Fatalf("the node serves: %v, in term %d", ok, w.head().Term)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		began := time.Now()
		_ = a.node().Drain(ctx) // nothing was served, so there is nothing to tell
		within(t, "the drain", time.Since(began), 5*time.Second, 20*time.Second)
	})
}

// A drain from outside of a node that is dead, that there is not, or that has left.
func TestDrainFromOutsideOfNoNode(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		n := w.start("a", "b")
		if err := cluster.Drain(t.Context(), w.log, 0, "z", clockOf(n["a"])); !errors.Is(err, cluster.ErrNoNode) {
			t.Errorf("a node that there is not: %v", err)
		}
		n["b"].kill()
		for range 2 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			if err := cluster.Drain(ctx, w.log, 0, "b", clockOf(n["a"])); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a node that is dead: %v", err)
			}
			cancel()
		}
		n["b"].join()
		time.Sleep(2 * time.Second)
		if err := n["b"].node().Err(); err != nil {
			t.Errorf("an order for a process that is gone ends the next one: %v", err)
		}
	})
}

// A mistake in the options is an error of Join that names it.
func TestMistakesInOptions(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		for wrong, edit := range map[string]func(*cluster.Options){
			"Log":       func(o *cluster.Options) { o.Log = nil },
			"Shard":     func(o *cluster.Options) { o.Shard = -1 },
			"ID":        func(o *cluster.Options) { o.ID = "" },
			"ID is":     func(o *cluster.Options) { o.ID = "a b" },
			"Addr":      func(o *cluster.Options) { o.Addr = "" },
			"Dir":       func(o *cluster.Options) { o.Dir = "" },
			"Snapshots": func(o *cluster.Options) { o.Snapshots.Every = -1 },
			"IdleAfter": func(o *cluster.Options) { o.Host.IdleAfter = -1 },
			"Patience":  func(o *cluster.Options) { o.Append.Patience = -1 },
		} {
			m := w.machine("m")
			m.edit = edit
			if _, err := m.tryJoin(); err == nil || !strings.Contains(err.Error(), wrong) {
				t.Errorf("%s: %v", wrong, err)
			}
		}
	})
}
