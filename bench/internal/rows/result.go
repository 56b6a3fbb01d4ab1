package rows

import (
	"strings"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
)

// noisy is the spread of the reference above which a figure is not to be trusted.
const noisy = 0.2

// Result is the result of a case's rounds: an element of the JSON.
type Result struct {
	ID        string          `json:"id"`
	What      string          `json:"what"`
	Size      string          `json:"size,omitempty"`
	N         float64         `json:"n,omitempty"`
	Unit      string          `json:"unit"`
	Ours      measure.Figure  `json:"ours"`
	Reference *measure.Figure `json:"reference,omitempty"`
	Against   string          `json:"against,omitempty"`
	Ratio     float64         `json:"ratio,omitempty"` // ours / reference
	Target    string          `json:"target"`
	Verdict   Verdict         `json:"verdict"`
	Misses    []string        `json:"misses,omitempty"`
	Noisy     bool            `json:"noisy,omitempty"`
	Rounds    int             `json:"rounds"`

	// Processor time of an operation in nanoseconds; zero: not told.
	Processor          float64 `json:"processorNanos,omitempty"`
	ReferenceProcessor float64 `json:"referenceProcessorNanos,omitempty"`
	ProcessorRatio     float64 `json:"processorRatio,omitempty"` // ours / reference

	Latency          *measure.Quantiles `json:"latencyMicros,omitempty"`
	ReferenceLatency *measure.Quantiles `json:"referenceLatencyMicros,omitempty"`
	Costs            measure.Costs      `json:"costs,omitempty"`
	ReferenceCosts   measure.Costs      `json:"referenceCosts,omitempty"`
	Counts           Counts             `json:"counts,omitempty"` // of ours, in all rounds
}

// result sums up the samples of both sides.
func (c *Case) result(ours, reference []Sample) *Result {
	r := &Result{
		ID: c.ID, What: c.What, Size: c.Size, N: c.N, Unit: c.Unit, Against: c.Against, Rounds: len(ours),
	}
	r.Ours, r.Latency, r.Costs = sum(ours)
	r.Counts = total(ours)
	switch {
	case c.Set != 0:
		r.Reference = &measure.Figure{Median: c.Set, Min: c.Set, Max: c.Set}
		r.Ratio = r.Ours.Median / c.Set
	case len(reference) > 0:
		f, lat, costs := sum(reference)
		r.Reference, r.ReferenceLatency, r.ReferenceCosts = &f, lat, costs
		if f.Median != 0 {
			r.Ratio = r.Ours.Median / f.Median
		}
		r.Noisy = f.Spread > noisy
	}
	r.processor()
	texts := make([]string, len(c.Targets))
	for i, t := range c.Targets {
		texts[i] = t.Text
	}
	r.Target = strings.Join(texts, ", ")
	r.judge(c.Targets)
	return r
}

// processor moves the processor time from the costs to where it is compared.
func (r *Result) processor() {
	r.Processor, r.ReferenceProcessor = r.Costs[measure.ProcessorNanos], r.ReferenceCosts[measure.ProcessorNanos]
	delete(r.Costs, measure.ProcessorNanos)
	delete(r.ReferenceCosts, measure.ProcessorNanos)
	if r.ReferenceProcessor > 0 {
		r.ProcessorRatio = r.Processor / r.ReferenceProcessor
	}
}

// total is the counts of all rounds together.
func total(samples []Sample) Counts {
	var all Counts
	for _, s := range samples {
		for name, n := range s.Counts {
			if all == nil {
				all = Counts{}
			}
			all[name] += n
		}
	}
	return all
}

// sum is the median of values, quantiles and costs.
func sum(samples []Sample) (measure.Figure, *measure.Quantiles, measure.Costs) {
	var values []float64
	var lats []measure.Quantiles
	costs := map[string][]float64{}
	for _, s := range samples {
		values = append(values, s.Value)
		if s.Lat != nil {
			lats = append(lats, *s.Lat)
		}
		for name, v := range s.Costs {
			costs[name] = append(costs[name], v)
		}
	}
	var of measure.Costs
	for name, v := range costs {
		if of == nil {
			of = measure.Costs{}
		}
		of[name] = measure.Median(v)
	}
	return measure.FigureOf(values), medianOf(lats), of
}

func medianOf(lats []measure.Quantiles) *measure.Quantiles {
	if len(lats) == 0 {
		return nil
	}
	var q measure.Quantiles
	of := func(field func(measure.Quantiles) float64) float64 {
		var v []float64
		for _, l := range lats {
			v = append(v, field(l))
		}
		return measure.Median(v)
	}
	for _, l := range lats {
		q.Count += l.Count
	}
	q.P50 = of(func(l measure.Quantiles) float64 { return l.P50 })
	q.P99 = of(func(l measure.Quantiles) float64 { return l.P99 })
	q.P999 = of(func(l measure.Quantiles) float64 { return l.P999 })
	for _, l := range lats {
		q.Max = max(q.Max, l.Max)
	}
	return &q
}
