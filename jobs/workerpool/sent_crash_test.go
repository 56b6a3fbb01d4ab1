package workerpool_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// shop is an object that takes orders. Each order is counted in a row, and is two tasks
// for different partitions of a pool, in the same commit.
type shop struct {
	st     *object.State
	orders int
}

var errSoldOut = errors.New("sold out")

// newShops returns the class of shops, and its method order.
func newShops(p *pool) (*object.Class[shop], *object.Method[string, int]) {
	class := object.Define("shop", func(ctx context.Context, st *object.State) (*shop, error) {
		sh := &shop{st: st}
		_, err := st.Storage().GetInto(ctx, "orders", &sh.orders)
		return sh, err
	})
	return class, object.Handle(class, "order", func(sh *shop, ctx context.Context, order string) (int, error) {
		refs, err := p.EnqueueBatch(ctx, sh.st.Outbox(), []workerpool.Item[string]{
			{In: order + "-pack", Options: []workerpool.Option{workerpool.Key("pack")}},
			{In: order + "-bill", Options: []workerpool.Option{workerpool.Key("bill-1")}},
		})
		if err != nil {
			return 0, err
		}
		for _, ref := range refs {
			if ref != (workerpool.TaskRef{Sent: true}) {
				return 0, fmt.Errorf("the answer is %+v", ref)
			}
		}
		if order == "none" {
			return 0, errSoldOut
		}
		n := sh.orders + 1
		if err := sh.st.Storage().Put(ctx, "orders", n); err != nil {
			return 0, err
		}
		sh.orders = n
		return n, nil
	})
}

// bothOrNeither is checked in each stored state: for each order there are two tasks, in
// the pool or under way as messages.
func bothOrNeither(store *storage.Store) error {
	var orders int
	if _, err := harness.Stored(store, storage.ID{Class: "shop", Name: "s"}, "orders", &orders); err != nil {
		return err
	}
	tasks, err := workerpool.AuditSubmitted(store, "pool", 2)
	if err != nil {
		return err
	}
	sent, err := crashes.UnderWay(store, "pool")
	if err == nil && tasks+sent != 2*orders {
		err = fmt.Errorf("%d orders, %d tasks and %d messages", orders, tasks, sent)
	}
	return err
}

// Proves J19. Case JB15. A row and the tasks that belong to it are one commit: in each
// stored state there are both or neither, and each task is in the pool once.
func TestCrashTasksAreSentWithTheirTurn(t *testing.T) {
	exhaust(t, 2, func(s *harness.Sim) {
		p := newPool(s, config{Partitions: 2})
		shops, order := newShops(p)
		s.Host(shops, p)
		s.OK(s.Retry(func() error {
			if _, err := order.Call(s.Context(), s, "s", "none"); !errors.Is(err, errSoldOut) {
				return err
			}
			return nil
		}))
		for _, name := range []string{"a", "b"} {
			s.OK(s.Retry(func() error {
				_, err := order.Call(s.Context(), s, "s", name, object.Idempotent(name, time.Hour))
				return err
			}))
		}
		finally(s, func() {
			if st := stats(s, p); st.Done != 4 || st.Submitted != 4 || st.Partitions[0].Done != 2 {
				s.Errorf("J19: %+v", st)
			}
			for _, in := range []string{"a-pack", "a-bill", "b-pack", "b-bill"} {
				if n := attempts(s, in); n < 1 || n > 1+s.Crashes() {
					s.Errorf("J19: task %s was run %d times with %d crashes", in, n, s.Crashes())
				}
			}
		})
	}, harness.NoLostMessage, harness.Invariant("both or neither", bothOrNeither))
}

// Proves J19, M3. Case JB16. Tasks that are sent to a draining pool wait over crashes, and come in
// their order after Resume.
func TestCrashSentTasksWaitForADrainingPool(t *testing.T) {
	exhaust(t, 2, func(s *harness.Sim) {
		p := newPool(s, config{Partitions: 2})
		shops, order := newShops(p)
		s.Host(shops, p)
		s.OK(s.Retry(func() error { return p.Drain(s.Context(), s) }))
		for _, name := range []string{"a", "b"} {
			s.OK(s.Retry(func() error {
				_, err := order.Call(s.Context(), s, "s", name, object.Idempotent(name, time.Hour))
				return err
			}))
		}
		s.Advance(3 * time.Second)
		if st := stats(s, p); st.Submitted != 0 {
			s.Errorf("J19: a draining pool has taken a task: %+v", st)
		}
		s.OK(s.Retry(func() error { return p.Resume(s.Context(), s) }))
		s.Advance(time.Minute) // the longest pause of a receiver is 30 s
		finally(s, func() {
			if st := stats(s, p); st.Done != 4 || st.Submitted != 4 {
				s.Errorf("J19: %+v", st)
			}
			first, second := status(s, p, workerpool.TaskID{Number: 1}), status(s, p, workerpool.TaskID{Number: 2})
			if first.Result > second.Result {
				s.Errorf("J19: the first task did %q and the second %q", first.Result, second.Result)
			}
		})
	}, harness.NoLostMessage, harness.Invariant("both or neither", bothOrNeither))
}

// Proves J19, M3. Case JB16. Tasks that are sent to a full pool wait over crashes, and come in
// their order when others have ended.
func TestCrashSentTasksWaitForAFullPool(t *testing.T) {
	exhaust(t, 2, func(s *harness.Sim) {
		p := newPool(s, config{Partitions: 2, MaxQueued: 2, Work: func(ctx context.Context, t *workerpool.Task[string]) (string, error) {
			return "did " + t.In, t.Sleep(ctx, time.Second)
		}})
		shops, order := newShops(p)
		s.Host(shops, p)
		for _, name := range []string{"a", "b", "c"} { // one runs, one is pending, one waits
			s.OK(s.Retry(func() error {
				_, err := order.Call(s.Context(), s, "s", name, object.Idempotent(name, time.Hour))
				return err
			}))
		}
		waiting, err := crashes.UnderWay(s.Store(), "pool")
		s.OK(err)
		s.Always("the last tasks wait, unless a crash gave the others time", waiting > 0 || s.Crashes() > 0, waiting)
		s.Advance(2 * time.Minute)
		finally(s, func() {
			if st := stats(s, p); st.Done != 6 || st.Submitted != 6 {
				s.Errorf("J19: %+v", st)
			}
			var did []string // by the first partition, in their order
			for n := range 3 {
				did = append(did, status(s, p, workerpool.TaskID{Number: uint64(n + 1)}).Result)
			}
			if !slices.Equal(did, []string{"did a-bill", "did b-bill", "did c-bill"}) {
				s.Errorf("J19: the tasks did %q", did)
			}
		})
	}, harness.NoLostMessage, harness.Invariant("both or neither", bothOrNeither))
}
