package server

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// Proves V10, G1: the effect of each verb that was answered is there after a crash, and a claimed task
// keeps its lease.
func TestAnsweredVerbsSurviveACrash(t *testing.T) {
	engine := memstore.New()
	s := openShop(t, object.Options{Storage: storage.Options{Engine: engine}}, nil)
	s.fill()
	s.as("operator", "POST", "/v1/jobs/report/a/do/pause", "", 204, nil)
	paused := s.crash(engine)
	s.as("operator", "POST", "/v1/jobs/report/b/do/terminate", "", 204, nil)
	removed := s.crash(engine)
	s.as("caller", "POST", "/v1/jobs/hook/h/do/add", `{"event": "y"}`, 200, nil)
	added := s.crash(engine)
	s.as("operator", "POST", "/v1/dead/discard", naming(s.letters("workflow")[0], ""), 204, nil)
	discarded := s.crash(engine)
	s.as("operator", "POST", "/v1/pools/print/pause", "", 204, nil)
	s.as("operator", "POST", "/v1/pools/print/resume", "", 204, nil)
	id := s.enqueue("print", `{"in": "x"}`)
	enqueued := s.crash(engine)
	var claims []workerpool.Claim[string]
	s.as("caller", "POST", "/v1/pools/print/claim", "", 200, &claims)
	claimed := s.crash(engine)
	lease, err := json.Marshal(claims[0].Lease)
	if err != nil {
		t.Fatal(err)
	}
	ack := `{"lease": ` + string(lease) + `, "out": 2}`
	s.as("caller", "POST", "/v1/pools/print/tasks/"+id+"/ack", ack, 204, nil)
	ended := s.crash(engine)

	status := func(s *shop) jobs.Status {
		st, err := s.reports.Status(t.Context(), s.host, "a")
		if err != nil {
			t.Fatal(err)
		}
		return st.Meta.Status
	}
	task := func(s *shop) (task taskState) {
		s.as("reader", "GET", "/v1/pools/print/tasks/"+id, "", 200, &task)
		return task
	}
	if st := status(paused()); st != jobs.Paused {
		t.Errorf("the pause is gone: %s", st)
	}
	removed().refused("viewer", "GET", "/v1/jobs/report/b", "", 404, "unknown-job")
	if again := added(); true {
		if p, err := again.hooks.Pending(t.Context(), again.host, "h"); err != nil || len(p.Events) != 2 {
			t.Errorf("the event is gone: %+v, %v", p, err)
		}
	}
	if again := discarded(); len(again.letters("workflow")) != 0 {
		t.Error("the discarded letter is back")
	}
	if st := task(enqueued()); st.State != workerpool.Pending {
		t.Errorf("enqueued: %+v", st)
	}
	again := claimed()
	if st := task(again); st.State != workerpool.Running {
		t.Errorf("claimed: %+v", st)
	}
	again.as("caller", "POST", "/v1/pools/print/tasks/"+id+"/ack", ack, 204, nil) // by the worker, which has not noticed
	if st := task(ended()); st.State != workerpool.Done {
		t.Errorf("ended: %+v", st)
	}
}

// crash cuts the power now. The shop that it returns opens what is left.
func (s *shop) crash(engine *memstore.Store) func() *shop {
	left := engine.Crash(0)
	return func() *shop {
		return openShop(s.t, object.Options{Storage: storage.Options{Engine: left}}, nil)
	}
}

// Proves V4, V10: the time of the header ends the wait for a verb, whose outcome is unknown then. A verb goes on
// when its client has left.
func TestEndOfTheWaitForAVerb(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := shopInTime(t)
		s.direct("caller", "POST", "/v1/pools/thumb/tasks", `{"in": {"name": "cat", "slow": true}}`, 201)
		mode := func() workerpool.Mode {
			stats, err := s.thumbs.Stats(t.Context(), s.host)
			if err != nil {
				t.Fatal(err)
			}
			return stats.Mode
		}
		var p problem
		body := s.direct("operator", "POST", "/v1/pools/thumb/drain", "", 504)
		if err := json.Unmarshal([]byte(body), &p); err != nil || p.Type != "timeout" || p.Outcome != unknown || mode() != workerpool.Draining {
			t.Errorf("%s, %s", body, mode())
		}
		s.direct("operator", "POST", "/v1/pools/thumb/resume", "", 204)

		gone, leave := context.WithCancel(t.Context())
		leave()
		began := time.Now()
		go func() {
			time.Sleep(time.Second)
			close(s.release)
		}()
		s.directIn(gone, "operator", "POST", "/v1/pools/thumb/drain", "", 204)
		if d := time.Since(began); d != time.Second || mode() != workerpool.Draining {
			t.Errorf("a drain without its client has ended after %v: %s", d, mode())
		}
	})
}
