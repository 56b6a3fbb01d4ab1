package continuous_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/recovery"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// labelling is a host on virtual time with one job, which fails if its state is true.
func labelling(t *testing.T, fn func(j *continuous.Job[bool], reopen func(change func(*storage.Store)) *object.Host)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		j := continuous.New(continuous.Config[bool]{
			Name: "job", Schedule: jobs.Every(time.Hour), Retry: jobs.Retry{MaxAttempts: 1}, Exhausted: jobs.Fail,
			Run: func(ctx context.Context, run *continuous.Run[bool]) error {
				if run.State {
					return errors.New("boom")
				}
				time.Sleep(time.Minute)
				return nil
			},
		})
		mem := memstore.New()
		var h *object.Host
		shut := func() {
			if h != nil {
				must(t, h.Shutdown(context.Background()))
				mem = mem.Crash(0)
			}
		}
		defer func() { shut() }()
		fn(j, func(change func(*storage.Store)) *object.Host {
			shut()
			if change != nil {
				s, err := storage.Open(storage.Options{Engine: mem, Shards: 2})
				must(t, err)
				change(s)
				must(t, s.Close())
				mem = mem.Crash(0)
			}
			var err error
			h, err = object.Open(object.Options{Storage: storage.Options{Engine: mem, Shards: 2}, Logger: slog.New(slog.DiscardHandler)}, j)
			must(t, err)
			return h
		})
	})
}

// must fails the test at an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantLabel fails the test unless the job "a" is the only one with the label, or none has a
// label if that is empty.
func wantLabel(t *testing.T, step string, h *object.Host, want string) {
	t.Helper()
	synctest.Wait()
	counts, complete := h.Labels("job")
	if want == "" {
		if len(counts) != 0 || !complete {
			t.Errorf("J18: %s: the labels are %v", step, counts)
		}
		return
	}
	found, err := h.Objects(context.Background(), "job", object.ObjectsOptions{Label: want, Limit: 10})
	if err != nil || len(found) != 1 || found[0].ID.Name != "a" || len(counts) != 1 || counts[want] != 1 {
		t.Errorf("J18: %s: %q has %v, %v; the labels are %v", step, want, found, err, counts)
	}
}

// Proves J18: the label of a job is its status through each verb and the end of a run, and it
// has none while it runs.
func TestLabelIsTheStatus(t *testing.T) {
	labelling(t, func(j *continuous.Job[bool], reopen func(func(*storage.Store)) *object.Host) {
		h, ctx := reopen(nil), context.Background()
		_, err := j.Start(ctx, h, "a", false)
		must(t, err)
		wantLabel(t, "executing", h, "")
		time.Sleep(2 * time.Minute)
		wantLabel(t, "running", h, "")
		must(t, j.Pause(ctx, h, "a"))
		wantLabel(t, "paused", h, "paused")
		h = reopen(nil)
		wantLabel(t, "paused, in the next process", h, "paused")
		must(t, j.Resume(ctx, h, "a"))
		wantLabel(t, "resumed", h, "")
		must(t, j.Stop(ctx, h, "a", ""))
		wantLabel(t, "stopped", h, "stopped")
		must(t, j.Terminate(ctx, h, "a", ""))
		wantLabel(t, "terminated", h, "")
		_, err = j.Start(ctx, h, "a", true)
		must(t, err)
		wantLabel(t, "failed", h, "failed")
	})
}

// Proves J18: a job of a store without labels gets its own when it becomes active, and from a
// scrub that repairs.
func TestLabelOfAnOlderStore(t *testing.T) {
	for name, wake := range map[string]func(*continuous.Job[bool], *object.Host) error{
		"verb": func(j *continuous.Job[bool], h *object.Host) error {
			_, err := j.Status(context.Background(), h, "a")
			return err
		},
		"scrub": func(_ *continuous.Job[bool], h *object.Host) error {
			seen, err := recovery.Scrub(context.Background(), h, recovery.ScrubOptions{Repair: true})
			if len(seen.Findings) != 1 || seen.Findings[0].Promise != "J18" || !seen.Findings[0].Repaired {
				t.Errorf("J18: the scrub found %v", seen.Findings)
			}
			return err
		},
	} {
		labelling(t, func(j *continuous.Job[bool], reopen func(func(*storage.Store)) *object.Host) {
			h := reopen(nil)
			_, err := j.Start(context.Background(), h, "a", false)
			must(t, err)
			must(t, j.Pause(context.Background(), h, "a"))
			h = reopen(func(s *storage.Store) {
				o, err := s.Find(j.ID("a"))
				must(t, err)
				var b storage.Batch
				b.MoveLabel(o, o.Label, storage.Label{})
				o.Label = storage.Label{}
				b.SetHeader(o)
				_, err = s.Commit(&b)
				must(t, err)
			})
			wantLabel(t, name+": as it was stored", h, "")
			must(t, wake(j, h))
			wantLabel(t, name, h, "paused")
		})
	}
}
