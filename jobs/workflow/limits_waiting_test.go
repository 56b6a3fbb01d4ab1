package workflow_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
)

// manySignals starts a run that takes a number each time that approved tells it to, and sends it numbers.
func manySignals(t *testing.T, values []string) (host *object.Host, w *workflow.Workflow[int, int]) {
	t.Helper()
	w = workflow.New[int, int]("order", workflow.Config{Signals: workflow.Signals{number, approved}, MaxBytes: 64 << 20})
	w.Func(func(c *workflow.Context, _ int) (int, error) {
		if err := workflow.Sleep(c, time.Hour); err == nil {
			return 0, errors.New("it slept")
		}
		c = workflow.WithoutCancel(c)
		if _, err := approved.Wait(c, 0); err != nil {
			return 0, err
		}
		shown.Set(c, "taken")
		_, err := number.Wait(c, 0) // for ever
		return 0, err
	})
	host = inMemory(t, w)
	if _, err := w.Start(t.Context(), host, "1", 0); err != nil {
		t.Fatal(err)
	}
	for i, v := range values {
		if err := approved.Send(t.Context(), host, w, "1", v); err != nil {
			t.Fatalf("signal %d: %v", i, err)
		}
	}
	return host, w
}

// takeOne lets the run take a signal, and returns when it has.
func takeOne(t *testing.T, host *object.Host, w *workflow.Workflow[int, int]) {
	t.Helper()
	if err := w.Cancel(t.Context(), host, "1", "goes on"); err != nil {
		t.Fatal(err)
	}
	for {
		all, err := w.History(t.Context(), host, "1", 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range all {
			if e.Kind == "signal" {
				return
			}
		}
		runtime.Gosched()
	}
}

// 10,000 signals wait, and the next is refused until the run has taken one.
func TestSignalsWaiting(t *testing.T) {
	host, w := manySignals(t, make([]string, 10_000))
	err := approved.Send(t.Context(), host, w, "1", "")
	if !errors.Is(err, workflow.ErrBusy) || !strings.Contains(err.Error(), "order/1 has 10000: the function must take them") {
		t.Errorf("signal 10,001: %v", err)
	}
	if err := number.Send(t.Context(), host, w, "1", 1); !errors.Is(err, workflow.ErrBusy) {
		t.Errorf("another signal: %v", err)
	}
	takeOne(t, host, w)
	if err := approved.Send(t.Context(), host, w, "1", ""); err != nil {
		t.Errorf("after one was taken: %v", err)
	}
	if err := approved.Send(t.Context(), host, w, "1", ""); !errors.Is(err, workflow.ErrBusy) {
		t.Errorf("no place for a second: %v", err)
	}
}

// Signals of 16 MiB wait, and one byte more is refused until the run has taken some.
func TestSignalBytesWaiting(t *testing.T) {
	const row = 1 + len("approved") // beside the value in each stored signal
	const each = 1 << 20
	values := make([]string, 16)
	for i := range values {
		values[i] = strings.Repeat("x", each-row-len(`""`))
	}
	values[15] = values[15][:1000]
	host, w := manySignals(t, values)
	room := each - row - 1000 - len(`""`)
	err := approved.Send(t.Context(), host, w, "1", strings.Repeat("y", room-len(`""`)+1))
	if !errors.Is(err, workflow.ErrBusy) || !strings.Contains(err.Error(), "order/1 has 15 MiB of them: the function must take them") {
		t.Errorf("a byte too much: %v", err)
	}
	if err := approved.Send(t.Context(), host, w, "1", strings.Repeat("y", room-len(`""`))); err != nil {
		t.Errorf("all bytes: %v", err)
	}
	if err := number.Send(t.Context(), host, w, "1", 1); !errors.Is(err, workflow.ErrBusy) {
		t.Errorf("another signal: %v", err)
	}
	takeOne(t, host, w)
	if err := number.Send(t.Context(), host, w, "1", 1); err != nil {
		t.Errorf("after one was taken: %v", err)
	}
}

// 1,000 branches of an Each run at a time, and not one more, also if more are asked for.
func TestEachAtMost(t *testing.T) {
	for atOnce, want := range map[int]int{999: 999, 1000: 1000, 1001: 1000, 0: 1000, -1: 1000} {
		got := outcome(t, func(c *workflow.Context, _ *workflow.Workflow[int, string]) (string, error) {
			now, most := 0, 0
			_, err := workflow.Each(c, "part", make([]int, 1001), atOnce, func(c *workflow.Context, _ int) (int, error) {
				now++
				most = max(most, now)
				err := workflow.Sleep(c, time.Millisecond)
				now--
				return 0, err
			})
			return fmt.Sprint(most), err
		})
		if got != fmt.Sprint(want) {
			t.Errorf("%d at once: %s have run, want %d", atOnce, got, want)
		}
	}
}
