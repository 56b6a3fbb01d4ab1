package workflow_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// repeatsOf are the metrics of repeats: how many, and their entries; then the count and the sum of the
// ages of what was recovered.
func repeatsOf(t *testing.T, h *object.Host) (text string) {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(h.Collector())
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := make(map[string]float64)
	for _, f := range families {
		m := f.GetMetric()[0]
		values[f.GetName()] = m.GetCounter().GetValue()
		values[f.GetName()+" sum"] = m.GetHistogram().GetSampleSum()
		values[f.GetName()+" count"] = float64(m.GetHistogram().GetSampleCount())
	}
	return fmt.Sprint(values["holdfast_repeats_total"], values["holdfast_entries_read_total"], values["holdfast_stale_seconds count"], values["holdfast_stale_seconds sum"])
}

// Each stretch that begins with a history is a repeat of all its entries, and an execution that was lost
// counts with its age. The first stretch of a run, and Check, repeat nothing.
func TestMetricsOfRepeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := workflow.New[int, int]("order", workflow.Config{})
		w.Func(func(c *workflow.Context, _ int) (int, error) {
			if _, err := workflow.Step(c, "a", func(context.Context) (int, error) { return 1, nil }); err != nil {
				return 0, err
			}
			if err := workflow.Sleep(c, time.Hour); err != nil {
				return 0, err
			}
			return workflow.Step(c, "b", func(ctx context.Context) (int, error) {
				select {
				case <-ctx.Done():
					return 0, ctx.Err()
				case <-time.After(time.Hour):
					return 1, nil
				}
			})
		})
		open := func(mem *memstore.Store) *object.Host {
			h, err := object.Open(object.Options{Storage: storage.Options{Engine: mem, MinFreeBytes: -1}, Logger: slog.New(slog.DiscardHandler)}, w)
			if err != nil {
				t.Fatal(err)
			}
			return h
		}
		mem := memstore.New()
		h := open(mem)
		if _, err := w.Start(t.Context(), h, "1", 7); err != nil {
			t.Fatal(err)
		}
		wait := func(d time.Duration, want string) {
			t.Helper()
			time.Sleep(d)
			synctest.Wait()
			if got := repeatsOf(t, h); got != want {
				t.Errorf("repeats, their entries, recoveries, their ages: %s, want %s", got, want)
			}
		}
		wait(time.Minute, "0 0 0 0")
		wait(time.Hour, "1 2 0 0")
		disk := mem.Crash(0)                                     // in the step b, which began a minute ago
		if err := h.Shutdown(context.Background()); err != nil { // it waits for the step, for an hour
			t.Fatal(err)
		}
		view, err := storage.Open(storage.Options{Engine: disk.Crash(0)})
		if err != nil {
			t.Fatal(err)
		}
		for d, err := range w.Check(t.Context(), view, workflow.CheckOptions{}) {
			t.Error(d, err)
		}
		h = open(disk)
		defer func() { _ = h.Shutdown(context.Background()) }()
		wait(time.Second, "1 2 1 3600.1") // with Config.RecoveryDelay
	})
}
