package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	jobadmin "github.com/holdfast-dev/holdfast/admin"
	"github.com/holdfast-dev/holdfast/admin/why"
	"github.com/holdfast-dev/holdfast/jobs/verbs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
)

// maxWait is how long a client may wait for the end of a task in one request.
const maxWait = time.Minute

// showTime is how long a task may take to be shown after a wait, because Serve may be ending.
const showTime = 5 * time.Second

// taskParams are the parameters of a list of tasks.
var taskParams = []param{
	{name: "status", help: "only pending, running or dead ones; several with commas"},
	{name: "queue", help: "only of this queue; the default queue has the empty name"},
	{name: "key", help: "only with this key"}, afterParam, limitParam,
}

// poolRoutes are the routes of worker pools: tasks, outside workers.
func (s *Server) poolRoutes() []route {
	verb, body := json.RawMessage{}, json.RawMessage{}
	return []route{
		{method: "GET", pattern: "/v1/pools", access: viewer, answer: poolList{}, handle: (*exchange).listPools,
			help: "List the worker pools that Config.Jobs names."},
		{method: "GET", pattern: "/v1/pools/{pool}/stats", access: viewer, answer: workerpool.Stats{}, handle: (*exchange).poolStats,
			help: "Count the tasks of a pool and of each of its partitions."},
		{method: "GET", pattern: "/v1/pools/{pool}/tasks", access: viewer, answer: workerpool.TaskPage{}, handle: (*exchange).listTasks,
			params: taskParams,
			help:   "List pending, running and dead tasks, from stored rows; below reader without errors."},
		{method: "GET", pattern: "/v1/pools/{pool}/tasks/{id}", access: viewer, answer: json.RawMessage{}, handle: (*exchange).showTask,
			help: "Show a task: workerpool.Status; below reader without its result, errors and notes."},
		{method: "GET", pattern: "/v1/pools/{pool}/tasks/{id}/why", access: viewer, answer: why.Answer{}, handle: (*exchange).whyTask,
			help: "Tell why a task does not run now, or that it runs; the code is absent if there is no such task."},
		{method: "GET", pattern: "/v1/pools/{pool}/tasks/{id}/wait", access: viewer, answer: json.RawMessage{}, handle: (*exchange).waitTask,
			params: []param{{name: "timeout", help: "how long at most, such as 30s, up to 60s; 60s if it is not there"}},
			help:   "Wait for the end of a task and show it; it is shown as it is when the time is over."},
		{method: "POST", pattern: "/v1/pools/{pool}/tasks", access: granted, request: body, answer: workerpool.TaskRef{}, handle: (*exchange).enqueue, headers: []param{verbKey},
			help: `Add a task by the verb enqueue: 201, or 200 if its key is that of a task which was there. The body is {"in": …}.`},
		{method: "POST", pattern: "/v1/pools/{pool}/tasks:batch", access: granted, request: body, answer: []workerpool.TaskRef{}, handle: poolVerb(batchVerb),
			help: "Add up to 10,000 tasks by the verb enqueueBatch. The body is a list of bodies of a task."},
		{method: "POST", pattern: "/v1/pools/{pool}/tasks/{id}/{verb}", access: tabled, request: body, answer: verb, handle: (*exchange).doTask,
			help: "Run a verb of a task: cancel, replay, discardDead; heartbeat, ack and nack of outside workers."},
		{method: "POST", pattern: "/v1/pools/{pool}/{verb}", access: tabled, request: body, answer: verb, handle: poolVerb(""),
			help: "Run a verb of the whole pool: pause, resume, drain, discard, replayAll; claim of outside workers."},
	}
}

// poolList is the answer of a list of pools.
type poolList struct {
	Pools []string `json:"pools"`
}

func (x *exchange) listPools() error {
	list := poolList{Pools: []string{}}
	for _, t := range x.operations.admin.Types() {
		if t.Kind() == poolKind {
			list.Pools = append(list.Pools, t.Class())
		}
	}
	return x.json(http.StatusOK, list)
}

func (x *exchange) poolStats() error {
	ctx, cancel := context.WithTimeout(x.r.Context(), x.config.Timeout)
	defer cancel()
	raw, err := x.poolView(ctx, "stats", "")
	if err != nil {
		return err
	}
	return x.bytes(http.StatusOK, raw)
}

// poolView asks a view of the pool, or of one of its tasks, for a route that has checked the role.
func (x *exchange) poolView(ctx context.Context, name, id string) ([]byte, error) {
	t, err := x.operations.table(x.path("pool"), true)
	if err != nil {
		return nil, err
	}
	raw, err := t.View(ctx, x.host, id, name, nil)
	return raw, x.verbProblem(ctx, verbs.Description{}, true, err)
}

func (x *exchange) listTasks() error {
	page, err := x.tasks(x.path("pool"))
	if err != nil {
		return err
	}
	if page.Tasks == nil {
		page.Tasks = []workerpool.TaskInfo{}
	}
	return x.told(listedTasks{page.Tasks, page.Next})
}

// tasks returns the tasks of a pool that the parameters of taskParams choose.
func (x *exchange) tasks(pool string) (page workerpool.TaskPage, err error) {
	o := workerpool.TasksOptions{Key: x.param("key"), After: x.param("after"), Limit: x.rows()}
	if queue := x.param("queue"); x.query.Has("queue") {
		o.Queue = &queue
	}
	if status := x.param("status"); status != "" {
		for name := range strings.SplitSeq(status, ",") {
			var s workerpool.State
			if err := s.UnmarshalText([]byte(name)); err != nil {
				return page, err
			}
			o.States = append(o.States, s)
		}
	}
	if x.isPlain(pool) { // its rows are values of a user, and no tasks
		return page, fmt.Errorf("%w: %q", jobadmin.ErrNoType, pool)
	}
	return x.operations.admin.Tasks(x.r.Context(), pool, o)
}

// listedTasks is a workerpool.TaskPage with an empty list in place of none.
type listedTasks struct {
	Tasks []workerpool.TaskInfo `json:"tasks"`
	Next  string                `json:"next,omitempty"`
}

func (x *exchange) showTask() error { return x.showTaskWithin(x.config.Timeout) }

func (x *exchange) showTaskWithin(d time.Duration) error {
	ctx, cancel := context.WithTimeout(x.r.Context(), d)
	defer cancel()
	raw, err := x.poolView(ctx, "status", x.path("id"))
	if err != nil {
		return err
	}
	return x.told(json.RawMessage(raw))
}

func (x *exchange) whyTask() error {
	id, err := workerpool.ParseTaskID(x.path("id"))
	if err != nil {
		return err
	}
	a, err := why.Task(x.r.Context(), x.source, x.path("pool"), id)
	if err != nil {
		return err
	}
	return x.told(a)
}

// waitTask waits for the end of a task. The end of the time and the failure of the task are no
// errors: the status tells of them.
func (x *exchange) waitTask() error {
	wait := maxWait
	if s := x.param("timeout"); s != "" {
		var err error
		if wait, err = time.ParseDuration(s); err != nil || wait < 0 || wait > maxWait {
			return badRequest(fmt.Sprintf("timeout is %q: write a time of at most %v, such as 30s", s, maxWait))
		}
	}
	leave, err := x.poll()
	if err != nil {
		return err
	}
	defer leave()
	ctx, cancel := x.untilEnd(x.r.Context(), min(wait, x.config.Timeout))
	defer cancel()
	_, err = x.poolView(ctx, waitView, x.path("id"))
	if err != nil && !slices.Contains([]string{waitEnded, workFailed, workCancelled}, problemOf(err).Type) {
		return err
	}
	return x.showTaskWithin(min(showTime, x.config.Timeout)) // not in ctx: the wait may have used it up
}

func (x *exchange) enqueue() error {
	raw, err := x.run(enqueueVerb, true, x.path("pool"), "")
	if err != nil {
		return err
	}
	var ref workerpool.TaskRef
	if err := json.Unmarshal(raw, &ref); err != nil {
		return err
	}
	status := http.StatusCreated
	if ref.Repeated {
		status = http.StatusOK
	}
	return x.bytes(status, raw)
}

// poolVerb is the handler of a verb of a whole pool; the path names it if it is empty here.
func poolVerb(name string) func(*exchange) error {
	return func(x *exchange) error {
		verb := name
		if verb == "" {
			verb = x.path("verb")
		}
		raw, err := x.run(verb, true, x.path("pool"), "")
		if err != nil {
			return err
		}
		return x.answered(raw)
	}
}

func (x *exchange) doTask() error {
	raw, err := x.run(x.path("verb"), true, x.path("pool"), x.path("id"))
	if err != nil {
		return err
	}
	return x.answered(raw)
}
