package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/bench/internal/rows"
	"github.com/holdfast-dev/holdfast/bench/internal/scale"
	"github.com/holdfast-dev/holdfast/bench/internal/workload"
)

func TestMain(m *testing.M) {
	workload.Child()
	os.Exit(m.Run())
}

// empty fails if a directory is not.
func empty(t *testing.T, dir string) {
	t.Helper()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestRowsAsJSON(t *testing.T) {
	dir := t.TempDir()
	var out, log bytes.Buffer
	err := run(t.Context(), []string{"-rows", "P2,P5", "-size", "tiny", "-seconds", "0.01", "-rounds", "2", "-json", "-dir", dir}, &out, &log)
	if err != nil {
		t.Fatal(err)
	}
	results, err := measure.ReadJSON[*rows.Result](&out)
	if err != nil || len(results) != 2 || results[0].ID != "P2" || results[1].ID != "P5" || results[0].Rounds != 2 {
		t.Errorf("%+v, %v", results, err)
	}
	if !strings.Contains(log.String(), "[2/2") {
		t.Errorf("no progress: %q", log.String())
	}
	empty(t, dir)
}

func TestRowsAsTable(t *testing.T) {
	dir := t.TempDir()
	var out, log bytes.Buffer
	if err := run(t.Context(), []string{"-rows", "P5", "-size", "tiny", "-seconds", "0.01", "-rounds", "1", "-dir", dir}, &out, &log); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Every commit is synced", "P5", "≤ reference + 15 µs", "1 lines:"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	empty(t, dir)
}

func TestScaleAsJSON(t *testing.T) {
	dir := t.TempDir()
	var out, log bytes.Buffer
	if err := run(t.Context(), []string{"scale", "-scenarios", "fair", "-percent", "0.1", "-seconds", "0.01", "-json", "-dir", dir}, &out, &log); err != nil {
		t.Fatal(err)
	}
	if results, err := measure.ReadJSON[*scale.Result](&out); err != nil || len(results) != 1 || results[0].Scenario != "fair" {
		t.Errorf("%+v, %v", results, err)
	}
	empty(t, dir)
}

// TestGoesOn measures the other rows if one fails.
func TestGoesOn(t *testing.T) {
	bad := errors.New("bad")
	good := func(context.Context) (rows.Sample, error) { return rows.Sample{Value: 1}, nil }
	of := func(id string, err error) *rows.Case {
		return &rows.Case{ID: id, Prepare: func(context.Context, *rows.Env) (*rows.Pair, error) {
			return &rows.Pair{Ours: good, Close: func() error { return nil }}, err
		}}
	}
	var log bytes.Buffer
	results, err := measureRows(t.Context(), []*rows.Case{of("P1", nil), of("P2", bad), of("P3", nil)}, &rows.Env{}, 1, &log)
	if !errors.Is(err, bad) || len(results) != 2 || results[1].ID != "P3" {
		t.Errorf("%+v, %v", results, err)
	}
}

// TestInterrupted returns the results so far, and leaves nothing behind.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, args := range [][]string{{"-rows", "P3", "-size", "tiny", "-json"}, {"scale", "-scenarios", "load", "-percent", "0.1", "-json"}} {
		dir := t.TempDir()
		var out, log bytes.Buffer
		if err := run(ctx, append(args, "-dir", dir), &out, &log); !errors.Is(err, context.Canceled) {
			t.Errorf("%v: %v", args, err)
		}
		if !strings.HasPrefix(out.String(), "[") {
			t.Errorf("%v: no array: %q", args, out.String())
		}
		empty(t, dir)
	}
}

func TestMistakes(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"-rows P99", "P1 to P37"},
		{"-size large", "tiny, small or full"},
		{"-rounds 0", "must be positive"},
		{"P3", "unexpected argument"},
		{"scale -scenarios none", "see -h"},
		{"scale -percent -1", "must be positive"},
	} {
		var out, log bytes.Buffer
		err := run(t.Context(), strings.Fields(c.args), &out, &log)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.args, err, c.want)
		}
	}
}

func TestHelp(t *testing.T) {
	for args, wants := range map[string][]string{
		"-h":       {"usage: holdfast-bench", "-rounds", "-json"},
		"scale -h": {"usage: holdfast-bench scale", "-percent", "overdue"},
	} {
		var out, log bytes.Buffer
		if err := run(t.Context(), strings.Fields(args), &out, &log); !errors.Is(err, flag.ErrHelp) {
			t.Errorf("%s: %v", args, err)
		}
		for _, want := range wants {
			if !strings.Contains(log.String(), want) {
				t.Errorf("%s lacks %q", args, want)
			}
		}
	}
}
