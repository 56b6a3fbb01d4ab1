package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/cluster"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// within fails unless a time lies between two others.
func within(t *testing.T, what string, d, least, most time.Duration) {
	t.Helper()
	if d < least || d > most {
		t.Errorf("%s took %v, want %v to %v", what, d, least, most)
	}
}

// A process that was killed is replaced in less than a second, because its address refuses connections. It comes back as a
// waiting node with what its disk had.
//
// Proves N2 and N6.
func TestKilledProcessIsReplacedAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		n := w.start("a", "b")
		n["a"].add("x")
		n["a"].process.Load().die()
		within(t, "the take-over", n["b"].serves(), 0, time.Second)
		n["a"].kill()
		if got := n["b"].add("x"); got != 2 {
			t.Errorf("the next owner answers %d, want 2", got)
		}
		n["a"].join()
		time.Sleep(2 * time.Second)
		n["a"].mustBeMoved("b")
		if term := w.head().Term; term != 2 {
			t.Errorf("term %d, want 2", term)
		}
	})
}

// A node that beats and hears nothing may be cut off in one direction, so its beats do not count. They count again after the first answer.
//
// Proves N6.
func TestBeatWithoutAnswerDoesNotCount(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		n := w.start("a", "b")
		beat := func() uint64 {
			look, err := w.log.Look(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			return look.Nodes[1].Beat
		}
		n["b"].link().set(answers)
		time.Sleep(3 * time.Second)
		before := beat()
		time.Sleep(10 * time.Second)
		if after := beat(); after != before {
			t.Errorf("%d beats counted without an answer", after-before)
		}
		n["b"].link().set(whole)
		time.Sleep(3 * time.Second)
		if beat() == before {
			t.Error("no beat counts after an answer")
		}
	})
}

// An owner with a wrong clock lets go for as long as the clock is wrong, also if no other node can take over at that moment.
//
// Proves N6.
func TestWrongClockLetsGoUntilAnotherTakesOver(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		n := w.start("a", "b")
		n["b"].link().set(requests)
		n["a"].clock.by.Store(int64(time.Hour))
		time.Sleep(time.Minute)
		if now := w.active(); len(now) != 0 {
			t.Errorf("%d nodes serve", len(now))
		}
		n["b"].link().set(whole)
		within(t, "the take-over", n["b"].serves(), 0, 2*time.Second)
	})
}

// A node that owned the log before its restart, and comes back with a wrong clock, does not look like an owner that lives.
//
// Proves N6.
func TestWrongClockAfterARestartLetsGo(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		n := w.start("a")
		n["a"].kill()
		n["a"].clock.by.Store(int64(time.Hour))
		n["a"].join()
		time.Sleep(10 * time.Second)
		b := w.machine("b")
		b.join()
		within(t, "the take-over", b.serves(), 0, time.Second)
	})
}

// An owner that is stopped is replaced after its silence, and not before. When it wakes, what it sends is refused, and it waits.
//
// Proves N1, N3 and N6.
func TestStoppedOwnerIsReplacedAfterItsSilence(t *testing.T) {
	for about, way := range map[string]direction{"stopped": requests, "its answers are lost": answers} {
		t.Run(about, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				n := w.start("a", "b", "c")
				n["a"].add("x")
				n["a"].link().set(way)
				late := make(chan error, 1)
				go func() {
					_, err := add.Call(t.Context(), n["a"].node(), "late", 1)
					late <- err
				}()
				changed := time.Now()
				w.until("another node serves", func() bool { return len(w.active()) == 2 })
				within(t, "the take-over", time.Since(changed), 3*shardlog.LookEvery, 4*time.Second) // its last beat is up to one look older
				time.Sleep(5 * time.Second)
				n["a"].link().set(whole)
				// The log has the commit that landed before the claim, so the call may succeed there.
				if err := <-late; !errors.Is(err, object.ErrUnknown) && (err != nil || way != answers) {
					t.Errorf("a call at the owner that was stopped: %v", err)
				}
				time.Sleep(2 * time.Second)
				if now := w.active(); len(now) != 1 || now[0].id == "a" {
					t.Fatalf("%d nodes serve", len(now))
				}
				owner := w.active()[0]
				n["a"].mustBeMoved(owner.id)
				if got := owner.add("x"); got != 2 || w.head().Term != 2 {
					t.Errorf("the next owner answers %d in term %d, want 2 in term 2", got, w.head().Term)
				}
			})
		})
	}
}

// Five waiting nodes see one silence, and make one new term.
//
// Proves N6.
func TestOneSilenceMakesOneTerm(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		n := w.start("a", "b", "c", "d", "e", "f")
		for round, owner := uint64(1), n["a"]; round < 6; round++ {
			owner.link().set(requests)
			time.Sleep(20 * time.Second)
			owner.link().set(whole)
			time.Sleep(3 * time.Second)
			if term := w.head().Term; term != round+1 || len(w.active()) != 1 {
				t.Fatalf("after %d silences the log has term %d, and %d nodes serve", round, term, len(w.active()))
			}
			owner = w.active()[0]
		}
	})
}

// While the log is down for a minute no node moves. The owner goes on in its term when the log answers.
//
// Proves N8.
func TestNothingMovesWhileTheLogIsDown(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		n := w.start("a", "b", "c")
		for _, m := range n {
			m.link().set(requests)
		}
		left := make(chan error, 1)
		go func() {
			_, err := add.Call(t.Context(), n["a"].node(), "x", 1)
			left <- err
		}()
		time.Sleep(time.Minute)
		for _, m := range n {
			m.link().set(whole)
		}
		if err := <-left; !errors.Is(err, object.ErrUnknown) {
			t.Errorf("a call meanwhile: %v", err)
		}
		time.Sleep(time.Minute)
		if term := w.head().Term; term != 1 {
			t.Errorf("term %d after the outage, want 1", term)
		}
		if got := n["a"].add("x"); got != 2 {
			t.Errorf("the owner answers %d, want 2", got)
		}
	})
}

// An owner with an append that hangs for ten seconds, while its beats get through, is replaced.
//
// Proves N6.
func TestOwnerThatHangsIsReplaced(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		n := w.start("a", "b")
		n["a"].link().hang(true)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _, _ = add.Call(ctx, n["a"].node(), "x", 1) }()
		within(t, "the take-over", n["b"].serves(), hungAfter+time.Second, hungAfter+5*time.Second)
		n["a"].link().hang(false)
		cancel()
		time.Sleep(15 * time.Second)
		n["a"].mustBeMoved("b")
	})
}

// hungAfter is that of the package: how long a call may hang.
const hungAfter = 10 * time.Second

// A program with an address that never takes connections is no dead process.
//
// Proves N6.
func TestWrongAddressMovesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		n := w.start("a")
		n["a"].process.Load().up.Store(false)
		w.machine("b").join()
		time.Sleep(time.Minute)
		if w.head().Term != 1 || len(w.active()) != 1 {
			t.Errorf("term %d, %d nodes serve", w.head().Term, len(w.active()))
		}
	})
}

// A node with a clock that is hours off does not claim. An owner with a clock that jumps ends in order, and another node takes over at once.
//
// Proves N6.
func TestWrongClockNeitherClaimsNorKeeps(t *testing.T) {
	for _, by := range []time.Duration{-3 * time.Hour, 3 * time.Hour} {
		t.Run(by.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				n := w.start("a", "b", "c")
				n["b"].clock.by.Store(int64(by))
				time.Sleep(2 * time.Second)
				n["a"].clock.by.Store(int64(by))
				within(t, "the take-over", n["c"].serves(), 0, 2*time.Second)
				time.Sleep(time.Minute)
				if w.head().Term != 2 || len(w.active()) != 1 {
					t.Errorf("term %d, %d nodes serve", w.head().Term, len(w.active()))
				}
				n["a"].clock.by.Store(0) // it is set right, so the node is of use again
				n["c"].kill()
				within(t, "the next take-over", n["a"].serves(), 0, 4*time.Second)
			})
		})
	}
}

// The limit of the clock, on both sides.
func TestClockAtItsLimit(t *testing.T) {
	for by, term := range map[time.Duration]uint64{5 * time.Second: 1, 5*time.Second + time.Nanosecond: 2, -5 * time.Second: 1, -5*time.Second - time.Nanosecond: 2} {
		t.Run(by.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				n := w.start("a", "b")
				n["a"].clock.by.Store(int64(by))
				time.Sleep(10 * time.Second)
				if got := w.head().Term; got != term {
					t.Errorf("term %d, want %d", got, term)
				}
			})
		})
	}
}

// A node that cannot open takes the log from no owner: Join tells it of a mistake, and a check before the claim of a disk without space.
//
// Proves N6.
func TestNodeThatCannotOpenClaimsNothing(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		n := w.start("a")
		b := w.machine("b")
		if _, err := cluster.Join(t.Context(), b.options(w.newLink()), counters, counters); err == nil {
			t.Error("two classes of one name are taken")
		}
		b.edit = func(o *cluster.Options) { o.Storage.Shards = 3 }
		b.join()
		if err := b.node().Close(); err != nil {
			t.Fatal(err)
		}
		b.edit = func(o *cluster.Options) { o.Storage.Shards = 5 }
		if _, err := cluster.Join(t.Context(), b.options(w.newLink()), counters); err == nil {
			t.Error("a view of another format is taken")
		}
		b.edit = nil
		n["a"].link().set(requests)
		time.Sleep(time.Minute)
		if term := w.head().Term; term != 1 {
			t.Errorf("term %d, want 1", term)
		}
	})
}

// Two processes with one id: the older one ends, and says why.
func TestIDThatIsUsedTwice(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		n := w.start("a", "b")
		older := n["a"].node()
		twin := w.machine("twin")
		twin.id = "a"
		twin.join()
		select {
		case <-older.Done():
		case <-time.After(5 * time.Second):
			t.Error("the older process goes on")
		}
		if err := older.Err(); !errors.Is(err, cluster.ErrIDUsed) {
			t.Errorf("the older process ends with %v", err)
		}
		time.Sleep(3 * time.Second)
		if len(w.active()) != 1 {
			t.Errorf("%d nodes serve", len(w.active()))
		}
		if err := twin.node().Err(); err != nil {
			t.Errorf("the newer process ends too: %v", err)
		}
	})
}

// A node that is drained ends in order, and another takes over at once. Calls meanwhile are refused before they begin.
//
// Proves N6.
func TestDrainHandsOver(t *testing.T) {
	for _, outside := range []bool{false, true} {
		t.Run(fmt.Sprint("outside=", outside), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				n := w.start("a", "b", "c")
				n["a"].add("x")
				began := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				var err error
				if outside {
					err = cluster.Drain(ctx, w.log, 0, "a", seam.Seams{})
				} else {
					err = n["a"].node().Drain(ctx)
				}
				if err != nil {
					t.Fatal(err)
				}
				w.until("another node serves", func() bool { return len(w.active()) > 0 })
				within(t, "the hand-over", time.Since(began), 0, 1500*time.Millisecond)
				owner := w.active()[0]
				if got := owner.add("x"); owner.id == "a" || got != 2 || w.head().Term != 2 {
					t.Errorf("node %s answers %d in term %d", owner.id, got, w.head().Term)
				}
				if err := n["a"].node().Err(); !errors.Is(err, cluster.ErrClosed) || errors.Is(err, cluster.ErrIDUsed) {
					t.Errorf("the drained node ends with %v", err)
				}
				if err := cluster.Drain(t.Context(), w.log, 0, "a", seam.Seams{}); !errors.Is(err, cluster.ErrNoNode) {
					t.Errorf("a second drain: %v", err)
				}
			})
		})
	}
}

// A store that loses its log for longer than its patience ends its host. The node waits then, and serves again in a new term.
func TestPatienceEnds(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		n := w.start("a")
		n["a"].link().set(requests)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _, _ = add.Call(ctx, n["a"].node(), "x", 1) }()
		time.Sleep(6 * time.Minute)
		if _, ok := n["a"].node().Active(); ok {
			t.Error("the node serves after 6 minutes without its log")
		}
		n["a"].link().set(whole)
		n["a"].serves()
		if term := w.head().Term; term != 2 {
			t.Errorf("term %d, want 2", term)
		}
	})
}

// Rows of nodes that have been gone for a week are removed.
func TestRowsOfDeadNodesAreForgotten(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		n := w.start("a", "b")
		n["b"].kill()
		rows := func() int {
			look, err := w.log.Look(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			return len(look.Nodes)
		}
		time.Sleep(time.Minute)
		later := 7*24*time.Hour - 90*time.Minute // both clocks jump, so that the test need not beat for a week
		w.log.SetClock(func() time.Time { return time.Now().Add(later) })
		n["a"].clock.by.Store(int64(later))
		time.Sleep(85 * time.Minute)
		if got := rows(); got != 2 {
			t.Errorf("%d rows before a week, want 2", got)
		}
		time.Sleep(70 * time.Minute)
		if got := rows(); got != 1 {
			t.Errorf("%d rows after a week, want 1", got)
		}
	})
}

// Nodes leave a log that was exported, because nothing is appended to it any more, and say why.
//
// Proves N11.
func TestNodesLeaveAnExportedLog(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		n := w.start("a", "b")
		n["a"].add("x")
		if _, err := w.log.Claim(t.Context(), 0, "exported 1f 2e", w.head().Term); err != nil {
			t.Fatal(err)
		}
		for id, m := range n {
			limit, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			select {
			case <-m.node().Done():
			case <-limit.Done():
			}
			if err := m.node().Err(); !errors.Is(err, shardlog.ErrExported) {
				t.Errorf("node %s: %v", id, err)
			}
		}
	})
}
