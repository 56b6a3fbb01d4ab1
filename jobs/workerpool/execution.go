package workerpool

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/storage"
)

// A task runs as an execution of package engine. From its begin to its end:
//
//  1. begin starts ready tasks while a worker is free; claim does for outside
//     workers. start opens the execution in the batch of the turn.
//  2. The engine calls the function of workOf when that batch is durable.
//  3. The engine calls Ended in a turn. Executions that end at about the same
//     time share the turn and its batch: with at most 64 in a batch, instead of
//     512, a pool did 61,000 tasks a second instead of 101,600.
//  4. taskOutcome moves the task on: finish, again, endCancelled or die.
//
// If the batch of step 3 fails, the instance is reset and its executions are
// lost. The next instance finds them open and recovers them, as after a crash.

// runningTask is a task with an open execution.
type runningTask struct {
	token engine.Token
	row   *row // nil after a restart until it is needed
}

// Kinds of the pool's executions: a task, a call of OnDead for a task, and a
// call of OnEmpty. Those of the Retention have the names of their hooks. Behind
// all but OnEmpty the subject has a stroke and the number of the task.
const (
	taskSubject  = "task"
	deadSubject  = "dead"
	emptySubject = "empty"
)

// subjectOf splits a subject into its kind and its task number.
func subjectOf(s string) (kind string, num uint64) {
	kind, digits, _ := strings.Cut(s, "/")
	num, _ = strconv.ParseUint(digits, 10, 64)
	return kind, num
}

// subject makes the subject of a task or of a call for one.
func subject(kind string, num uint64) string {
	return string(strconv.AppendUint(append(append(make([]byte, 0, 32), kind...), '/'), num, 10))
}

// TaskName names an execution in log lines: by the task id, or by the hook and
// the task id that it is called for.
func (p *partition) TaskName(s string) string {
	switch kind, num := subjectOf(s); kind {
	case taskSubject:
		return p.id(num).String()
	case emptySubject:
		return "OnEmpty"
	default:
		return hookOf(kind).String() + " " + p.id(num).String()
	}
}

// begin starts ready tasks until all workers of this partition are busy.
func (p *partition) begin(ctx context.Context, _ time.Time) error {
	for p.set.work != nil && p.mayStart() {
		if full, err := p.nearlyFull(ctx); full || err != nil {
			return err
		}
		r, _, err := p.start(ctx, p.workOf, 0)
		if r == nil || err != nil {
			return err
		}
	}
	return nil
}

// mayStart reports whether another task may start now (W3).
func (p *partition) mayStart() bool {
	return p.mode != Paused && p.running < uint64(p.limit) && !p.st.Closing()
}

// freshBytes is more than Settle writes for a task that became ready in this turn
// and did not begin: its row in the queue.
const freshBytes = 128

// nearlyFull reports whether the turn has written so much, or has to write at its end,
// that it must begin no further task. The tasks left are still due, so the next wake-up
// begins them.
func (p *partition) nearlyFull(ctx context.Context) (bool, error) {
	bytes, err := p.turnBytes(ctx)
	return bytes >= p.st.Driver().MaxBatchBytes()/reserved*(reserved-1)+p.mergeBytes()/4, err
}

// turnBytes is about how much the turn writes in all, as far as it has come.
func (p *partition) turnBytes(ctx context.Context) (int, error) {
	written, err := p.st.Driver().WrittenBytes(ctx)
	return written + freshBytes*len(p.fresh), err
}

// start opens an execution for the next task; r is nil if no task is ready.
// With work nil an outside worker has claimed the task, for the lease.
//
// The order of its steps matters: the execution and the index row are written
// before memory changes.
func (p *partition) start(ctx context.Context, work func(*row) engine.Work, lease time.Duration) (r *row, x engine.Execution, err error) {
	l := p.lines.next()
	if l == nil {
		return nil, x, nil
	}
	e, _ := l.window.first()
	if r, err = p.firstRow(ctx, &l.window); err != nil {
		return nil, x, err
	}
	s := engine.Spec{Subject: subject(taskSubject, e.num), Key: p.outsideKey(e.num), Run: r.run(), Lease: lease, Size: r.size() + letterBytes + len(r.key) + len(r.queue) + p.set.phaseBytes() + r.webhookBytes(0)}
	if work != nil {
		s.Work = work(r)
	}
	if x, err = p.engine.Begin(ctx, s); err != nil {
		return nil, x, err
	}
	if !e.fresh {
		if err := p.st.Storage().Remove(ctx, readyKey(l.name, e.place)); err != nil {
			return nil, x, err
		}
	}
	p.backlog.Waited(p.engine.Now().Sub(time.Unix(0, r.since())))
	p.lines.take(l)
	p.executing[e.num] = runningTask{x.Token, r}
	p.pending--
	p.running++
	p.executions++
	p.dirty = true
	return r, x, p.fillLine(ctx, l)
}

// outsideKey is Task.OutsideKey: the same in each attempt of a task.
func (p *partition) outsideKey(num uint64) string {
	var room [128]byte
	return string(p.id(num).append(append(append(room[:0], p.set.name...), '/')))
}

// run is the progress of the task. A task is one run in the sense of package
// jobs, whatever its number of attempts.
func (r *row) run() jobs.Run {
	run := r.rare.Run
	if run.Number == 0 {
		run.Number = 1
		run.Scheduled = time.Unix(0, max(r.enqueued, r.notBefore))
	}
	return run
}

// begun is how many attempts have begun of a task that is not done.
func (r *row) begun() int {
	if r.state == Running {
		return r.rare.Run.Failed() + 1
	}
	return r.rare.Run.Failed()
}

// workOf is the work of a task's execution in this process. It encodes the
// output itself, so that an output that cannot be encoded fails the task and
// not the turn that ends several executions.
func (p *partition) workOf(r *row) engine.Work {
	version := p.inputVersion(r.num)
	return func(ctx context.Context, x engine.Execution) (engine.Result, error) {
		output, err := p.set.work(ctx, p, r, x, version)
		if err != nil {
			return engine.Result{Size: failureBytes(err)}, err
		}
		return p.result(r, x.Run.Failed()+1, output), nil
	}
}

// failureBytes is about how many bytes the error of an attempt adds to its end
// batch: its text stands in the failures and the progress of the row and in a
// letter, its stack in the row and in a letter.
func failureBytes(err error) int {
	return 3*min(len(err.Error()), engine.MaxTextBytes) + 2*len(engine.Outcome{Err: err}.Stack())
}

// result is the success of an attempt: its Store writes the output in the end
// batch.
func (p *partition) result(r *row, attempt int, output []byte) engine.Result {
	if p.set.keeps(Done) == 0 && r.rare.Webhook == nil {
		return engine.Result{}
	}
	kept := *r
	kept.attempts, kept.output = int32(attempt), output
	return engine.Result{Size: len(output) + p.set.phaseBytes() + r.webhookBytes(len(output)), Store: func(ctx context.Context) error {
		kept.endedAt = p.st.Now().UnixNano()
		if err := p.post(ctx, &kept, Done); err != nil {
			return err
		}
		return p.keepOutcome(ctx, kept, Done)
	}}
}

// keepOutcome stores the outcome of a done or cancelled task for the time of
// Config.Retention, without its input. The row expires by itself.
func (p *partition) keepOutcome(ctx context.Context, kept row, s State) error {
	ttl := p.set.keeps(s)
	if ttl == 0 {
		return nil
	}
	kept.state, kept.input = s, nil
	var err error
	if kept.rare.Phases, err = p.endedPhases(ctx, kept.num, s); err != nil {
		return err
	}
	b, err := p.encoded(nil, &kept)
	if err != nil {
		return err
	}
	return p.st.Driver().MarkNew(ctx, numbered(outcomePrefix, kept.num), b, ttl)
}

const (
	maxFailures = 100 // failures kept of one task; the middle ones go first
)

// Ended stores the consequences of an execution's outcome. The engine calls it
// in the turn that ends the execution; several executions that end at about the
// same time share that turn and its batch.
func (p *partition) Ended(ctx context.Context, x engine.Execution, out engine.Outcome) error {
	switch kind, num := subjectOf(x.Subject); kind {
	case taskSubject:
		if !out.Lost { // the time of a crash is no time of the run
			p.backlog.Ran(p.engine.Now().Sub(x.Began))
		}
		return p.taskOutcome(ctx, num, out)
	default:
		return p.callOutcome(ctx, kind, num, out)
	}
}

// taskOutcome moves a task on after an attempt: to done, cancelled or dead, or
// back to pending. It is called in the end batch, so the move is atomic with
// the output and the counters.
func (p *partition) taskOutcome(ctx context.Context, num uint64, out engine.Outcome) error {
	r, err := p.rowOf(ctx, num)
	if err != nil {
		return err
	}
	delete(p.executing, num)
	p.running--
	if out.Lost {
		p.lost++
	}
	p.dirty = true
	if out.Kind == engine.Done || out.Kind == engine.Quit {
		return p.finish(ctx, r, Done) // Result.Store has kept its output
	}
	p.note(r, out)
	switch {
	case out.Kind == engine.Cancelled || r.rare.Cancelling:
		return p.endCancelled(ctx, r)
	case out.Kind == engine.GaveUp:
		return p.die(ctx, r, out.Reason)
	default:
		return p.again(ctx, r, out.Run)
	}
}

// rowOf returns the row of a running task, from memory or from storage.
func (p *partition) rowOf(ctx context.Context, num uint64) (*row, error) {
	a, runs := p.executing[num]
	if !runs {
		return nil, fmt.Errorf("%w: an execution of task %s ended, but the task was not running", storage.ErrCorrupt, p.id(num))
	}
	if a.row != nil {
		return a.row, nil
	}
	r, err := p.mustTask(ctx, num)
	if err == nil {
		p.executing[num] = runningTask{a.token, r}
	}
	return r, err
}

// note adds a failed attempt to the task's history. A recovery after a crash is
// no failed attempt.
func (p *partition) note(r *row, out engine.Outcome) {
	r.rare.Run = out.Run
	if out.Err == nil || out.Kind == engine.Recover {
		return
	}
	r.rare.Stack = out.Stack()
	fs := append(r.rare.Failures[:len(r.rare.Failures):len(r.rare.Failures)], Failure{max(out.Run.Failed(), 1), p.st.Now(), engine.Shorten(out.Err.Error())})
	if len(fs) > maxFailures {
		fs = slices.Delete(fs, maxFailures/2, maxFailures/2+1)
	}
	r.rare.Failures = fs
}

// again makes a task pending until its retry is due. The task keeps its place
// in the chain of its key, so that the later tasks of the key wait for it.
func (p *partition) again(ctx context.Context, r *row, run jobs.Run) error {
	r.notBefore = alarm.Nanos(run.RetryAt)
	if err := p.put(ctx, taskKey(r.num), r); err != nil {
		return err
	}
	p.pending++
	return p.enter(ctx, r)
}

// endCancelled ends a running task as cancelled.
func (p *partition) endCancelled(ctx context.Context, r *row) error {
	r.endedAt = p.st.Now().UnixNano()
	if err := p.keepOutcome(ctx, *r, Cancelled); err != nil {
		return err
	}
	if err := p.tellCancelled(ctx, r); err != nil {
		return err
	}
	return p.finish(ctx, r, Cancelled)
}

// die makes a task a dead letter, in the partition and in the list of all dead
// work (W10), and asks for a call of OnDead.
func (p *partition) die(ctx context.Context, r *row, reason jobs.Reason) error {
	r.state, r.endedAt, r.rare.Reason = Dead, p.st.Now().UnixNano(), reason
	if err := p.bury(ctx, r); err != nil {
		return err
	}
	if err := p.put(ctx, deadKey(r.num), r); err != nil {
		return err
	}
	if err := p.fileNew(ctx, r); err != nil {
		return err
	}
	if err := p.askCall(ctx, r.num); err != nil {
		return err
	}
	return p.finish(ctx, r, Dead)
}

// finish removes the rows of an ended task and lets the next task of its key
// enter. The caller has taken the task out of the counters pending and running.
func (p *partition) finish(ctx context.Context, r *row, s State) error {
	if err := p.deleteTask(ctx, r, s); err != nil {
		return err
	}
	return p.enterFirst(ctx, r.key)
}

// deleteTask deletes the rows of an ended task except its outcome and, for a replay, the
// phases of a dead one. It counts the task and wakes callers of Wait and Drain.
func (p *partition) deleteTask(ctx context.Context, r *row, s State) error {
	if err := p.st.Storage().Remove(ctx, taskKey(r.num)); err != nil {
		return err
	}
	if r.key != "" {
		if err := p.st.Storage().Remove(ctx, chainKey(r.key, r.order)); err != nil {
			return err
		}
	}
	if r.rare.Unique != "" {
		if err := p.st.Storage().Remove(ctx, uniquePrefix+r.rare.Unique); err != nil {
			return err
		}
	}
	if s != Dead {
		if err := p.dropPhases(ctx, r.num); err != nil {
			return err
		}
	}
	if s != Done { // a done task has posted its outcome with its output
		if err := p.post(ctx, r, s); err != nil {
			return err
		}
	}
	p.count(s)
	p.wake(r.num)
	if p.pending+p.running == 0 {
		p.emptyDue = p.set.onEmpty != nil
		p.wake(0)
	}
	return nil
}

// count adds a task to the counter of its final state.
func (p *partition) count(s State) {
	switch s {
	case Done:
		p.done++
	case Dead:
		p.dead++
	case Cancelled:
		p.cancelled++
	}
	p.dirty = true
}

// wake wakes the callers that wait for task num; num 0 is the wait for the last
// task of the partition.
func (p *partition) wake(num uint64) {
	if ch := p.waiters[num]; ch != nil {
		delete(p.waiters, num)
		close(ch)
	}
}

// emit stores an event of a task with the batch of the turn.
func (p *partition) emit(ctx context.Context, kind string, r *row) error {
	return p.st.Emit(ctx, kind, jobs.Event{Subject: subject(taskSubject, r.num), Run: 1, Attempt: r.rare.Run.Attempt})
}
