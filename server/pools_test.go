package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/admin/why"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/server/auth"
)

// taskState has the fields of a task that a test reads.
type taskState struct {
	State    workerpool.State `json:"state"`
	Result   any              `json:"result"`
	Failures []workerpool.Failure
}

// Proves V10: tasks are added, listed, shown and cancelled over HTTP.
func TestTasks(t *testing.T) {
	s := openShop(t, memory(), nil)
	id := s.enqueue("thumb", `{"in": {"name": "cat"}, "idempotent": "once"}`)
	var ref workerpool.TaskRef
	s.as("caller", "POST", "/v1/pools/thumb/tasks", `{"in": {"name": "cat"}, "idempotent": "once"}`, 200, &ref)
	if !ref.Repeated || ref.ID.String() != id {
		t.Errorf("repeated: %+v, first %s", ref, id)
	}
	var task taskState
	s.as("reader", "GET", "/v1/pools/thumb/tasks/"+id+"/wait", "", 200, &task)
	if task.State != workerpool.Done || task.Result != secret+" of cat" {
		t.Errorf("%+v", task)
	}
	dead := s.enqueue("thumb", `{"in": {"name": "torn"}}`)
	s.as("viewer", "GET", "/v1/pools/thumb/tasks/"+dead+"/wait", "", 200, &task)
	if task.State != workerpool.Dead {
		t.Errorf("%+v", task)
	}

	s.as("operator", "POST", "/v1/pools/thumb/pause", "", 204, nil)
	var refs []workerpool.TaskRef
	s.as("caller", "POST", "/v1/pools/thumb/tasks:batch", `[{"in": {"name": "a"}, "key": "k"}, {"in": {"name": "b"}, "key": "k"}]`, 200, &refs)
	var page workerpool.TaskPage
	s.as("viewer", "GET", "/v1/pools/thumb/tasks?status=pending,running&queue=&key=k&limit=1", "", 200, &page)
	if len(page.Tasks) != 1 || page.Tasks[0].ID != refs[0].ID || page.Next == "" {
		t.Fatalf("%+v", page)
	}
	s.as("viewer", "GET", "/v1/pools/thumb/tasks?status=pending&key=k&limit=1&after="+page.Next, "", 200, &page)
	if len(page.Tasks) != 1 || page.Tasks[0].ID != refs[1].ID {
		t.Errorf("%+v", page)
	}
	var reason why.Answer
	s.as("viewer", "GET", "/v1/pools/thumb/tasks/"+refs[1].ID.String()+"/why", "", 200, &reason)
	if reason.Code != why.PoolPaused || reason.Also[0].Code != why.BehindKey || reason.Also[0].Because[0].Task != refs[0].ID.String() {
		t.Errorf("%+v", reason)
	}
	if a := s.as("caller", "POST", "/v1/pools/thumb/tasks/"+refs[1].ID.String()+"/cancel", "", 200, nil); a.body != `"cancelled"` {
		t.Error(a.body)
	}
	s.as("operator", "POST", "/v1/pools/thumb/resume", "", 204, nil)
	if a := s.as("operator", "POST", "/v1/pools/thumb/tasks/"+dead+"/replay", "", 200, nil); a.body != "1" {
		t.Error(a.body)
	}
	s.as("operator", "POST", "/v1/pools/thumb/drain", "", 204, nil)
	var stats workerpool.Stats
	s.as("viewer", "GET", "/v1/pools/thumb/stats", "", 200, &stats)
	if stats.Submitted != 4 || stats.Cancelled != 1 || stats.Dead != 1 || stats.Mode != workerpool.Draining {
		t.Errorf("%+v", stats)
	}
	if a := s.as("viewer", "GET", "/v1/pools", "", 200, nil); a.body != `{"pools":["print","thumb"]}`+"\n" {
		t.Error(a.body)
	}
}

// Proves V10: a key of a verb, in the body or in the header, is the principal's own, so two principals
// never meet in one task; and a header that a verb does not take adds nothing.
func TestKeysOfVerbs(t *testing.T) {
	s := openShop(t, memory(), func(c *Config) {
		all := []auth.Grant{{Class: "thumb"}, {Class: "hook"}, {Class: "order"}}
		c.Auth = people{"u": {Grants: all}, "v": {Grants: all}, "w": {Role: auth.Viewer}}
	})
	const tasks, batch, order = "/v1/pools/thumb/tasks", "/v1/pools/thumb/tasks:batch", "/v1/jobs/order/o"
	id := func(a reply, repeated bool) string {
		t.Helper()
		var ref workerpool.TaskRef
		if err := json.Unmarshal([]byte(strings.Trim(a.body, "[]\n")), &ref); err != nil || a.status >= 300 || ref.Repeated != repeated {
			t.Fatalf("V10: %d %s, want repeated %v", a.status, a.body, repeated)
		}
		return ref.ID.String()
	}
	const cat, keyed = `{"in": {"name": "cat"}}`, `{"in": {"name": "cat"}, "idempotent": "k"}`
	first := id(s.ask("u", "POST", tasks, cat, "Idempotency-Key", "k"), false)
	for _, a := range []reply{s.ask("u", "POST", tasks, cat, "Idempotency-Key", "k"), s.ask("u", "POST", tasks, keyed), s.ask("u", "POST", batch, "["+keyed+"]")} {
		if again := id(a, true); again != first {
			t.Errorf("V10: the repeat is task %s, the first %s", again, first)
		}
	}
	second := id(s.ask("v", "POST", batch, "["+keyed+"]"), false)
	if again := id(s.ask("v", "POST", tasks, cat, "Idempotency-Key", "k"), true); again != second || second == first {
		t.Errorf("V10: of two principals: %s, %s, %s", first, second, again)
	}

	s.as("u", "PUT", order, `"in"`, 201, nil)
	s.as("u", "POST", order+"/do/signal", `{"name": "approve", "value": 3, "key": "k"}`, 204, nil)
	s.happened(s.orders.ID("o"), jobs.EventCompleted)
	if a := s.ask("u", "POST", order+"/do/signal", `{"name": "approve", "value": 3}`, "Idempotency-Key", "k"); a.status != 204 {
		t.Errorf("V10: the repeat of the signal: %+v", a)
	}
	s.refused("v", "POST", order+"/do/signal", `{"name": "approve", "value": 3, "key": "k"}`, 409, "illegal-move")

	long := strings.Repeat("k", 513)
	for _, c := range []struct{ path, body, key string }{
		{tasks, keyed, "k2"}, {batch, "[" + cat + "]", "k2"}, {tasks, cat, long}, {"/v1/jobs/hook/h/do/add", `{"event": "x"}`, "k"}, {tasks, cat, ""},
	} {
		if p := s.ask("u", "POST", c.path, c.body, "Idempotency-Key", c.key).problem(t); p.Type != "bad-request" || p.Outcome != none {
			t.Errorf("V10: %s %s under %q: %+v", c.path, c.body, c.key, p)
		}
	}
	s.refused("u", "POST", tasks, `{"in": {"name": "cat"}, "idempotent": "`+long+`"}`, 400, "bad-request")
	id(s.ask("u", "POST", tasks, `{"in": {"name": "cat"}, "idempotent": "`+long[1:]+`"}`), false)
	var stats workerpool.Stats
	s.as("w", "GET", "/v1/pools/thumb/stats", "", 200, &stats)
	if stats.Submitted != 3 {
		t.Errorf("V10: %d tasks were added", stats.Submitted)
	}
}

// Proves V10, V4: mistakes of tasks, with the outcome that each has.
func TestMistakesOfTasks(t *testing.T) {
	s := openShop(t, memory(), nil)
	for _, c := range []struct {
		who, method, path, body string
		status                  int
		kind                    string
	}{
		{"viewer", "POST", "/v1/pools/nothing/tasks", `{"in": 1}`, 404, "unknown-type"},
		{"caller", "POST", "/v1/pools/nothing/tasks", `{"in": 1}`, 404, "not-found"},
		{"caller", "POST", "/v1/pools/thumb/tasks", `{"in": {"name": "x"}, "key": "\udc00"}`, 400, "bad-request"},
		{"caller", "POST", "/v1/pools/report/tasks", `{"in": 1}`, 404, "unknown-type"},
		{"nobody", "POST", "/v1/pools/thumb/tasks", `{"in": 1}`, 404, "not-found"},
		{"admin", "POST", "/v1/pools/thumb/tasks", `{"in": 1}`, 404, "not-found"},
		{"enqueuer", "POST", "/v1/pools/thumb/tasks:batch", `[]`, 404, "not-found"},
		{"caller", "POST", "/v1/pools/thumb/pause", ``, 403, "forbidden"},
		{"caller", "POST", "/v1/pools/thumb/explode", ``, 404, "unknown-verb"},
		{"caller", "POST", "/v1/pools/thumb/cancel", ``, 400, "invalid"}, // of a task
		{"caller", "POST", "/v1/pools/thumb/tasks/0-1/claim", ``, 400, "invalid"},
		{"caller", "POST", "/v1/pools/thumb/tasks", `{"in": {"name": "x", "nmae": "y"}}`, 400, "invalid"},
		{"caller", "POST", "/v1/pools/thumb/tasks", `{"in": {"name": "x"}, "queue": "none"}`, 400, "invalid"},
		{"caller", "POST", "/v1/pools/thumb/tasks", ``, 400, "invalid"},
		{"caller", "POST", "/v1/pools/thumb/tasks", `{"in": {}}`, 422, "refused"},
		{"caller", "POST", "/v1/pools/thumb/tasks/0-7/cancel", ``, 404, "unknown-job"},
		{"caller", "POST", "/v1/pools/thumb/tasks/x/cancel", ``, 400, "invalid"},
		{"viewer", "GET", "/v1/pools/thumb/tasks/0-7", ``, 404, "unknown-job"},
		{"viewer", "GET", "/v1/pools/thumb/tasks/0-7/wait", ``, 404, "unknown-job"},
		{"viewer", "GET", "/v1/pools/thumb/tasks/x", ``, 400, "invalid"},
		{"viewer", "GET", "/v1/pools/thumb/tasks/x/why", ``, 400, "invalid"},
		{"viewer", "GET", "/v1/pools/nothing/tasks/0-1", ``, 404, "unknown-type"},
		{"viewer", "GET", "/v1/pools/nothing/stats", ``, 404, "unknown-type"},
		{"viewer", "GET", "/v1/pools/cart/tasks", ``, 404, "unknown-type"},
		{"viewer", "GET", "/v1/pools/report/tasks/x", ``, 404, "unknown-type"},
		{"viewer", "GET", "/v1/pools/thumb/tasks?status=done", ``, 400, "invalid"},
		{"viewer", "GET", "/v1/pools/thumb/tasks?status=odd", ``, 400, "invalid"},
		{"viewer", "GET", "/v1/pools/thumb/tasks?limit=1001", ``, 400, "invalid"},
	} {
		if p := s.refused(c.who, c.method, c.path, c.body, c.status, c.kind); p.Outcome != none {
			t.Errorf("%s %s: %+v", c.method, c.path, p)
		}
	}
	if p := s.refused("caller", "POST", "/v1/pools/thumb/tasks", `{"in": {}}`, 422, "refused"); !strings.Contains(p.Detail, secret) {
		t.Errorf("the error of the input is for those that may add it: %+v", p)
	}
	if stats, err := s.thumbs.Stats(t.Context(), s.host); err != nil || stats.Submitted != 0 {
		t.Errorf("refused tasks are stored: %+v, %v", stats, err)
	}
	s.as("operator", "POST", "/v1/pools/thumb/drain", "", 204, nil)
	if p := s.refused("caller", "POST", "/v1/pools/thumb/tasks", `{"in": {"name": "x"}}`, 503, "draining"); p.Outcome != none || !p.Retryable {
		t.Errorf("draining: %+v", p)
	}
}

// Proves V5: a batch has at most 10,000 tasks.
func TestBatchBound(t *testing.T) {
	s := openShop(t, memory(), nil)
	many := func(n int) string { return "[" + strings.Repeat(`{"in":"x"},`, n-1) + `{"in":"x"}]` }
	s.refused("caller", "POST", "/v1/pools/print/tasks:batch", many(10_001), 400, "invalid")
	if stats, err := s.prints.Stats(t.Context(), s.host); err != nil || stats.Submitted != 0 {
		t.Errorf("%+v, %v", stats, err)
	}
	var refs []workerpool.TaskRef
	s.as("caller", "POST", "/v1/pools/print/tasks:batch", many(10_000), 200, &refs)
	if stats, err := s.prints.Stats(t.Context(), s.host); err != nil || stats.Submitted != 10_000 || len(refs) != 10_000 {
		t.Errorf("%+v, %v", stats, err)
	}
	var page workerpool.TaskPage
	s.as("viewer", "GET", "/v1/pools/print/tasks?limit=1000", "", 200, &page)
	if len(page.Tasks) != 1000 {
		t.Errorf("a page of %d", len(page.Tasks))
	}
}

// Proves V5: a wait is bounded by its time, which is bounded itself, and by its client.
func TestWaitBound(t *testing.T) {
	s := openShop(t, memory(), nil)
	id := s.enqueue("thumb", `{"in": {"name": "cat", "slow": true}}`)
	path := "/v1/pools/thumb/tasks/" + id + "/wait"
	for _, bad := range []string{"61s", "60s1ns", "-1s", "1", "soon"} {
		s.refused("viewer", "GET", path+"?timeout="+bad, "", 400, "bad-request")
	}
	var task taskState
	s.as("viewer", "GET", path+"?timeout=1ms", "", 200, &task)
	if task.State != workerpool.Running {
		t.Errorf("when the time is over: %+v", task)
	}
	done := make(chan reply)
	go func() { done <- s.ask("reader", "GET", path+"?timeout=60s", "") }()
	close(s.release)
	if a := <-done; a.status != 200 || !strings.Contains(a.body, `"done"`) {
		t.Errorf("%+v", a)
	}
}

// Proves V5: a wait of a task ends when its client leaves.
func TestWaitEndsWithItsClient(t *testing.T) {
	s := openShop(t, memory(), nil)
	id := s.enqueue("thumb", `{"in": {"name": "cat", "slow": true}}`)
	began, ended := make(chan struct{}), make(chan struct{})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(began)
		s.srv.ServeHTTP(w, r)
		close(ended)
	}))
	defer web.Close()
	ctx, leave := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, "GET", web.URL+"/v1/pools/thumb/tasks/"+id+"/wait", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer viewer")
	go func() {
		<-began
		leave()
	}()
	if _, err := web.Client().Do(r); !errors.Is(err, context.Canceled) {
		t.Errorf("the client did not leave: %v", err)
	}
	<-ended
	close(s.release)
}

// Proves V10, W5: a worker that knows HTTP alone claims a task, keeps its lease and ends it. A worker that dies
// loses its lease, and another takes the task over; the first one can change nothing any more.
func TestWorkerOutside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := shopInTime(t)
		id := s.direct("caller", "POST", "/v1/pools/print/tasks", `{"in": "letter"}`, 201)
		var ref workerpool.TaskRef
		if err := json.Unmarshal([]byte(id), &ref); err != nil {
			t.Fatal(err)
		}
		task := "/v1/pools/print/tasks/" + ref.ID.String()
		claim := func() (lease string) {
			var claims []struct {
				Lease json.RawMessage
				Task  struct{ In string }
			}
			body := s.direct("caller", "POST", "/v1/pools/print/claim", `{"n": 5, "lease": "10s"}`, 200)
			if err := json.Unmarshal([]byte(body), &claims); err != nil {
				t.Fatal(err)
			}
			if len(claims) == 0 {
				return ""
			}
			if claims[0].Task.In != "letter" {
				t.Errorf("%s", body)
			}
			return string(claims[0].Lease)
		}
		first := claim()
		for range 5 { // it lives: half a minute under a lease of ten seconds
			time.Sleep(6 * time.Second)
			first = s.direct("caller", "POST", task+"/heartbeat", `{"lease": `+first+`}`, 200)
			if other := claim(); other != "" {
				t.Fatalf("claimed twice: %s", other)
			}
		}
		time.Sleep(time.Minute) // it is dead
		second := claim()
		if second == "" {
			t.Fatal("nobody can take over")
		}
		for _, verb := range []string{"heartbeat", "ack", "nack"} {
			s.direct("caller", "POST", task+"/"+verb, `{"lease": `+first+`}`, 409)
		}
		s.direct("caller", "POST", task+"/ack", `{"lease": `+second+`, "out": 2}`, 204)
		if a := s.direct("reader", "GET", task+"/wait", "", 200); !strings.Contains(a, `"state":"done"`) || !strings.Contains(a, `"result":2`) {
			t.Error(a)
		}
	})
}

// Proves V10: the answer of a claim to a principal without the grant is the same for each pool.
func TestClaimNeedsItsGrant(t *testing.T) {
	s := openShop(t, memory(), nil)
	s.enqueue("print", `{"in": "x"}`)
	for _, who := range []string{"nobody", "admin", "enqueuer"} {
		s.refused(who, "POST", "/v1/pools/print/claim", "", 404, "not-found")
		for _, verb := range []string{"heartbeat", "ack", "nack", "cancel"} {
			s.refused(who, "POST", "/v1/pools/print/tasks/0-1/"+verb, "", 404, "not-found")
		}
	}
	if stats, err := s.prints.Stats(t.Context(), s.host); err != nil || stats.Running != 0 {
		t.Errorf("%+v, %v", stats, err)
	}
}
