package workerpool

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// Calls of OnDead, OnStale, OnDelete and OnEmpty (hooks) are executions of their own. A hook row
// is stored in the batch that makes the call necessary: the death of a task, a step of its letter
// (retention.go), or the outcome of the last task. The call is retried after an error and made
// again after a crash, because its open execution is found at the next open.
//
// The way of a call of OnDead, and of those of the Retention:
//
//  1. die calls askCall, which stores the hook row h/ number.
//  2. Due calls callLetters, which takes the calls that are due.
//  3. beginCall opens an execution and removes the hook row.
//  4. callOutcome stores the row again, with the time of the next attempt, if
//     the call must be repeated.
//
// Each row has a time of its own, so the wait of one letter neither holds back
// nor hurries the call of another. The window p.owed has the first rows in the
// order of these times.

const maxCalls = 4 // executions of calls for letters that may be open at a time

// hook is one that is called for a dead letter.
type hook uint8

const (
	onDead hook = iota
	onStale
	onDelete
	hooks // how many there are
)

var hookNames = [...]string{"OnDead", "OnStale", "OnDelete"}

func (h hook) String() string { return hookNames[h] }

// subject is the kind of the subject of its executions. Package engine knows those of a
// Retention, and tries their calls five times.
func (h hook) subject() string {
	if h == onDead {
		return deadSubject
	}
	return h.String()
}

// hookOf is the hook that an execution of that kind calls.
func hookOf(kind string) hook {
	switch kind {
	case onStale.subject():
		return onStale
	case onDelete.subject():
		return onDelete
	}
	return onDead
}

// callID is a call of a hook for a letter: the number of its task, and the hook in the last two
// bits. Numbers count the tasks of a partition, so their first two bits are never used.
type callID uint64

func callOf(num uint64, h hook) callID { return callID(num<<2 | uint64(h)) }
func (c callID) num() uint64           { return uint64(c) >> 2 }
func (c callID) hook() hook            { return hook(c & 3) }

// key is that of the hook row. The rows of OnDead end with the number, the others with the hook.
func (c callID) key() string {
	key := numbered(callPrefix, c.num())
	if c.hook() == onDead {
		return key
	}
	return key + string(rune(c.hook()))
}

// callIn is the inverse of key.
func callIn(key string) (callID, error) {
	h := onDead
	if n := len(callPrefix) + 8; len(key) == n+1 && hook(key[n]) > onDead && hook(key[n]) < hooks {
		key, h = key[:n], hook(key[n])
	}
	num, err := numberOf(key)
	return callOf(num, h), err
}

// askCall stores a hook row for a new dead letter, unless the pool has no
// OnDead.
func (p *partition) askCall(ctx context.Context, num uint64) error {
	if p.set.onDead == nil {
		return nil
	}
	return p.putCall(ctx, callOf(num, onDead), jobs.Run{Number: 1, Scheduled: p.st.Now()})
}

// putCall stores the hook row of a dead letter with the progress of its call, unless the row is of
// a newer death: the task was replayed and has died again while the call was under way.
func (p *partition) putCall(ctx context.Context, id callID, run jobs.Run) error {
	b, err := json.Marshal(run)
	if err != nil {
		return err
	}
	old, asked, err := p.st.Storage().Get(ctx, id.key())
	if err != nil {
		return err
	}
	if asked && scheduledOf(old).After(run.Scheduled) {
		return nil
	}
	if err := p.st.Storage().PutBytes(ctx, id.key(), b); err != nil {
		return err
	}
	if asked { // a task that died again after a replay may still have the row of its first death
		p.owed.evict(callPlace(id, old))
	} else {
		p.calls++
		p.dirty = true
	}
	p.owed.add(entry{place: placeOfCall(id, run), num: uint64(id)})
	return nil
}

// placeOfCall is the place of a call in the window p.owed: a new call comes
// before those that wait for a time.
func placeOfCall(id callID, run jobs.Run) place {
	if run.RetryAt.IsZero() {
		return place{order: uint64(id)}
	}
	return place{uint64(alarm.Nanos(run.RetryAt)), uint64(id)}
}

// callPlace is the place of a stored call. A row that cannot be decoded is due
// at once: then beginCall names the damage.
func callPlace(id callID, value []byte) place {
	var run jobs.Run
	if json.Unmarshal(value, &run) != nil {
		return place{order: uint64(id)}
	}
	return placeOfCall(id, run)
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
	if !p.owed.wants() {
		return nil
	}
	if p.calls == 0 { // as in each turn of most partitions, so it allocates nothing
		p.owed.load(nil)
		return nil
	}
	return p.readCalls(ctx)
}

// readCalls loads the calls that are next.
func (p *partition) readCalls(ctx context.Context) error {
	var es []entry
	keep := func() {
		slices.SortFunc(es, func(a, b entry) int { return a.compare(b.place) })
		es = es[:min(len(es), p.owed.loads())]
	}
	for item, err := range p.st.Storage().List(ctx, object.ListOptions{Prefix: callPrefix}) {
		if err != nil {
			return err
		}
		id, err := callIn(item.Key)
		if err != nil {
			return err
		}
		if made, err := p.makes(ctx, id); err != nil {
			return err
		} else if !made {
			continue
		}
		if es = append(es, entry{place: callPlace(id, item.Value), num: uint64(id)}); len(es) >= 2*p.owed.loads() {
			keep()
		}
	}
	keep()
	p.owed.load(es)
	return nil
}

// makes reports whether a call that is owed is to be made. One of OnDead waits until the pool has an OnDead again, unless
// its letter waits to be removed.
func (p *partition) makes(ctx context.Context, id callID) (bool, error) {
	if id.hook() != onDead || p.set.onDead != nil {
		return true, nil
	}
	r, ok, err := p.letter(ctx, id.num())
	if err != nil || !ok {
		return false, err
	}
	_, leaves, err := p.st.Storage().Get(ctx, agingKey(agingLeft, deathPlace(r)))
	return leaves, err
}

// discardCalls removes the hook rows of a dead letter that is gone before its calls were made. The
// caller has changed the counters too.
func (p *partition) discardCalls(ctx context.Context, num uint64) error {
	for h := onDead; h < hooks && p.calls > 0; h++ {
		id := callOf(num, h)
		row, asked, err := p.st.Storage().Get(ctx, id.key())
		if err != nil {
			return err
		}
		if !asked {
			continue
		}
		if err := p.st.Storage().Remove(ctx, id.key()); err != nil {
			return err
		}
		p.owed.evict(callPlace(id, row))
		p.calls--
	}
	return nil
}

// nextCall is when the next call of a hook is due; zero if none is.
func (p *partition) nextCall() time.Time { return earliest(p.letterCallAt(), p.emptyAt()) }

// letterCallAt is when the next call for a letter is due; zero if none is, or if
// maxCalls calls are open.
func (p *partition) letterCallAt() time.Time {
	e, owed := p.owed.first()
	switch {
	case !owed || len(p.calling) >= maxCalls:
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
	if err := p.callLetters(ctx, now); err != nil {
		return err
	}
	if at := p.emptyAt(); !at.IsZero() && !at.After(now) {
		return p.callEmpty(ctx)
	}
	return nil
}

// callLetters begins the calls for letters that are due, the earliest first, until
// maxCalls are open. If more are due than the window has, Settle loads them, and
// the next wake-up comes at once.
func (p *partition) callLetters(ctx context.Context, now time.Time) error {
	for at := p.letterCallAt(); !at.IsZero() && !at.After(now); at = p.letterCallAt() {
		e, _ := p.owed.first()
		if err := p.beginCall(ctx, callID(e.num)); err != nil {
			return err
		}
		p.owed.pop()
	}
	return nil
}

// beginCall opens the execution of one call for a letter. It only removes the hook
// row if the call is not wanted any more.
func (p *partition) beginCall(ctx context.Context, id callID) error {
	row, asked, err := p.st.Storage().Get(ctx, id.key())
	if err != nil || !asked {
		return err
	}
	var run jobs.Run
	if err := json.Unmarshal(row, &run); err != nil {
		return fmt.Errorf("%w: hook row of task %s: %w", storage.ErrCorrupt, p.id(id.num()), err)
	}
	letter, _, err := p.letter(ctx, id.num())
	if err != nil {
		return err
	}
	wanted := p.wants(id, letter, run)
	if wanted {
		if _, err := p.engine.Begin(ctx, p.callSpec(id, letter, run)); err != nil {
			return err
		}
	}
	if err := p.st.Storage().Remove(ctx, id.key()); err != nil {
		return err
	}
	p.calls--
	p.dirty = true
	if wanted {
		p.calling[id] = true
		return nil
	}
	return p.callEnded(ctx, id, run.Scheduled, engine.Outcome{})
}

// callSpec is the execution of a call for a letter. A hook that the Config has no more is not called.
func (p *partition) callSpec(id callID, r *row, run jobs.Run) engine.Spec {
	spec := engine.Spec{Subject: subject(id.hook().subject(), r.num), Key: p.outsideKey(r.num) + "/dead", Run: run, Hook: true}
	call := func(context.Context) error { return nil }
	version, told := p.inputVersion(r.num), p.set.retention.OnStale
	switch id.hook() {
	case onDead:
		if p.set.onDead != nil {
			call = func(ctx context.Context) error { return p.set.onDead(ctx, p, r, version) }
		}
	case onDelete:
		told = p.set.retention.OnDelete
		spec.Size = letterBytes + p.phaseBytes()
		fallthrough
	default:
		spec.Key = p.outsideKey(r.num) + "/" + id.hook().String() + "/" + strconv.FormatInt(r.endedAt, 10)
		if retired := p.retired(r, spec.Key); told != nil {
			call = func(ctx context.Context) error { return told(ctx, retired) }
		}
	}
	spec.Work = func(ctx context.Context, _ engine.Execution) (engine.Result, error) {
		return engine.Result{}, call(ctx)
	}
	return spec
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
	id := callOf(num, hookOf(kind))
	delete(p.calling, id)
	if out.Waits() {
		r, _, err := p.letter(ctx, num)
		if err != nil {
			return err
		}
		if p.wants(id, r, out.Run) {
			return p.putCall(ctx, id, out.Run)
		}
	}
	return p.callEnded(ctx, id, out.Run.Scheduled, out)
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
