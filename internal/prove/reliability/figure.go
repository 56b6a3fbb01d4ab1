package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// figure is one number that the suite must reach.
type figure struct {
	name  string
	step  string // that gains it
	about string
	least float64 // its floor
	soak  float64 // the floor with -soak; 0: the same
	bound bound
	of    string // the figure that it must equal, for bound all
}

// bound is how a figure is judged.
type bound int

const (
	least bound = iota // at least its floor
	none               // none at all
	all                // as many as another figure
)

// extent is how much a run of the suite tries.
type extent int

const (
	whole extent = iota // docs/RELIABILITY.md shows its figures
	soak                // for hours
)

// String is the flag that asks for the extent, with a space behind it.
func (e extent) String() string { return of(e, "", "-soak ") }

// of chooses what is meant for the extent.
func of[T any](e extent, forWhole, forSoak T) T {
	if e == soak {
		return forSoak
	}
	return forWhole
}

// leastMutants is how many files internal/prove/mutants/testdata must contain at least.
// All of these mutants must be found, however many there are.
const leastMutants = 200

// table is all figures, in the order in which they are written.
var table = []figure{
	{name: "scenarios", step: "scenarios", least: 70, about: "stories with a crash at every point, on both stores"},
	{name: "points", step: "scenarios", least: 5000, about: "points of these stories"},
	{name: "points_covered", step: "scenarios", bound: all, of: "points", about: "points crashed at, on both stores"},
	{name: "pairs_map", step: "pairs", least: 150_000, soak: 300_000, about: "runs with two crashes, on the map"},
	{name: "pairs_pebble", step: "pairs", least: 12_000, soak: 100_000, about: "runs with two crashes, on Pebble"},
	{name: "random_map", step: "random", least: 200_000, soak: 20_000_000, about: "random crash schedules, on the map"},
	{name: "random_pebble", step: "random", least: 20_000, soak: 2_000_000, about: "random crash schedules, on Pebble"},
	{name: "take_overs", step: "take-overs", least: 20_000, soak: 1_000_000, about: "take-overs of a store over a log, by a machine with an empty view or an old one"},
	{name: "properties", step: "properties", least: 25, about: "tests that draw their inputs"},
	{name: "property_inputs", step: "properties", least: 100_000, soak: 1_000_000, about: "inputs that they drew"},
	{name: "programs", step: "programs", least: 10_000, soak: 1_000_000, about: "random workflows that end as their model does, with crashes"},
	{name: "fs_crash_points", step: "files", least: 6_000, soak: 600_000, about: "power cuts before an operation on a file"},
	{name: "fs_errors", step: "files", least: 500, soak: 50_000, about: "failed operations on files, in process"},
	{name: "fs_errors_child", step: "files", least: 60, soak: 6_000, about: "failed operations on files, in processes that may die"},
	{name: "bit_flips", step: "files", least: 10_000, soak: 1_000_000, about: "files with a flipped bit or cut short"},
	{name: "wrong_values", step: "files", bound: none, about: "wrong values read from damaged files"},
	{name: "kill9_cycles", step: "kill", least: 300, soak: 1_000, about: "kills of the real program on the real disk"},
	{name: "acked", step: "kill", least: 1, about: "answers that the killed programs had given"},
	{name: "acked_lost", step: "kill", bound: none, about: "of these not found afterwards"},
	{name: "histories", step: "histories", least: 300, soak: 30_000, about: "histories of concurrent calls with crashes"},
	{name: "history_ops", step: "histories", least: 600_000, soak: 60_000_000, about: "calls in them, all linearizable"},
	{name: "takeover_histories", step: "histories", least: 200, soak: 100_000, about: "histories in which nodes take a log over from one another"},
	{name: "takeovers", step: "histories", least: 800, soak: 400_000, about: "take-overs in them; those before went on as zombies"},
	{name: "takeover_ops", step: "histories", least: 30_000, soak: 15_000_000, about: "calls in them, all linearizable"},
	{name: "cluster_plans", step: "cluster", least: 400, soak: 200_000, about: "random lives of three nodes over one log"},
	{name: "cluster_failovers", step: "cluster", least: 2_000, soak: 1_000_000, about: "fail-overs in them"},
	{name: "cluster_calls", step: "cluster", least: 100_000, soak: 50_000_000, about: "calls that the nodes acknowledged: none lost, none done twice"},
	{name: "mutants_total", step: "mutants", least: leastMutants, about: "bugs put into the library"},
	{name: "mutants_found", step: "mutants", bound: all, of: "mutants_total", about: "of these found"},
	{name: "race_schedules", step: "race", least: 5_000, soak: 500_000, about: "random schedules under the race detector"},
	{name: "simulated_years", step: "synctest", least: 10, about: "time that passed in all simulations"},
	{name: "cron_zone_years", step: "synctest", least: 9_000, about: "years of time zones in which a cron table was compared with a clock"},
	{name: "points_pebble", step: "scenarios", least: 20_000, about: "points crashed at on Pebble"},
	{name: "sometimes_total", step: "scenarios", least: 1, about: "states that a story must reach at least once"},
	{name: "sometimes_reached", step: "scenarios", bound: all, of: "sometimes_total", about: "of these reached"},
}

// values are the figures that were reported, by name.
type values map[string]float64

func (v values) has(name string) bool {
	_, ok := v[name]
	return ok
}

// floor is the least value of the figure.
func (f figure) floor(e extent) float64 {
	if e == soak && f.soak > 0 {
		return f.soak
	}
	return f.least
}

// wanted is the floor in words.
func (f figure) wanted(v values, e extent) string {
	switch f.bound {
	case none:
		return "0"
	case all:
		return "all " + number(v[f.of])
	}
	return "≥ " + number(f.floor(e))
}

// reached tells whether the figure is good. One that no step has reported is not.
func (f figure) reached(v values, e extent) bool {
	if !v.has(f.name) {
		return false
	}
	switch f.bound {
	case none:
		return v[f.name] == 0
	case all:
		return v[f.name] == v[f.of]
	}
	return v[f.name] >= f.floor(e)
}

// shortfall says how far from good the figure is, and the command that shows why.
func (f figure) shortfall(v values, e extent) string {
	alone := "; alone: go run ./internal/prove/reliability " + e.String() + "-only " + f.step
	if !v.has(f.name) {
		return fmt.Sprintf("%s was not reported: step %s must print it", f.name, f.step) + alone
	}
	how := ""
	switch {
	case f.bound == none:
		how = "must be 0"
	case f.bound == all:
		how = fmt.Sprintf("%s are missing of %s", number(v[f.of]-v[f.name]), f.of)
	default:
		how = fmt.Sprintf("%s below its floor of %s", number(f.floor(e)-v[f.name]), number(f.floor(e)))
	}
	return fmt.Sprintf("%s is %s: %s", f.name, number(v[f.name]), how) + alone
}

// number writes a figure with commas; one that is not whole with a place or two.
func number(x float64) string {
	if x != math.Trunc(x) {
		return strconv.FormatFloat(x, 'f', 1, 64)
	}
	digits := strconv.FormatFloat(math.Abs(x), 'f', 0, 64)
	var parts []string
	for len(digits) > 3 {
		parts = append([]string{digits[len(digits)-3:]}, parts...)
		digits = digits[:len(digits)-3]
	}
	text := strings.Join(append([]string{digits}, parts...), ",")
	if x < 0 {
		text = "-" + text
	}
	return text
}
