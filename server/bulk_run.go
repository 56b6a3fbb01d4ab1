package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	jobadmin "github.com/holdfast-dev/holdfast/admin"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
)

// A verb over many is an object, so that it goes on after a restart of the process. It is kept for bulkKept after its
// end, and no generic route reaches it.
const (
	bulkClass   = "holdfast.bulk"
	bulkKept    = 7 * 24 * time.Hour
	bulkRow     = "run"
	bulkRunning = "running" // the label of a run that has not ended
)

// The progress is stored each bulkNote. A run without work here goes on bulkWatch after the newest of these commits,
// for example after a crash, and is looked at again after bulkRetry as long as its host has no Server.
const (
	bulkNote  = time.Second
	bulkWatch = 5 * time.Second
	bulkRetry = time.Second
)

// bulkState is a run as it is stored.
type bulkState struct {
	Of      string          `json:"of"` // jobsOf or deadOf
	Who     string          `json:"who"`
	Name    string          `json:"name,omitempty"`
	Matches int             `json:"matches"`
	Filter  json.RawMessage `json:"filter,omitempty"`
	Day     string          `json:"day"` // of its entry in the audit, which has the id of the run
	Began   time.Time       `json:"began"`
	Stop    *problem        `json:"stop,omitempty"` // why it is to end before all is done
	Bulk    jobadmin.Bulk   `json:"bulk"`

	Ended   time.Time `json:"ended,omitzero"`
	Problem *problem  `json:"problem,omitempty"` // why it has ended early
}

// bulkRun is the object of a run. Its turns own the fields without a comment of their own.
type bulkRun struct {
	st  *object.State
	run *bulkState // as it is stored; nil: there is no such run

	// Turns and the routine share these: how far the routine is (nil: there is none), why it is to stop, and the end
	// of the context of its steps.
	now    atomic.Pointer[jobadmin.Progress]
	stop   atomic.Pointer[problem]
	cancel atomic.Pointer[context.CancelCauseFunc]
}

var (
	bulks     = object.Define(bulkClass, newBulkRun, object.ClassOptions{Internal: true})
	bulkBegin = object.Handle(bulks, "begin", (*bulkRun).begin)
	bulkShow  = object.Handle(bulks, "show", func(o *bulkRun, _ context.Context, _ struct{}) (bulkState, error) { return o.show(), nil })
	bulkStop  = object.Handle(bulks, "stop", (*bulkRun).halt)
)

// newBulkRun reads a run.
func newBulkRun(ctx context.Context, st *object.State) (*bulkRun, error) {
	o := &bulkRun{st: st}
	raw, ok, err := st.Storage().Get(ctx, bulkRow)
	if err != nil || !ok {
		return o, err
	}
	o.run = new(bulkState)
	if err := json.Unmarshal(raw, o.run); err != nil {
		return nil, fmt.Errorf("%s: %w", st.ID(), err)
	}
	o.stop.Store(o.run.Stop)
	return o, nil
}

// put stores a run.
func (o *bulkRun) put(ctx context.Context, run bulkState) error {
	raw, err := json.Marshal(run)
	if err != nil {
		return err
	}
	o.run = &run
	return o.st.Storage().PutBytes(ctx, bulkRow, raw)
}

// begin stores a new run and begins its work.
func (o *bulkRun) begin(ctx context.Context, run bulkState) (struct{}, error) {
	if o.run != nil {
		return struct{}{}, errors.New("server: there is such a run")
	}
	if err := o.put(ctx, run); err != nil {
		return struct{}{}, err
	}
	if err := o.st.Driver().SetLabel(ctx, bulkRunning); err != nil {
		return struct{}{}, err
	}
	return struct{}{}, o.start(ctx)
}

// show is the run as it is now; the zero value if there is none.
func (o *bulkRun) show() bulkState {
	if o.run == nil {
		return bulkState{}
	}
	run := *o.run
	if p := o.now.Load(); p != nil {
		run.Bulk.Progress = *p
	}
	return run
}

// halt has the run end, and reports whether there is one.
func (o *bulkRun) halt(ctx context.Context, why *problem) (bool, error) {
	if o.run == nil || !o.run.Ended.IsZero() {
		return o.run != nil, nil
	}
	run := *o.run
	run.Stop = why
	if err := o.put(ctx, run); err != nil {
		return false, err
	}
	o.stop.Store(why)
	if cancel := o.cancel.Load(); cancel != nil {
		(*cancel)(why)
	}
	return true, nil
}

// Alarm goes on with a run that has no work here, or removes one that was kept long enough.
func (o *bulkRun) Alarm(ctx context.Context, _ object.AlarmInfo) error {
	switch {
	case o.run == nil:
		return nil
	case !o.run.Ended.IsZero():
		return o.st.Driver().Purge(ctx)
	case o.now.Load() != nil:
		return o.later(ctx, bulkWatch)
	}
	return o.start(ctx)
}

// later sets the alarm.
func (o *bulkRun) later(ctx context.Context, d time.Duration) error {
	return o.st.SetAlarm(ctx, o.st.Now().Add(d))
}

// start begins the work on a routine, if the host has a Server, whose Config names the job types.
func (o *bulkRun) start(ctx context.Context) error {
	all := serversOf(o.st.Driver().Seams())
	if len(all) == 0 {
		return o.later(ctx, bulkRetry)
	}
	srv := all[0]
	if err := o.later(ctx, bulkWatch); err != nil {
		return err
	}
	run := *o.run
	o.now.Store(&run.Bulk.Progress)
	return o.st.Go(ctx, "bulk", func(ctx context.Context) {
		defer o.now.Store(nil)
		if o.work(ctx, srv, run) {
			srv.bulk.ended(o.st.Name())
		}
	})
}

// work runs the verb, and reports whether the run has ended. Otherwise the alarm goes on with it.
func (o *bulkRun) work(ctx context.Context, srv *Server, run bulkState) (ended bool) {
	steps, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	o.cancel.Store(&cancel)
	if why := o.stop.Load(); why != nil { // it came before the cancel was there
		cancel(why)
	}
	b, partly, err := o.steps(ctx, steps, srv, run)
	why := o.stop.Load()
	switch {
	case b.Ended:
		why = nil
	case why != nil:
	case ctx.Err() != nil, goesOn(err):
		b.Progress.Done = partly.Done // the others of the part are counted when it is run again
		o.note(ctx, b, bulkRetry)
		return false
	default:
		why = problemOf(inParts(err))
	}
	b.Progress = partly
	e := auditEntry{ID: o.st.Name(), Count: b.Progress.Done, Outcome: done}
	if why != nil {
		e.Outcome, e.Problem = string(why.Outcome), why.Type
	}
	if _, err := auditWrite.Call(ctx, o.st, run.Day, auditEvent{auditEnded, e}, object.Idempotent(e.ID, bulkKept)); err != nil {
		return false
	}
	return o.finish(ctx, b, why) == nil
}

// steps runs the verb until it has ended or cannot go on. The place is that of whole parts, and partly has the acts of
// the last part too. steps ends with a stop, and ctx does not.
func (o *bulkRun) steps(ctx, steps context.Context, srv *Server, run bulkState) (b jobadmin.Bulk, partly jobadmin.Progress, err error) {
	seams := o.st.Driver().Seams()
	noted, asked := seams.Steady(), seams.Steady()
	may := srv.bulk.may(o.st.Name(), func() *problem { return mayGoOn(seams, &run) })
	ask := func() {
		if why := may(); why != nil {
			o.stop.Store(why)
			(*o.cancel.Load())(why)
		}
	}
	told := func(p jobadmin.Progress) {
		o.now.Store(&p)
		if now := seams.Steady(); now.Sub(asked) >= srv.limits.checkEvery {
			asked = now
			ask()
		}
	}
	ask()
	b = run.Bulk
	for !b.Ended && err == nil {
		if o.st.Closing() {
			return b, b.Progress, object.ErrShutdown
		}
		var next jobadmin.Bulk
		if next, err = srv.operations.admin.Step(steps, b, told); err != nil {
			return b, next.Progress, err
		}
		b = next
		if now := seams.Steady(); now.Sub(noted) >= bulkNote && !b.Ended {
			noted, err = now, o.note(ctx, b, bulkWatch)
		}
	}
	return b, b.Progress, err
}

// goesOn reports whether a run waits after an error, and ends with no other.
func goesOn(err error) bool {
	return errors.Is(err, object.ErrShutdown) || errors.Is(err, object.ErrStorage) || errors.Is(err, object.ErrNoSpace) || errors.Is(err, object.ErrReset)
}

// note stores how far the run is, from its routine, and when to look at it again.
func (o *bulkRun) note(ctx context.Context, b jobadmin.Bulk, look time.Duration) error {
	return o.st.Do(ctx, func(ctx context.Context) error {
		run := *o.run
		run.Bulk = b
		if err := o.put(ctx, run); err != nil {
			return err
		}
		return o.later(ctx, look)
	})
}

// finish stores the end of the run, from its routine.
func (o *bulkRun) finish(ctx context.Context, b jobadmin.Bulk, why *problem) error {
	return o.st.Do(ctx, func(ctx context.Context) error {
		run := *o.run
		run.Bulk, run.Problem, run.Ended = b, why, o.st.Now()
		if err := o.put(ctx, run); err != nil {
			return err
		}
		if err := o.st.Driver().SetLabel(ctx, ""); err != nil {
			return err
		}
		return o.later(ctx, bulkKept)
	})
}

// servers has, by the seams of a host, which its objects know, what the Servers of that host share. The mutex guards the
// map, which keeps nothing of it in memory.
var servers = struct {
	sync.Mutex
	of map[weak.Pointer[seam.Seams]]shared
}{of: make(map[weak.Pointer[seam.Seams]]shared)}

// shared is that of one host.
type shared struct {
	servers []weak.Pointer[Server] // the newest last
	bulk    weak.Pointer[bulkRuns] // each Server of the host has it
}

// register has runs of the host of s go on with s, and gives s the runs that other Servers of the host have begun.
func (s *Server) register() {
	key := weak.Make(s.host.Seams())
	servers.Lock()
	defer servers.Unlock()
	known, ok := servers.of[key]
	if s.bulk = known.bulk.Value(); s.bulk == nil {
		s.bulk = new(bulkRuns)
	}
	known.servers = slices.DeleteFunc(known.servers, func(old weak.Pointer[Server]) bool { return old.Value() == nil })
	servers.of[key] = shared{append(known.servers, weak.Make(s)), weak.Make(s.bulk)}
	if !ok {
		runtime.AddCleanup(s.host, forget, key)
	}
}

// forget removes the entry of a host that is gone.
func forget(key weak.Pointer[seam.Seams]) {
	servers.Lock()
	defer servers.Unlock()
	delete(servers.of, key)
}

// serversOf are the Servers of the host with these seams that the program still has, the newest first.
func serversOf(seams *seam.Seams) (all []*Server) {
	servers.Lock()
	defer servers.Unlock()
	for _, s := range slices.Backward(servers.of[weak.Make(seams)].servers) {
		if s := s.Value(); s != nil {
			all = append(all, s)
		}
	}
	return all
}

// bulkRuns are the runs that the Servers of a host have begun. mu guards all.
type bulkRuns struct {
	mu  sync.Mutex
	all map[string]begunRun
	one sync.Mutex // held while a run begins, so that their number is exact
}

// begunRun is a run that has begun in this process.
type begunRun struct {
	over chan struct{}   // closed when it has ended
	may  func() *problem // why its principal has not the right any more, or nil
}

// put keeps a run until it has ended.
func (r *bulkRuns) put(id string, may func() *problem) (over <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all = make(map[string]begunRun)
	}
	begun := begunRun{make(chan struct{}), may}
	r.all[id] = begun
	return begun.over
}

// may returns how to ask whether the principal of a run still has the right: continued for one that an earlier process
// has begun.
func (r *bulkRuns) may(id string, continued func() *problem) func() *problem {
	r.mu.Lock()
	defer r.mu.Unlock()
	if begun, ok := r.all[id]; ok {
		return begun.may
	}
	return continued
}

// ended tells of the end of a run.
func (r *bulkRuns) ended(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if begun, ok := r.all[id]; ok {
		close(begun.over)
		delete(r.all, id)
	}
}
