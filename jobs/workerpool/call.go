package workerpool

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// Calls of OnDead and OnEmpty are executions of their own: stored in the batch of
// what they tell of, retried, and found again after a crash.

const maxCalls = 4 // of OnDead at a time

// askCall stores that OnDead has to be told of a dead letter.
func (p *partition) askCall(ctx context.Context, num uint64) error {
	if p.set.onDead == nil {
		return nil
	}
	return p.putCall(ctx, num, jobs.Run{Number: 1, Scheduled: p.st.Now()})
}

func (p *partition) putCall(ctx context.Context, num uint64, run jobs.Run) error {
	b, err := json.Marshal(run)
	if err != nil {
		return err
	}
	_, asked, err := p.st.Storage().Get(ctx, callKey(num))
	if err != nil {
		return err
	}
	if err := p.st.Storage().PutBytes(ctx, callKey(num), b); err != nil {
		return err
	}
	if !asked { // else a replayed task has died again before its first call was over
		p.calls++
		p.dirty = true
	}
	return nil
}

// dropCall forgets a call that was not made yet, since there is no letter to tell
// of any more.
func (p *partition) dropCall(ctx context.Context, num uint64) error {
	asked, err := p.st.Storage().Delete(ctx, callKey(num))
	if asked {
		p.calls--
		p.dirty = true
	}
	return err
}

// nextCall is when the next call is due; zero: none is.
func (p *partition) nextCall() time.Time { return earliest(p.deadAt(), p.emptyAt()) }

// deadAt is when the next call of OnDead is due; zero: none is.
func (p *partition) deadAt() time.Time {
	switch {
	case p.set.onDead == nil || p.calls == 0 || p.calling >= maxCalls:
		return time.Time{}
	case p.callAt.IsZero():
		return p.since()
	}
	return p.callAt
}

// emptyAt is when the next call of OnEmpty is due; zero: none is.
func (p *partition) emptyAt() time.Time {
	switch {
	case p.set.onEmpty == nil || !p.emptyDue || p.emptying:
		return time.Time{}
	case p.emptyRun.RetryAt.IsZero():
		return p.since()
	}
	return p.emptyRun.RetryAt
}

// call begins the calls that are due.
func (p *partition) call(ctx context.Context, now time.Time) error {
	if at := p.deadAt(); !at.IsZero() && !at.After(now) {
		p.callAt = time.Time{}
		if err := p.callDead(ctx); err != nil {
			return err
		}
	}
	if at := p.emptyAt(); !at.IsZero() && !at.After(now) {
		return p.callEmpty(ctx)
	}
	return nil
}

func (p *partition) callDead(ctx context.Context) error {
	var due []object.Item
	for item, err := range p.st.Storage().List(ctx, object.ListOptions{Prefix: callPrefix, Limit: maxCalls - p.calling}) {
		if err != nil {
			return err
		}
		due = append(due, item)
	}
	for _, item := range due {
		if err := p.beginCall(ctx, item); err != nil {
			return err
		}
	}
	return nil
}

func (p *partition) beginCall(ctx context.Context, item object.Item) error {
	num, err := numberOf(item.Key)
	if err != nil {
		return err
	}
	var run jobs.Run
	if err := json.Unmarshal(item.Value, &run); err != nil {
		return fmt.Errorf("%w: call for task %s: %w", storage.ErrCorrupt, p.id(num), err)
	}
	letter, ok, err := p.letter(ctx, num)
	if err != nil {
		return err
	}
	if ok {
		spec := jobs.Spec{Subject: subject(deadSubject, num), Key: p.outsideKey(num) + "/dead", Run: run, Hook: true}
		version := p.inputVersion(num)
		spec.Work = func(ctx context.Context, _ jobs.Execution) (jobs.Result, error) {
			return jobs.Result{}, p.set.onDead(ctx, p, letter, version)
		}
		if _, err := p.engine.Begin(ctx, spec); err != nil {
			return err
		}
		p.calling++
	}
	if err := p.st.Storage().Remove(ctx, item.Key); err != nil {
		return err
	}
	p.calls--
	p.dirty = true
	return nil
}

// loadEmpty reads the progress of a call of OnEmpty that is to be made again.
func (p *partition) loadEmpty(ctx context.Context) error {
	if !p.emptyDue {
		return nil
	}
	_, err := p.st.Storage().GetInto(ctx, emptyKey, &p.emptyRun)
	return err
}

// callEmpty begins a call of OnEmpty. One that failed goes on with its progress: tasks
// that came and ended meanwhile ask for no call of their own.
func (p *partition) callEmpty(ctx context.Context) error {
	run := p.emptyRun
	if run.Number == 0 {
		run = jobs.Run{Number: 1, Scheduled: p.since()}
	}
	spec := jobs.Spec{
		Subject: emptySubject, Run: run, Hook: true,
		Key: p.st.ID().String() + "/empty",
		Work: func(ctx context.Context, _ jobs.Execution) (jobs.Result, error) {
			return jobs.Result{}, p.set.onEmpty(ctx, p.index)
		},
	}
	if _, err := p.engine.Begin(ctx, spec); err != nil {
		return err
	}
	if p.emptyRun.Number != 0 {
		if err := p.st.Storage().Remove(ctx, emptyKey); err != nil {
			return err
		}
	}
	p.emptyRun = jobs.Run{}
	p.emptying, p.emptyDue, p.dirty = true, false, true
	return nil
}

// callEnded stores a call again that has to be made again.
func (p *partition) callEnded(ctx context.Context, kind string, num uint64, out jobs.Outcome) error {
	if kind == emptySubject {
		return p.emptyEnded(ctx, out)
	}
	p.calling--
	if !out.Waits() {
		return nil
	}
	if err := p.putCall(ctx, num, out.Run); err != nil {
		return err
	}
	p.callAt = out.Run.RetryAt
	return nil
}

func (p *partition) emptyEnded(ctx context.Context, out jobs.Outcome) error {
	p.emptying = false
	if !out.Waits() {
		return nil
	}
	if err := p.st.Storage().Put(ctx, emptyKey, out.Run); err != nil {
		return err
	}
	p.emptyRun = out.Run
	p.emptyDue, p.dirty = true, true
	return nil
}
