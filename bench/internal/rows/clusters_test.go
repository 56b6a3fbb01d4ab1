package rows

import (
	"bytes"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
)

// A row with a setting as its reference is judged beside that, on both sides of each bound, and is never noisy.
func TestSetReference(t *testing.T) {
	targets := []Target{times(1.4, 0, "p50"), p99Times(4, "p99")}
	for _, c := range []struct {
		p50, p99 float64 // milliseconds
		misses   string
	}{{3500, 10_000, ""}, {3501, 10_000, "p50"}, {3500, 10_001, "p99"}, {3501, 10_001, "p50 p99"}} {
		r := (&Case{Set: silence, Against: "the silence", Unit: "ms", Targets: targets}).
			result([]Sample{{Value: c.p50, Lat: &measure.Quantiles{P50: c.p50 * 1e3, P99: c.p99 * 1e3}}}, nil)
		if got := strings.Join(r.Misses, " "); got != c.misses || r.Verdict == NoReference {
			t.Errorf("p50 %v ms, p99 %v ms: misses %q, want %q; verdict %s", c.p50, c.p99, got, c.misses, r.Verdict)
		}
		if r.Reference == nil || r.Reference.Median != 2500 || r.Ratio != c.p50/2500 || r.Noisy || r.ProcessorRatio != 0 {
			t.Errorf("%+v beside %+v", r, r.Reference)
		}
	}
	if r := (&Case{Set: silence, Targets: targets[1:]}).result([]Sample{{Value: 1}}, nil); r.Verdict != Missed {
		t.Errorf("without latencies the verdict is %s", r.Verdict)
	}
}

// A dead process has a target of its own.
func TestDeadProcess(t *testing.T) {
	for at, want := range map[float64]Verdict{700: Reached, 701: Missed} {
		r := p50Killed(Small)[0].result([]Sample{{Value: at, Lat: &measure.Quantiles{P99: at * 1e3}}}, nil)
		if r.Verdict != want {
			t.Errorf("%v ms: %s, want %s", at, r.Verdict, want)
		}
	}
}

// Fail-overs are summed up as their median, in milliseconds, with the slowest as p99 of so few, and with the terms that began without one.
func TestFailOversSummedUp(t *testing.T) {
	s := summed([]time.Duration{3 * time.Second, time.Second, 9 * time.Second, 2 * time.Second}, 7, 2)
	if s.Value != 2500 || s.Counts["fail-overs"] != 4 || s.Counts["false terms"] != 2 || s.Costs[measure.ProcessorNanos] != 7 {
		t.Errorf("%+v", s)
	}
	if s.Lat.Count != 4 || s.Lat.P99 < 8.9e6 || s.Lat.P99 > 9.1e6 { // two digits
		t.Errorf("latencies %+v", s.Lat)
	}
}

// Counts are those of all rounds together, in the JSON and in a line below the table.
func TestCounts(t *testing.T) {
	r := (&Case{ID: "P49", What: "what", Size: "objects=5"}).result([]Sample{
		{Value: 1, Counts: Counts{"snapshots": 3, "MiB uploaded": 0.5}}, {Value: 2, Counts: Counts{"snapshots": 4}}, {Value: 3},
	}, []Sample{{Value: 1, Counts: Counts{"snapshots": 100}}})
	if len(r.Counts) != 2 || r.Counts["snapshots"] != 7 || r.Counts["MiB uploaded"] != 0.5 {
		t.Errorf("%v", r.Counts)
	}
	var table, text bytes.Buffer
	if err := errors.Join(WriteTable(&table, []*Result{r}), measure.WriteJSON(&text, []*Result{r})); err != nil {
		t.Fatal(err)
	}
	if want := "counted: P49 objects=5: MiB uploaded 0.5, snapshots 7\n"; !strings.Contains(table.String(), want) {
		t.Errorf("the table lacks %q:\n%s", want, table.String())
	}
	if want := `"snapshots": 7`; !strings.Contains(text.String(), want) {
		t.Errorf("the JSON lacks %s:\n%s", want, text.String())
	}
	if r := (&Case{}).result([]Sample{{Value: 1}}, nil); r.Counts != nil {
		t.Errorf("nothing was counted: %v", r.Counts)
	}
}

// A round goes on for its time and until it has seen enough, whichever is later, and fails if that does not come.
func TestAtLeastSo(t *testing.T) {
	errBad := errors.New("bad")
	for about, c := range map[string]struct {
		enoughAfter time.Duration // the operations take one second
		fails       error
		want        time.Duration
		err         string
	}{
		"enough early": {time.Second, nil, 10 * time.Second, ""},
		"enough late":  {20 * time.Second, nil, 20 * time.Second, ""},
		"at the limit": {snapshotMost + 9*time.Second, nil, snapshotMost + 9*time.Second, ""},
		"never":        {time.Hour, nil, 0, "too few snapshots"},
		"an error":     {time.Hour, errBad, 0, "bad"},
	} {
		t.Run(about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var ops atomic.Int64
				begin := time.Now()
				run, err := atLeastSo(t.Context(), 2, 10*time.Second, func() bool { return time.Since(begin) >= c.enoughAfter }, func(int) error {
					time.Sleep(time.Second)
					ops.Add(1)
					return c.fails
				})
				if c.err != "" {
					if err == nil || !strings.Contains(err.Error(), c.err) {
						t.Errorf("error %v, want %q", err, c.err)
					}
					return
				}
				if err != nil || run.Elapsed != c.want || run.Ops != ops.Load() || run.Ops != 2*int64(c.want/time.Second) {
					t.Errorf("%d operations in %v, want %v: %v", run.Ops, run.Elapsed, c.want, err)
				}
			})
		})
	}
}
