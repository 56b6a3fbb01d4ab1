package server

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/verbs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server/auth"
	"github.com/holdfast-dev/holdfast/server/dashboard"
)

// A pool on its page: its depth by queue in three words, and its tasks by filter and by page.
func TestPageOfPool(t *testing.T) {
	pool := workerpool.New(workerpool.Config[string, int]{Name: "print", Partitions: 1, Lease: time.Hour, Queues: map[string]int{"night": 1}})
	s := &shop{fixture: start(t, func(c *Config) { c.Auth, c.Jobs = staff, []verbs.Described{pool} }, pool)}
	first := s.enqueue("print", `{"in": "x"}`)
	s.as("caller", "POST", "/v1/pools/print/claim", "", 200, nil)
	second := s.enqueue("print", `{"in": "x", "key": "anna"}`)
	night := s.enqueue("print", `{"in": "x", "queue": "night", "at": "2999-01-01T00:00:00Z"}`)
	s.sees("viewer", "/ui/pool?pool=print", []string{
		"the default queue 1 0 1", "night 0 1 0", first + " running", second + " queued", night + " waiting", "all 2 1 0 0 0 0",
	}, []string{"There are more tasks"})
	s.sees("viewer", "/ui/pool?pool=print&queue=night", []string{night + " waiting"}, []string{first + " running", second + " queued"})
	s.sees("viewer", "/ui/pool?pool=print&queue=", []string{first + " running", second + " queued"}, []string{night + " waiting"})
	s.sees("viewer", "/ui/pool?pool=print&key=anna", []string{second + " queued"}, []string{first + " running", night + " waiting"})
	s.sees("viewer", "/ui/pool?pool=print&status=running", []string{first + " running"}, []string{second + " queued"})
	s.sees("viewer", "/ui/pool?pool=print&limit=1", []string{first + " running", "Next page"}, []string{second + " queued"})
	for part, want := range map[string][2]string{"counts": {"Queues", first + " running"}, "tasks": {first + " running", "Queues"}} {
		s.sees("viewer", "/ui/pool?pool=print&part="+part, want[:1], want[1:])
	}
	to := dashboard.Link{Route: "pool", Query: url.Values{"pool": {"print"}}}
	a := s.ask("viewer", "GET", "/ui/filter?queue=night&key=&status=&of="+url.QueryEscape(to.String()), "")
	if want := "pool?pool=print&queue=night"; a.status != 303 || a.header.Get("Location") != want {
		t.Errorf("the filter leads to %d %q, want %s", a.status, a.header.Get("Location"), want)
	}
}

// The queues of a pool are counted up to a bound, and the page says so.
func TestQueuesAreCountedUpToABound(t *testing.T) {
	pool := workerpool.New(workerpool.Config[int, int]{Name: "print", Partitions: 1})
	f := start(t, func(c *Config) { c.Jobs = []verbs.Described{pool} }, pool)
	const more = "There are more tasks"
	if _, err := pool.EnqueueBatch(t.Context(), f.host, make([]workerpool.Item[int], object.MaxPage-1)); err != nil {
		t.Fatal(err)
	}
	f.sees("viewer", "/ui/pool?pool=print&limit=1", []string{"the default queue 999 0 0"}, []string{more})
	if _, err := pool.EnqueueBatch(t.Context(), f.host, make([]workerpool.Item[int], 2)); err != nil {
		t.Fatal(err)
	}
	f.sees("viewer", "/ui/pool?pool=print&limit=1", []string{"the default queue 1000 0 0", more}, nil)
}

// Proves V13: a pool is paused and resumed from its page by roles that may do so, and the page tells its mode.
func TestPauseAPoolOnItsPage(t *testing.T) {
	s := pageShop(t)
	const pool, do = "/ui/pool?pool=print", "/ui/dopool?pool=print&verb="
	s.sees("operator", pool, []string{"Mode: open", "pause resume", "discard…", "replayAll…"}, []string{"drain", "claim", "enqueue"})
	s.posts("operator", do+"pause", nil, "pool?pool=print")
	s.sees("viewer", pool, []string{"Mode: paused"}, []string{"Mode: open"})
	s.sees("viewer", "/ui/pools", []string{"print paused", "thumb open"}, nil)
	id := s.enqueue("print", `{"in": "x"}`)
	s.sees("viewer", "/ui/task?pool=print&task="+id, []string{"Task " + id + " of print", "Now queued"}, nil)
	s.posts("operator", do+"resume", nil, "pool?pool=print")
	s.sees("viewer", pool, []string{"Mode: open"}, []string{"Mode: paused"})
	s.sees("operator", "/ui/askpool?pool=print&verb=discard", []string{"It will cancel all pending tasks", "cannot be undone"}, nil)
	s.posts("operator", do+"discard", nil, "pool?pool=print")
	s.sees("viewer", "/ui/task?pool=print&task="+id, []string{"Now cancelled"}, nil)
	for at, kind := range map[string]string{
		"/ui/pool?pool=none": "unknown-type", "/ui/pool?pool=report": "unknown-type", "/ui/task?pool=print&task=x": "invalid", "/ui/task?pool=print&task=0-99": "unknown-job",
		"/ui/askpool?pool=print&verb=drain": "bad-request", "/ui/askpool?pool=print&verb=replay": "bad-request", "/ui/askpool?pool=print&task=0-1&verb=pause": "bad-request",
		"/ui/pool?pool=print&status=wat": "invalid",
	} {
		if a := s.ask("operator", "GET", at, ""); a.status < 400 || a.status >= 500 || pageProblem(t, a) != kind {
			t.Errorf("%s: %d %s, want %s", at, a.status, pageText(a.body), kind)
		}
	}
}

// A task on its page: its phases and how far it is, the attempts that failed, and its verbs.
func TestPageOfTask(t *testing.T) {
	inside, leave := make(chan struct{}), make(chan struct{})
	pool := workerpool.New(workerpool.Config[string, string]{
		Name: "film", Partitions: 1, Phases: []string{"cut", "glue"}, Retry: jobs.Retry{MaxAttempts: 2, Backoff: jobs.Constant(0)},
		Work: func(ctx context.Context, task *workerpool.Task[string]) (string, error) {
			if task.Attempt == 1 {
				return "", errors.New("<i>the film is torn")
			}
			if _, err := workerpool.Phase(ctx, task, "cut", func(context.Context) (int, error) { return 1, nil }); err != nil {
				return "", err
			}
			return workerpool.Phase(ctx, task, "glue", func(ctx context.Context) (string, error) {
				close(inside)
				<-leave
				return "done<i>", nil
			})
		},
	})
	f := start(t, func(c *Config) {
		c.Auth, c.Jobs = people{"viewer": staff["viewer"], "operator": staff["operator"], "boss": {Role: staff["operator"].Role, Grants: []auth.Grant{{Class: "film"}}}}, []verbs.Described{pool}
	}, pool)
	ref, err := pool.Enqueue(t.Context(), f.host, "x")
	if err != nil {
		t.Fatal(err)
	}
	<-inside
	at := "/ui/task?pool=film&task=" + ref.ID.String()
	f.sees("viewer", at, []string{"Now running", "Progress", "50 %", "cut done 100", "glue running", "Attempts that failed"}, []string{"torn", "cancel"})
	f.sees("operator", at, []string{"<i>the film is torn", "replay discardDead…"}, []string{"cancel", "ack"})
	f.sees("viewer", "/ui/pool?pool=film", []string{"the default queue 0 0 1", ref.ID.String() + " running"}, nil)
	f.sees("boss", at, []string{"cancel…"}, []string{"ack"})
	close(leave)
	if _, err := pool.Wait(t.Context(), f.host, ref.ID); err != nil {
		t.Fatal(err)
	}
	f.sees("viewer", at, []string{"Now done"}, []string{"done<i>", "Result"})
	f.sees("operator", at, []string{"Now done", "Result", `done\u003ci\u003e`}, nil)
	if body := f.ask("operator", "GET", at, "").body; strings.Contains(body, "<i>") {
		t.Error("V14: markup of an error")
	}
}
