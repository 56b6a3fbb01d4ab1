package why_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/admin/why"
	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/failing"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// chain is the codes of an answer and of those that it leads to.
func chain(a why.Answer) string {
	text := string(a.Code)
	for _, b := range a.Because {
		text += " because " + chain(b)
	}
	return text
}

// must returns the answer of the living process.
func (p *shop) must(ask func(context.Context, why.Source) (why.Answer, error)) why.Answer {
	p.Helper()
	a, ok := p.live(asked{"the question", ask})
	if !ok {
		p.Fatalf("the process has died")
	}
	return a
}

// object and task are the answers of the living process for an object and a task.
func (p *shop) object(class, name string) why.Answer {
	return p.must(func(ctx context.Context, src why.Source) (why.Answer, error) {
		return why.Object(ctx, src, storage.ID{Class: class, Name: name})
	})
}

func (p *shop) task(id workerpool.TaskID) why.Answer {
	return p.must(func(ctx context.Context, src why.Source) (why.Answer, error) { return why.Task(ctx, src, "work", id) })
}

// Case WY1: a task that does not run leads over its key to the task that does, in the process and
// in the rows that it leaves when it is killed.
func TestChainOfTasks(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		p := open(s)
		add := func(options ...workerpool.Option) workerpool.TaskID {
			ref, err := p.work.Enqueue(s.Context(), s, time.Minute, options...)
			s.OK(err)
			return ref.ID
		}
		first, second, third := add(workerpool.Key("k")), add(workerpool.Key("k")), add(workerpool.Key("k"))
		other, next, last, later := add(), add(), add(workerpool.Priority(-1)), add(workerpool.Delay(time.Hour))
		s.RunUntilIdle()
		want := map[workerpool.TaskID]string{
			first: "executing", second: "behind-key because executing", third: "behind-key because executing",
			other: "executing", next: "workers-busy because executing", last: "in-line", later: "waits-for-time",
		}
		for id, codes := range want {
			if got := chain(p.task(id)); got != codes {
				s.Errorf("%s: %s, want %s", id, got, codes)
			}
		}
		if a := p.task(third); a.Because[0].Task != first.String() || a.Name != "k" || !strings.HasPrefix(a.Text, "2 tasks are") {
			s.Errorf("%+v", a)
		}
		if a := p.task(last); !slices.Contains(a.Holds(), why.WorkersBusy) || !strings.HasPrefix(a.Text, "1 task is") {
			s.Errorf("%+v", a)
		}
		s.Must(nil, p.work.Pause(s.Context(), s))
		if a := p.task(second); !slices.Equal(a.Holds(), []why.Code{why.PoolPaused, why.BehindKey}) {
			s.Errorf("in a paused pool: %v", a.Holds())
		}
		s.Crash(harness.Kill)
		if a := p.cold(asked{"a task", func(ctx context.Context, src why.Source) (why.Answer, error) {
			return why.Task(ctx, src, "work", second)
		}}); !slices.Equal(a.Holds(), []why.Code{why.NotOpen, why.PoolPaused, why.BehindKey}) || chain(a.Also[1]) != "behind-key because lost" && chain(a.Also[1]) != "behind-key because executing" {
			s.Errorf("cold: %v, %s", a.Holds(), chain(a.Also[1]))
		}
		s.Restart()
	}, harness.Shards(2))
}

// A place in line is counted to 1,000.
func TestPlacesAreCounted(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		p := open(s)
		for n := 1; n <= workerpool.MaxPlace+2; n++ {
			ref, err := p.claims.Enqueue(s.Context(), s, 0)
			s.OK(err)
			want := map[int]string{1: "", 2: "1 task is of its queue before it.", 1001: "1000 tasks are of its queue before it.", 1002: "More than 1000 tasks are of its queue before it."}
			text, asked := want[n]
			if !asked {
				continue
			}
			a := p.must(func(ctx context.Context, src why.Source) (why.Answer, error) {
				return why.Task(ctx, src, "claim", ref.ID)
			})
			got := ""
			if len(a.Also) > 0 {
				got = a.Also[0].Text
			}
			if a.Code != why.NoWorkHere || got != text {
				s.Errorf("task %d: %v %q, want %q", n, a.Holds(), got, text)
			}
		}
	}, harness.Shards(2))
}

// A chain is followed 16 deep, and a circle of waits ends.
func TestChainIsBounded(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		p := open(s)
		_, err := p.orders.Start(s.Context(), s, "d", "deep"+strings.Repeat("x", 20))
		s.OK(err)
		s.Advance(time.Second)
		for depth, name := range map[int]string{16: "d", 15: "d" + strings.Repeat("x", 5), 1: "d" + strings.Repeat("x", 19)} {
			if got := chain(p.object("order", name)); strings.Count(got, "because") != depth {
				s.Errorf("%s: %s", name, got)
			}
		}
	}, harness.Shards(2))
}

// A workflow leads to its child, and that to its signal.
func TestChainOfChildren(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		p := open(s)
		_, err := p.orders.Start(s.Context(), s, "7", "child")
		s.OK(err)
		s.Advance(time.Second)
		if a := p.object("order", "7"); chain(a) != "waits-for-child because waits-for-signal" || a.Because[0].Name != "approved" || a.Name != "order/7-child" {
			s.Errorf("%+v", a)
		}
		s.OK(approved.Send(s.Context(), s, p.orders, "7-child", "yes"))
		s.Advance(time.Second)
		if a := p.object("order", "7"); a.Code != why.Ended {
			s.Errorf("%+v", a)
		}
		s.Advance(2 * time.Minute) // its retention
		if a := p.object("order", "7"); a.Code != why.Absent || a.Since.IsZero() || a.Name == "" {
			s.Errorf("%+v", a)
		}
	}, harness.Shards(2))
}

// desk is an object with turns that take long, wait for another, are lent out, or fail.
type desk struct{ st *object.State }

var (
	broken error // of the constructor
	desks  = object.Define("desk", func(_ context.Context, st *object.State) (*desk, error) { return &desk{st}, broken })
	hold   = object.Handle(desks, "hold", func(d *desk, ctx context.Context, long time.Duration) (int, error) {
		return 0, d.st.Driver().Seams().Sleep(ctx, long)
	})
	ask = object.Handle(desks, "ask", func(d *desk, ctx context.Context, long time.Duration) (int, error) {
		return hold.Call(ctx, d.st, "other", long)
	})
	lend = object.Handle(desks, "lend", func(d *desk, ctx context.Context, long time.Duration) (int, error) {
		return 0, d.st.Release(ctx, func(ctx context.Context) error { return d.st.Driver().Seams().Sleep(ctx, long) })
	})
	round = object.Handle(desks, "round", func(d *desk, ctx context.Context, other string) (int, error) {
		return back.Call(ctx, d.st, other, d.st.ID().Name)
	})
	back = object.Handle(desks, "back", func(d *desk, ctx context.Context, other string) (int, error) {
		return keep.Call(ctx, d.st, other, 1)
	})
	keep = object.Handle(desks, "keep", func(d *desk, ctx context.Context, _ int) (int, error) {
		return 0, errors.Join(d.st.Storage().Put(ctx, "kept", 1), d.st.Sync(ctx))
	})
)

// Reasons that only the process knows: turns, the mailbox, the constructor, a class that is gone
// and a shutdown.
func TestLiveReasons(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		p := &shop{Sim: s}
		broken = nil
		s.Host(desks)
		call := func(m *object.Method[time.Duration, int], name string) {
			s.Go("client", func() { _, _ = m.Call(s.Context(), s, name, time.Minute) })
		}
		for _, name := range []string{"a", "b", "c", "other"} {
			_, err := keep.Call(s.Context(), s, name, 0)
			s.OK(err)
		}
		call(ask, "a")
		s.Advance(time.Second)
		if a := p.object("desk", "other"); a.Code != why.TurnRunning || a.Name != "hold" || a.Since.IsZero() || !slices.Equal(a.Holds(), []why.Code{why.TurnRunning, why.IdleByDesign}) {
			s.Errorf("a turn: %+v", a)
		}
		if a := p.object("desk", "a"); chain(a) != "turn-waits because turn-running" || a.Name != "desk/other" {
			s.Errorf("a turn that waits: %s, %+v", chain(a), a)
		}
		call(hold, "a")
		s.Advance(time.Second)
		if a := p.object("desk", "a"); !slices.Equal(a.Holds(), []why.Code{why.TurnWaits, why.Mailbox, why.IdleByDesign}) {
			s.Errorf("a mailbox: %v", a.Holds())
		}
		call(lend, "b")
		s.Advance(time.Second)
		if a := p.object("desk", "b"); a.Code != why.TurnLent || a.Name != "lend" {
			s.Errorf("a lent turn: %+v", a)
		}
		s.Advance(5 * time.Minute)
		if a := p.object("desk", "a"); a.Code != why.IdleByDesign {
			s.Errorf("after all: %+v", a)
		}
		broken = errNo
		s.Restart()
		_, err := keep.Call(s.Context(), s, "c", 0)
		s.Always("the constructor fails", errors.Is(err, object.ErrConstructor), err)
		if a := p.object("desk", "c"); a.Code != why.ConstructorFailing || !strings.Contains(a.Error, hostile) || strings.Contains(a.Text, hostile) {
			s.Errorf("a constructor: %+v", a)
		}
		broken = nil
		s.Restart(harness.WithCode(object.Define("another", func(_ context.Context, st *object.State) (*desk, error) { return &desk{st}, nil })))
		if a := p.object("desk", "a"); a.Code != why.Parked {
			s.Errorf("a class that is gone: %+v", a)
		}
	}, harness.Shards(2))
}

// A host that was shut down, or that has lost its store, answers with that alone.
func TestHostThatHasEnded(t *testing.T) {
	broken = nil
	h, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}}, desks)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, ask := range []func() (why.Answer, error){
		func() (why.Answer, error) { return why.Object(t.Context(), why.Live(h), desks.ID("a")) },
		func() (why.Answer, error) { return why.Job(t.Context(), why.Live(h), desks.ID("a")) },
		func() (why.Answer, error) {
			return why.Task(t.Context(), why.Live(h), "work", workerpool.TaskID{Number: 1})
		},
	} {
		if a, err := ask(); err != nil || !slices.Equal(a.Holds(), []why.Code{why.Closing}) {
			t.Errorf("%+v, %v", a, err)
		}
	}
	if o, err := why.All(t.Context(), why.Live(h)); err != nil || len(o.Store) != 1 || o.Store[0].Code != why.Closing {
		t.Errorf("%+v, %v", o, err)
	}
	disk := failing.At(0)
	for n := 1; !disk.Failed(); n++ {
		disk = failing.At(n)
		h, err := object.Open(object.Options{Storage: storage.Options{Engine: disk.Engine(memstore.New())}}, desks)
		if err != nil {
			continue
		}
		if _, err := keep.Call(t.Context(), h, "a", 0); err != nil && disk.Failed() {
			a, err := why.Object(t.Context(), why.Live(h), desks.ID("a"))
			if err != nil || a.Code != why.StorageFailed || !strings.Contains(a.Error, failing.ErrDisk.Error()) {
				t.Errorf("%+v, %v", a, err)
			}
			if o, err := why.All(t.Context(), why.Live(h)); err != nil || len(o.Store) == 0 || o.Store[0].Code != why.StorageFailed {
				t.Errorf("%+v, %v", o, err)
			}
		}
		_ = h.Shutdown(t.Context())
	}
}

// Proves Y3: a job that nothing wakes is never idle by design. The alarm of each job is taken away
// as a bug would do.
func TestOrphans(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		p := open(s)
		ctx := s.Context()
		for _, err := range []error{
			second(p.ticks.Start(ctx, s, "1", 0)), second(p.hands.Start(ctx, s, "1", 0)), second(p.mails.Add(ctx, s, "1", "")),
			second(p.orders.Start(ctx, s, "sleep", "sleep")), second(p.orders.Start(ctx, s, "signal", "signal")),
		} {
			s.OK(err)
		}
		s.Advance(time.Second)
		store := s.Store()
		defer store.Close()
		for _, c := range []struct {
			id          storage.ID
			orphan, any why.Code // with all definitions, and without
		}{
			{p.ticks.ID("1"), why.Orphan, why.NeedsTrigger}, {p.hands.ID("1"), why.NeedsTrigger, why.NeedsTrigger},
			{p.mails.ID("1"), why.Orphan, why.Orphan}, {p.orders.ID("sleep"), why.Orphan, why.Orphan}, {p.orders.ID("signal"), why.Orphan, why.Orphan},
		} {
			o, err := store.Find(c.id)
			s.OK(err)
			row, armed, err := store.Alarm(o)
			s.OK(err)
			if armed {
				disarm(s, store, o, row)
			}
			for defs, want := range map[bool]why.Code{true: c.orphan, false: c.any} {
				src := why.Cold(store, s.Now())
				if defs {
					src = why.Cold(store, s.Now(), p.definitions()...)
				}
				a, err := why.Job(ctx, src, c.id)
				s.OK(err)
				if len(a.Also) == 0 || a.Also[0].Code != want || slices.Contains(a.Holds(), why.IdleByDesign) {
					s.Errorf("%s: %v, want %s", c.id, a.Holds(), want)
				}
			}
		}
	}, harness.Shards(2))
}

func second[T any](_ T, err error) error { return err }

// disarm takes away an alarm and its entry in the index.
func disarm(s *harness.Sim, store *storage.Store, o storage.Object, row []byte) {
	r, err := alarm.DecodeRow(row)
	s.OK(err)
	due := r.Due.UnixNano()
	var b storage.Batch
	b.MoveAlarm(o, &due, nil, nil, nil)
	ticket, err := store.Commit(&b)
	s.OK(errors.Join(err, store.WaitDurable(ticket)))
}
