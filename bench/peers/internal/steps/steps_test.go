package steps

import (
	"context"
	"encoding/json"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/bench/peers/internal/figure"
	"github.com/holdfast-dev/holdfast/bench/peers/internal/queue"
)

// memory is a system whose steps are calls of the timer.
type memory struct {
	timer Timer
	lost  int // steps that the timer is not told of
	steps atomic.Int64
	runs  atomic.Int64
}

func (m *memory) Run(_ context.Context, n int) error {
	m.runs.Add(1)
	m.steps.Add(int64(n))
	last := time.Now()
	for range n - m.lost {
		last = m.timer.Step(last)
	}
	return nil
}

func (m *memory) Alone(ctx context.Context, n int) (measure.Quantiles, error) {
	m.timer.Begin()
	err := m.Run(ctx, n)
	return m.timer.End(), err
}

// report is a Reporter and the file to which it appends.
func report(t *testing.T) (*figure.Reporter, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "figures")
	flags := flag.NewFlagSet("", flag.PanicOnError)
	r := figure.Flags(flags)
	if err := flags.Parse([]string{"-figures", path, "-system", "memory"}); err != nil {
		t.Fatal(err)
	}
	return r, path
}

var load = queue.Load{For: 10 * time.Millisecond, Alone: 40, Steps: 7, Runs: 90}

// TestMeasure gives a system each workload, and has a figure of each and of its processor
// time.
func TestMeasure(t *testing.T) {
	r, path := report(t)
	m := &memory{}
	if err := Measure(t.Context(), m, load, nil, r); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	figures, err := figure.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{"step": 40, "step processor": 40, "steps": 7, "steps processor": 7, "runs": 90, "runs processor": 90}
	for _, f := range figures {
		n, ok := want[f.Workload]
		if processor := strings.HasSuffix(f.Workload, "processor"); !ok || n != f.N || f.Value <= 0 && !processor {
			t.Errorf("%+v", f)
		}
		delete(want, f.Workload)
	}
	if len(want) > 0 {
		t.Errorf("no figure of %v", want)
	}
	if runs := m.runs.Load(); runs < queue.Callers+1+queue.Callers+90 {
		t.Errorf("%d runs: some workload had not as many at a time as it should", runs)
	}
	for _, f := range figures {
		if !strings.Contains(known(), "|"+f.Workload+"|") {
			t.Errorf("the table leaves out %q", f.Workload)
		}
	}
}

// known are the ids of the workloads that the table shows, each between bars.
func known() string {
	ids := "|"
	for _, w := range figure.Workloads {
		ids += w.ID + "|"
	}
	return ids
}

// TestLostSteps has no figure of steps of which some were not timed.
func TestLostSteps(t *testing.T) {
	r, path := report(t)
	err := Alone(t.Context(), &memory{lost: 1}, load, nil, r)
	if err == nil || !strings.Contains(err.Error(), "of 40 steps 39 were timed") {
		t.Errorf("a lost step is told as %v", err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("there is a figure all the same")
	}
}

// TestTimer records between Begin and End alone, also over HTTP.
func TestTimer(t *testing.T) {
	timer := &Timer{}
	timer.Step(time.Now())
	if q := timer.End(); q.Count != 0 {
		t.Errorf("before Begin %d steps were recorded", q.Count)
	}
	server := httptest.NewServer(timer)
	defer server.Close()
	res, err := http.Post(server.URL, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	for range 3 {
		timer.Step(time.Now().Add(-time.Second))
	}
	if res, err = http.Get(server.URL); err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var q measure.Quantiles
	if err := json.NewDecoder(res.Body).Decode(&q); err != nil {
		t.Fatal(err)
	}
	if q.Count != 3 || q.P50 < 0.95e6 {
		t.Errorf("three steps of a second are told as %+v", q)
	}
	timer.Step(time.Now())
	if q := timer.End(); q.Count != 0 {
		t.Errorf("after End %d steps were recorded", q.Count)
	}
}
