package workerpool_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/holdfast-dev/holdfast/internal/testing/loglines"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// minutes is a pool of one worker a partition. Its tasks take a minute or fail at once.
func minutes(partitions int) *pool {
	return workerpool.New(config{
		Name: "minutes", Concurrency: partitions, Partitions: partitions,
		Retry: jobs.Retry{MaxAttempts: 2, Backoff: jobs.Constant(10 * time.Second)},
		Work: func(_ context.Context, task *workerpool.Task[string]) (string, error) {
			if task.In == "fails" {
				return "", errors.New("no")
			}
			time.Sleep(time.Minute)
			return "", nil
		},
	})
}

// backlog is the text of the metrics about the tasks of a pool. It is empty if they have
// none.
func backlog(t *testing.T, h *object.Host) string {
	t.Helper()
	if series(t, h, "holdfast_tasks_pending") == nil {
		return ""
	}
	text := ""
	for _, name := range []string{"pending", "running", "dead", "ready_age_seconds"} {
		text += fmt.Sprintf("%s %v ", name, metric(t, h, "holdfast_tasks_"+name, map[string]string{"class": "minutes"}))
	}
	return text[:len(text)-1]
}

// histogram is how many the metrics have counted, and their sum in seconds.
func histogram(t *testing.T, h *object.Host, name string) string {
	t.Helper()
	all := series(t, h, name)
	if len(all) != 1 {
		t.Fatalf("%s has the series %v, want one", name, all)
	}
	return all[0]
}

// series lists the series of a metric as count and sum.
func series(t *testing.T, h *object.Host, name string) (all []string) {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(h.Collector())
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name {
				all = append(all, fmt.Sprintf("%d of %.3f s", m.GetHistogram().GetSampleCount(), m.GetHistogram().GetSampleSum()))
			}
		}
	}
	return all
}

func equal(t *testing.T, when, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %q, want %q", when, got, want)
	}
}

// Proves W1. Case PL15. The metrics tell how many tasks a pool has in each state, and how
// long the first ready one has waited, also while no turn runs.
func TestTasksByPool(t *testing.T) {
	p := minutes(1)
	inBubble(t, p, func(t *testing.T, h *object.Host, _ *loglines.Recorder) {
		equal(t, "before the first task", backlog(t, h), "")
		must(p.EnqueueBatch(ctx, h, []workerpool.Item[string]{item("a"), item("b"), item("c"), item("later", workerpool.Delay(time.Hour))}))
		synctest.Wait()
		equal(t, "at once", backlog(t, h), "pending 3 running 1 dead 0 ready_age_seconds 0")
		time.Sleep(30 * time.Second)
		equal(t, "half through a", backlog(t, h), "pending 3 running 1 dead 0 ready_age_seconds 30")
		time.Sleep(45 * time.Second)
		synctest.Wait()
		equal(t, "in b", backlog(t, h), "pending 2 running 1 dead 0 ready_age_seconds 75")
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		equal(t, "before its time", backlog(t, h), "pending 1 running 0 dead 0 ready_age_seconds 0")
		if err := p.Pause(ctx, h); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Until(time.Date(2000, 1, 1, 1, 0, 20, 0, time.UTC)))
		equal(t, "due and paused", backlog(t, h), "pending 1 running 0 dead 0 ready_age_seconds 20")
	})
}

// Proves W1. Case PL15. The figures of a partition stay in the metrics when it leaves
// memory, and go when it is deleted, in memory or not.
func TestTasksOfEvictedPartitions(t *testing.T) {
	for _, evicted := range []bool{true, false} {
		p := minutes(1)
		inBubble(t, p, func(t *testing.T, h *object.Host, _ *loglines.Recorder) {
			must(p.Enqueue(ctx, h, "fails"))
			time.Sleep(11 * time.Second)
			synctest.Wait()
			equal(t, "given up", backlog(t, h), "pending 0 running 0 dead 1 ready_age_seconds 0")
			if evicted {
				time.Sleep(24 * time.Hour)
				if live := metric(t, h, "holdfast_objects_live", nil); live != 0 {
					t.Fatalf("%v objects are in memory", live)
				}
				equal(t, "evicted", backlog(t, h), "pending 0 running 0 dead 1 ready_age_seconds 0")
			}
			if err := h.Delete(ctx, storage.ID{Class: "minutes", Name: "0"}); err != nil {
				t.Fatal(err)
			}
			equal(t, "deleted", backlog(t, h), "")
		})
	}
}

// Proves W1. Case PL15. The wait of a task counts from its submission, or from the end of
// its delay, or from its retry or replay.
func TestWaitsOfTasks(t *testing.T) {
	p := minutes(1)
	inBubble(t, p, func(t *testing.T, h *object.Host, _ *loglines.Recorder) {
		must(p.EnqueueBatch(ctx, h, []workerpool.Item[string]{item("a"), item("b")}))
		time.Sleep(time.Hour)
		synctest.Wait()
		equal(t, "waits of a and b", histogram(t, h, "holdfast_task_wait_seconds"), "2 of 60.000 s")
		equal(t, "runs of a and b", histogram(t, h, "holdfast_task_run_seconds"), "2 of 120.000 s")
		must(p.Enqueue(ctx, h, "delayed", workerpool.Delay(time.Minute)))
		failed := must(p.Enqueue(ctx, h, "fails")).ID
		time.Sleep(time.Hour)
		synctest.Wait()
		equal(t, "a delay and a retry", histogram(t, h, "holdfast_task_wait_seconds"), "5 of 60.000 s")
		equal(t, "two failures at once", histogram(t, h, "holdfast_task_run_seconds"), "5 of 180.000 s")
		must(p.Enqueue(ctx, h, "before"))
		must(p.Replay(ctx, h, failed))
		time.Sleep(30 * time.Second)
		equal(t, "a replay", backlog(t, h), "pending 1 running 1 dead 0 ready_age_seconds 30")
		time.Sleep(time.Hour)
		synctest.Wait()
		equal(t, "a replay and its retry", histogram(t, h, "holdfast_task_wait_seconds"), "8 of 120.000 s")
	})
}

// Proves W1. Case PL15. A task that comes back to its place in the queue, for a retry,
// is ready since then.
func TestReadyAgainAtTheSamePlace(t *testing.T) {
	p := minutes(1)
	inBubble(t, p, func(t *testing.T, h *object.Host, _ *loglines.Recorder) {
		must(p.EnqueueBatch(ctx, h, []workerpool.Item[string]{item("a"), item("fails")}))
		time.Sleep(65 * time.Second) // a is done, the other has failed and waits until 70 s
		must(p.Enqueue(ctx, h, "b"))
		time.Sleep(15 * time.Second)
		synctest.Wait()
		equal(t, "ready for 10 s", backlog(t, h), "pending 1 running 1 dead 0 ready_age_seconds 10")
		time.Sleep(time.Hour) // until all have ended
	})
}

// Proves W1. Case PL15. The metrics add up the partitions of a pool. A task counts from
// its time even if memory does not hold its row.
func TestTasksAfterAnOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, p := memstore.New(), minutes(2)
		open := func() *object.Host {
			return must(object.Open(object.Options{Storage: storage.Options{Engine: mem}}, p))
		}
		h := open()
		if err := p.Pause(ctx, h); err != nil {
			t.Fatal(err)
		}
		for i := range 20 {
			must(p.Enqueue(ctx, h, "a", workerpool.Key(fmt.Sprint(i))))
			time.Sleep(time.Second)
		}
		synctest.Wait()
		equal(t, "paused", backlog(t, h), "pending 20 running 0 dead 0 ready_age_seconds 20")
		shut(t, h)
		mem = mem.Crash(0)
		h = open()
		must(p.Stats(ctx, h))
		equal(t, "opened again", backlog(t, h), "pending 20 running 0 dead 0 ready_age_seconds 20")
		shut(t, h)
	})
}
