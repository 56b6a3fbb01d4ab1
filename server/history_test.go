package server

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/holdfast-dev/holdfast/internal/metric"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server/dashboard"
	"github.com/holdfast-dev/holdfast/storage"
)

// collectors are some as one.
type collectors []prometheus.Collector

func (c collectors) Describe(chan<- *prometheus.Desc) {}

func (c collectors) Collect(out chan<- prometheus.Metric) {
	for _, one := range c {
		one.Collect(out)
	}
}

// The history tells executions a minute, the rate of a class of late, and the calls that wait, of an hour at most.
func TestHistory(t *testing.T) {
	ended := prometheus.NewCounterVec(prometheus.CounterOpts{Name: metric.Executions.Name}, metric.Executions.Labels)
	waits := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: metric.CallsWaiting.Name}, metric.CallsWaiting.Labels)
	ages := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: metric.CallsWaitingAge.Name}, metric.CallsWaitingAge.Labels)
	h := newHistory(collectors{ended, waits, ages})
	begin := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	if h.throughput() != nil || h.rate("a") != 0 {
		t.Error("a history without samples tells something")
	}
	add := func(class, outcome string, n int) { ended.WithLabelValues(class, outcome).Add(float64(n)) }
	for i := range maxSamples + 6 { // the first minute is gone
		h.take(begin.Add(time.Duration(i) * sampleEvery))
		add("a", "done", 2)
		add("b", "quit", 1)
		add("b", "snoozed", 5)
		add("b", "cancelled", 5)
		if i%6 == 0 {
			add("b", "gave_up", 1)
			add("a", "again", 1)
			add("a", "recover", 1)
		}
	}
	all := h.throughput()
	want := dashboard.Minute{From: begin.Add(time.Minute), To: begin.Add(2 * time.Minute), Done: 18, Failed: 3}
	if len(all) != 60 || all[0] != want || all[59].Done != 18 {
		t.Errorf("%d minutes, the first is %+v", len(all), all[0])
	}
	if got := h.rate("a"); got != 0.2 {
		t.Errorf("%v a second", got)
	}
	if got, _ := h.waits(); got != nil {
		t.Errorf("%v waits", got)
	}
	for class, age := range map[string]float64{"a": 1, "b": 2.5, "c": 0} {
		waits.WithLabelValues(class).Set(age * 4)
		ages.WithLabelValues(class).Set(age)
	}
	now := begin.Add(24 * time.Hour)
	h.take(now)
	got, at := h.waits()
	if d := cmp.Diff([]dashboard.Waits{{Class: "b", Calls: 10, Longest: 2500 * time.Millisecond}, {Class: "a", Calls: 4, Longest: time.Second}}, got); d != "" || at != now {
		t.Error(d, at)
	}
}

// A pool is empty in the time that its tasks take at its rate, as far as that is known.
func TestEmptyIn(t *testing.T) {
	for _, c := range []struct {
		tasks uint64
		rate  float64
		want  time.Duration
	}{{0, 2, 0}, {3, 0, 0}, {3, 2, 2 * time.Second}, {7200, 0.5, 4 * time.Hour}} {
		if got := emptyIn(c.tasks, c.rate); got != c.want {
			t.Errorf("%d tasks at %v/s: %v, want %v", c.tasks, c.rate, got, c.want)
		}
	}
}

// The history takes a sample every ten seconds until the host has ended.
func TestHistoryIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, done := newHistory(collectors{}), make(chan struct{})
		go h.run(done)
		for n := 0; n <= 3; n++ {
			synctest.Wait()
			if got := len(h.newest()); got != n {
				t.Errorf("%d samples, want %d", got, n)
			}
			time.Sleep(sampleEvery)
		}
		close(done)
	})
}

// sleeper is an object with an alarm.
type sleeper struct{ st *object.State }

func (*sleeper) Alarm(context.Context, object.AlarmInfo) error { return nil }

// The first page has the alarms that are due next, the next first, and the executions that are open, the oldest first.
func TestOverviewTellsOfWork(t *testing.T) {
	sleepers := object.Define("sleeper", func(_ context.Context, st *object.State) (*sleeper, error) { return &sleeper{st}, nil })
	object.Handle(sleepers, "until", func(s *sleeper, ctx context.Context, at time.Time) (struct{}, error) {
		return struct{}{}, s.st.SetAlarm(ctx, at)
	})
	began, over := make(chan struct{}, 9), make(chan struct{})
	defer close(over)
	reports := continuous.New(continuous.Config[int]{Name: "report", Run: func(ctx context.Context, _ *continuous.Run[int]) error {
		began <- struct{}{}
		<-over
		return nil
	}})
	f := start(t, nil, sleepers, reports)
	now := f.host.Seams().Clock.Now()
	for i := shownNext + 2; i > 0; i-- {
		at := marshal(t, now.Add(time.Duration(i)*time.Hour))
		if _, err := f.host.CallBytes(t.Context(), "sleeper", fmt.Sprintf("s%02d", i), "until", at); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"second", "first"} { // the order of time is not that of names
		if _, err := reports.Start(t.Context(), f.host, name, 0); err != nil {
			t.Fatal(err)
		}
		<-began
	}
	open, total, err := executing(t.Context(), f.host.Store())
	if err != nil || total != 2 || len(open) != 2 || open[0].ID.Name != "second" || open[1].ID.Name != "first" {
		t.Error(open, total, err)
	}
	list, err := upcoming(f.host.Store(), now.Add(59*time.Minute)) // the leases of the reports end before
	if err != nil || len(list) != shownNext {
		t.Fatal(list, err)
	}
	for i, d := range list {
		if want := (storage.ID{Class: "sleeper", Name: fmt.Sprintf("s%02d", i+1)}); d.ID != want {
			t.Errorf("%d: %v, want %v", i, d.ID, want)
		}
	}
	a := f.ask("viewer", "GET", "/ui/overview", "")
	for _, want := range []string{"Of 2 open executions", "report/second", "No call waits.", "sleeper/s01"} {
		if !strings.Contains(a.body, want) {
			t.Errorf("there is no %q on %s", want, a.body)
		}
	}
}
