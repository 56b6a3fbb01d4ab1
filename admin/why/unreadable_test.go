package why_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/admin/why"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// spoil commits rows of an object that no code has written so.
func spoil(t *testing.T, s *storage.Store, id storage.ID, fn func(*storage.Batch, storage.Object)) {
	t.Helper()
	o, err := s.Find(id)
	if err != nil || o.Number == 0 {
		t.Fatal(o, err)
	}
	var b storage.Batch
	b.For(id)
	fn(&b, o)
	if _, err := s.Commit(&b); err != nil {
		t.Fatal(err)
	}
}

// Proves Y4: objects that cannot be read are lines of their own, the worst, and hide no other, in a host and in its
// store.
func TestUnreadableObjects(t *testing.T) {
	reports := continuous.New(continuous.Config[int]{
		Name: "report", Exhausted: jobs.Fail, Retry: jobs.Retry{MaxAttempts: 1},
		Run: func(context.Context, *continuous.Run[int]) error { return errors.New("no paper") },
	})
	tasks := workerpool.New(workerpool.Config[int, int]{Name: "work", Partitions: 3})
	engine := memstore.New()
	h, err := object.Open(object.Options{Storage: storage.Options{Engine: engine}}, reports, tasks)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	for _, name := range []string{"a", "b", "c"} {
		if _, err := reports.Start(ctx, h, name, 0); err != nil {
			t.Fatal(err)
		}
		for e, err := range h.Watch(ctx, reports.ID(name), 0) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Kind == jobs.EventFailed {
				break
			}
		}
	}
	if err := tasks.Pause(ctx, h); err != nil {
		t.Fatal(err)
	}
	spoil(t, h.Store(), reports.ID("b"), func(b *storage.Batch, o storage.Object) { b.SetDead(o.Shard, o.ID, 7, []byte("no JSON")) })
	for _, partition := range []string{"0", "1"} {
		spoil(t, h.Store(), storage.ID{Class: "work", Name: partition}, func(b *storage.Batch, o storage.Object) { b.SetData(o, "x/1", []byte{0xff}) })
	}
	check := func(t *testing.T, src why.Source) {
		t.Helper()
		all, err := why.All(ctx, src)
		var got []string
		for _, a := range all.Answers {
			got = append(got, fmt.Sprint(a.ID, " ", a.Code))
			if a.Code == why.Unreadable && (!strings.Contains(a.Error, storage.ErrCorrupt.Error()) || len(a.Also) > 0 || len(a.Do) == 0) {
				t.Errorf("Y4: %+v", a)
			}
		}
		want := []string{"report/b unreadable", "work/0 unreadable", "work/1 unreadable", "report/a ended", "report/c ended", "work/2 pool-paused"}
		if err != nil || all.More || !slices.Equal(got, want) {
			t.Errorf("Y4: %q, %v, want %q", got, err, want)
		}
		for _, ask := range []func(context.Context, why.Source, storage.ID) (why.Answer, error){why.Object, why.Job} {
			if a, err := ask(ctx, src, reports.ID("b")); err != nil || !slices.Contains(a.Holds(), why.Unreadable) || slices.Contains(a.Holds(), why.Absent) {
				t.Errorf("Y4: %+v, %v", a, err)
			}
		}
		if a, err := why.Task(ctx, src, "work", workerpool.TaskID{Partition: 0, Number: 1}); err != nil || !slices.Contains(a.Holds(), why.Unreadable) {
			t.Errorf("Y4: a task: %+v, %v", a, err)
		}
	}
	check(t, why.Live(h))
	left := engine.Crash(engine.Unsynced()) // the store that the process would leave
	if err := h.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	store, err := storage.Open(storage.Options{Engine: left})
	if err != nil {
		t.Fatal(err)
	}
	check(t, why.Cold(store, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)))
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}
