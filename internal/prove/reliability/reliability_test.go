package main

import (
	"context"
	"encoding/json"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// good are values that reach every floor.
func good() values {
	v := values{}
	for _, f := range table {
		v[f.name] = f.least
	}
	for _, f := range table {
		if f.bound == all {
			v[f.name] = v[f.of]
		}
	}
	return v
}

func everything(string) bool { return true }

func TestFloors(t *testing.T) {
	if missed := (report{values: good()}).missed(everything); missed != nil {
		t.Errorf("good values miss %q", missed)
	}
	for _, tt := range []struct {
		name  string
		value float64
		want  string
	}{
		{"pairs_map", 149_999, "pairs_map is 149,999: 1 below its floor of 150,000; alone: go run ./internal/prove/reliability -only pairs"},
		{"acked_lost", 1, "acked_lost is 1: must be 0; alone: go run ./internal/prove/reliability -only kill"},
		{"mutants_found", leastMutants - 2, "mutants_found is " + number(leastMutants-2) + ": 2 are missing of mutants_total; alone: go run ./internal/prove/reliability -only mutants"},
	} {
		r := report{values: good()}
		r.values[tt.name] = tt.value
		if missed := r.missed(everything); !slices.Equal(missed, []string{tt.want}) {
			t.Errorf("%s = %v: missed %q, want %q", tt.name, tt.value, missed, tt.want)
		}
		if missed := r.missed(func(string) bool { return false }); missed != nil {
			t.Errorf("steps that did not run missed %q", missed)
		}
	}
	if missed := (report{values: good(), extent: soak}).missed(everything); len(missed) == 0 {
		t.Error("a soak is content with the floors of a whole run")
	}
}

// Case HN3: a figure that no step has reported is a miss, also one that must be 0.
func TestUnreportedFigureIsMissed(t *testing.T) {
	for _, f := range table {
		r := report{values: good()}
		delete(r.values, f.name)
		missed := r.missed(everything)
		if len(missed) == 0 || !strings.Contains(strings.Join(missed, "\n"), f.name+" was not reported: step "+f.step) {
			t.Errorf("without %s the run missed %q", f.name, missed)
		}
	}
}

// A run with one mutant less than the floor fails, even if all are found.
func TestFloorOfMutants(t *testing.T) {
	for n, ok := range map[float64]bool{leastMutants - 1: false, leastMutants: true} {
		r := report{values: good()}
		r.values["mutants_total"], r.values["mutants_found"] = n, n
		if missed := r.missed(everything); (missed == nil) != ok {
			t.Errorf("with %v mutants, all found, the run missed %q", n, missed)
		}
	}
}

func TestFiguresHaveSteps(t *testing.T) {
	for _, f := range table {
		if _, ok := stepNamed(f.step); !ok {
			t.Errorf("no step gains %s: %q", f.name, f.step)
		}
	}
}

// Other programs read the fields.
func TestJSON(t *testing.T) {
	r := report{commit: "abc", seed: 7, seconds: 1.005, values: values{"points": 1500, "simulated_years": 2.25}, steps: []stepTime{{"pairs", 3}}}
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var back map[string]any
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	const fields = "commit seed seconds processor_seconds scenarios points points_covered pairs_map pairs_pebble random_map random_pebble " +
		"fs_crash_points fs_errors fs_errors_child bit_flips wrong_values kill9_cycles acked acked_lost histories history_ops " +
		"programs mutants_total mutants_found race_schedules simulated_years sometimes_total sometimes_reached"
	for name := range strings.FieldsSeq(fields) {
		if _, ok := back[name]; !ok {
			t.Errorf("the object lacks %s", name)
		}
	}
	if back["simulated_years"] != 2.25 {
		t.Errorf("years are %v", back["simulated_years"])
	}
}

func TestStories(t *testing.T) {
	got := stories([]line{
		{Test: "TestA/map", Kind: "exhaust", Store: "map", Points: 40, Covered: 1},
		{Test: "TestA/pebble", Kind: "exhaust", Store: "pebble", Points: 40, Covered: 0.5},
		{Test: "TestA/random", Kind: "check", Store: "map"},
		{Test: "TestB/x/every_point", Kind: "exhaust", Store: "map", Points: 100, Covered: 1},
		{Test: "TestB/x/another_order", Kind: "exhaust", Store: "map", Points: 90, Covered: 0.1},
		{Test: "TestB/x/on_Pebble", Kind: "exhaust", Store: "pebble", Points: 100, Covered: 1},
		{Test: "TestC", Kind: "exhaust", Store: "map", Points: 10, Covered: 1}, // on one store only
	})
	if want := []story{{"TestA", 40, 40, 20}, {"TestB/x", 100, 100, 100}}; !slices.Equal(got, want) {
		t.Errorf("stories are %v, want %v", got, want)
	}
	if a := got[0]; a.covered() != 20 {
		t.Errorf("a story on half of the points of Pebble covers %d of them, want 20", a.covered())
	}
}

func TestSometimesAndYears(t *testing.T) {
	s := &suite{began: clock.Now(), values: values{}, sometimes: map[string]reached{}}
	const year = 365.25 * 24 * 3600
	s.note([]line{{Test: "TestA", SometimesReached: 1, SometimesTotal: 2, VirtualSeconds: year}})
	s.note([]line{{Test: "TestA", SometimesReached: 2, SometimesTotal: 2}, {Test: "TestB", SometimesTotal: 1, VirtualSeconds: year / 2}})
	r := s.report()
	if v := r.values; v["sometimes_total"] != 3 || v["sometimes_reached"] != 2 || v["simulated_years"] != 1.5 {
		t.Errorf("values are %v", v)
	}
}

func TestProgress(t *testing.T) {
	s := &suite{values: values{"pairs_map": 112_500, "pairs_pebble": 50_000}, steps: choose([]string{"pairs"})}
	if got := s.progress(); got != "88 % of the floors" {
		t.Errorf("progress is %s", got)
	}
}

func TestCount(t *testing.T) {
	s := &suite{values: values{}}
	s.count([]byte("=== RUN\n{\"fs_errors\":3,\"other\":1}\n{\"fs_errors\":4}\n{not JSON}\nPASS\n"))
	s.count([]byte("{\"fs_errors\":10,\"acked\":1}\n"))
	if len(s.values) != 2 || s.values["fs_errors"] != 14 || s.values["acked"] != 1 {
		t.Errorf("counted %v", s.values)
	}
}

// The first rank is served first, in any order of requests.
func TestLanesWaitForAllRanks(t *testing.T) {
	l := &lanes{free: 1, ranks: 2}
	got := make(chan int, 2)
	ask := func(rank int) {
		if err := l.take(context.Background(), rank, 1); err != nil {
			t.Error(err)
		}
		got <- rank
		l.give(1)
	}
	go ask(1)
	for queued := 0; queued == 0; runtime.Gosched() {
		l.mu.Lock()
		queued = len(l.queue)
		l.mu.Unlock()
	}
	go ask(0)
	if first, second := <-got, <-got; first != 0 || second != 1 {
		t.Errorf("served %d, then %d", first, second)
	}
}

// Lanes go to waiting jobs in their order; a wide job is not passed by.
func TestLanes(t *testing.T) {
	l := &lanes{free: 2}
	ctx := context.Background()
	if err := l.take(ctx, 1, 1); err != nil {
		t.Fatal(err)
	}
	wide, narrow := make(chan error, 1), make(chan error, 1)
	queued := func(n int) {
		for {
			l.mu.Lock()
			have := len(l.queue)
			l.mu.Unlock()
			runtime.Gosched()
			if have == n {
				return
			}
		}
	}
	go func() { wide <- l.take(ctx, 1, 2) }()
	queued(1)
	go func() { narrow <- l.take(ctx, 1, 1) }()
	queued(2) // the narrow one waits behind the wide one, though a lane is free
	l.give(1)
	if err := <-wide; err != nil {
		t.Fatal(err)
	}
	l.give(2)
	if err := <-narrow; err != nil {
		t.Fatal(err)
	}
	// A job that gives up makes way for those behind.
	stopped, cancel := context.WithCancel(ctx)
	go func() { wide <- l.take(stopped, 1, 2) }()
	queued(1)
	go func() { narrow <- l.take(ctx, 1, 1) }()
	queued(2)
	cancel()
	if err := <-wide; err == nil {
		t.Error("a cancelled job got its lanes")
	}
	if err := <-narrow; err != nil {
		t.Fatal(err)
	}
	// A lower rank goes first.
	go func() { narrow <- l.take(ctx, 2, 1) }()
	queued(1)
	go func() { wide <- l.take(ctx, 0, 2) }()
	queued(2)
	l.give(2)
	if err := <-wide; err != nil {
		t.Fatal(err)
	}
	l.give(2)
	if err := <-narrow; err != nil {
		t.Fatal(err)
	}
}

func TestParse(t *testing.T) {
	o, _, err := parse([]string{"-budget", "5m", "-seed", "9", "-only", "pairs,random", "-soak"})
	if err != nil || o.budget != 5*time.Minute || o.seed != 9 || !slices.Equal(o.only, []string{"pairs", "random"}) || o.extent != soak {
		t.Errorf("options are %+v, %v", o, err)
	}
	for _, args := range [][]string{{"-only", "nothing"}, {"extra"}, {"-short"}} {
		if _, _, err := parse(args); err == nil {
			t.Errorf("%q was taken", args)
		}
	}
}

func TestNumber(t *testing.T) {
	for x, want := range map[float64]string{0: "0", 12: "12", 1500: "1,500", 600_000: "600,000", -1234567: "-1,234,567", 2.25: "2.2"} {
		if got := number(x); got != want {
			t.Errorf("%v is written %q, want %q", x, got, want)
		}
	}
}

// The command that a failure prints repeats the run.
func TestCommand(t *testing.T) {
	r := testRun{dir: "object", run: "Crash", skip: "./x", crashtest: "depth=2", args: rapidFlags(5, 7), race: true}
	want := "HOLDFAST_CRASHTEST=depth=2 go test -count=1 -race -run 'Crash' -skip './x' ./object -args -rapid.checks=5 -rapid.seed=7 -rapid.nofailfile"
	if got := r.command(); got != want {
		t.Errorf("the command is %s", got)
	}
}
