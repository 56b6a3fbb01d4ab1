package workerpool

import (
	"context"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/object"
)

// publish shows the tasks of the partition in the host's metrics.
func (p *partition) publish(ctx context.Context) {
	p.backlog.Set(object.Tasks{Pending: p.pending, Running: p.running, Dead: p.dead, ReadySince: p.readySince(ctx)})
}

// readySince is when the first task of any queue became ready, or will if all wait
// for a time; 0: none waits for either.
func (p *partition) readySince(ctx context.Context) (first int64) {
	if e, ok := p.waits.first(); ok {
		first = int64(e.major)
	}
	for _, l := range p.lines.all {
		if since := p.headSince(ctx, l); since != 0 && (first == 0 || since < first) {
			first = since
		}
	}
	return first
}

// headSince is when the first task of a queue became ready; 0: the queue is empty, or
// the row of the task cannot be read, which is no reason to fail the turn. The row is
// in memory, unless the task was left to storage; then it is read once.
func (p *partition) headSince(ctx context.Context, l *line) int64 {
	e, ok := l.window.first()
	switch {
	case !ok:
		return 0
	case l.head == e.place:
		return l.since
	}
	l.head, l.since = e.place, 0
	if r, err := p.firstRow(ctx, &l.window); err == nil {
		l.since = r.since()
	}
	return l.since
}

// since is when the task's time came, in nanoseconds: with its submission, delay,
// retry or replay, whichever was last.
func (r *row) since() int64 {
	return max(r.enqueued, r.notBefore, alarm.Nanos(r.rare.Run.Scheduled))
}
