package workerpool

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// Calls of OnDead and OnEmpty (hooks) are executions of their own. A hook row
// is stored in the batch that makes the call necessary: the death of a task, or
// the outcome of the last task. The call is retried after an error and made
// again after a crash, because its open execution is found at the next open.
//
// The way of a call of OnDead:
//
//  1. die calls askCall, which stores the hook row h/ number.
//  2. Due calls callDead, which takes the calls whose time has come.
//  3. beginCall opens an execution and removes the hook row.
//  4. callOutcome stores the row again, with the time of the next attempt, if
//     the call must be repeated.
//
// Each row has a time of its own, so the wait of one letter neither holds back
// nor hurries the call of another. The window p.owed has the first rows in the
// order of these times.

const maxCalls = 4 // executions of OnDead that may be open at a time

// askCall stores a hook row for a new dead letter, unless the pool has no
// OnDead.
func (p *partition) askCall(ctx context.Context, num uint64) error {
	if p.set.onDead == nil {
		return nil
	}
	return p.putCall(ctx, num, jobs.Run{Number: 1, Scheduled: p.st.Now()})
}

// putCall stores the hook row of a dead letter with the progress of its call, unless the row is of
// a newer death: the task was replayed and has died again while the call was under way.
func (p *partition) putCall(ctx context.Context, num uint64, run jobs.Run) error {
	b, err := json.Marshal(run)
	if err != nil {
		return err
	}
	old, asked, err := p.st.Storage().Get(ctx, callKey(num))
	if err != nil {
		return err
	}
	if asked && scheduledOf(old).After(run.Scheduled) {
		return nil
	}
	if err := p.st.Storage().PutBytes(ctx, callKey(num), b); err != nil {
		return err
	}
	if asked { // a task that died again after a replay may still have the row of its first death
		p.owed.evict(callPlace(num, old))
	} else {
		p.calls++
		p.dirty = true
	}
	p.owed.add(entry{place: placeOfCall(num, run), num: num})
	return nil
}

// placeOfCall is the place of a call in the window p.owed: a new call comes
// before those that wait for a time.
func placeOfCall(num uint64, run jobs.Run) place {
	if run.RetryAt.IsZero() {
		return place{order: num}
	}
	return place{uint64(alarm.Nanos(run.RetryAt)), num}
}

// callPlace is the place of a stored call. A row that cannot be decoded is due
// at once: then beginCall names the damage.
func callPlace(num uint64, value []byte) place {
	var run jobs.Run
	if json.Unmarshal(value, &run) != nil {
		return place{order: num}
	}
	return placeOfCall(num, run)
}

// scheduledOf is when the task of a stored call died; zero if the row cannot be decoded.
func scheduledOf(value []byte) time.Time {
	var run jobs.Run
	if err := json.Unmarshal(value, &run); err != nil {
		return time.Time{}
	}
	return run.Scheduled
}

// fillCalls loads the first hook rows into the window p.owed if that is empty.
// The rows are stored in the order of the tasks, so it reads all of them and
// keeps those with the earliest times.
func (p *partition) fillCalls(ctx context.Context) error {
	if p.set.onDead == nil || !p.owed.wants() {
		return nil
	}
	var es []entry
	keep := func() {
		slices.SortFunc(es, func(a, b entry) int { return a.compare(b.place) })
		es = es[:min(len(es), p.owed.loads())]
	}
	if p.calls > 0 {
		for item, err := range p.st.Storage().List(ctx, object.ListOptions{Prefix: callPrefix}) {
			if err != nil {
				return err
			}
			num, err := numberOf(item.Key)
			if err != nil {
				return err
			}
			if es = append(es, entry{place: callPlace(num, item.Value), num: num}); len(es) >= 2*p.owed.loads() {
				keep()
			}
		}
	}
	keep()
	p.owed.load(es)
	return nil
}

// discardCall removes the hook row of a dead letter that was replayed or discarded
// before its call was made. The caller has changed the counters too.
func (p *partition) discardCall(ctx context.Context, num uint64) error {
	row, asked, err := p.st.Storage().Get(ctx, callKey(num))
	if err != nil || !asked {
		return err
	}
	if err := p.st.Storage().Remove(ctx, callKey(num)); err != nil {
		return err
	}
	p.owed.evict(callPlace(num, row))
	p.calls--
	return nil
}

// nextCall is when the next call of either hook is due; zero if none is.
func (p *partition) nextCall() time.Time { return earliest(p.deadAt(), p.emptyAt()) }

// deadAt is when the next call of OnDead is due; zero if none is, or if
// maxCalls calls are open.
func (p *partition) deadAt() time.Time {
	e, owed := p.owed.first()
	switch {
	case p.set.onDead == nil || !owed || p.calling >= maxCalls:
		return time.Time{}
	case e.major == 0:
		return p.since()
	}
	return time.Unix(0, int64(e.major))
}

// emptyAt is when the next call of OnEmpty is due; zero if none is, or if one
// is open.
func (p *partition) emptyAt() time.Time {
	switch {
	case p.set.onEmpty == nil || !p.emptyDue || p.emptying:
		return time.Time{}
	case p.emptyRun.RetryAt.IsZero():
		return p.since()
	}
	return p.emptyRun.RetryAt
}

// call begins the hook calls that are due.
func (p *partition) call(ctx context.Context, now time.Time) error {
	if err := p.callDead(ctx, now); err != nil {
		return err
	}
	if at := p.emptyAt(); !at.IsZero() && !at.After(now) {
		return p.callEmpty(ctx)
	}
	return nil
}

// callDead begins the calls of OnDead that are due, the earliest first, until
// maxCalls are open. If more are due than the window has, Settle loads them, and
// the next wake-up comes at once.
func (p *partition) callDead(ctx context.Context, now time.Time) error {
	for at := p.deadAt(); !at.IsZero() && !at.After(now); at = p.deadAt() {
		e, _ := p.owed.first()
		if err := p.beginCall(ctx, e.num); err != nil {
			return err
		}
		p.owed.pop()
	}
	return nil
}

// beginCall opens the execution of one call of OnDead. It only removes the hook
// row if the dead letter is gone.
func (p *partition) beginCall(ctx context.Context, num uint64) error {
	row, asked, err := p.st.Storage().Get(ctx, callKey(num))
	if err != nil || !asked {
		return err
	}
	var run jobs.Run
	if err := json.Unmarshal(row, &run); err != nil {
		return fmt.Errorf("%w: hook row of task %s: %w", storage.ErrCorrupt, p.id(num), err)
	}
	letter, ok, err := p.letter(ctx, num)
	if err != nil {
		return err
	}
	if ok {
		spec := engine.Spec{Subject: subject(deadSubject, num), Key: p.outsideKey(num) + "/dead", Run: run, Hook: true}
		version := p.inputVersion(num)
		spec.Work = func(ctx context.Context, _ engine.Execution) (engine.Result, error) {
			return engine.Result{}, p.set.onDead(ctx, p, letter, version)
		}
		if _, err := p.engine.Begin(ctx, spec); err != nil {
			return err
		}
		p.calling++
	}
	if err := p.st.Storage().Remove(ctx, callKey(num)); err != nil {
		return err
	}
	p.calls--
	p.dirty = true
	return nil
}

// loadEmpty reads the progress of a call of OnEmpty that must be repeated.
func (p *partition) loadEmpty(ctx context.Context) error {
	if !p.emptyDue {
		return nil
	}
	_, err := p.st.Storage().GetInto(ctx, emptyKey, &p.emptyRun)
	return err
}

// callEmpty begins a call of OnEmpty. A call that failed before continues with
// its run, so that its attempts add up. Tasks that came and ended between two
// of its attempts cause no call of their own.
func (p *partition) callEmpty(ctx context.Context) error {
	run := p.emptyRun
	if run.Number == 0 {
		run = jobs.Run{Number: 1, Scheduled: p.since()}
	}
	spec := engine.Spec{
		Subject: emptySubject, Run: run, Hook: true,
		Key: p.st.ID().String() + "/empty",
		Work: func(ctx context.Context, _ engine.Execution) (engine.Result, error) {
			return engine.Result{}, p.set.onEmpty(ctx, p.index)
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

// callOutcome handles the outcome of a hook call: it stores the call again if the
// call must be repeated.
func (p *partition) callOutcome(ctx context.Context, kind string, num uint64, out engine.Outcome) error {
	if kind == emptySubject {
		return p.emptyOutcome(ctx, out)
	}
	p.calling--
	if !out.Waits() {
		return nil
	}
	return p.putCall(ctx, num, out.Run)
}

// emptyOutcome handles the outcome of a call of OnEmpty.
func (p *partition) emptyOutcome(ctx context.Context, out engine.Outcome) error {
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
