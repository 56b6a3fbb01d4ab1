package why

import (
	"context"

	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
)

// Object returns why an object does not run now, or that it runs: a plain object, a job, a
// partition of a worker pool or a breaker. It runs no user code and no turn, so it also answers
// for an object that is stuck, and Unreadable for one with damaged rows. It returns object.ErrBadName for a name that no object can have, an
// error of the store, and the cause of ctx.
func Object(ctx context.Context, src Source, id storage.ID) (Answer, error) {
	return src.answer(ctx, func(l *looker) (*facts, error) { return l.look(ctx, id) })
}

// Job is Object for a job, and Absent for an object that is no job.
func Job(ctx context.Context, src Source, id storage.ID) (Answer, error) {
	return src.answer(ctx, func(l *looker) (*facts, error) {
		f, err := l.look(ctx, id)
		if err == nil && f.kind != aJob && !f.unread && f.damage == nil {
			*f = facts{id: f.id, now: f.now, kind: aJob, store: f.store, lastEvent: f.lastEvent, letters: f.letters}
		}
		return f, err
	})
}

// Task is Object for a task of a worker pool, and Absent for one that does not exist or that was
// done or cancelled more than Config.Retention ago.
func Task(ctx context.Context, src Source, pool string, id workerpool.TaskID) (Answer, error) {
	return src.answer(ctx, func(l *looker) (*facts, error) { return l.lookTask(ctx, pool, id) })
}

// answer makes the facts and applies the rules to them.
func (s Source) answer(ctx context.Context, look func(*looker) (*facts, error)) (Answer, error) {
	if err := s.check(); err != nil {
		return Answer{}, err
	}
	if err := seam.Cause(ctx); err != nil {
		return Answer{}, err
	}
	f, err := look(&looker{Source: s, seen: make(map[string]bool)})
	if err != nil {
		return Answer{}, err
	}
	return f.answer(), nil
}

// Overview is everything of a store that is overdue or stuck.
type Overview struct {
	// Store are the reasons that hold for the whole store, such as NotOpen.
	Store []Answer `json:"store,omitempty"`
	// Answers are sorted: the worst first, and of one code the oldest first.
	Answers []Answer `json:"answers,omitempty"`
	// More says that there are more than MaxOverview.
	More bool `json:"more,omitempty"`
}

// MaxOverview is how many objects All looks at.
const MaxOverview = 1000

// All returns why everything that is overdue, lost, failed, paused or stuck does not run. It finds
// the objects by ranges: due alarms, open executions, the labels of jobs, and the partitions of
// pools. So its cost does not grow with the other objects. It looks at no more than MaxOverview.
// An object with damaged rows is one of the answers, with the code Unreadable. A row of an index that is damaged is a
// storage.ErrCorrupt, because it names no object. All tells the reasons of the whole store alone for a host that has
// ended.
func All(ctx context.Context, src Source) (Overview, error) {
	if err := src.check(); err != nil {
		return Overview{}, err
	}
	l := &looker{Source: src}
	host := &facts{id: storage.ID{Class: "store", Name: "store"}, exists: true} // of no object, so any name does
	if err := l.lookLive(ctx, host); err != nil {
		return Overview{}, err
	}
	host.id = storage.ID{}
	o := Overview{Store: holding(rules[:hostRules], host)}
	ids, more, err := l.candidates(ctx)
	switch {
	case err != nil && l.host != nil && l.store.Err() != nil:
		return o, nil // no row of a host that has ended can be read
	case err != nil:
		return o, err
	}
	o.More = more
	for _, id := range ids {
		if err := seam.Cause(ctx); err != nil {
			return o, err
		}
		l.seen = make(map[string]bool)
		f, err := l.look(ctx, id)
		if err != nil {
			return o, err
		}
		if a, ok := worstOf(f.reasons(rules[hostRules:])); ok {
			o.Answers = append(o.Answers, a)
		}
	}
	sortByWorst(o.Answers)
	return o, nil
}
