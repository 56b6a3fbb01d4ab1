package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/jobs/debounce"
	"github.com/holdfast-dev/holdfast/jobs/verbs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server/auth"
	"github.com/holdfast-dev/holdfast/storage"
)

// secret stands in each error, reason and value of the jobs of a shop.
const secret = "s3cret"

// shop is a server of a host with a job type of each kind.
type shop struct {
	*fixture
	reports *continuous.Job[string]
	hooks   *debounce.Job[string, struct{}]
	thumbs  *workerpool.Pool[thumb, string] // its work is done here
	prints  *workerpool.Pool[string, int]   // outside workers do its work
	orders  *workflow.Workflow[string, string]
	carts   *object.Class[object.State]
	release chan struct{} // work of thumbs that is slow waits for it
}

// thumb is an input that checks itself.
type thumb struct {
	Name string `json:"name"`
	Slow bool   `json:"slow,omitempty"`
}

func (t thumb) Validate() error {
	if t.Name == "" {
		return errors.New("a thumb has a name: " + secret)
	}
	return nil
}

// staff are the principals of a shop.
var staff = people{
	"nobody":   {},
	"viewer":   {Role: auth.Viewer},
	"reader":   {Role: auth.Reader},
	"operator": {Role: auth.Operator},
	"other":    {Role: auth.Operator},
	"admin":    {Role: auth.Admin},
	"caller":   {Grants: []auth.Grant{{Class: "report"}, {Class: "hook"}, {Class: "thumb"}, {Class: "print"}, {Class: "order"}}},
	"enqueuer": {Grants: []auth.Grant{{Class: "thumb", Names: []string{"enqueue"}}}},
	"acme":     {Role: auth.Admin, Prefix: "acme/", Grants: []auth.Grant{{Class: "report", Prefix: "acme/"}, {Class: "order", Prefix: "acme/"}}},
}

var approve = workflow.NewSignal[int]("approve")

// openShop opens a shop.
func openShop(t *testing.T, o object.Options, change func(*Config)) *shop {
	t.Helper()
	s := &shop{}
	definitions := s.define()
	s.fixture = startOn(t, o, func(c *Config) {
		c.Auth, c.Jobs = staff, s.types()
		if change != nil {
			change(c)
		}
	}, definitions...)
	return s
}

// shopInTime is a shop without a network, for virtual time.
func shopInTime(t *testing.T) *shop {
	t.Helper()
	s := &shop{}
	host, err := object.Open(memory(), Definitions(s.define()...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = host.Shutdown(context.Background()) })
	srv, err := New(host, Config{Auth: staff, Jobs: s.types()})
	if err != nil {
		t.Fatal(err)
	}
	limit(srv)
	s.fixture = &fixture{t: t, host: host, srv: srv}
	return s
}

// types are the job types of the shop.
func (s *shop) types() []verbs.Described {
	return []verbs.Described{s.reports, s.hooks, s.thumbs, s.prints, s.orders}
}

// define makes the job types and a class that is none.
func (s *shop) define() []object.Definition {
	s.release = make(chan struct{})
	s.reports = continuous.New(continuous.Config[string]{
		Name: "report", Exhausted: jobs.Fail, StartLater: true,
		Run: func(_ context.Context, run *continuous.Run[string]) error {
			if strings.HasPrefix(run.State, "bad") {
				return errors.New("no paper: " + secret)
			}
			return nil
		},
	})
	s.hooks = debounce.New(debounce.Config[string, struct{}]{
		Name: "hook", Quiet: time.Hour, Flush: func(context.Context, *debounce.Flush[string, struct{}]) error { return nil },
	})
	s.thumbs = workerpool.New(workerpool.Config[thumb, string]{
		Name: "thumb", Partitions: 1, Concurrency: 4,
		Work: func(ctx context.Context, t *workerpool.Task[thumb]) (string, error) {
			if t.In.Slow {
				select {
				case <-s.release:
				case <-ctx.Done():
					return "", ctx.Err()
				}
			}
			if strings.HasPrefix(t.In.Name, "torn") {
				return "", object.Permanent(errors.New(secret + " is torn"))
			}
			return secret + " of " + t.In.Name, nil
		},
	})
	s.prints = workerpool.New(workerpool.Config[string, int]{Name: "print", Partitions: 1, Lease: time.Hour})
	s.orders = workflow.New[string, string]("order", workflow.Config{Signals: workflow.Signals{approve}})
	s.orders.Func(func(ctx *workflow.Context, in string) (string, error) {
		if strings.HasPrefix(in, "bad") {
			return "", errors.New("no card: " + secret)
		}
		if _, err := workflow.Step(ctx, "pay", func(context.Context) (string, error) { return secret, nil }); err != nil {
			return "", err
		}
		_, err := approve.Wait(ctx, 0)
		return secret, err
	})
	s.carts = object.Define("cart", func(_ context.Context, st *object.State) (*object.State, error) { return st, nil })
	return []object.Definition{s.reports, s.hooks, s.thumbs, s.prints, s.orders, s.carts}
}

// as makes a request and wants a status. It decodes the answer into *v, unless v is nil.
func (s *shop) as(who, method, path, body string, status int, v any) reply {
	s.t.Helper()
	a := s.ask(who, method, path, body)
	if a.status != status {
		s.t.Fatalf("%s %s %s %s: %d, want %d: %s", who, method, path, body, a.status, status, a.body)
	}
	if v != nil {
		if err := json.Unmarshal([]byte(a.body), v); err != nil {
			s.t.Fatalf("%s %s: %v: %s", method, path, err, a.body)
		}
	}
	return a
}

// refused makes a request and wants a problem of a type.
func (s *shop) refused(who, method, path, body string, status int, kind string) problem {
	s.t.Helper()
	p := s.as(who, method, path, body, status, nil).problem(s.t)
	if p.Type != kind {
		s.t.Errorf("%s %s %s %s: %+v, want %s", who, method, path, body, p, kind)
	}
	return p
}

// happened waits for an event of an object.
func (s *shop) happened(id storage.ID, kind string) {
	s.t.Helper()
	for e, err := range s.host.Watch(s.t.Context(), id, 0) {
		if err != nil {
			s.t.Fatal(err)
		}
		if e.Kind == kind {
			return
		}
	}
}

// enqueue adds a task and returns its id.
func (s *shop) enqueue(pool, body string) string {
	s.t.Helper()
	var ref workerpool.TaskRef
	s.as("caller", "POST", "/v1/pools/"+pool+"/tasks", body, 201, &ref)
	return ref.ID.String()
}

// fill makes jobs and tasks that rest, fail and die.
func (s *shop) fill() (dead string) {
	s.t.Helper()
	for _, id := range []string{"a", "b", "c", "acme%2Fx"} {
		s.as("caller", "PUT", "/v1/jobs/report/"+id, `"`+secret+`"`, 201, nil)
	}
	s.as("caller", "PUT", "/v1/jobs/report/f", `"bad"`, 201, nil)
	s.as("operator", "POST", "/v1/jobs/report/f/do/trigger", "", 204, nil)
	s.happened(s.reports.ID("f"), jobs.EventFailed)
	s.as("operator", "POST", "/v1/jobs/report/c/do/stop", `{"reason": "`+secret+`"}`, 204, nil)
	s.as("caller", "POST", "/v1/jobs/hook/h/do/add", `{"event": "`+secret+`"}`, 200, nil)
	s.as("caller", "PUT", "/v1/jobs/order/o", `"`+secret+`"`, 201, nil)
	s.as("caller", "PUT", "/v1/jobs/order/f", `"bad"`, 201, nil)
	s.happened(s.orders.ID("f"), jobs.EventFailed)
	dead = s.enqueue("thumb", `{"in": {"name": "torn"}}`)
	s.as("viewer", "GET", "/v1/pools/thumb/tasks/"+dead+"/wait", "", 200, nil)
	s.enqueue("thumb", `{"in": {"name": "cat"}, "key": "anna"}`)
	return dead
}

// letters lists the dead letters of a kind.
func (s *shop) letters(kind string) []letter {
	s.t.Helper()
	var page letterPage
	s.as("reader", "GET", "/v1/dead?kind="+kind, "", 200, &page)
	return page.Letters
}

// naming is the body that names a letter.
func naming(l letter, more string) string {
	return fmt.Sprintf(`{"class": %q, "name": %q, "seq": %d%s}`, l.ID.Class, l.ID.Name, l.Seq, more)
}

// direct makes a request without a network, and wants a status.
func (s *shop) direct(who, method, path, body string, status int) string {
	s.t.Helper()
	return s.directIn(s.t.Context(), who, method, path, body, status)
}

// directIn is direct for a client that leaves when ctx ends.
func (s *shop) directIn(ctx context.Context, who, method, path, body string, status int) string {
	s.t.Helper()
	r := httptest.NewRequestWithContext(ctx, method, "http://localhost"+path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+who)
	w := httptest.NewRecorder()
	s.srv.ServeHTTP(w, r)
	if w.Code != status {
		s.t.Fatalf("%s %s %s: %d, want %d: %s", method, path, body, w.Code, status, w.Body)
	}
	return w.Body.String()
}
