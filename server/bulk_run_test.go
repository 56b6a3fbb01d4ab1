package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	jobadmin "github.com/holdfast-dev/holdfast/admin"
	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/verbs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/server/auth"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// shopOn opens a shop without a network, for virtual time, on an engine.
func shopOn(t *testing.T, engine *memstore.Store) *shop {
	t.Helper()
	return shopWith(t, object.Options{Storage: storage.Options{Engine: engine}})
}

// shopWith is shopOn with options.
func shopWith(t *testing.T, o object.Options) *shop {
	t.Helper()
	s := &shop{}
	host, err := object.Open(o, Definitions(s.define()...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = host.Shutdown(context.Background()) })
	srv, err := New(host, Config{Auth: staff, Jobs: s.types()})
	if err != nil {
		t.Fatal(err)
	}
	s.fixture = &fixture{t: t, host: host, srv: srv}
	return s
}

// stopped makes jobs that are stopped, and counts those that a resume would act on.
func (s *shop) stopped(n int) (token string) {
	s.t.Helper()
	for i := range n {
		id := fmt.Sprint(i)
		if _, err := s.reports.Start(s.t.Context(), s.host, id, "x"); err != nil {
			s.t.Fatal(err)
		}
		if err := s.reports.Stop(s.t.Context(), s.host, id, "x"); err != nil {
			s.t.Fatal(err)
		}
	}
	time.Sleep(time.Second)
	c := s.stillStopped()
	if c.Matches != n {
		s.t.Fatalf("%+v", c)
	}
	return fmt.Sprintf(`{"token": %q}`, c.Token)
}

// stillStopped counts the jobs that are stopped.
func (s *shop) stillStopped() (c jobadmin.Count) {
	s.t.Helper()
	body := s.direct("operator", "POST", "/v1/jobs:count", `{"verb": "resume", "class": "report", "label": "stopped"}`, 200)
	if err := json.Unmarshal([]byte(body), &c); err != nil {
		s.t.Fatal(err)
	}
	return c
}

// bulkLines are the lines of a bulk verb.
func bulkLines(t *testing.T, body string) (all []bulkLine) {
	t.Helper()
	for _, raw := range strings.Split(strings.TrimSpace(body), "\n") {
		var l bulkLine
		if err := json.Unmarshal([]byte(raw), &l); err != nil {
			t.Fatalf("%v: %s", err, body)
		}
		all = append(all, l)
	}
	return all
}

// bulkRun is a run as the API shows it.
func (s *shop) bulkRun(id string) (run bulkStatus) {
	s.t.Helper()
	if err := json.Unmarshal([]byte(s.direct("operator", "GET", "/v1/bulk/"+id, "", 200)), &run); err != nil {
		s.t.Fatal(err)
	}
	return run
}

// outcome is the line of the audit of a run.
func (s *shop) outcome(id, day string) string {
	s.t.Helper()
	var page auditPage
	if err := json.Unmarshal([]byte(s.direct("admin", "GET", "/v1/audit?day="+day, "", 200)), &page); err != nil {
		s.t.Fatal(err)
	}
	for _, l := range page.Entries {
		if l.ID == id {
			return l.brief()
		}
	}
	s.t.Fatalf("V20: the audit has no entry of the run: %+v", page)
	return ""
}

// manyStopped is more than two seconds of acts.
const manyStopped = 1200

// Proves V11, V21: the progress of a long run is told at once and each second. A client that leaves ends the lines, and
// the run goes on, at most 500 in a second.
func TestBulkGoesOnWithoutItsClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := shopOn(t, memstore.New())
		token, day := s.stopped(manyStopped), today(s.host)
		leaving, leave := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer leave()
		began := time.Now()
		lines := bulkLines(t, s.directIn(leaving, "operator", "POST", "/v1/jobs:run", token, 200))
		if len(lines) != 2 || lines[0].Done != 0 || lines[0].ID == "" || lines[1].Done < 400 || lines[1].Done > 500 || lines[1].Ended {
			t.Errorf("V11: a client that left: %+v", lines)
		}
		id := lines[0].ID
		if run := s.bulkRun(id); run.State != bulkRunning || run.Done < 600 || run.Done > 750 || run.Matches != manyStopped || run.Who != "operator" || run.Verb != "resume" {
			t.Errorf("V21: without its client: %+v", run)
		}
		time.Sleep(time.Minute)
		run := s.bulkRun(id)
		if took := run.Ended.Sub(began); run.State != done || run.Done != manyStopped || run.Skipped+run.Refused > 0 || took < manyStopped*time.Second/500 || took > 4*time.Second {
			t.Errorf("V21: after %v: %+v", took, run)
		}
		if c := s.stillStopped(); c.Matches != 0 {
			t.Errorf("V21: %d are left", c.Matches)
		}
		if got := s.outcome(id, day); got != fmt.Sprint("operator resume report/ done ", manyStopped) {
			t.Errorf("V20: %s", got)
		}
	})
}

// Proves V21: a run goes on when the process was killed in its midst, and when it was closed in order, without a request.
// It acts on all that were counted and on nothing that came to rest later.
func TestBulkGoesOnAfterARestart(t *testing.T) {
	for name, kill := range map[string]bool{"killed": true, "in order": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := memstore.New()
				s := shopOn(t, engine)
				token, day := s.stopped(manyStopped), today(s.host)
				leaving, leave := context.WithTimeout(t.Context(), 1500*time.Millisecond)
				defer leave()
				id := bulkLines(t, s.directIn(leaving, "operator", "POST", "/v1/jobs:run", token, 200))[0].ID
				if _, err := s.reports.Start(t.Context(), s.host, "zz", "x"); err != nil {
					t.Fatal(err)
				}
				if err := s.reports.Stop(t.Context(), s.host, "zz", "x"); err != nil { // after the count
					t.Fatal(err)
				}
				left := engine.Crash(0)
				if err := s.host.Shutdown(t.Context()); err != nil {
					t.Fatal(err)
				}
				if !kill {
					left = engine.Crash(0)
				}
				again := shopOn(t, left)
				time.Sleep(30 * time.Second)
				run := again.bulkRun(id)
				if run.State != done || run.Skipped+run.Refused > 0 || run.Done > manyStopped || !kill && run.Done != manyStopped || kill && run.Done < manyStopped-bulkLost {
					t.Errorf("V21: %+v", run)
				}
				if c := again.stillStopped(); c.Matches != 1 {
					t.Errorf("V21: %d are left, want the one that was stopped later", c.Matches)
				}
				if got := again.outcome(id, day); got != fmt.Sprint("operator resume report/ done ", run.Done) {
					t.Errorf("V20: %s", got)
				}
			})
		})
	}
}

// bulkLost is how many acts of a run a crash takes from its numbers: those of a second, and of the part that the second
// ends in.
const bulkLost = 600

// stuck is a shop with a dead letter of an object that holds on to its turn, so that a replay of the letter waits. let
// ends the turn.
func stuck(t *testing.T) (s *shop, let func()) {
	t.Helper()
	died, held := make(chan struct{}), make(chan struct{})
	well := false
	wakers := object.Define("waker", func(_ context.Context, st *object.State) (*waker, error) { return &waker{st, &well}, nil },
		object.ClassOptions{OnDeadLetter: func(context.Context, object.DeadLetter) { close(died) }, HoldLimit: -1, MailboxAge: 24 * time.Hour})
	set := object.Handle(wakers, "set", func(w *waker, ctx context.Context, hold bool) (int, error) {
		if hold {
			<-held
			return 0, nil
		}
		return 0, w.st.SetAlarm(ctx, w.st.Now())
	})
	host, err := object.Open(memory(), Definitions(wakers)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = host.Shutdown(context.Background()) })
	srv, err := New(host, Config{Auth: staff})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := set.Call(t.Context(), host, "w", false); err != nil {
		t.Fatal(err)
	}
	<-died
	time.Sleep(time.Second)
	go func() { _, _ = set.Call(context.Background(), host, "w", true) }()
	synctest.Wait()
	return &shop{fixture: &fixture{t: t, host: host, srv: srv}}, func() { well = true; close(held) }
}

// beginStuck begins a replay of the letter of a stuck shop by a page, and returns the status and the id.
func (s *shop) beginStuck(who string) (status int, id string) {
	s.t.Helper()
	var c jobadmin.Count
	if err := json.Unmarshal([]byte(s.direct(who, "POST", "/v1/dead:count", `{"do": "replay"}`, 200)), &c); err != nil || c.Matches != 1 {
		s.t.Fatalf("%+v, %v", c, err)
	}
	r := httptest.NewRequestWithContext(s.t.Context(), "POST", "http://localhost/ui/bulk", strings.NewReader(url.Values{"token": {c.Token}}.Encode()))
	r.Header.Set("Authorization", "Bearer "+who)
	r.Header.Set("Content-Type", asForm)
	w := httptest.NewRecorder()
	s.srv.ServeHTTP(w, r)
	return w.Code, strings.TrimPrefix(w.Header().Get("Location"), "bulkrun?id=")
}

// Proves V21: a run waits for an object that does not let it go on for longer than ten minutes, and ends when all is done.
// It is kept for seven days after its end, and no longer.
func TestBulkHasNoLimitOfTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, let := stuck(t)
		day := today(s.host)
		_, id := s.beginStuck("operator")
		time.Sleep(time.Hour)
		if run := s.bulkRun(id); run.State != bulkRunning || run.Done != 0 {
			t.Errorf("V21: after an hour: %+v", run)
		}
		let()
		time.Sleep(time.Minute)
		run := s.bulkRun(id)
		if run.State != done || run.Done != 1 {
			t.Errorf("V21: %+v", run)
		}
		if got := s.outcome(id, day+"&limit=2"); got != "operator replay / done 1" {
			t.Errorf("V20: at the end of a page: %s", got)
		}
		time.Sleep(time.Until(run.Ended.Add(bulkKept - time.Second)))
		if got := s.direct("operator", "GET", "/v1/bulk", "", 200); !strings.Contains(got, id) {
			t.Errorf("V21: within seven days: %s", got)
		}
		time.Sleep(time.Minute)
		s.direct("operator", "GET", "/v1/bulk/"+id, "", 404)
		if got := s.direct("operator", "GET", "/v1/bulk", "", 200); strings.Contains(got, id) {
			t.Errorf("V21: after seven days: %s", got)
		}
	})
}

// Proves V21: any operator stops a run, also one that waits for an object, and the rest stays as it was. A run that has
// ended stays as it is, and one that is not there is 404.
func TestBulkIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, let := stuck(t)
		day := today(s.host)
		_, id := s.beginStuck("operator")
		s.direct("reader", "POST", "/v1/bulk/"+id+"/stop", "", 403)
		s.direct("reader", "GET", "/v1/bulk/"+id, "", 403)
		s.direct("operator", "POST", "/v1/bulk/none/stop", "", 404)
		s.direct("operator", "GET", "/v1/bulk/none", "", 404)
		s.direct("other", "POST", "/v1/bulk/"+id+"/stop", "", 204)
		synctest.Wait()
		run := s.bulkRun(id)
		if run.State != "stopped" || run.Problem == nil || run.Problem.Type != "stopped" || run.Done != 0 {
			t.Errorf("V21: %+v", run)
		}
		s.direct("other", "POST", "/v1/bulk/"+id+"/stop", "", 204)
		if again := s.bulkRun(id); !again.Ended.Equal(run.Ended) {
			t.Errorf("V21: %+v", again)
		}
		if got := s.outcome(id, day); got != "operator replay / unknown: stopped" {
			t.Errorf("V20: %s", got)
		}
		if len(s.lettersDirect()) != 1 {
			t.Error("V21: the letter is gone")
		}
		let()
	})
}

// lettersDirect are the dead letters, without a network.
func (s *shop) lettersDirect() []letter {
	s.t.Helper()
	var page letterPage
	if err := json.Unmarshal([]byte(s.direct("reader", "GET", "/v1/dead", "", 200)), &page); err != nil {
		s.t.Fatal(err)
	}
	return page.Letters
}

// Proves V21: the lines of a run end with Serve, and say so; the run goes on as long as its host.
func TestLinesEndWithServe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := shopOn(t, memstore.New())
		token := s.stopped(manyStopped)
		go func() {
			time.Sleep(time.Second)
			s.srv.serving.expire()
		}()
		lines := bulkLines(t, s.direct("operator", "POST", "/v1/jobs:run", token, 200))
		last := lines[len(lines)-1]
		if last.Ended || last.Problem == nil || last.Problem.Type != "shutting-down" || last.Done == 0 || last.Done >= manyStopped {
			t.Errorf("V21: %+v", lines)
		}
		time.Sleep(time.Minute)
		if run, err := bulkShow.Call(t.Context(), s.host, last.ID, struct{}{}); err != nil || run.Ended.IsZero() || run.Bulk.Progress.Done != manyStopped {
			t.Errorf("V21: %+v, %v", run, err)
		}
		s.direct("operator", "POST", "/v1/dead:run", `{"token": "x"}`, 404)
	})
}

// clerk is an Authenticator of one operator, who may also start reports until that grant is taken.
type clerk struct{ taken atomic.Bool }

func (c *clerk) Authenticate(*http.Request) (auth.Principal, error) {
	who := auth.Principal{ID: "clerk", Role: auth.Operator}
	if !c.taken.Load() {
		who.Grants = []auth.Grant{{Class: "report"}}
	}
	return who, nil
}

// Proves V11: a run ends when its principal has lost the grant for the verb, though not the role, also if the host has a
// newer Server than the one that has begun the run. Nothing of the run stays in memory.
func TestARunEndsWithTheGrantOfItsVerb(t *testing.T) {
	for name, newer := range map[string]bool{"one Server": false, "two Servers": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := shopOn(t, memstore.New())
				s.stopped(manyStopped)
				who := &clerk{}
				s.srv.config.Auth, s.srv.limits.checkEvery = who, time.Second
				if newer {
					second, err := New(s.host, Config{Auth: staff, Jobs: s.types()})
					if err != nil {
						t.Fatal(err)
					}
					second.limits.checkEvery = time.Second
					defer runtime.KeepAlive(second)
				}
				var c jobadmin.Count
				body := s.direct("", "POST", "/v1/jobs:count", `{"verb": "start", "class": "report", "label": "stopped", "arg": "x"}`, 200)
				if err := json.Unmarshal([]byte(body), &c); err != nil {
					t.Fatal(err)
				}
				leaving, leave := context.WithTimeout(t.Context(), 500*time.Millisecond)
				defer leave()
				id := bulkLines(t, s.directIn(leaving, "", "POST", "/v1/jobs:run", fmt.Sprintf(`{"token": %q}`, c.Token), 200))[0].ID
				who.taken.Store(true)
				time.Sleep(time.Minute)
				run := s.bulkRun(id)
				if run.State != "stopped" || run.Problem == nil || run.Problem.Type != "revoked" || run.Done == 0 || run.Done > 600 {
					t.Errorf("V11: %+v", run)
				}
				if left := len(s.srv.bulk.all); left != 0 {
					t.Errorf("V9: %d runs stay in memory", left)
				}
			})
		})
	}
}

// holding is a probe that holds the first turn of a run for longer than a request waits.
type holding struct{ held atomic.Bool }

func (h *holding) At(p seam.Point) {
	if p.Name == "handler/enter" && strings.HasPrefix(p.Object, bulkClass+"/") && !h.held.Swap(true) {
		time.Sleep(2 * time.Minute)
	}
}

// Proves V20, V21: a run whose begin has taken longer than the request goes on, and the audit has the outcome of the run.
func TestOutcomeOfARunThatBeganTooSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := shopWith(t, object.Options{Storage: storage.Options{Engine: memstore.New()}, Seams: seam.Seams{Probe: new(holding)}})
		token, day := s.stopped(3), today(s.host)
		s.direct("operator", "POST", "/v1/jobs:run", token, 504)
		time.Sleep(10 * time.Minute)
		var page bulkPage
		if err := json.Unmarshal([]byte(s.direct("operator", "GET", "/v1/bulk", "", 200)), &page); err != nil || len(page.Runs) != 1 {
			t.Fatalf("%+v, %v", page, err)
		}
		run := page.Runs[0]
		if got := s.outcome(run.ID, day); run.State != done || got != "operator resume report/ done 3" {
			t.Errorf("V20: %s; %+v", got, run)
		}
		if left := len(s.srv.bulk.all); left != 0 {
			t.Errorf("V9: %d runs stay in memory", left)
		}
	})
}

// Proves V5, V21: a principal has few runs at a time, and all together have no more than a bound.
func TestRunsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, let := stuck(t)
		var first string
		for i := range runsEach {
			status, id := s.beginStuck("operator")
			if status != 303 || id == "" {
				t.Fatalf("run %d: %d", i, status)
			}
			first = id
		}
		if status, _ := s.beginStuck("operator"); status != 429 {
			t.Errorf("V5: one more than %d: %d", runsEach, status)
		}
		if status, _ := s.beginStuck("other"); status != 303 {
			t.Errorf("V5: another principal: %d", status)
		}
		s.direct("operator", "POST", "/v1/bulk/"+first+"/stop", "", 204)
		synctest.Wait()
		if status, _ := s.beginStuck("operator"); status != 303 {
			t.Errorf("V5: in the place of one that was stopped: %d", status)
		}
		for i := range maxRuns - runsEach - 1 {
			run := bulkState{Of: deadOf, Who: fmt.Sprint(i), Day: today(s.host), Began: time.Now(), Bulk: jobadmin.Bulk{Verb: replayVerb, At: time.Now()}}
			s.srv.bulk.put(fmt.Sprint("run", i), func() *problem { return nil })
			if _, err := bulkBegin.Call(t.Context(), s.host, fmt.Sprint("run", i), run); err != nil {
				t.Fatal(err)
			}
		}
		if status, _ := s.beginStuck("admin"); status != 429 {
			t.Errorf("V5: one more than %d: %d", maxRuns, status)
		}
		var page bulkPage
		if err := json.Unmarshal([]byte(s.direct("operator", "GET", "/v1/bulk?running=1&limit=3", "", 200)), &page); err != nil || len(page.Runs) != 3 || page.Next == "" {
			t.Errorf("V21: %+v, %v", page, err)
		}
		let()
		time.Sleep(time.Minute)
		if err := json.Unmarshal([]byte(s.direct("operator", "GET", "/v1/bulk?running=1", "", 200)), &page); err != nil || len(page.Runs) != 0 {
			t.Errorf("V21: %+v, %v", page, err)
		}
	})
}

// Proves V21: a run that cannot be read ends no list of runs, and no other run waits for it.
func TestUnreadableRunEndsNoList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := shopOn(t, memstore.New())
		s.tearRun("0damaged")
		lines := bulkLines(t, s.direct("operator", "POST", "/v1/jobs:run", s.stopped(3), 200))
		var page bulkPage
		if err := json.Unmarshal([]byte(s.direct("operator", "GET", "/v1/bulk", "", 200)), &page); err != nil || len(page.Runs) != 2 {
			t.Fatalf("V21: %+v, %v", page, err)
		}
		if run := page.Runs[0]; run.ID != "0damaged" || run.State != "unreadable" || run.Problem == nil || !strings.Contains(run.Problem.Detail, "unexpected end of JSON") {
			t.Errorf("V21: the run that cannot be read: %+v", run)
		}
		if run := page.Runs[1]; run.ID != lines[0].ID || run.State != done || run.Done != 3 {
			t.Errorf("V21: the other run: %+v", run)
		}
	})
}

// Proves V21 through crashes: a run that is cut off anywhere goes on, each letter that was counted is replayed once,
// the run ends, and the audit has one outcome of it.
func TestCrashBulk(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		healed := false
		images := workerpool.New(workerpool.Config[int, int]{
			Name: "image", Partitions: 1, Retention: jobs.Retention{Completed: 1000 * time.Hour, Cancelled: 1000 * time.Hour},
			Work: func(context.Context, *workerpool.Task[int]) (int, error) {
				if !healed {
					return 0, object.Permanent(errors.New("ill"))
				}
				return 0, nil
			},
		})
		var servers []*Server // each is kept, as by a program
		program := object.Define("program", func(_ context.Context, st *object.State) (*object.State, error) { return st, nil })
		program.AtOpen(func(_ context.Context, h *object.Host, _ *slog.Logger) {
			srv, err := New(h, Config{Auth: everyone, Jobs: []verbs.Described{images}})
			if err == nil {
				servers = append(servers, srv)
			}
		})
		s.Host(Definitions(program, images)...)
		const tasks = 2
		for i := range tasks {
			s.OK(s.Retry(func() error {
				_, err := images.Enqueue(s.Context(), s, i, workerpool.Idempotent(fmt.Sprint(i), 1000*time.Hour))
				return err
			}))
		}
		s.Advance(2 * time.Hour) // for those that crashes in a row hold back
		healed = true
		s.OK(s.Retry(func() error {
			return s.WithHost(func(ctx context.Context, h *object.Host) error {
				srv, err := New(h, Config{Auth: everyone, Jobs: []verbs.Described{images}})
				if err != nil {
					return err
				}
				servers = append(servers, srv)
				ask := func(path, kind, body string) (*httptest.ResponseRecorder, error) {
					w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, "POST", "http://localhost"+path, strings.NewReader(body))
					r.Header.Set("Authorization", "Bearer admin")
					r.Header.Set("Content-Type", kind)
					if srv.ServeHTTP(w, r); w.Code >= 400 {
						return w, errors.New(w.Body.String())
					}
					return w, nil
				}
				w, err := ask("/v1/dead:count", "application/json", `{"do": "replay"}`)
				var c jobadmin.Count
				if err == nil {
					err = json.Unmarshal(w.Body.Bytes(), &c)
				}
				if err != nil || c.Matches == 0 { // an earlier run has all
					return err
				}
				_, err = ask("/ui/bulk", asForm, url.Values{"token": {c.Token}}.Encode())
				return err
			})
		}))
		s.Advance(2 * time.Hour)
		s.OK(s.Retry(func() error {
			return s.WithHost(func(ctx context.Context, h *object.Host) error {
				replayed := 0
				events, err := h.Events(ctx, images.ID("0"), 0, object.MaxPage)
				if err != nil {
					return err
				}
				for _, e := range events {
					if e.Kind == workerpool.EventReplayed {
						replayed++
					}
				}
				letters, err := h.DeadLetters(ctx, object.DeadLettersOptions{})
				if err != nil {
					return err
				}
				s.Always("V21: each letter was replayed once", replayed == tasks && len(letters.Letters) == 0, replayed, len(letters.Letters))
				runs, err := h.Objects(ctx, bulkClass, object.ObjectsOptions{})
				if err != nil {
					return err
				}
				s.Always("V21: there is a run", len(runs) > 0)
				for _, info := range runs {
					run, err := bulkShow.Call(ctx, h, info.ID.Name, struct{}{})
					if err != nil {
						return err
					}
					s.Always("V21: the run has ended", !run.Ended.IsZero() && run.Problem == nil && run.Bulk.Progress.Refused == 0, run)
					events, err := h.Events(ctx, storage.ID{Class: auditClass, Name: run.Day}, 0, object.MaxPage)
					if err != nil {
						return err
					}
					outcomes := 0
					for _, e := range events {
						if e.Kind == auditEnded && strings.Contains(string(e.Data), info.ID.Name) {
							outcomes++
						}
					}
					s.Always("V20: the audit has one outcome of the run", outcomes == 1, outcomes)
				}
				return nil
			})
		}))
	}, harness.NoLostAck)
}
