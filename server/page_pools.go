package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/holdfast-dev/holdfast/admin/why"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/verbs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server/auth"
	"github.com/holdfast-dev/holdfast/server/dashboard"
)

// poolPages are the pages of worker pools and tasks.
func (s *Server) poolPages() []route {
	ofPool := param{name: "pool", help: "the pool"}
	return []route{
		shows("pools", viewer, (*exchange).poolsPage),
		shows("pool", viewer, (*exchange).poolPage, append([]param{ofPool}, taskParams...)...),
		shows("task", viewer, (*exchange).taskPage, ofPool, param{name: "task", help: "the id of the task"}),
	}
}

func (x *exchange) poolsPage() error {
	ctx, cancel := x.untilEnd(x.r.Context(), x.limits.pageTime)
	defer cancel()
	var p dashboard.Pools
	for _, t := range x.operations.admin.Types() {
		if t.Kind() == poolKind {
			p.Pools = append(p.Pools, x.poolState(ctx, t))
		}
	}
	return x.page(p)
}

// poolState counts the tasks of a pool. One that does not tell in time has the reason in Error.
func (x *exchange) poolState(ctx context.Context, t *verbs.Table) dashboard.PoolState {
	s := dashboard.PoolState{Name: t.Class()}
	var err error
	if s.Stats, err = asked[workerpool.Stats](ctx, x, t, "", "stats", nil); err != nil {
		s.Error = x.failure(err)
	}
	return s
}

// failure is the text of an error as the role of the principal may see it.
func (x *exchange) failure(err error) string {
	if x.can(auth.Reader) {
		return err.Error()
	}
	return problemOf(err).Title
}

func (x *exchange) poolPage() error {
	t, err := x.operations.table(x.param("pool"), true)
	if err != nil {
		return err
	}
	p := dashboard.Pool{
		PoolState: dashboard.PoolState{Name: t.Class()}, Verbs: x.poolVerbs(t, ""), Status: x.param("status"), Queue: x.param("queue"), Key: x.param("key"),
	}
	part := x.param("part") // a part that is not asked for is not read
	if part != "counts" {
		tasks, err := x.tasks(t.Class())
		if err != nil {
			return err
		}
		p.Next = tasks.Next
		if p.Tasks, err = shown(x, tasks.Tasks); err != nil {
			return err
		}
	}
	if part != "tasks" {
		if p.Queues, p.More, err = x.queues(t.Class()); err != nil {
			return err
		}
		ctx, cancel := x.untilEnd(x.r.Context(), x.limits.pageTime)
		defer cancel()
		p.PoolState = x.poolState(ctx, t)
		x.recordHistory()
		p.EmptyIn = emptyIn(p.Stats.Pending, x.history.rate(t.Class()))
	}
	return x.page(p)
}

// emptyIn is how long a pool takes for the tasks that it has, at a rate in tasks a second; zero if that is not known.
func emptyIn(tasks uint64, rate float64) time.Duration {
	if rate <= 0 {
		return 0
	}
	return time.Duration(float64(tasks) / rate * float64(time.Second)).Round(time.Second)
}

// queues counts the first tasks of a pool by their queues, and reports whether there are more.
func (x *exchange) queues(pool string) (all []dashboard.Queue, more bool, err error) {
	page, err := x.operations.admin.Tasks(x.r.Context(), pool, workerpool.TasksOptions{
		States: []workerpool.State{workerpool.Pending, workerpool.Running}, Limit: object.MaxPage,
	})
	if err != nil {
		return nil, false, err
	}
	byName := map[string]*dashboard.Queue{}
	for _, task := range page.Tasks {
		q := byName[task.Queue]
		if q == nil {
			q = &dashboard.Queue{Name: task.Queue, Tasks: dashboard.Link{Route: "pool", Query: url.Values{"pool": {pool}, "queue": {task.Queue}}}}
			byName[task.Queue] = q
		}
		switch dashboard.TaskWord(task.State, task.NotBefore) {
		case "running":
			q.Running++
		case "waiting":
			q.Waiting++
		default:
			q.Queued++
		}
	}
	for _, q := range byName {
		all = append(all, *q)
	}
	slices.SortFunc(all, func(a, b dashboard.Queue) int { return cmp.Compare(a.Name, b.Name) })
	return all, page.Next != "", nil
}

func (x *exchange) taskPage() error {
	pool := x.param("pool")
	t, err := x.operations.table(pool, true)
	if err != nil {
		return err
	}
	id, err := workerpool.ParseTaskID(x.param("task"))
	if err != nil {
		return err
	}
	a, err := why.Task(x.r.Context(), x.source, pool, id)
	if err != nil {
		return err
	}
	p := dashboard.Task{Pool: pool, ID: id.String(), Partition: strconv.Itoa(id.Partition), Verbs: x.poolVerbs(t, id.String())}
	if p.Why, err = shown(x, a); err != nil {
		return err
	}
	ctx, cancel := x.untilEnd(x.r.Context(), x.limits.pageTime)
	defer cancel()
	status, err := asked[workerpool.Status[json.RawMessage]](ctx, x, t, p.ID, "status", nil)
	if errors.Is(err, jobs.ErrNotFound) {
		return err
	}
	if err != nil {
		p.Error = x.failure(err)
		return x.page(p)
	}
	if p.Status, err = shown(x, status); err != nil {
		return err
	}
	return x.page(p)
}
