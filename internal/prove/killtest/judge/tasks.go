package judge

import (
	"strconv"
	"strings"
)

// worked is the attempts of a task.
type worked struct {
	attempts int
	last     uint64 // the last attempt that has begun
	name     string
	key      string          // outside
	stale    map[uint64]bool // calls that end an attempt when a later one has begun
	finished bool
}

func (w *worked) begin() { w.stale = make(map[uint64]bool) }

func (w *worked) ending(l Line) { w.stale[l.Op] = l.N < w.last }

// finished is an end of a claimed task that was accepted.
func (b *Book) finished(c Line) {
	w := at(b.work, c.On)
	switch {
	case w.stale[c.Op] && !b.Several:
		b.find(broken("J8", "the end of attempt %d of task %s was accepted, and attempt %d had begun before", c.N, c.On, w.last))
	case w.finished:
		b.find(doubled("W2", "task %s was ended twice", c.On))
	}
	w.finished = true
}

func (b *Book) effect(l Line) {
	switch l.Verb {
	case Alarm:
		b.fired(l)
	case Run:
		b.ran(l)
	case Flush:
		b.flushed(l)
	case Dead:
		b.told[l.On] = true
	case Work:
		b.began(l)
	}
}

// began is an attempt of a task. Tasks of one order key begin in the order of
// their numbers, and none begins while an earlier one has not ended.
func (b *Book) began(l Line) {
	w := at(b.work, l.On)
	w.attempts++
	w.last = max(w.last, l.N)
	if w.attempts > 1 && (w.key != l.Key || w.name != l.IDs[0]) {
		b.find(broken("J8", "task %s has had the names %q and %q, and the keys %q and %q", l.On, w.name, l.IDs[0], w.key, l.Key))
	}
	w.name, w.key = l.IDs[0], l.Key
	if l.Text == "" {
		return
	}
	partition, number := splitTask(l.On)
	chain := partition + " " + l.Text
	if number < b.chains[chain] && !b.Several {
		b.find(broken("W3", "task %s began again after task %s-%d of the same key", l.On, partition, b.chains[chain]))
	}
	b.chains[chain] = max(b.chains[chain], number)
}

func splitTask(id string) (partition string, number uint64) {
	partition, n, _ := strings.Cut(id, "-")
	number, _ = strconv.ParseUint(n, 10, 64)
	return partition, number
}

func (c *check) tasks() {
	ids := make(map[string]string) // by name
	pools := make(map[string]Pool) // counted from the tasks; Pending has those that run too
	for id, task := range c.stored.Tasks {
		c.task(id, task)
		if other, ok := ids[task.Name]; ok {
			c.doubled("W8", "tasks %s and %s are both %q", id, other, task.Name)
		}
		ids[task.Name] = id
		partition, _ := splitTask(id)
		p := pools[partition]
		p.count(task.State)
		pools[partition] = p
	}
	c.accepted(ids)
	union(pools, c.stored.Pools, func(name string) {
		p, counted := c.stored.Pools[name], pools[name]
		if p.Submitted != p.Pending+p.Running+p.Done+p.Dead+p.Cancelled {
			c.broken("W1", "partition %s counts %+v", name, p)
		}
		if got := (Pool{p.Submitted, p.Pending + p.Running, 0, p.Done, p.Dead, p.Cancelled}); got != counted {
			c.broken("W1", "partition %s counts %+v, pending and running together; its tasks are %+v", name, got, counted)
		}
	})
}

func (p *Pool) count(state string) {
	p.Submitted++
	switch state {
	case StateQueued:
		p.Pending++
	case StateDone:
		p.Done++
	case StateDead:
		p.Dead++
	case StateCancelled:
		p.Cancelled++
	}
}

// task checks one that is stored.
func (c *check) task(id string, task Task) {
	w := c.work[id]
	if w != nil && w.finished && task.State != StateDone {
		c.lost("W2", 1, "the end of task %s was accepted, and it is %s", id, task.State)
	}
	switch task.State {
	case StateDone:
		if w == nil {
			c.broken("W2", "task %s is done, and has left no effect", id)
			return
		}
		c.tallied("O7", "task "+id, w.key)
	case StateDead:
		if w == nil {
			c.broken("W2", "task %s is dead, and has left no effect", id)
		} else if c.end && !c.told[id] {
			c.broken("W6", "task %s is dead, and OnDead was not told", id)
		}
	case StateCancelled:
		c.broken("W2", "task %s is cancelled, but no caller has asked for it", id)
	case StateQueued:
		if c.end {
			c.broken("W2", "task %s has not ended", id)
		}
	default:
		c.broken("W2", "task %s is %q", id, task.State)
	}
}

// accepted checks that each task that was accepted is stored under its id, and
// that there are no others.
func (c *check) accepted(ids map[string]string) {
	for _, k := range c.keyed {
		if k.first.Verb != Enqueue {
			continue
		}
		id, ok := ids[k.first.Key]
		delete(ids, k.first.Key)
		switch {
		case k.acked && !ok:
			c.lost("W2", 1, "task %q was accepted as %s, and is not stored", k.first.Key, k.answerK)
		case k.acked && id != k.answerK:
			c.broken("W8", "task %q was accepted as %s, and is stored as %s", k.first.Key, k.answerK, id)
		case ok && k.asked == 0:
			c.broken("O6", "task %s is stored, and each call for %q was refused", id, k.first.Key)
		}
	}
	for name, id := range ids {
		c.broken("O6", "task %s is stored as %q, but was never submitted", id, name)
	}
	for id := range c.work {
		if _, ok := c.stored.Tasks[id]; !ok {
			c.lost("O7", 1, "task %s has begun, and is not stored", id)
		}
	}
}
