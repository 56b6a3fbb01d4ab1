package workerpool

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/storage"
)

const (
	maxFailures = 100 // kept of one task
)

// Ended stores what follows from the end of an execution.
func (p *partition) Ended(ctx context.Context, x jobs.Execution, out jobs.Outcome) error {
	switch kind, num := subjectOf(x.Subject); kind {
	case taskSubject:
		if !out.Lost { // the time of a crash is no time of the run
			p.backlog.Ran(p.engine.Now().Sub(x.Began))
		}
		return p.taskEnded(ctx, num, out)
	default:
		return p.callEnded(ctx, kind, num, out)
	}
}

func (p *partition) taskEnded(ctx context.Context, num uint64, out jobs.Outcome) error {
	r, err := p.rowOf(ctx, num)
	if err != nil {
		return err
	}
	delete(p.opened, num)
	p.running--
	if out.Lost {
		p.lost++
	}
	p.dirty = true
	if out.Kind == jobs.Done || out.Kind == jobs.Quit {
		return p.finish(ctx, r, Done) // Result.Store has kept its output
	}
	p.note(r, out)
	switch {
	case out.Kind == jobs.Cancelled || r.rare.Cancelling:
		return p.takeBack(ctx, r)
	case out.Kind == jobs.GaveUp:
		return p.die(ctx, r, out.Reason)
	default:
		return p.again(ctx, r, out.Run)
	}
}

// rowOf returns the row of a task that runs.
func (p *partition) rowOf(ctx context.Context, num uint64) (*row, error) {
	a, runs := p.opened[num]
	if !runs {
		return nil, fmt.Errorf("%w: task %s ended and did not run", storage.ErrCorrupt, p.id(num))
	}
	if a.row != nil {
		return a.row, nil
	}
	r, err := p.mustTask(ctx, num)
	if err == nil {
		p.opened[num] = active{a.token, r}
	}
	return r, err
}

// note adds a failed attempt to the task's history.
func (p *partition) note(r *row, out jobs.Outcome) {
	r.rare.Run = out.Run
	if out.Err == nil || out.Kind == jobs.Recover {
		return
	}
	r.rare.Stack = out.Stack()
	fs := append(r.rare.Failures[:len(r.rare.Failures):len(r.rare.Failures)], Failure{max(out.Run.Failed(), 1), p.st.Now(), jobs.Shorten(out.Err.Error())})
	if len(fs) > maxFailures {
		fs = append(fs[:maxFailures/2:maxFailures/2], fs[maxFailures/2+1:]...)
	}
	r.rare.Failures = fs
}

// again makes a task pending until its retry. It keeps its place among the tasks
// of its key, which wait for it.
func (p *partition) again(ctx context.Context, r *row, run jobs.Run) error {
	r.notBefore = alarm.Nanos(run.RetryAt)
	if err := p.put(ctx, taskKey(r.num), r); err != nil {
		return err
	}
	p.pending++
	return p.enter(ctx, r)
}

func (p *partition) takeBack(ctx context.Context, r *row) error {
	if err := p.remember(ctx, *r, Cancelled); err != nil {
		return err
	}
	if err := p.emit(ctx, EventCancelled, r); err != nil {
		return err
	}
	return p.finish(ctx, r, Cancelled)
}

// die makes a task a dead letter.
func (p *partition) die(ctx context.Context, r *row, reason jobs.Reason) error {
	r.state, r.ended, r.rare.Reason = Dead, p.st.Now().UnixNano(), reason
	if err := p.put(ctx, deadKey(r.num), r); err != nil {
		return err
	}
	if err := p.askCall(ctx, r.num); err != nil {
		return err
	}
	return p.finish(ctx, r, Dead)
}

// finish removes a task that has ended, and lets the next of its key enter; it is
// neither pending nor running now.
func (p *partition) finish(ctx context.Context, r *row, s State) error {
	if err := p.remove(ctx, r, s); err != nil {
		return err
	}
	return p.enterFirst(ctx, r.key)
}

// remove removes a task that has ended, and counts it.
func (p *partition) remove(ctx context.Context, r *row, s State) error {
	if err := p.st.Storage().Remove(ctx, taskKey(r.num)); err != nil {
		return err
	}
	if r.key != "" {
		if err := p.st.Storage().Remove(ctx, chainKey(r.key, r.order)); err != nil {
			return err
		}
	}
	if r.rare.Unique != "" {
		if err := p.st.Storage().Remove(ctx, uniqueKeys+r.rare.Unique); err != nil {
			return err
		}
	}
	p.count(s)
	p.tell(r.num)
	if p.pending+p.running == 0 {
		p.emptyDue = p.set.onEmpty != nil
		p.tell(0)
	}
	return nil
}

// count adds an ended task.
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

// tell wakes those who wait for a task, or for the last one (0).
func (p *partition) tell(num uint64) {
	if ch := p.waiters[num]; ch != nil {
		delete(p.waiters, num)
		close(ch)
	}
}
