package object_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/holdfast-dev/holdfast/internal/metric"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// A host gathers each metric of the table that is its own, with the labels of the table, and no
// other. In memory there is no free space to tell of.
func TestMetrics(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t, object.ClassOptions{IdleAfter: time.Minute, WorkLimit: object.WorkLimit{AtOnce: 1}}).open()
		defer f.close()
		busyHost(t, f)

		wantTable(t, f.host, metric.StorageFree, metric.StorageFloor)
		wantValues(t, f, map[string]float64{
			`holdfast_turns_total done`:            5, // two calls that set alarms, one that sets a label, two that only succeed
			`holdfast_turns_total failed`:          4, // a call, an alarm that was tried once, one that was tried twice
			`holdfast_turns_total panicked`:        1,
			`holdfast_alarm_retries_total`:         1,
			`holdfast_dead_letters_total`:          2,
			`holdfast_evictions_total`:             6,
			`holdfast_objects_live`:                0,
			`holdfast_calls_waiting`:               0,
			`holdfast_busy`:                        0,
			`holdfast_commits_not_durable`:         0,
			`holdfast_alarms_in_flight`:            0,
			`holdfast_recoveries_total retry test`: 1,
			`holdfast_executions_total success`:    1,
			`holdfast_repeats_total`:               2,
			`holdfast_entries_read_total`:          10,
			`holdfast_works_permitted`:             0,
			`holdfast_works_waiting`:               0,
			`holdfast_tasks_pending`:               3,
			`holdfast_tasks_running`:               2,
			`holdfast_tasks_dead`:                  1,
			`holdfast_tasks_ready_age_seconds`:     3600, // the object has left memory long ago
		})
	})
}

// wantTable compares the metrics that a host gathers with the table, but for the metrics that are missing.
func wantTable(t *testing.T, h *object.Host, missing ...*metric.Metric) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(h.Collector())
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for _, family := range families {
		var labels []string
		for _, l := range family.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		got = append(got, fmt.Sprint(family.GetName(), " ", strings.ToLower(family.GetType().String()), labels, " ", family.GetHelp()))
	}
	for _, m := range metric.All() {
		if !m.OfServer() && !slices.Contains(missing, m) {
			want = append(want, fmt.Sprint(m.Name, " ", m.Kind, slices.Sorted(slices.Values(m.Labels)), " ", m.Help))
		}
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the table (-) and what the host gathers (+):\n%s", diff)
	}
}

// busyHost makes one thing of each kind happen, and then waits until all is idle.
func busyHost(t *testing.T, f *fixture) {
	f.handleAlarm(func(th *thing, _ context.Context, info object.AlarmInfo) error {
		if th.st.Name() == "retried" && info.Attempt == 1 {
			return errors.New("no")
		}
		return object.Permanent(errors.New("no"))
	})
	f.must("retried", setAlarm(time.Second))
	f.must("dead", setAlarm(time.Second))
	f.must("recovered", func(th *thing, ctx context.Context) (any, error) {
		return nil, th.st.Driver().Recovered(ctx, object.Recovery{Cause: "test", Action: "retry", Age: time.Minute})
	})
	f.must("executed", func(th *thing, _ context.Context) (any, error) {
		th.st.Driver().CountExecution("success")
		th.st.Driver().CountRepeat(7)
		th.st.Driver().CountRepeat(3)
		b := th.st.Driver().Backlog()
		b.Set(object.Tasks{Pending: 3, Running: 2, Dead: 1, ReadySince: th.st.Now().UnixNano()})
		b.Waited(time.Second)
		b.Ran(time.Second)
		return nil, nil
	})
	f.must("labelled", both(put("k", "v"), setLabel("failed")))
	f.call("failed", func(*thing, context.Context) (any, error) { return nil, errors.New("no") })
	f.call("failed", func(*thing, context.Context) (any, error) { panic("no") })
	time.Sleep(time.Hour)
	synctest.Wait()
}

// wantValues compares metrics of the host, named with the value of their last
// label if they have one beside the class.
func wantValues(t *testing.T, f *fixture, want map[string]float64) {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(f.host.Collector())
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			name := family.GetName()
			for _, l := range m.GetLabel() {
				if l.GetName() != "class" {
					name += " " + l.GetValue()
				}
			}
			got[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	for name, v := range want {
		if got[name] != v {
			t.Errorf("%s is %v, want %v", name, got[name], v)
		}
	}
}

// An alarm counts as recovered if its handler was cut off by the end of the process.
func TestMetricOfAnAlarmCutOff(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		survives := f.mem
		f.handleAlarm(func(*thing, context.Context, object.AlarmInfo) error {
			survives = f.mem.Crash(0) // as it is when the process dies in the handler
			return nil
		})
		f.must("a", setAlarm(time.Second))
		pass(2 * time.Second)
		f.close()
		f.mem = survives
		f.open()
		defer f.close()
		wantValues(t, f, map[string]float64{"holdfast_recoveries_total re-run alarm_cut_off": 1})
	})
}

// Two registrations of one host in a registry are refused; two hosts need
// registries, or labels, of their own.
func TestMetricsOfTwoHosts(t *testing.T) {
	f, g := newFixture(t).open(), newFixture(t).open()
	defer f.close()
	defer g.close()
	registry := prometheus.NewRegistry()
	for name, h := range map[string]*object.Host{"f": f.host, "g": g.host} {
		prometheus.WrapRegistererWith(prometheus.Labels{"store": name}, registry).MustRegister(h.Collector())
	}
	if _, err := registry.Gather(); err != nil {
		t.Error(err)
	}
}

// A store in a directory tells the free space of its disk, and its floor, unless it is told not to
// watch them.
func TestMetricsOfSpace(t *testing.T) {
	for _, floor := range []int64{0, 1, -1} {
		h, err := object.Open(object.Options{Dir: t.TempDir(), Storage: storage.Options{MinFreeBytes: floor}})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]float64{}
		registry := prometheus.NewRegistry()
		registry.MustRegister(h.Collector())
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, family := range families {
			got[family.GetName()] = family.GetMetric()[0].GetGauge().GetValue()
		}
		if err := h.Shutdown(context.Background()); err != nil {
			t.Fatal(err)
		}
		free, watched := got[metric.StorageFree.Name]
		want := map[int64]float64{0: 192 << 20, 1: 1}[floor]
		if got[metric.StorageFloor.Name] != want || watched != (floor >= 0) || watched && free < want {
			t.Errorf("floor %d: free %v (watched %v), floor %v", floor, free, watched, got[metric.StorageFloor.Name])
		}
	}
}

// The metrics have the time of the Open, so that alerts see a restart after which a counter has the
// same value as before.
func TestMetricOpened(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for range 2 {
			f := newFixture(t).open()
			opened := float64(time.Now().UnixMilli()) / 1e3
			pass(1500 * time.Millisecond)
			wantValues(t, f, map[string]float64{"holdfast_opened_timestamp_seconds": opened})
			if err := f.host.Shutdown(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// The host is up until an error of the store, or a Shutdown, has ended it.
func TestMetricUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, fails := range []bool{true, false} {
			f := newFixture(t)
			d := f.slow()
			f.open()
			f.must("a", put("k", "v"))
			wantValues(t, f, map[string]float64{"holdfast_up": 1})
			if d.fail.Store(fails); fails {
				if _, err := f.call("a", put("k", "w")); !errors.Is(err, object.ErrStorage) {
					t.Error(err)
				}
				synctest.Wait() // the host ends beside the answer
				wantValues(t, f, map[string]float64{"holdfast_up": 0})
			}
			_ = f.host.Shutdown(context.Background()) // returns the error of the store
			wantValues(t, f, map[string]float64{"holdfast_up": 0})
		}
	})
}

// The bucket that the alert HoldfastStale asks for is one of the histogram.
func TestBucketOfTheAlert(t *testing.T) {
	rules, err := os.ReadFile("../ops/prometheus/holdfast.rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.close()
		f.must("recovered", func(th *thing, ctx context.Context) (any, error) {
			return nil, th.st.Driver().Recovered(ctx, object.Recovery{Cause: "test", Age: time.Minute})
		})
		registry := prometheus.NewRegistry()
		registry.MustRegister(f.host.Collector())
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		asked := 0
		for _, family := range families {
			if family.GetName() != metric.StaleSeconds.Name {
				continue
			}
			for _, b := range family.GetMetric()[0].GetHistogram().GetBucket() {
				asked += strings.Count(string(rules), fmt.Sprintf("%s_bucket{le=%q}", family.GetName(), fmt.Sprint(b.GetUpperBound())))
			}
		}
		if want := strings.Count(string(rules), metric.StaleSeconds.Name+"_bucket"); asked != want || want == 0 {
			t.Errorf("%d of the %d buckets that the rules ask for exist", asked, want)
		}
	})
}
