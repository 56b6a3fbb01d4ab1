package object_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/holdfast-dev/holdfast/object"
)

// metricRow is a row of the table of metrics in docs/OPERATIONS.md.
var metricRow = regexp.MustCompile("(?m)^\\| `(holdfast_\\w+)` \\|([^|]*)\\|")

// Every metric stands in the table of docs/OPERATIONS.md with its labels, and each
// metric of the table is gathered.
func TestMetrics(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t, object.ClassOptions{IdleAfter: time.Minute, WorkLimit: object.WorkLimit{AtOnce: 1}}).open()
		defer f.close()
		busyHost(t, f)

		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(f.host.Collector())
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, family := range families {
			var labels []string
			for _, l := range family.GetMetric()[0].GetLabel() {
				labels = append(labels, l.GetName())
			}
			got[family.GetName()] = strings.Join(labels, ", ")
			if family.GetHelp() == "" {
				t.Errorf("%s has no help text", family.GetName())
			}
		}
		want := map[string]string{}
		page, err := os.ReadFile("../docs/OPERATIONS.md")
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range metricRow.FindAllStringSubmatch(string(page), -1) {
			want[row[1]] = strings.TrimSpace(row[2])
		}
		for _, name := range slices.Sorted(maps.Keys(got)) {
			if labels, ok := want[name]; !ok {
				t.Errorf("docs/OPERATIONS.md has no row for %s", name)
			} else if labels != got[name] {
				t.Errorf("docs/OPERATIONS.md gives %s the labels %q, it has %q", name, labels, got[name])
			}
		}
		for _, name := range slices.Sorted(maps.Keys(want)) {
			if _, ok := got[name]; !ok {
				t.Errorf("docs/OPERATIONS.md has a row for %s, which is not gathered", name)
			}
		}
		wantValues(t, f, map[string]float64{
			`holdfast_turns_total done`:         5, // two calls that set alarms, one that sets a label, two that only succeed
			`holdfast_turns_total failed`:       4, // a call, an alarm that was tried once, one that was tried twice
			`holdfast_turns_total panicked`:     1,
			`holdfast_alarm_retries_total`:      1,
			`holdfast_dead_letters_total`:       2,
			`holdfast_evictions_total`:          6,
			`holdfast_objects_live`:             0,
			`holdfast_calls_waiting`:            0,
			`holdfast_busy`:                     0,
			`holdfast_commits_not_durable`:      0,
			`holdfast_alarms_in_flight`:         0,
			`holdfast_recoveries_total test`:    1,
			`holdfast_executions_total success`: 1,
			`holdfast_repeats_total`:            2,
			`holdfast_entries_read_total`:       10,
			`holdfast_works_permitted`:          0,
			`holdfast_works_waiting`:            0,
			`holdfast_tasks_pending`:            3,
			`holdfast_tasks_running`:            2,
			`holdfast_tasks_dead`:               1,
			`holdfast_tasks_ready_age_seconds`:  3600, // the object has left memory long ago
		})
	})
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
		return nil, th.st.Driver().Recovered(ctx, object.Recovery{Cause: "test", Age: time.Minute})
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
		wantValues(t, f, map[string]float64{"holdfast_recoveries_total alarm_cut_off": 1})
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
