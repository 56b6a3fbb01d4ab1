package measure

import (
	"fmt"
	"math"
	"slices"
)

// Figure sums up several rounds of one side.
type Figure struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	// Spread is how far the rounds lie apart: (Max - Min) / Median.
	Spread float64 `json:"spread"`
}

// FigureOf sums up the values of some rounds. It is zero for none.
func FigureOf(values []float64) Figure {
	if len(values) == 0 {
		return Figure{}
	}
	v := slices.Sorted(slices.Values(values))
	f := Figure{Median: Median(v), Min: v[0], Max: v[len(v)-1]}
	if f.Median != 0 {
		f.Spread = (f.Max - f.Min) / f.Median
	}
	return f
}

// Median is the middle of the values, or the mean of the two in the middle.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	v := slices.Sorted(slices.Values(values))
	half := len(v) / 2
	if len(v)%2 == 1 {
		return v[half]
	}
	return (v[half-1] + v[half]) / 2
}

// Number is a figure for a reader: no more digits than say something.
func Number(v float64) string {
	switch size := math.Abs(v); {
	case v == math.Trunc(v), size >= 1000:
		return fmt.Sprintf("%.0f", v)
	case size >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.3f", v)
}
