package rows

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/bench/internal/workload"
	"github.com/holdfast-dev/holdfast/internal/testing/outside"
)

func TestMain(m *testing.M) {
	workload.Child() // P10, P11 and P25 run this program again
	os.Exit(m.Run())
}

// TestEachRowWorks measures each row as small as it gets. Its figures mean
// nothing, but both sides must do all their work and leave nothing behind.
func TestEachRowWorks(t *testing.T) {
	cases, err := Cases("", Tiny)
	if err != nil {
		t.Fatal(err)
	}
	e := &Env{Dir: t.TempDir(), For: 20 * time.Millisecond, Size: Tiny}
	seen := map[string]bool{}
	for _, c := range cases {
		seen[c.ID] = true
		t.Run(c.ID+" "+c.What+" "+c.Size, func(t *testing.T) {
			if c.Needs != nil {
				outside.Postgres(t)
			}
			r, err := c.Run(t.Context(), e, 1, func(int, int) {})
			if err != nil {
				t.Fatal(err)
			}
			// So small a heap may shrink meanwhile, by garbage of an earlier row.
			heap := c.Unit == "MiB"
			if !heap && r.Ours.Median <= 0 || c.Against != "" && (r.Reference == nil || !heap && r.Reference.Median <= 0) {
				t.Errorf("nothing was measured: %+v", r)
			}
			if measure.Processor() > 0 && (r.Processor <= 0 || c.Against != "" && c.Set == 0 && (r.ReferenceProcessor <= 0 || r.ProcessorRatio <= 0)) {
				t.Errorf("no processor time was measured: ours %v, reference %v", r.Processor, r.ReferenceProcessor)
			}
			if least := map[string]string{"P49": "snapshots", "P50": "fail-overs"}[c.ID]; least != "" && r.Counts[least] < 1 {
				t.Errorf("no %s were counted: %v", least, r.Counts)
			}
			if len(c.Targets) == 0 {
				t.Error("the row has no target")
			}
		})
	}
	for _, id := range IDs() {
		if !seen[id] {
			t.Errorf("no case of %s", id)
		}
	}
	left, err := os.ReadDir(e.Dir)
	if err != nil || len(left) > len(e.cache) {
		t.Errorf("%d directories are left, %d are kept for other cases: %v", len(left), len(e.cache), err)
	}
}

func TestCasesByID(t *testing.T) {
	cases, err := Cases(" p3,P10 ", Small)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		if c.ID != "P3" && c.ID != "P10" {
			t.Errorf("%s was not asked for", c.ID)
		}
	}
	if len(cases) != 4 {
		t.Errorf("%d cases, want 2 of P3 and 2 of P10", len(cases))
	}
	if _, err := Cases("P38", Small); err == nil || !strings.Contains(err.Error(), "P1 to P37") {
		t.Errorf("error %v", err)
	}
}

// TestVerdict judges by all targets, and does not judge without a reference.
func TestVerdict(t *testing.T) {
	at := func(v float64) []Sample {
		return []Sample{{Value: v, Lat: &measure.Quantiles{P50: v, P99: 2 * v}, Costs: measure.Costs{"allocs": v}}}
	}
	for _, c := range []struct {
		name      string
		targets   []Target
		ours, ref []Sample
		want      Verdict
		misses    int
	}{
		{"ratio reached", []Target{ratio(0.7)}, at(7), at(10), Reached, 0},
		{"ratio missed", []Target{ratio(0.7)}, at(6.9), at(10), Missed, 1},
		{"more than the reference", []Target{times(1, 15, "")}, at(25), at(10), Reached, 0},
		{"too much more", []Target{times(1, 15, "")}, at(25.1), at(10), Missed, 1},
		{"no reference", []Target{ratio(0.7)}, at(7), nil, NoReference, 0},
		{"no reference and a miss", []Target{ratio(0.7), atMost(6, "")}, at(7), nil, Missed, 1},
		{"without need of one", []Target{atMost(7, ""), atLeast(7, "")}, at(7), nil, Reached, 0},
		{"costs and latencies", []Target{cost("allocs", 6, ""), p50(6, ""), p99(13, "")}, at(7), nil, Missed, 3},
		{"nothing asked", nil, at(7), at(7), NoReference, 0},
	} {
		r := (&Case{Targets: c.targets}).result(c.ours, c.ref)
		if r.Verdict != c.want || len(r.Misses) != c.misses {
			t.Errorf("%s: %s, misses %q", c.name, r.Verdict, r.Misses)
		}
	}
}

// TestProcessorTime is the median of the rounds of each side, their ratio, and no
// longer one of the costs.
func TestProcessorTime(t *testing.T) {
	at := func(nanos ...float64) (samples []Sample) {
		for _, v := range nanos {
			samples = append(samples, Sample{Value: 1, Costs: measure.Costs{measure.ProcessorNanos: v, "syncs": 1}})
		}
		return samples
	}
	r := (&Case{ID: "P3"}).result(at(900, 1500, 1200), at(800, 600, 1000))
	if r.Processor != 1200 || r.ReferenceProcessor != 800 || r.ProcessorRatio != 1.5 || len(r.Costs) != 1 || len(r.ReferenceCosts) != 1 {
		t.Errorf("%+v", r)
	}
	if r := (&Case{}).result(at(900), nil); r.Processor != 900 || r.ProcessorRatio != 0 {
		t.Errorf("without a reference: %+v", r)
	}
	var table, text bytes.Buffer
	if err := errors.Join(WriteTable(&table, []*Result{r}), measure.WriteJSON(&text, []*Result{r})); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"processor: ours", "1.200 µs", "0.800 µs", "1.50"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, table.String())
		}
	}
	for _, want := range []string{`"processorNanos": 1200`, `"referenceProcessorNanos": 800`, `"processorRatio": 1.5`} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the JSON lacks %s", want)
		}
	}
}

// TestBeside: measured apart, a load costs its own processor time and that of as much
// other work as ran beside it.
func TestBeside(t *testing.T) {
	l := &beside{
		d: time.Millisecond,
		alone: func(context.Context) (Sample, error) {
			return Sample{Value: 1, Lat: &measure.Quantiles{Count: 10}, Costs: measure.Costs{measure.ProcessorNanos: 5}}, nil
		},
		other: func(ctx context.Context, done *atomic.Int64) error {
			done.Add(20)
			<-ctx.Done()
			return context.Cause(ctx)
		},
	}
	if s, err := l.together(t.Context()); err != nil || s.Costs[measure.ProcessorNanos] != 5 || l.share > 2 {
		t.Errorf("together: %+v, %v, share %v", s, err, l.share)
	}
	l.share = 2
	if s, err := l.apart(t.Context()); err != nil || measure.Processor() > 0 && s.Costs[measure.ProcessorNanos] <= 5 {
		t.Errorf("apart: %+v, %v", s, err)
	}
}

// TestNoise finds a result noisy when rounds of the reference differ by more than 20 %.
func TestNoise(t *testing.T) {
	ours := []Sample{{Value: 1}, {Value: 5}}
	for _, c := range []struct {
		reference []float64
		want      bool
	}{{[]float64{10, 11}, false}, {[]float64{10, 13}, true}} {
		var ref []Sample
		for _, v := range c.reference {
			ref = append(ref, Sample{Value: v})
		}
		if r := (&Case{}).result(ours, ref); r.Noisy != c.want {
			t.Errorf("reference %v: noisy is %t", c.reference, r.Noisy)
		}
	}
}

// TestMedians are those of the rounds, for values, latencies and costs.
func TestMedians(t *testing.T) {
	var ours []Sample
	for _, v := range []float64{1, 9, 4} {
		ours = append(ours, Sample{Value: v, Lat: &measure.Quantiles{Count: 2, P99: v}, Costs: measure.Costs{"syncs": v}})
	}
	r := (&Case{}).result(ours, nil)
	if r.Ours.Median != 4 || r.Latency.P99 != 4 || r.Latency.Count != 6 || r.Costs["syncs"] != 4 || r.Rounds != 3 {
		t.Errorf("%+v, %+v", r, r.Latency)
	}
}

// TestJSON decodes results as they were encoded. No results are an empty array.
func TestJSON(t *testing.T) {
	r := (&Case{ID: "P3", What: "what", Size: "callers=64", N: 64, Unit: "/s", Against: "it", Targets: []Target{ratio(0.7)}}).
		result([]Sample{{Value: 8}}, []Sample{{Value: 10}})
	var out bytes.Buffer
	if err := measure.WriteJSON(&out, []*Result{r}); err != nil {
		t.Fatal(err)
	}
	back, err := measure.ReadJSON[*Result](&out)
	if err != nil || len(back) != 1 {
		t.Fatalf("%v, %v", back, err)
	}
	if b := back[0]; b.ID != "P3" || b.Ratio != 0.8 || b.Verdict != Reached || b.Reference.Median != 10 || b.N != 64 {
		t.Errorf("%+v", b)
	}
	if err := measure.WriteJSON[*Result](&out, nil); err != nil || !json.Valid(out.Bytes()) || strings.TrimSpace(out.String()) != "[]" {
		t.Errorf("%q, %v", out.String(), err)
	}
}

// TestTable has a line for each result, with its notes.
func TestTable(t *testing.T) {
	r := (&Case{ID: "P3", What: "what", Size: "callers=64", Unit: "/s", Against: "the other", Targets: []Target{ratio(0.9)}}).
		result([]Sample{{Value: 80_000}}, []Sample{{Value: 100_000}, {Value: 150_000}})
	var out bytes.Buffer
	if err := WriteTable(&out, []*Result{r}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"80000 /s", "125000 /s", "0.64", "≥ 0.9 × reference", "missed", "P3: the other", "noisy", "0 reached, 1 missed"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, out.String())
		}
	}
}
