package cli

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/admin/why"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
)

// killedShop is the directory of a program that was killed while a task ran and another of its key
// waited. A job has failed with a hostile error, and one waits for its next run.
func killedShop(t *testing.T) string {
	t.Helper()
	dir, copied := filepath.Join(t.TempDir(), "live"), filepath.Join(t.TempDir(), "data")
	begun, release := make(chan struct{}, 2), make(chan struct{})
	polls := continuous.New(continuous.Config[int]{Name: "poll", Schedule: jobs.Every(time.Hour), Exhausted: jobs.Fail,
		Run: func(_ context.Context, r *continuous.Run[int]) error {
			if r.ID == hostile {
				return errors.New(hostile)
			}
			return nil
		}})
	thumbs := workerpool.New(workerpool.Config[int, int]{Name: "thumbs", Work: func(context.Context, *workerpool.Task[int]) (int, error) {
		begun <- struct{}{}
		<-release
		return 0, nil
	}})
	h, err := object.Open(object.Options{Dir: dir}, polls, thumbs)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := thumbs.Enqueue(t.Context(), h, 1, workerpool.Key(hostile)); err != nil {
			t.Fatal(err)
		}
	}
	<-begun
	for _, id := range []string{"news", hostile} {
		if _, err := polls.Start(t.Context(), h, id, 0); err != nil {
			t.Fatal(err)
		}
		for e, err := range h.Watch(t.Context(), polls.ID(id), 0) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Kind == jobs.EventSuccess || e.Kind == jobs.EventFailed {
				break
			}
		}
	}
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	close(release)
	if err := h.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	return copied
}

// Case WY1 and Case WY2: why follows the chain of a task, lists what is in trouble with the worst
// first, and prints no name or error that would move a cursor.
func TestWhy(t *testing.T) {
	dir := killedShop(t)
	before := sum(t, dir)
	run(t, Program{}, "--dir", dir, "why", "task", "thumbs/0-2").must(t, Fine, "task thumbs/0-2  not-open", "also task thumbs/0-2  behind-key",
		"1 task is of its key before it", "because task thumbs/0-1  executing", "Attempt 1 was under way when the process ended.")
	run(t, Program{}, "--dir", dir, "why", "task", "thumbs/0-1").must(t, Fine, "also task thumbs/0-1  lost  Its process has died; it is repeated.")
	run(t, Program{}, "--dir", dir, "why", "task", "thumbs/0-9").must(t, Fine, "absent")
	run(t, Program{}, "--dir", dir, "why", "poll/news").must(t, Fine, "poll/news  not-open", "scheduled  Run 2 is due later.", "trigger the job")
	hostiles := run(t, Program{}, "--dir", dir, "why", "poll/"+hostile)
	hostiles.must(t, Fine, `poll/"../../jobs/pay/\x1b[2J\t<b>\n4711?"  ended`, `error  "../../jobs/pay/`)
	all := run(t, Program{}, "--dir", dir, "why")
	all.must(t, Found, "did not end in order", "OBJECT", "ended", "thumbs/0")
	for _, o := range []outcome{hostiles, all} {
		if strings.ContainsAny(o.out, "\x1b\t") {
			t.Errorf("a raw control byte in\n%q", o.out)
		}
	}
	var o why.Overview
	if err := json.Unmarshal([]byte(run(t, Program{}, "--dir", dir, "-o", "json", "why").out), &o); err != nil || len(o.Store) != 1 || len(o.Answers) != 2 || o.Answers[0].Code != why.Lost || o.Answers[1].ID.Name != hostile {
		t.Errorf("%+v, %v", o, err)
	}
	var a why.Answer
	if err := json.Unmarshal([]byte(run(t, Program{}, "--dir", dir, "-o", "json", "why", "poll/"+hostile).out), &a); err != nil || !strings.Contains(a.Also[0].Error, hostile) || strings.Contains(a.Text, hostile) {
		t.Errorf("%+v, %v", a, err)
	}
	run(t, Program{}, "--dir", dir, "why", "poll").must(t, Usage, "is no object")
	run(t, Program{}, "--dir", dir, "why", "task", "thumbs/x").must(t, Usage, "is no task")
	if sum(t, dir) != before {
		t.Error("why has changed a byte of the directory")
	}
}
