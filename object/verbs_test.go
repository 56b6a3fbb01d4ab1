package object_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
)

// inTurn are the verbs of a State that need its turn.
var inTurn = map[string]func(ctx context.Context, st *object.State) error{
	"TakePermit": func(ctx context.Context, st *object.State) error {
		_, err := st.Driver().TakePermit(ctx, false)
		return err
	},
	"SetAlarm":    func(ctx context.Context, st *object.State) error { return st.SetAlarm(ctx, st.Now()) },
	"DeleteAlarm": func(ctx context.Context, st *object.State) error { return st.DeleteAlarm(ctx) },
	"Alarm":       func(ctx context.Context, st *object.State) error { _, _, err := st.Alarm(ctx); return err },
	"AlarmFailures": func(ctx context.Context, st *object.State) error {
		_, err := st.Driver().AlarmFailures(ctx)
		return err
	},
	"Await": func(ctx context.Context, st *object.State) error { return st.Await(ctx, make(chan struct{})) },
	"Go":    func(ctx context.Context, st *object.State) error { return st.Go(ctx, "w", func(context.Context) {}) },
	"Start": func(ctx context.Context, st *object.State) error {
		return st.Driver().Start(ctx, new(object.Routine), "w", nil)
	},
	"StartSuspect": func(ctx context.Context, st *object.State) error {
		return st.Driver().StartSuspect(ctx, new(object.Routine), "k", "w", nil)
	},
	"Emit": func(ctx context.Context, st *object.State) error { return st.Emit(ctx, "e", 1) },
	"Mark": func(ctx context.Context, st *object.State) error { return st.Mark(ctx, "m", nil, time.Hour) },
	"MarkNew": func(ctx context.Context, st *object.State) error {
		return st.Driver().MarkNew(ctx, "m", nil, time.Hour)
	},
	"Marked": func(ctx context.Context, st *object.State) error { _, _, err := st.Marked(ctx, "m"); return err },
	"LogCommitted": func(ctx context.Context, st *object.State) error {
		return st.Driver().LogCommitted(ctx, slog.LevelInfo, "text")
	},
	"OpenExecution":  func(ctx context.Context, st *object.State) error { return st.Driver().OpenExecution(ctx, nil) },
	"CloseExecution": func(ctx context.Context, st *object.State) error { return st.Driver().CloseExecution(ctx) },
	"Recovered": func(ctx context.Context, st *object.State) error {
		return st.Driver().Recovered(ctx, object.Recovery{})
	},
	"Sync":         func(ctx context.Context, st *object.State) error { return st.Sync(ctx) },
	"WrittenBytes": func(ctx context.Context, st *object.State) error { _, err := st.Driver().WrittenBytes(ctx); return err },
	"Purge":        func(ctx context.Context, st *object.State) error { return st.Driver().Purge(ctx) },
	"Release": func(ctx context.Context, st *object.State) error {
		return st.Release(ctx, func(context.Context) error { return nil })
	},
	"Get in the turn": func(ctx context.Context, st *object.State) error { _, _, err := st.Storage().Get(ctx, "k"); return err },
}

// ofStorage are the verbs of a Storage.
var ofStorage = map[string]func(ctx context.Context, s *object.Storage) error{
	"Get": func(ctx context.Context, s *object.Storage) error { _, _, err := s.Get(ctx, "k"); return err },
	"GetInto": func(ctx context.Context, s *object.Storage) error {
		_, err := s.GetInto(ctx, "k", new(int))
		return err
	},
	"GetBatch":     func(ctx context.Context, s *object.Storage) error { _, err := s.GetBatch(ctx, "k"); return err },
	"Put":          func(ctx context.Context, s *object.Storage) error { return s.Put(ctx, "k", 1) },
	"PutBytes":     func(ctx context.Context, s *object.Storage) error { return s.PutBytes(ctx, "k", nil) },
	"PutBatch":     func(ctx context.Context, s *object.Storage) error { return s.PutBatch(ctx, []object.Entry{{Key: "k"}}) },
	"Delete":       func(ctx context.Context, s *object.Storage) error { _, err := s.Delete(ctx, "k"); return err },
	"DeleteBatch":  func(ctx context.Context, s *object.Storage) error { _, err := s.DeleteBatch(ctx, "k"); return err },
	"Remove":       func(ctx context.Context, s *object.Storage) error { return s.Remove(ctx, "k") },
	"DeletePrefix": func(ctx context.Context, s *object.Storage) error { return s.DeletePrefix(ctx, "k") },
	"DeleteAll":    func(ctx context.Context, s *object.Storage) error { return s.DeleteAll(ctx) },
	"Transaction": func(ctx context.Context, s *object.Storage) error {
		return s.Transaction(ctx, func(context.Context, *object.Storage) error { return nil })
	},
	"List": func(ctx context.Context, s *object.Storage) error {
		for _, err := range s.List(ctx, object.ListOptions{}) {
			return err
		}
		return nil
	},
}

// Proves O9, S2, S6: each verb of an object works in the object's turn. It refuses a
// context without a turn, one of a turn that has ended, and the view of a transaction
// that has ended. A refused verb leaves nothing behind.
func TestEachVerbNeedsItsTurn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.close()
		f.must("a", put("k", "7"))
		var st *object.State
		var over context.Context
		var done *object.Storage
		f.must("a", func(th *thing, ctx context.Context) (any, error) {
			st, over = th.st, ctx
			return nil, th.st.Storage().Transaction(ctx, func(_ context.Context, tx *object.Storage) error { done = tx; return nil })
		})
		before := f.host.Store().Applied()
		for of, ctx := range map[string]context.Context{"no turn": context.Background(), "a turn that is over": over} {
			for name, verb := range inTurn {
				if err := verb(ctx, st); !errors.Is(err, object.ErrNoTurn) {
					t.Errorf("O9: %s with the context of %s: %v", name, of, err)
				}
			}
			for name, verb := range ofStorage {
				if err := verb(ctx, st.Storage()); !errors.Is(err, object.ErrNoTurn) {
					t.Errorf("O9: %s of a storage with the context of %s: %v", name, of, err)
				}
			}
		}
		f.must("a", func(th *thing, ctx context.Context) (any, error) {
			for name, verb := range ofStorage {
				if err := verb(ctx, done); !errors.Is(err, object.ErrTxDone) {
					t.Errorf("S6: %s of a transaction that has ended: %v", name, err)
				}
			}
			return nil, nil
		})
		if after := f.host.Store().Applied(); after != before {
			t.Errorf("verbs that were refused have committed: %v, %v", before, after)
		}
		for name, verb := range ofStorage {
			f.must("b", put("k", "7"))
			f.must("b", func(th *thing, ctx context.Context) (any, error) {
				if err := verb(ctx, th.st.Storage()); err != nil {
					t.Errorf("S2: %s in its turn: %v", name, err)
				}
				return nil, nil
			})
		}
	})
}

// points are those that a host tells of.
type points struct {
	mu  sync.Mutex
	all []string
}

func (p *points) At(at seam.Point) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = append(p.all, strings.TrimSuffix(at.Name+" "+at.Object, " "))
}

func (p *points) take() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := strings.Join(p.all, ", ")
	p.all = nil
	return text
}

// A probe learns of each point at which a crash can matter, in order: in a call, in a
// turn with a work, in an alarm, and in the recovery of an open execution.
func TestPointsOfAProbe(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t)
		p := &points{}
		f.options.Seams.Probe = p
		f.open()
		f.must("a", nothing)
		p.take()
		for _, c := range []struct {
			name string
			do   func()
			want string
		}{
			{"a call that reads", func() { f.must("a", nothing) }, "handler/enter thing/a, ack/before thing/a"},
			{"a call that writes", func() { f.must("a", put("k", "v")) },
				"handler/enter thing/a, commit/before thing/a, commit/after thing/a, sync/before, sync/after, ack/before thing/a"},
			{"a work", func() {
				f.must("a", func(th *thing, ctx context.Context) (any, error) {
					return nil, th.st.Go(ctx, "w", func(context.Context) {})
				})
				synctest.Wait()
			}, ""},
			{"an alarm", func() { f.must("a", setAlarm(time.Second)); p.take(); pass(2 * time.Second) },
				"commit/before, commit/after, sync/before, sync/after, alarm/dispatch thing/a, handler/enter thing/a, commit/before thing/a, commit/after thing/a, sync/before, sync/after"},
			{"an execution that is left open", func() {
				f.must("a", func(th *thing, ctx context.Context) (any, error) { return nil, th.st.Driver().OpenExecution(ctx, nil) })
				f.crash()
				p.take()
				f.options.Storage.Engine = nil
				f.open()
				synctest.Wait()
			}, ""},
		} {
			c.do()
			got := p.take()
			switch c.name {
			case "a work":
				for _, part := range []string{"handler/enter thing/a", "work/start thing/a", "ack/before thing/a"} {
					if strings.Count(got, part) != 1 {
						t.Errorf("%s: %s", c.name, got)
					}
				}
			case "an execution that is left open":
				if strings.Count(got, "wake thing/a") != 1 {
					t.Errorf("%s: %s", c.name, got)
				}
			default:
				if got != c.want {
					t.Errorf("%s:\n%s\nwant\n%s", c.name, got, c.want)
				}
			}
		}
		f.end()
	})
}

// Proves S8: an unconfirmed commit is durable a second later, and not before.
func TestUnconfirmedIsDurableAfterASecond(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.close()
		f.must("a", put("k", "1"))
		for range 2 {
			f.must("a", put("k", "2"), object.Unconfirmed())
			pass(time.Second - 1)
			if f.mem.Unsynced() != 1 {
				t.Errorf("S8: %d commits wait after a second less a nanosecond", f.mem.Unsynced())
			}
			pass(1)
			if f.mem.Unsynced() != 0 {
				t.Errorf("S8: %d commits wait after a second", f.mem.Unsynced())
			}
		}
	})
}

// Proves O14: after Shutdown no flight is stored.
func TestShutdownLeavesNoFlight(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		f.must("a", setAlarm(time.Second))
		pass(2 * time.Second)
		f.close()
		s, err := storage.Open(storage.Options{Engine: f.mem.Crash(0), Shards: 2})
		if err != nil {
			t.Fatal(err)
		}
		err = s.Metas("flight/", func(name string, _ []byte) error { return fmt.Errorf("%s is there", name) })
		if err := errors.Join(err, s.Close()); err != nil {
			t.Error(err)
		}
	})
}

// Proves A7, O12: the advice of an error keeps the error that it wraps, and never has a
// delay less than zero.
func TestAdviceKeepsItsError(t *testing.T) {
	cause := errors.New("boom")
	for name, err := range map[string]error{"RetryAfter": object.RetryAfter(time.Second, cause), "Permanent": object.Permanent(cause)} {
		if !errors.Is(err, cause) || err.Error() != "boom" {
			t.Errorf("%s: %v", name, err)
		}
	}
	for d, want := range map[time.Duration]time.Duration{-1: 0, 0: 0, 1: 1} {
		if got, ok := object.RetryDelay(fmt.Errorf("more: %w", object.RetryAfter(d, cause))); !ok || got != want {
			t.Errorf("RetryAfter(%v) gives %v, %v", d, got, ok)
		}
	}
}

// Proves O4: a constructor that keeps failing is tried again after 100 ms, and then after
// twice as long each time, up to 30 s.
func TestWaitOfAFailingConstructor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t)
		var at []time.Duration
		began := time.Now()
		f.handleConstruct(func(context.Context, *thing) error {
			at = append(at, time.Since(began))
			return errors.New("boom")
		})
		f.open()
		defer f.close()
		for time.Since(began) < 3*time.Minute {
			if _, err := f.call("a", nothing); !errors.Is(err, object.ErrConstructor) {
				t.Fatal(err)
			}
			time.Sleep(50 * time.Millisecond)
		}
		var waits []time.Duration
		for i := 1; i < len(at); i++ {
			waits = append(waits, at[i]-at[i-1])
		}
		want := []time.Duration{100, 200, 400, 800, 1600, 3200, 6400, 12800, 25600, 30000, 30000, 30000}
		for i := range want {
			want[i] *= time.Millisecond
		}
		if len(waits) < len(want) || !slices.Equal(waits[:len(want)], want) {
			t.Errorf("O4: the waits are %v, want %v", waits, want)
		}
	})
}

// Proves O5, O14: an object learns which openings ended in order, and the limits of its
// host.
func TestWhatAStateTells(t *testing.T) {
	f := newFixture(t)
	f.options.MaxBatchBytes, f.options.MaxValueBytes = 1000, 500
	f.open() // 1 is killed
	f.crash()
	f.open() // 2 and 3 end in order
	f.close()
	f.open()
	f.close()
	f.open()
	defer f.close()
	f.must("a", func(th *thing, _ context.Context) (any, error) {
		for epoch, want := range map[uint64]bool{0: false, 1: false, 2: true, 3: true, 4: false, 5: false} {
			if got := th.st.Driver().EndedInOrder(epoch); got != want {
				t.Errorf("O14: opening %d of %d ended in order: %v", epoch, th.st.Driver().Epoch(), got)
			}
		}
		if th.st.Driver().MaxBatchBytes() != 1000 || th.st.Driver().MaxValueBytes() != 500 || th.st.Driver().Codec() == nil || !th.st.Driver().OpenedAt().Equal(f.host.Store().OpenedAt()) {
			t.Error("its host's settings are others")
		}
		return nil, nil
	})
}

// Proves O4: blocks that have ended do not count, however many there were.
func TestManyBlocksOneAfterTheOther(t *testing.T) {
	f := newFixture(t).open()
	defer f.close()
	f.must("a", func(th *thing, ctx context.Context) (any, error) {
		for i := range 70 {
			if err := th.st.BlockConcurrencyWhile(ctx, func(context.Context) error { return nil }); err != nil {
				t.Fatalf("O4: block %d: %v", i+1, err)
			}
		}
		return nil, th.st.Release(ctx, func(context.Context) error { return nil })
	})
}

// Proves O11: Wake works while the mailbox of the object is full.
func TestWakeOfAnOverloadedObject(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t, object.ClassOptions{MailboxLimit: 1}).open()
		defer f.close()
		f.must("a", nothing)
		var wg sync.WaitGroup
		slow := func(*thing, context.Context) (any, error) { time.Sleep(time.Second); return nil, nil }
		for range 2 {
			wg.Go(func() { f.must("a", slow) })
			synctest.Wait()
		}
		if _, err := f.call("a", nothing); !errors.Is(err, object.ErrOverloaded) {
			t.Errorf("O11: a call too many: %v", err)
		}
		if err := f.host.Wake(context.Background(), f.id("a")); err != nil {
			t.Errorf("O11: Wake: %v", err)
		}
		wg.Wait()
	})
}

// Proves O11: a call is refused when the mailbox has reached its limit, or when its first
// call has waited for longer than the age limit, to the nanosecond.
func TestMailboxAtItsBounds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t, object.ClassOptions{MailboxLimit: 3, MailboxAge: time.Second}).open()
		defer f.close()
		f.must("a", nothing)
		var wg sync.WaitGroup
		gate := make(chan struct{})
		queue := func() {
			wg.Go(func() { f.must("a", func(*thing, context.Context) (any, error) { <-gate; return nil, nil }) })
			synctest.Wait()
		}
		refused := func(step string, want bool) {
			t.Helper()
			ctx, cancel := context.WithTimeout(context.Background(), time.Nanosecond/2+1)
			defer cancel()
			_, err := f.do.Call(ctx, f.host, "a", nothing)
			if errors.Is(err, object.ErrOverloaded) != want || err == nil {
				t.Errorf("O11: %s: %v", step, err)
			}
		}
		queue() // it runs
		queue() // the first that waits
		pass(time.Second - 2)
		refused("before the age", false)
		pass(1)
		queue() // at the age
		pass(1)
		refused("beyond the age", true)
		close(gate)
		wg.Wait()
		gate = make(chan struct{})
		for range 4 {
			queue()
		}
		refused("a mailbox with its limit", true)
		close(gate)
		wg.Wait()
	})
}
