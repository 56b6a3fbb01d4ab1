package object_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/object"
)

// worker is an object that needs a permit for each of its works.
type worker struct {
	st    *object.State
	queue *workers
}

// workers is the class of workers, and a record of their works.
type workers struct {
	s       *harness.Sim
	class   *object.Class[worker]
	begin   *object.Method[string, bool]
	look    *object.Method[func(*object.State), bool]
	change  *object.Method[time.Duration, bool] // of the alarm; 0: it is deleted
	started []string
	full    int // how often the alarm of the worker "full" finds a full disk
}

func newWorkers(s *harness.Sim, limit object.WorkLimit) *workers {
	w := &workers{s: s}
	w.class = object.Define("worker", func(_ context.Context, st *object.State) (*worker, error) {
		return &worker{st, w}, nil
	}, object.ClassOptions{WorkLimit: limit})
	w.begin = object.Handle(w.class, "begin", (*worker).begin)
	w.change = object.Handle(w.class, "change", func(w *worker, ctx context.Context, after time.Duration) (bool, error) {
		if after == 0 {
			return true, w.st.DeleteAlarm(ctx)
		}
		return true, w.st.SetAlarm(ctx, w.st.Now().Add(after))
	})
	w.look = object.Handle(w.class, "look", func(w *worker, _ context.Context, see func(*object.State)) (bool, error) {
		see(w.st)
		return true, nil
	})
	s.Host(w.class)
	return w
}

// begin takes a permit, and then does as how says.
func (w *worker) begin(ctx context.Context, how string) (bool, error) {
	free, err := w.st.Driver().TakePermit(ctx, how == "first")
	if err != nil {
		return false, err
	}
	if !free {
		return false, w.st.SetAlarm(ctx, w.st.Now())
	}
	switch how {
	case "error":
		return true, errors.New("boom")
	case "panic":
		panic("boom")
	case "unused":
		return true, nil
	case "block":
		return true, w.st.BlockConcurrencyWhile(ctx, func(context.Context) error { return errors.New("boom") })
	}
	if again, err := w.st.Driver().TakePermit(ctx, false); !again || err != nil {
		return false, errors.New("a turn is refused the permit that it has")
	}
	err = w.st.Go(ctx, "work", func(context.Context) {
		w.queue.started = append(w.queue.started, w.st.Name())
		w.queue.s.Sleep(time.Second)
		if how == "goexit" {
			panic("boom")
		}
	})
	if how == "start, error" && err == nil {
		err = errors.New("boom")
	}
	return true, err
}

func (w *worker) Alarm(ctx context.Context, _ object.AlarmInfo) error {
	if w.st.Name() == "idle" { // it does not use its permit
		return nil
	}
	if w.st.Name() == "full" && w.queue.full > 0 {
		w.queue.full--
		return object.ErrNoSpace
	}
	_, err := w.begin(ctx, "start")
	return err
}

// Proves J16: a turn that fails, panics or starts no work gives its permit back, and so
// does a work that panics. An alarm handler that takes no permit keeps none.
func TestPermitsComeBack(t *testing.T) {
	for _, how := range []string{"error", "panic", "unused", "block", "start, error", "goexit"} {
		t.Run(how, func(t *testing.T) {
			harness.Run(t, func(s *harness.Sim) {
				w := newWorkers(s, object.WorkLimit{AtOnce: 1})
				_, _ = w.begin.Call(s.Context(), s, "a", how)
				s.Advance(2 * time.Second)
				free, err := w.begin.Call(s.Context(), s, "b", "start")
				s.OK(err)
				s.Always("the permit is back", free)
				for _, name := range []string{"idle", "c"} {
					free, err = w.begin.Call(s.Context(), s, name, "start")
					s.OK(err)
					s.Always("one at a time", !free)
				}
				s.Advance(2500 * time.Millisecond)
				n := len(w.started)
				s.Always("the next in line", n >= 2 && w.started[n-2] == "b" && w.started[n-1] == "c", w.started)
			})
		})
	}
}

// Proves J16: an object that asks to go first goes before those that wait, though it was
// refused after them.
func TestRefusedFirst(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		w := newWorkers(s, object.WorkLimit{AtOnce: 1})
		for _, c := range [][2]string{{"a", "start"}, {"b", "start"}, {"c", "start"}, {"d", "first"}} {
			_, err := w.begin.Call(s.Context(), s, c[0], c[1])
			s.OK(err)
			s.Advance(time.Millisecond)
		}
		s.Advance(5 * time.Second)
		s.Always("in order", len(w.started) == 4 && w.started[1] == "d" && w.started[2] == "b" && w.started[3] == "c", w.started)
	})
}

// collected is metrics that were collected. A registry asks for them in a goroutine of
// its own, which a simulation does not know.
type collected []prometheus.Metric

func collectNow(c prometheus.Collector) (all collected) {
	out := make(chan prometheus.Metric, 1000)
	c.Collect(out)
	close(out)
	for m := range out {
		all = append(all, m)
	}
	return all
}

func (collected) Describe(chan<- *prometheus.Desc) {}

func (all collected) Collect(out chan<- prometheus.Metric) {
	for _, m := range all {
		out <- m
	}
}

// Proves J16: metrics tell how many works have a permit, and how many alarms wait.
func TestPermitMetrics(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		w := newWorkers(s, object.WorkLimit{AtOnce: 2})
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			_, err := w.begin.Call(s.Context(), s, name, "start")
			s.OK(err)
		}
		s.Advance(time.Millisecond)
		for _, want := range []map[string]float64{
			{"holdfast_works_permitted": 2, "holdfast_works_waiting": 3},
			{"holdfast_works_permitted": 0, "holdfast_works_waiting": 0},
		} {
			s.OK(s.WithHost(func(_ context.Context, h *object.Host) error {
				registry := prometheus.NewPedanticRegistry()
				registry.MustRegister(collectNow(h.Collector()))
				families, err := registry.Gather()
				for _, family := range families {
					if value, ok := want[family.GetName()]; ok {
						got := family.GetMetric()[0].GetGauge().GetValue()
						s.Always(family.GetName(), got == value, got, value)
						delete(want, family.GetName())
					}
				}
				s.Always("all are gathered", len(want) == 0, want)
				return err
			}))
			s.Advance(4 * time.Second)
		}
	})
}

// Proves J17: permits that were not used do not slow the start rate.
func TestUnusedPermitsKeepTheRate(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		w := newWorkers(s, object.WorkLimit{StartRate: object.StartRate{Starts: 1, Per: time.Second, Burst: 1}})
		for range 10 {
			free, err := w.begin.Call(s.Context(), s, "a", "unused")
			s.OK(err)
			s.Always("free", free)
		}
		free, err := w.begin.Call(s.Context(), s, "a", "start")
		s.OK(err)
		s.Always("free", free)
		free, err = w.begin.Call(s.Context(), s, "b", "start")
		s.OK(err)
		s.Always("too early", !free)
		s.Advance(time.Second - 1)
		s.Always("too early by a nanosecond", len(w.started) == 1, w.started)
		s.Advance(time.Millisecond)
		s.Always("in time", len(w.started) == 2, w.started)
		s.Advance(10 * time.Second)
		for _, name := range []string{"c", "d"} {
			free, err = w.begin.Call(s.Context(), s, name, "start")
			s.OK(err)
			s.Always("a pause saves up no more than Burst", free == (name == "c"), name)
		}
	})
}

// Proves J16: an object awaits a permit after a refusal and while it waits in line. An
// object of a class without a limit never does. Only a turn of the object takes a permit.
func TestAwaitsPermit(t *testing.T) {
	for _, limit := range []int{0, 1} {
		harness.Run(t, func(s *harness.Sim) {
			w := newWorkers(s, object.WorkLimit{AtOnce: limit})
			awaits := func(name string) (yes bool) {
				_, err := w.look.Call(s.Context(), s, name, func(st *object.State) {
					if free, err := st.Driver().TakePermit(context.Background(), false); free || !errors.Is(err, object.ErrNoTurn) {
						s.Fatalf("a permit for no turn: %v, %v", free, err)
					}
					yes = st.Driver().AwaitsPermit()
				})
				s.OK(err)
				return yes
			}
			for _, name := range []string{"a", "b"} {
				_, err := w.begin.Call(s.Context(), s, name, "start")
				s.OK(err)
				s.Always(name, awaits(name) == (limit == 1 && name == "b"), name)
			}
			s.Advance(time.Millisecond)
			s.Always("b is in line", awaits("b") == (limit == 1))
			s.Advance(1500 * time.Millisecond)
			s.Always("b runs", !awaits("b"))
		})
	}
}

// Proves O17, J16: an alarm that has come out of the line and finds a full disk comes
// again after a second.
func TestFullDiskAfterTheLine(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		w := newWorkers(s, object.WorkLimit{AtOnce: 1})
		w.full = 1
		for _, name := range []string{"a", "full"} {
			_, err := w.begin.Call(s.Context(), s, name, "start")
			s.OK(err)
		}
		s.Advance(1500 * time.Millisecond)
		s.Always("it found the disk full", w.full == 0 && len(w.started) == 1, w.started)
		s.Advance(500*time.Millisecond - 1)
		s.Always("it has not come again", len(w.started) == 1, w.started)
		s.Advance(1)
		s.Always("it has come again", len(w.started) == 2, w.started)
	})
}

// Proves O17, J16: an alarm comes out of the line, finds a full disk, and is then deleted
// or set anew. It does not come again at the old time.
func TestFullDiskAndThenAnotherAlarm(t *testing.T) {
	for _, again := range []time.Duration{0, time.Hour} {
		harness.Run(t, func(s *harness.Sim) {
			w := newWorkers(s, object.WorkLimit{AtOnce: 1})
			w.full = 1
			for _, name := range []string{"a", "full"} {
				_, err := w.begin.Call(s.Context(), s, name, "start")
				s.OK(err)
			}
			s.Advance(1500 * time.Millisecond)
			s.Always("it found the disk full", w.full == 0 && len(w.started) == 1, w.started)
			_, err := w.change.Call(s.Context(), s, "full", again)
			s.OK(err)
			s.Advance(time.Minute)
			s.Always("nothing has come", len(w.started) == 1, w.started)
			s.Advance(2 * time.Hour)
			s.Always("the other has come", len(w.started) == 1+int(again/time.Hour), w.started)
		})
	}
}

// Proves J17: those that wait start when the rate lets them, however long works run.
func TestRateWhileWorksRun(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		w := newWorkers(s, object.WorkLimit{StartRate: object.StartRate{Starts: 1, Per: 100 * time.Millisecond, Burst: 1}})
		for _, name := range []string{"a", "b", "c", "d"} {
			_, err := w.begin.Call(s.Context(), s, name, "start")
			s.OK(err)
		}
		for i := range 4 { // each work runs for a second
			s.Always("as many as the rate lets", len(w.started) == i+1, w.started)
			s.Advance(100 * time.Millisecond)
		}
	})
}
