package why

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// worst has the codes that All tells of, the worst first. Healthy waits are left out.
var worst = []Code{
	Unreadable, Orphan, Stuck, Lost, ConstructorFailing, AlarmDead, Ended, DeadlockRefused, Parked, NotDurable, TurnWaits, TurnRunning, Mailbox,
	AlarmSuspect, AlarmRetry, Clock, AlarmQueued, BreakerOpen, Undoing, NoWorkHere, PoolPaused, Draining, Pausing, Paused,
}

// worstOf is the worst of the reasons of an object, with the others; ok is false if none is bad.
func worstOf(all []Answer) (a Answer, ok bool) {
	found := -1
	for i, r := range all {
		if n := slices.Index(worst, r.Code); n >= 0 && (found < 0 || n < slices.Index(worst, all[found].Code)) {
			found = i
		}
	}
	if found < 0 {
		return a, false
	}
	a = all[found]
	a.Also = slices.Delete(slices.Clone(all), found, found+1)
	return a, true
}

// sortByWorst sorts answers: the worst first, then the oldest.
func sortByWorst(list []Answer) {
	slices.SortStableFunc(list, func(a, b Answer) int {
		return cmp.Or(
			cmp.Compare(slices.Index(worst, a.Code), slices.Index(worst, b.Code)), a.Since.Compare(b.Since),
			cmp.Compare(a.ID.Class, b.ID.Class), cmp.Compare(a.ID.Name, b.ID.Name),
		)
	})
}

// found collects objects, each once.
type found struct {
	ids  []storage.ID
	seen map[storage.ID]bool
	more bool
}

// add adds an object, and reports whether there is room for another.
func (c *found) add(id storage.ID) bool {
	switch {
	case c.seen[id]:
	case len(c.ids) == MaxOverview:
		c.more = true
		return false
	default:
		c.seen[id] = true
		c.ids = append(c.ids, id)
	}
	return true
}

// candidates finds the objects that may be in trouble by ranges alone.
func (l *looker) candidates(ctx context.Context) ([]storage.ID, bool, error) {
	c := &found{seen: make(map[storage.ID]bool)}
	classes, err := l.store.Classes()
	if err != nil {
		return nil, false, err
	}
	for _, status := range []jobs.Status{jobs.Stuck, jobs.Failed, jobs.Paused} {
		for _, class := range classes {
			if err := l.labelled(c, class, status); err != nil {
				return nil, false, err
			}
		}
	}
	open, total, err := object.NewReader(l.store).Executions(ctx, MaxOverview)
	if err != nil {
		return nil, false, err
	}
	for _, x := range open {
		c.add(x.ID)
	}
	if err := l.dueAlarms(c); err != nil {
		return nil, false, err
	}
	c.more = c.more || total > len(open)
	for _, class := range classes {
		if err := l.partitions(c, class); err != nil {
			return nil, false, err
		}
	}
	return c.ids, c.more, nil
}

// dueAlarms adds the objects with alarms that are due, the oldest first.
func (l *looker) dueAlarms(c *found) error {
	var due []alarm.Entry
	now := l.now().UnixNano()
	for shard := range l.store.Shards() {
		entries, err := l.store.ScanAlarms(shard, 0, 0, MaxOverview+1)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if e.Due > now {
				break
			}
			_, class, name, err := alarm.DecodeIndex(e.Value)
			if err != nil {
				return fmt.Errorf("%w: %w", storage.ErrCorrupt, err)
			}
			due = append(due, alarm.Entry{Due: time.Unix(0, e.Due), Class: class, Name: name})
		}
	}
	slices.SortFunc(due, func(a, b alarm.Entry) int { return a.Due.Compare(b.Due) })
	for _, e := range due {
		c.add(storage.ID{Class: e.Class, Name: e.Name})
	}
	return nil
}

// labelled adds the jobs of a class with a status.
func (l *looker) labelled(c *found, class string, status jobs.Status) error {
	label, err := storage.NewLabel(status.Label())
	if err != nil {
		return err
	}
	return l.store.Labelled(class, label, "", c.add)
}

// partitions adds the partitions of a pool, and damaged objects with their names. A class is a pool if the first of the
// objects 0, 1 and so on that can be read is a partition.
func (l *looker) partitions(c *found, class string) error {
	for n := 0; ; n++ {
		id := storage.ID{Class: class, Name: strconv.Itoa(n)}
		o, err := l.store.Find(id)
		ok := false
		if err == nil && o.Number != 0 {
			_, ok, err = workerpool.LookPartition(l.store, o)
		}
		switch {
		case ok && err == nil:
			return l.store.Objects(class, "", func(o storage.Object) bool { return c.add(o.ID) })
		case err == nil || !damaged(err):
			return err
		case !c.add(id):
			return nil
		}
	}
}
