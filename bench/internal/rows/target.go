package rows

import "fmt"

// Target is one condition of a row.
type Target struct {
	Text      string
	Reference bool // it needs a reference
	Met       func(r *Result) bool
}

// ratio is ours / reference ≥ x.
func ratio(x float64) Target {
	return Target{fmt.Sprintf("≥ %.3g × reference", x), true, func(r *Result) bool { return r.Ratio >= x }}
}

// times is ours ≤ x × reference + plus, where plus is in the row's unit.
func times(x, plus float64, text string) Target {
	return Target{text, true, func(r *Result) bool { return r.Ours.Median <= x*r.Reference.Median+plus }}
}

// atMost is ours ≤ x.
func atMost(x float64, text string) Target {
	return Target{text, false, func(r *Result) bool { return r.Ours.Median <= x }}
}

// atLeast is ours ≥ x.
func atLeast(x float64, text string) Target {
	return Target{text, false, func(r *Result) bool { return r.Ours.Median >= x }}
}

// cost bounds one of our costs.
func cost(name string, x float64, text string) Target {
	return Target{text, false, func(r *Result) bool { return r.Costs[name] <= x }}
}

// processor bounds our processor time, in microseconds. It holds where the system tells none.
func processor(micros float64, text string) Target {
	return Target{text, false, func(r *Result) bool { return r.Processor <= micros*1e3 }}
}

// processorTimes bounds our processor time beside the reference's. It holds where the system
// tells none.
func processorTimes(x float64, text string) Target {
	return Target{text, true, func(r *Result) bool { return r.ProcessorRatio <= x }}
}

// p50 and p99 bound latencies, in microseconds.
func p50(x float64, text string) Target {
	return Target{text, false, func(r *Result) bool { return r.Latency != nil && r.Latency.P50 <= x }}
}

func p99(x float64, text string) Target {
	return Target{text, false, func(r *Result) bool { return r.Latency != nil && r.Latency.P99 <= x }}
}

// slowest bounds the slowest operation of all rounds, in microseconds.
func slowest(x float64, text string) Target {
	return Target{text, false, func(r *Result) bool { return r.Latency != nil && r.Latency.Max <= x }}
}

// p99Times bounds the p99 by x × reference, in a row with milliseconds.
func p99Times(x float64, text string) Target {
	return Target{text, true, func(r *Result) bool { return r.Latency != nil && r.Latency.P99 <= x*r.Reference.Median*1e3 }}
}

// Verdict says whether a row's targets were met.
type Verdict string

// The verdicts.
const (
	Reached     Verdict = "reached"
	Missed      Verdict = "missed"
	NoReference Verdict = "no reference" // some target cannot be judged, and no other was missed
)

// judge sets the verdict of r and which targets it missed.
func (r *Result) judge(targets []Target) {
	r.Verdict = Reached
	for _, t := range targets {
		switch {
		case t.Reference && r.Reference == nil:
			if r.Verdict == Reached {
				r.Verdict = NoReference
			}
		case !t.Met(r):
			r.Verdict = Missed
			r.Misses = append(r.Misses, t.Text)
		}
	}
	if len(targets) == 0 {
		r.Verdict = NoReference
	}
}
