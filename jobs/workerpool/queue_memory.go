package workerpool

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/object"
)

// line is a queue: its weight, its virtual time, and the first of its ready
// tasks.
type line struct {
	name   string
	weight uint64 // from 1 to maxWeight
	pass   uint64 // virtual time: the number of tasks begun, divided by the weight
	window window

	// head and since cache the ready time of the first task. Without them each
	// turn would read the row of a first task that is too large to stay in
	// memory: with tasks of 1 KiB, an Enqueue costs 30 µs with them and 36 µs
	// without.
	head  place // place of the task that since belongs to
	since int64 // when that task became ready, in nanoseconds; 0: its row could not be read
}

// stride is the virtual time that one task costs a queue of weight 1. A queue
// of weight w pays stride / w.
const stride = maxWeight * 1000

// lines shares the workers among queues by weight (stride scheduling): the next
// task comes from the queue with the least virtual time. A queue that always
// has ready tasks gets at least n × weight / sum of weights of n tasks, less
// one for each queue. So no queue starves.
type lines struct {
	all  []*line // sorted by name
	pass uint64  // virtual time of the last pick; an empty queue that gets a task continues from here, so it cannot save up
}

// find returns the queue of that name, or nil.
func (ls *lines) find(name string) *line {
	for _, l := range ls.all {
		if l.name == name {
			return l
		}
	}
	return nil
}

// named returns the queue of that name. It adds a missing one with weight 1,
// because tasks may be stored in a queue that Config.Queues does not name any
// more.
func (ls *lines) named(name string) *line {
	l := ls.find(name)
	if l == nil {
		l = &line{name: name, weight: 1, pass: ls.pass, window: newWindow(windowMax)}
		i, _ := slices.BinarySearchFunc(ls.all, name, func(l *line, name string) int { return strings.Compare(l.name, name) })
		ls.all = slices.Insert(ls.all, i, l)
	}
	return l
}

// add adds a task to a queue. It reports whether the entry stays in memory; if
// not, the caller must store its row.
func (ls *lines) add(l *line, e entry) bool {
	if _, ok := l.window.first(); !ok {
		l.pass = max(l.pass, ls.pass)
	}
	return l.window.add(e)
}

// next returns the queue that the next task comes from, or nil if no queue has
// a task in memory.
func (ls *lines) next() *line {
	var best *line
	for _, l := range ls.all {
		if _, ok := l.window.first(); ok && (best == nil || l.pass < best.pass) {
			best = l
		}
	}
	return best
}

// take removes the first task of l and charges l for it.
func (ls *lines) take(l *line) {
	l.window.pop()
	l.head = place{} // a retried task may return to this place with another ready time
	ls.pass = l.pass
	l.pass += stride / l.weight
}

// place is a position in an ordered set of pending tasks. In a queue, major is
// the inverted priority; among tasks that wait for a time, major is that time.
type place struct{ major, order uint64 }

// compare orders places by major and then by order.
func (p place) compare(q place) int {
	if c := cmp.Compare(p.major, q.major); c != 0 {
		return c
	}
	return cmp.Compare(p.order, q.order)
}

// entry is a pending task at its place in a window.
type entry struct {
	place
	num   uint64
	fresh bool // became ready in this turn; its ready row is not stored yet
	alone bool // read-ahead has tried this entry once; read its row by itself
	row   *row // the task, if it is in memory
}

// keepBytes is the largest input of a task whose row stays in memory with its
// entry. It bounds the rows of a full window to about 4 MiB of inputs. A task
// of a backlog costs 14 µs with its row in memory and 20 µs if the row is read
// again.
const keepBytes = 512

const (
	// windowMax bounds the entries of a window between turns. A task that fits
	// needs no second read of its index row: with 1,024 entries, a task of a
	// backlog cost an eighth more processor time (28–31 µs instead of 25–26
	// µs).
	windowMax = 8192
	// loadMax bounds the entries that one turn loads, because other calls of
	// the partition wait for the turn.
	loadMax = 1024
)

// window holds the first entries of an ordered set of tasks. The other entries
// are only in storage, so memory stays bounded however many tasks are stored.
//
//	entries in memory ≤ edge < entries only in storage, if more
type window struct {
	entries []entry // sorted by place
	more    bool    // storage may have entries after edge
	edge    place
	max     int
}

// newWindow returns a window that has not been loaded yet.
func newWindow(max int) window { return window{more: true, max: max} }

// search finds p among the entries, or the index where it belongs.
func (w *window) search(p place) (int, bool) {
	if n := len(w.entries); n > 0 && w.entries[n-1].compare(p) < 0 {
		return n, false // the usual case: a new task goes to the end
	}
	return slices.BinarySearchFunc(w.entries, p, func(e entry, p place) int { return e.compare(p) })
}

// add puts an entry in the window. It reports false for an entry after edge,
// which the caller must store.
func (w *window) add(e entry) bool {
	if w.more && e.compare(w.edge) > 0 {
		return false
	}
	i, found := w.search(e.place)
	if !found {
		w.entries = slices.Insert(w.entries, i, e)
	}
	return true
}

// first returns the first entry, or false if none is in memory.
func (w *window) first() (entry, bool) {
	if len(w.entries) == 0 {
		return entry{}, false
	}
	return w.entries[0], true
}

// pop removes the first entry.
func (w *window) pop() { w.entries = w.entries[1:] }

// evict removes the entry at p if it is in memory.
func (w *window) evict(p place) {
	switch i, found := w.search(p); {
	case found && i == 0:
		w.pop() // the usual case of a Discard
	case found:
		w.entries = slices.Delete(w.entries, i, i+1)
	}
}

// trim removes the last entries of a window with more than max. They must be in
// storage, so none may be fresh.
func (w *window) trim() {
	if len(w.entries) <= w.max {
		return
	}
	w.entries = w.entries[:w.max]
	w.more, w.edge = true, w.entries[w.max-1].place
}

// wants reports whether the window is empty and storage may have entries for
// it.
func (w *window) wants() bool { return w.more && len(w.entries) == 0 }

// loads is how many stored entries load expects at most.
func (w *window) loads() int { return min(w.max, loadMax) }

// load appends entries that were read from storage after edge. Fewer than loads
// mean that storage has no more.
func (w *window) load(es []entry) {
	w.entries = append(w.entries, es...)
	w.more = len(es) >= w.loads()
	if w.more {
		w.edge = es[len(es)-1].place
	}
}

// fill loads the next stored entries into each window that is empty, also those
// of dead letters and of the calls for them.
func (p *partition) fill(ctx context.Context) error {
	for _, l := range p.lines.all {
		if err := p.fillLine(ctx, l); err != nil {
			return err
		}
	}
	if err := p.fillWaits(ctx); err != nil {
		return err
	}
	if err := p.fillLetters(ctx); err != nil {
		return err
	}
	return p.fillCalls(ctx)
}

// fillLine is fill for one queue.
func (p *partition) fillLine(ctx context.Context, l *line) error {
	if !l.window.wants() {
		return nil
	}
	return p.fillWindow(ctx, &l.window, linePrefix(l.name))
}

// fillWaits is fill for the tasks that wait for a time.
func (p *partition) fillWaits(ctx context.Context) error {
	if !p.waits.wants() {
		return nil
	}
	return p.fillWindow(ctx, &p.waits, []byte(waitPrefix))
}

// fillWindow loads the stored entries after w.edge, under the given prefix.
func (p *partition) fillWindow(ctx context.Context, w *window, prefix []byte) error {
	o := object.ListOptions{Prefix: string(prefix), Limit: w.loads()}
	if w.edge != (place{}) {
		o.StartAfter = placed(prefix, w.edge)
	}
	var es []entry
	for item, err := range p.st.Storage().List(ctx, o) {
		if err != nil {
			return err
		}
		at, err := placeOf(item.Key)
		if err != nil {
			return err
		}
		num, err := decodeNumber(item.Value)
		if err != nil {
			return err
		}
		es = append(es, entry{place: at, num: num})
	}
	w.load(es)
	return nil
}

// Read-ahead: a window keeps the row of a task in memory only if the row is
// small and recent. The other rows are read when their task is due to begin.
// Tasks that follow one another in a queue were usually submitted one after
// another, so that their rows are neighbours in the store and one range read
// gets many of them.

const (
	aheadMax   = 64       // rows that one range read may ask for
	aheadMin   = 8        // with fewer rows, single reads cost less than an iterator
	aheadSpan  = 128      // how many task numbers the range covers
	aheadBytes = 64 << 10 // the range read ends after this many bytes of rows
)

// firstRow returns the row of the first entry of w: from memory, by a range
// read together with its neighbours, or by a single read. w must not be empty.
func (p *partition) firstRow(ctx context.Context, w *window) (*row, error) {
	e := &w.entries[0]
	if e.row == nil && !e.alone {
		if err := p.readAhead(ctx, w); err != nil {
			return nil, err
		}
	}
	if e.row != nil {
		return e.row, nil
	}
	return p.mustTask(ctx, e.num)
}

// readAhead reads the row of the first entry of w together with those of the
// next aheadMax entries whose numbers are close to its own. It does nothing if
// fewer than aheadMin rows are missing, and it keeps no row with an input above
// keepBytes, because a window of large inputs would fill the memory. A task of
// a backlog of 250,000 costs 27 µs with it and 30 µs without.
//
// Each entry is tried once: entry.alone is set before the read, so that a row
// which was too large or too far away is later read by itself.
func (p *partition) readAhead(ctx context.Context, w *window) error {
	first := w.entries[0].num
	near := w.entries[:min(len(w.entries), aheadMax)]
	wanted := make(map[uint64]*entry, len(near))
	for i := range near {
		if e := &near[i]; e.row == nil && !e.alone && e.num-first < aheadSpan {
			e.alone, wanted[e.num] = true, e
		}
	}
	if len(wanted) < aheadMin {
		return nil
	}
	bytes := 0
	o := object.ListOptions{Start: taskKey(first), End: taskKey(first + aheadSpan)}
	for item, err := range p.st.Storage().List(ctx, o) {
		if err != nil {
			return err
		}
		num, err := numberOf(item.Key)
		if err != nil {
			return err
		}
		if bytes += len(item.Value); bytes > aheadBytes {
			break
		}
		if e := wanted[num]; e != nil {
			r, err := decodeRow(num, item.Value)
			if err != nil {
				return err
			}
			if len(r.input) <= keepBytes {
				e.row = r
			}
		}
	}
	return nil
}

// publish passes the counts of the partition to the host's metrics.
func (p *partition) publish(ctx context.Context) {
	p.backlog.Set(object.Tasks{Pending: p.pending, Running: p.running, Dead: p.dead, ReadySince: p.readySince(ctx)})
}

// readySince is when the oldest first task of any queue became ready, in
// nanoseconds since 1970. If no task is ready, it is when the first waiting
// task will be; 0 if there is neither.
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

// headSince is when the first task of a queue became ready; 0 if the queue is
// empty or the row cannot be read, because a metric is no reason to fail the
// turn.
//
// The answer is kept in line.since until another task is first. Otherwise each
// turn would read the row of a first task that is too large to stay in memory.
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

// since is when the task became ready, in nanoseconds: the latest of its
// submission, its delay, its retry and its replay.
func (r *row) since() int64 {
	return max(r.enqueued, r.notBefore, alarm.Nanos(r.rare.Run.Scheduled))
}
