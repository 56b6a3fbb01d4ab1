package scale

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/fail"
	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/bench/internal/workload"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/jobs/verbs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server"
	"github.com/holdfast-dev/holdfast/server/auth"
)

const (
	lookers    = 8    // requests at a time, at most
	looksEach  = 50.0 // requests a second, so that a few seconds have a 99th percentile
	teamEach   = 10.0 // of a team of ten that opens a page or a list each second
	lookCalls  = 64   // callers beside them
	calledOnes = 1000 // objects that they call

	// The bounds of the 99th percentile of a look: of all beside calls, of pages, and over more
	// than a million objects; and of a list or an answer at rest over up to a million.
	besideCalls, fewObjects = 100 * time.Millisecond, 10 * time.Millisecond
)

// watched is a store of all kinds of work, behind a server.
type watched struct {
	*workload.Counters
	*workload.Visitor
	pool          *workerpool.Pool[int, struct{}]
	jobs          *continuous.Job[int]
	objects, runs int
	keys          int      // of tasks
	tasks         []string // the ids of some tasks
}

// looks asks for each list, page and answer of the server, at rest and then while callers increment,
// and measures how long each takes. Then a team asks for it, and the calls that the callers lose to the team are counted. All
// tasks of the store are pending, and it has a job for each hundred objects.
func looks(ctx context.Context, o Options, r *Result) {
	n := o.of(10_000_000, 10_000)
	w := fail.Must(openWatched(ctx, o, n, r))
	defer w.end()
	var alone, team, beside calls
	for i, look := range w.looks() {
		atRest := besideCalls
		if n <= 1_000_000 && !strings.HasPrefix(look.name, "page: ") {
			atRest = fewObjects
		}
		fail.On(look.at(ctx, w, o.For, r, "at rest", atRest))
		halves := []func() error{
			func() error { return alone.count(ctx, w, func() error { return pause(ctx, o.For/2) }) },
			func() error {
				return team.count(ctx, w, func() error { _, err := look.ask(ctx, w, teamEach, o.For/2); return err })
			},
		}
		for half := range halves { // the one that comes first takes turns, because the callers have just begun then
			fail.On(halves[(i+half)%2]())
		}
		fail.On(beside.count(ctx, w, func() error { return look.at(ctx, w, o.For, r, "beside calls", besideCalls) }))
	}
	r.figure("durable increments, 64 callers, without looks", alone.perSecond(), "/s")
	r.figure("durable increments, 64 callers, beside 10 looks a second", team.perSecond(), "/s")
	r.figure("durable increments, 64 callers, beside 50 looks a second", beside.perSecond(), "/s")
	kept := team.perSecond() / alone.perSecond()
	r.check("increments beside 10 looks a second / without", kept, "", "≥ 0.95", kept >= 0.95)
	r.figure("increments beside 50 looks a second / without", beside.perSecond()/alone.perSecond(), "")
}

// calls are those of callers over some times.
type calls struct {
	ops  int64
	took time.Duration
}

func (c *calls) perSecond() float64 { return float64(c.ops) / c.took.Seconds() }

// count lets callers increment while f runs.
func (c *calls) count(ctx context.Context, w *watched, f func() error) error {
	var over atomic.Bool
	ended := make(chan error, 1)
	start, hot := time.Now(), w.With(min(w.objects, calledOnes))
	var ops atomic.Int64
	go func() {
		ended <- measure.Each(ctx, lookCalls, lookCalls, func(caller int) error {
			for i := caller; !over.Load(); i += lookCalls {
				if err := hot.Increment(i); err != nil {
					return err
				}
				ops.Add(1)
			}
			return nil
		})
	}()
	err := f()
	c.ops += ops.Load()
	c.took += time.Since(start)
	over.Store(true)
	return errors.Join(err, <-ended)
}

// pause waits for a time.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// openWatched makes a store of n objects and the jobs and tasks beside them, and serves it.
func openWatched(ctx context.Context, o Options, n int, r *Result) (*watched, error) {
	start, dir := time.Now(), filepath.Join(o.Dir, "store")
	fail.On(workload.Make(ctx, dir, workload.Fill{
		Class: workload.CounterClass, Objects: n, Value: workload.Number8(1), First: time.Now().Add(24 * time.Hour), Step: time.Microsecond,
	}))
	r.figure("objects", float64(n), "")
	r.figure("made in", time.Since(start).Seconds(), "s")
	w := &watched{objects: n, runs: n / 100, keys: n / 100}
	w.pool = workerpool.New(workerpool.Config[int, struct{}]{
		Name: "watched", Partitions: 4, Concurrency: 16,
		Work: func(context.Context, *workerpool.Task[int]) (struct{}, error) { return struct{}{}, nil },
	})
	w.jobs = continuous.New(continuous.Config[int]{
		Name: "daily", Schedule: jobs.Rate(24 * time.Hour), StartLater: true, FewEvents: true,
		Run: func(context.Context, *continuous.Run[int]) error { return nil },
	})
	start = time.Now()
	w.Counters = fail.Must(workload.OpenCounters(dir, n, object.Options{MaxLive: liveCap}, w.pool, w.jobs))
	r.figure("open", millis(time.Since(start)), "ms")
	tasks := n / 10
	if o.Tasks > 0 {
		tasks = o.Tasks
	}
	start = time.Now()
	if err := errors.Join(w.fill(ctx, tasks), w.serve()); err != nil {
		return nil, errors.Join(err, w.Counters.Close())
	}
	r.figure("tasks", float64(tasks), "")
	r.figure("jobs", float64(w.runs), "")
	r.figure("tasks and jobs made in", time.Since(start).Seconds(), "s")
	size, err := workload.DiskBytes(dir)
	r.figure("disk", float64(size)/(1<<20), "MiB")
	return w, err
}

// fill starts the jobs, a hundredth of which it stops, and queues the tasks of the paused pool.
func (w *watched) fill(ctx context.Context, tasks int) error {
	err := measure.Each(ctx, 256, w.runs, func(i int) error {
		name := workload.Name(i)
		_, err := w.jobs.Start(ctx, w.Host, name, 0)
		if err == nil && i%100 == 0 {
			err = w.jobs.Stop(ctx, w.Host, name, "a look")
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := w.pool.Pause(ctx, w.Host); err != nil {
		return err
	}
	const each = 10_000
	for done := 0; done < tasks; done += each {
		items := make([]workerpool.Item[int], min(each, tasks-done))
		for i := range items {
			items[i] = workerpool.Item[int]{In: done + i, Options: []workerpool.Option{workerpool.Key(strconv.Itoa((done + i) % w.keys))}}
		}
		refs, err := w.pool.EnqueueBatch(ctx, w.Host, items)
		if err != nil {
			return err
		}
		for i := 0; i < len(refs); i += 100 {
			w.tasks = append(w.tasks, refs[i].ID.String())
		}
	}
	return nil
}

// serve mounts a server that lets everyone on this machine in.
func (w *watched) serve() (err error) {
	w.Visitor, err = workload.Visit(w.Host.Host, server.Config{Auth: auth.Insecure(), Jobs: []verbs.Described{w.pool, w.jobs}})
	return err
}

// get asks for a path.
func (w *watched) get(ctx context.Context, path string) error {
	_, err := w.Visitor.Get(ctx, path)
	return err
}

// end closes all.
func (w *watched) end() error { return errors.Join(w.Visitor.Close(), w.Counters.Close()) }

// A look is a request, of another object, job or task each time.
type look struct {
	name string
	path func() string
}

// ask asks for the look so many times a second.
func (l look) ask(ctx context.Context, w *watched, each float64, d time.Duration) (measure.Run, error) {
	run, err := measure.Open(ctx, each, d, lookers, func(int) error { return w.get(ctx, l.path()) }, nil)
	if err != nil {
		err = fmt.Errorf("%s: %w", l.name, err)
	}
	return run, err
}

// at asks for the look many times a second and tells how long that took.
func (l look) at(ctx context.Context, w *watched, d time.Duration, r *Result, when string, bound time.Duration) error {
	run, err := l.ask(ctx, w, looksEach, d)
	if err != nil {
		return err
	}
	p99 := run.Lat.P99 / 1e3
	r.figure(l.name+", "+when+": p50", run.Lat.P50/1e3, "ms")
	r.check(l.name+", "+when+": p99", p99, "ms", fmt.Sprintf("≤ %.0f ms", millis(bound)), p99 <= millis(bound))
	return nil
}

// looks are all lists, pages and answers that read the store.
func (w *watched) looks() []look {
	same := func(path string) func() string { return func() string { return path } }
	with := func(format string, of func() string) func() string {
		return func() string { return fmt.Sprintf(format, of()) }
	}
	name := func() string { return workload.Name(rand.IntN(w.objects)) }
	behind := func() string { return base64.RawURLEncoding.EncodeToString([]byte(name())) } // as next of a page
	job := func() string { return workload.Name(rand.IntN(w.runs)) }
	task := func() string { return url.QueryEscape(w.tasks[rand.IntN(len(w.tasks))]) }
	key := func() string { return strconv.Itoa(rand.IntN(w.keys)) }
	return []look{
		{"list of objects", with("/v1/objects/counter?after=%s", behind)},
		{"list of objects with a prefix", with("/v1/objects/counter?prefix=%.5s", name)},
		{"object", with("/v1/objects/counter/%s", name)},
		{"keys of an object", with("/v1/objects/counter/%s/keys", name)},
		{"why of an object", with("/v1/objects/counter/%s/why", name)},
		{"list of jobs", same("/v1/jobs")},
		{"list of jobs of a class", with("/v1/jobs?class=daily&prefix=%.6s", job)},
		{"list of stopped jobs", same("/v1/jobs?label=stopped")},
		{"list of failed jobs, of which there are none", same("/v1/jobs?label=failed")},
		{"job", with("/v1/jobs/daily/%s", job)},
		{"why of a job", with("/v1/jobs/daily/%s/why", job)},
		{"counts of the pool", same("/v1/pools/watched/stats")},
		{"list of tasks", same("/v1/pools/watched/tasks")},
		{"list of tasks of a key", with("/v1/pools/watched/tasks?key=%s", key)},
		{"list of running tasks, of which there are none", same("/v1/pools/watched/tasks?status=running")},
		{"task", with("/v1/pools/watched/tasks/%s", task)},
		{"why of a task", with("/v1/pools/watched/tasks/%s/why", task)},
		{"list of dead letters", same("/v1/dead")},
		{"recoveries", same("/v1/recoveries")},
		{"health", same("/v1/health")},
		{"metrics", same("/metrics")},
		{"page: overview", same("/ui/overview")},
		{"page: classes", same("/ui/classes")},
		{"page: objects", with("/ui/objects?class=counter&after=%s", behind)},
		{"page: object", with("/ui/object?class=counter&name=%s", name)},
		{"page: jobs", same("/ui/jobs")},
		{"page: stopped jobs", same("/ui/jobs?label=stopped")},
		{"page: job", with("/ui/job?class=daily&name=%s", job)},
		{"page: pools", same("/ui/pools")},
		{"page: pool", same("/ui/pool?pool=watched")},
		{"page: task", with("/ui/task?pool=watched&task=%s", task)},
		{"page: dead letters", same("/ui/dead")},
		{"page: recoveries", same("/ui/recoveries")},
	}
}
