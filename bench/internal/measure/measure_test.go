package measure_test

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
)

func TestFigure(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   measure.Figure
	}{
		{nil, measure.Figure{}},
		{[]float64{4}, measure.Figure{Median: 4, Min: 4, Max: 4}},
		{[]float64{9, 1, 4}, measure.Figure{Median: 4, Min: 1, Max: 9, Spread: 2}},
		{[]float64{8, 4, 6, 2}, measure.Figure{Median: 5, Min: 2, Max: 8, Spread: 1.2}},
		{[]float64{0, 0}, measure.Figure{}},
	} {
		if got := measure.FigureOf(c.values); got != c.want {
			t.Errorf("FigureOf(%v) = %+v, want %+v", c.values, got, c.want)
		}
	}
}

// TestLatencies has quantiles within the two digits that are kept, from several
// workers together.
func TestLatencies(t *testing.T) {
	l := measure.NewLatencies()
	for i := 1; i <= 1000; i++ {
		l.RecordAs(i, time.Duration(i)*time.Microsecond)
	}
	q := l.Quantiles()
	for _, c := range []struct{ got, want float64 }{{q.P50, 500}, {q.P99, 990}, {q.P999, 999}, {q.Max, 1000}} {
		if math.Abs(c.got-c.want) > 0.02*c.want {
			t.Errorf("%+v: %v is not near %v", q, c.got, c.want)
		}
	}
	if q.Count != 1000 {
		t.Errorf("count %d", q.Count)
	}
}

// TestLatenciesOutOfBounds are kept at the nearer bound.
func TestLatenciesOutOfBounds(t *testing.T) {
	l := measure.NewLatencies()
	l.Record(-time.Second)
	l.Record(24 * time.Hour)
	if q := l.Quantiles(); q.Count != 2 || q.Max < 9*60e6 {
		t.Errorf("%+v", q)
	}
}

// TestEach calls each number once, and stops at an error.
func TestEach(t *testing.T) {
	var calls [100]atomic.Int32
	if err := measure.Each(t.Context(), 7, len(calls), func(i int) error {
		calls[i].Add(1)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for i := range calls {
		if n := calls[i].Load(); n != 1 {
			t.Errorf("%d was called %d times", i, n)
		}
	}
	bad := errors.New("bad")
	if err := measure.Each(t.Context(), 3, 1<<40, func(i int) error { return bad }); !errors.Is(err, bad) {
		t.Errorf("error %v", err)
	}
}

// TestLoopsEnd with the first error, and with their context.
func TestLoopsEnd(t *testing.T) {
	bad := errors.New("bad")
	fail := func(int) error { return bad }
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	ok := func(int) error { return nil }
	for name, err := range map[string]error{
		"closed": second(measure.Closed(t.Context(), 2, time.Hour, fail)),
		"alone":  second(measure.Alone(t.Context(), time.Hour, fail)),
		"open":   second(measure.Open(t.Context(), 1e6, time.Hour, 2, fail, nil)),
	} {
		if !errors.Is(err, bad) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, err := range map[string]error{
		"closed": second(measure.Closed(ended, 2, time.Hour, ok)),
		"alone":  second(measure.Alone(ended, time.Hour, ok)),
		"open":   second(measure.Open(ended, 1, time.Hour, 2, ok, nil)),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s after the end: %v", name, err)
		}
	}
}

func second(_ measure.Run, err error) error { return err }

// TestOpenCountsDelay takes a latency from when the call was due: a call that is
// held up delays the next one of the only worker.
func TestOpenCountsDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var calls atomic.Int32
		run, err := measure.Open(t.Context(), 1e6, 2*time.Microsecond, 1, func(int) error {
			if calls.Add(1) == 1 {
				time.AfterFunc(30*time.Millisecond, func() { close(release) })
			}
			<-release
			return nil
		}, nil)
		if err != nil || run.Ops != 2 || run.Lat.P50 < 25_000 {
			t.Errorf("%+v, %v: both calls were held up for 30 ms", run, err)
		}
	})
}

// TestCosts counts with each meter, for each operation.
func TestCosts(t *testing.T) {
	var n uint64
	m := measure.Start(measure.Meters{"steps": func() uint64 { return n }})
	n += 30
	if got := m.PerOp(10)["steps"]; got != 3 {
		t.Errorf("%v steps", got)
	}
	if got := m.PerOp(0); got != nil {
		t.Errorf("of no operations: %v", got)
	}
}

// TestDisk counts bytes of logs and of all files, and the syncs of logs.
func TestDisk(t *testing.T) {
	d := measure.NewDisk()
	dir := t.TempDir()
	for _, name := range []string{"1.log", "2.sst"} {
		f, err := d.Create(filepath.Join(dir, name), vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte("12345")); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(f.Sync(), f.SyncData(), f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	m := d.Meters()
	if m["log bytes"]() != 5 || m["written bytes"]() != 10 || m["syncs"]() != 2 {
		t.Errorf("log %d, all %d, syncs %d", m["log bytes"](), m["written bytes"](), m["syncs"]())
	}
	if b, err := os.ReadFile(filepath.Join(dir, "1.log")); err != nil || string(b) != "12345" {
		t.Errorf("%q, %v", b, err)
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 1e7: "10000000", 1234.5: "1234", 12.345: "12.3", -12.345: "-12.3", 0.1234: "0.123"} {
		if got := measure.Number(v); got != want {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
}
