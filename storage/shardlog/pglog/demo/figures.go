package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// figures are the result, as -json prints it.
type figures struct {
	Acked         int     `json:"acked"`
	AckedLost     int     `json:"acked_lost"`
	DoubleEffects int     `json:"double_effects"`
	Failovers     int     `json:"failovers"`
	FailoverP50   float64 `json:"failover_p50_ms"`
	FailoverP99   float64 `json:"failover_p99_ms"`
	Linearizable  bool    `json:"linearizable"`

	Kills      int    `json:"kills"`
	Empty      int    `json:"empty_directories"` // of nodes that came back
	Pauses     int    `json:"pauses"`
	Cuts       int    `json:"cuts"`
	Drains     int    `json:"drains"`
	Crashes    int    `json:"postgres_crashes"`
	Violations int    `json:"violations"`
	Recovered  int    `json:"recovered"`
	Terms      uint64 `json:"terms"`
	FalseTerms int    `json:"false_terms"` // that no fault of this program made
	Seed       uint64 `json:"seed"`
}

func (f figures) String() string {
	order := "fit one order"
	if !f.Linearizable {
		order = "do not fit one order, or were not checked"
	}
	return fmt.Sprintf("%d calls acknowledged, %d lost, %d effects doubled; the answers %s\n"+
		"%d fail-overs by %d kills, %d pauses, %d cuts and %d drains, and %d crashes of PostgreSQL: half of them within %.0f ms, 99 %% within %.0f ms; %d of %d terms were begun without need",
		f.Acked, f.AckedLost, f.DoubleEffects, order,
		f.Failovers, f.Kills, f.Pauses, f.Cuts, f.Drains, f.Crashes, f.FailoverP50, f.FailoverP99, f.FalseTerms, f.Terms)
}

// times sets the percentiles of the fail-overs.
func (f *figures) times(all []time.Duration) {
	f.Failovers = len(all)
	if len(all) == 0 {
		return
	}
	sorted := slices.SortedFunc(slices.Values(all), cmp.Compare)
	at := func(percent int) float64 {
		i := (len(sorted)*percent + 99) / 100 // the nearest rank
		return float64(sorted[max(i, 1)-1].Microseconds()) / 1000
	}
	f.FailoverP50, f.FailoverP99 = at(50), at(99)
}
