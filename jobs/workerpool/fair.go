package workerpool

import (
	"slices"
	"strings"
)

// line is one queue: its share of the workers and the first of its tasks.
type line struct {
	name   string
	weight uint64 // from 1 to maxWeight
	pass   uint64 // its virtual time: how much it has had, divided by its weight
	window window

	head  place // of the task whose since was looked up last
	since int64 // since when that task is ready, in nanoseconds; 0: not known
}

// stride is what one task of a queue of weight 1 costs.
const stride = maxWeight * 1000

// lines share out turns between queues by weight (stride scheduling): the next
// task is that of the queue which has had the least for its weight. Of n tasks, a
// queue that always has some is given at least n × weight / sum of weights, less
// one for each queue.
type lines struct {
	all  []*line // in the order of their names
	pass uint64  // of the last pick: where a queue that was empty joins in
}

func (ls *lines) find(name string) *line {
	for _, l := range ls.all {
		if l.name == name {
			return l
		}
	}
	return nil
}

// named finds a queue, or adds one with weight 1.
func (ls *lines) named(name string) *line {
	l := ls.find(name)
	if l == nil {
		l = &line{name: name, weight: 1, pass: ls.pass, window: newWindow(windowMax)}
		i, _ := slices.BinarySearchFunc(ls.all, name, func(l *line, name string) int { return strings.Compare(l.name, name) })
		ls.all = slices.Insert(ls.all, i, l)
	}
	return l
}

// add puts a task in a queue. It reports whether the entry is kept in memory; if
// not, it must be stored.
func (ls *lines) add(l *line, e entry) bool {
	if _, ok := l.window.first(); !ok {
		l.pass = max(l.pass, ls.pass)
	}
	return l.window.add(e)
}

// next returns the queue whose turn it is, or nil if there are no tasks in
// memory.
func (ls *lines) next() *line {
	var best *line
	for _, l := range ls.all {
		if _, ok := l.window.first(); ok && (best == nil || l.pass < best.pass) {
			best = l
		}
	}
	return best
}

// take removes the first task of l, and counts it.
func (ls *lines) take(l *line) {
	l.window.dropFirst()
	l.head = place{} // the task may come back to its place, at another time
	ls.pass = l.pass
	l.pass += stride / l.weight
}
