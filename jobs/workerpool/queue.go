package workerpool

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/storage"
)

// promoteMax bounds the tasks whose time has come that one turn moves to their
// queues.
const promoteMax = 256

// task reads a task that is pending or running.
func (p *partition) task(ctx context.Context, num uint64) (*row, bool, error) {
	b, ok, err := p.st.Storage().Get(ctx, taskKey(num))
	if err != nil || !ok {
		return nil, false, err
	}
	r, err := decodeRow(num, b)
	return r, true, err
}

// mustTask reads a task that an index row names.
func (p *partition) mustTask(ctx context.Context, num uint64) (*row, error) {
	r, ok, err := p.task(ctx, num)
	if err == nil && !ok {
		err = fmt.Errorf("%w: task %s is queued and not stored", storage.ErrCorrupt, p.id(num))
	}
	return r, err
}

func (p *partition) put(ctx context.Context, key string, r *row) error {
	var room [256]byte // enough for most, which then need no allocation
	b, err := p.encoded(room[:0], r)
	if err != nil {
		return err
	}
	return p.st.Storage().PutBytes(ctx, key, b)
}

// enter puts a pending task where its turn will come: in its queue, or among
// those that wait for a time.
func (p *partition) enter(ctx context.Context, r *row) error {
	if r.notBefore <= p.st.Now().UnixNano() {
		return p.ready(ctx, r)
	}
	at := waitPlace(r.notBefore, r.order)
	if err := p.st.Storage().PutBytes(ctx, waitKey(at), encodeNumber(r.num)); err != nil {
		return err
	}
	p.waits.add(entry{place: at, num: r.num})
	return nil
}

// ready puts a task in its queue. Its row there is left out until the end of the
// turn, since the task may begin before that.
func (p *partition) ready(ctx context.Context, r *row) error {
	l, at := p.lines.named(r.queue), readyPlace(r.priority, r.order)
	if p.lines.add(l, entry{place: at, num: r.num, fresh: true, row: r}) {
		p.fresh = append(p.fresh, freshEntry{l, at})
		return nil
	}
	return p.st.Storage().PutBytes(ctx, readyKey(l.name, at), encodeNumber(r.num))
}

// leave takes a pending task out of its queue and from those that wait.
func (p *partition) leave(ctx context.Context, r *row) error {
	l := p.lines.named(r.queue)
	inLine, inWaits := readyPlace(r.priority, r.order), waitPlace(r.notBefore, r.order)
	if err := p.st.Storage().Remove(ctx, readyKey(l.name, inLine)); err != nil {
		return err
	}
	l.window.remove(inLine)
	if r.notBefore == 0 {
		return nil // it never waited for a time
	}
	p.waits.remove(inWaits)
	return p.st.Storage().Remove(ctx, waitKey(inWaits))
}

// promote moves tasks whose time has come to their queues.
func (p *partition) promote(ctx context.Context, now time.Time) error {
	if p.mode == Paused {
		return nil
	}
	for range promoteMax {
		e, ok := p.waits.first()
		if !ok || int64(e.major) > now.UnixNano() {
			return nil
		}
		if full, err := p.nearlyFull(ctx); full || err != nil {
			return err
		}
		r, err := p.firstRow(ctx, &p.waits)
		if err != nil {
			return err
		}
		if err := p.st.Storage().Remove(ctx, waitKey(e.place)); err != nil {
			return err
		}
		p.waits.dropFirst()
		if err := p.ready(ctx, r); err != nil {
			return err
		}
		if err := p.fillWaits(ctx); err != nil {
			return err
		}
	}
	return nil
}

// begin starts ready tasks while there are workers.
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

// mayStart reports whether a task may start now (W3).
func (p *partition) mayStart() bool {
	return p.mode != Paused && p.running < uint64(p.limit) && !p.st.Closing()
}

// start opens an execution for the task whose turn it is: its row is nil if there
// is none. Without a work the task is claimed by somebody outside, for the lease.
func (p *partition) start(ctx context.Context, work func(*row) jobs.Work, lease time.Duration) (r *row, x jobs.Execution, err error) {
	l := p.lines.next()
	if l == nil {
		return nil, x, nil
	}
	e, _ := l.window.first()
	if r, err = p.firstRow(ctx, &l.window); err != nil {
		return nil, x, err
	}
	s := jobs.Spec{Subject: subject(taskSubject, e.num), Key: p.outsideKey(e.num), Run: r.run(), Lease: lease, Size: r.size()}
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
	p.opened[e.num] = active{x.Token, r}
	p.pending--
	p.running++
	p.executions++
	p.dirty = true
	return r, x, p.fillLine(ctx, l)
}

// outsideKey is the same in every attempt of a task.
func (p *partition) outsideKey(num uint64) string {
	var room [128]byte
	return string(p.id(num).append(append(append(room[:0], p.set.name...), '/')))
}

// run is the progress of the task's one run.
func (r *row) run() jobs.Run {
	run := r.rare.Run
	if run.Number == 0 {
		run.Number = 1
		run.Scheduled = time.Unix(0, max(r.enqueued, r.notBefore))
	}
	return run
}

// begun is how many attempts of a task that is not done have begun.
func (r *row) begun() int {
	if r.state == Running {
		return r.rare.Run.Failed() + 1
	}
	return r.rare.Run.Failed()
}

// workOf is the execution of a task in this process. Its output is encoded in it,
// so that one that cannot be stored fails the task and not the partition.
func (p *partition) workOf(r *row) jobs.Work {
	version := p.inputVersion(r.num)
	return func(ctx context.Context, x jobs.Execution) (jobs.Result, error) {
		output, err := p.set.work(ctx, p, r, x, version)
		if err != nil {
			return jobs.Result{}, err
		}
		return p.result(r, x.Run.Failed()+1, output), nil
	}
}

// result stores the output of a done task.
func (p *partition) result(r *row, attempt int, output []byte) jobs.Result {
	if p.set.keepDone < 0 {
		return jobs.Result{}
	}
	kept := *r
	kept.attempts, kept.output = attempt, output
	return jobs.Result{Size: len(output), Store: func(ctx context.Context) error {
		return p.remember(ctx, kept, Done)
	}}
}

// remember keeps what can be asked of a task that is done or cancelled.
func (p *partition) remember(ctx context.Context, kept row, s State) error {
	if p.set.keepDone < 0 {
		return nil
	}
	kept.state, kept.ended, kept.input = s, p.st.Now().UnixNano(), nil
	b, err := p.encoded(nil, &kept)
	if err != nil {
		return err
	}
	return p.st.MarkNew(ctx, numbered(endedMark, kept.num), b, p.set.keepDone)
}
