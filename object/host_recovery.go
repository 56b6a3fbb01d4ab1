package object

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/row"
	"github.com/holdfast-dev/holdfast/storage"
)

// recoverOpen activates each object that an earlier process left with an open execution
// (R1), Options.RecoveryConcurrency at a time. The object's constructor does the rest.
// Here an object with an open execution costs the read of one row, and any other object
// costs nothing. Open calls it, and does not wait for the goroutines that it starts.
func (h *Host) recoverOpen() error {
	var ids []storage.ID
	err := h.store.OpenMarks(func(_ int, value []byte) error {
		m, err := decodeOpenMark(value)
		if err == nil && m.epoch != h.Epoch() && h.hosted[m.id.Class] != nil {
			ids = append(ids, m.id)
		}
		return err
	})
	if err != nil || len(ids) == 0 {
		return err
	}
	queue := &wakeQueue{ids: ids}
	for range min(len(ids), h.options.RecoveryConcurrency) {
		if h.lifecycle.enter(false) != nil {
			return nil
		}
		h.seams.Executor.Go("recovery", func() {
			defer h.lifecycle.leave()
			for id, ok := queue.next(); ok && !h.lifecycle.closing.Load(); id, ok = queue.next() {
				h.wake(id)
			}
		})
	}
	return nil
}

// Wake evicts an object, if it is idle in memory, and activates it by an empty turn, so
// that its constructor looks at the stored rows again. It returns the constructor's error.
// It returns when the constructor's commit is durable. It is for code that watches over a
// running host, such as a scrubber; a call of the object wakes it as well. The end of ctx ends the
// wait and not the constructor, as with Detached.
func (h *Host) Wake(ctx context.Context, id storage.ID) error {
	c, err := h.runnable(ctx, id)
	if err != nil {
		return err
	}
	if err := h.lifecycle.enter(false); err != nil {
		return named(id, err)
	}
	defer h.lifecycle.leave()
	if a, ok := liveIn(c).Load(id.Name); ok {
		a.evict()
	}
	r := wakeUp(id)
	r.detached = true
	return h.outside(ctx, c, r)
}

// wakeUp returns a request that does nothing, so that its turn only runs the constructor.
// It is exempt from the limits of the mailbox.
func wakeUp(id storage.ID) *Request {
	return &Request{id: id, exempt: true, op: funcOp(func(context.Context, *activation) error { return nil })}
}

// wake activates an object that was left with an open execution. If the constructor fails,
// wake only logs it, because there is no caller; the mark stays stored, so the next Open
// tries again.
func (h *Host) wake(id storage.ID) {
	if h.seams.Probe != nil {
		h.seams.At("wake", id.String())
	}
	if err := h.hosted[id.Class].deliver(context.Background(), wakeUp(id)); err != nil {
		h.options.Logger.Error("recovery: object does not activate", "class", id.Class, "object", id.Name, "error", err)
	}
}

// wakeQueue holds the objects that are yet to be recovered. The mutex guards the slice,
// because all goroutines of recoverOpen take from it.
type wakeQueue struct {
	mu  sync.Mutex
	ids []storage.ID
}

// next takes the next object; ok is false if none is left.
func (q *wakeQueue) next() (id storage.ID, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.ids) == 0 {
		return id, false
	}
	id, q.ids = q.ids[0], q.ids[1:]
	return id, true
}

// Recovery is one line of a host's recovery report.
type Recovery struct {
	ID      storage.ID    `json:"id"`
	At      time.Time     `json:"at"`                // when the recovery was made; set by Recovered
	Task    string        `json:"task,omitempty"`    // the task of the object that is recovered; empty: the object itself
	Cause   string        `json:"cause"`             // such as "crash"; package recovery has the others
	Age     time.Duration `json:"age"`               // time since the lost execution began, in nanoseconds
	Attempt int           `json:"attempt"`           // recoveries of it so far, this one included
	Action  string        `json:"action"`            // the next step, such as a retry
	GivenUp bool          `json:"givenUp,omitempty"` // it is not tried again; a line of the log has its error
}

// Recovered adds a line to the host's recovery report and to its log once the turn has
// committed, and counts it in the metrics. It sets ID and At. Job types call it.
func (d *Driver) Recovered(ctx context.Context, r Recovery) error {
	t, err := d.state.turn(ctx)
	if err != nil {
		return err
	}
	h := d.state.act.host
	r.ID, r.At = d.state.act.object.ID, d.state.Now()
	t.then(func(storage.Ticket) {
		h.metrics.recovered(r.ID.Class, r.Cause, r.Action)
		if r.Age > 0 {
			h.metrics.stale.WithLabelValues(r.ID.Class).Observe(r.Age.Seconds())
		}
		h.report.add(r)
		if !r.GivenUp {
			d.state.Log().Info("recovered", r.attributes()...)
		}
	})
	return nil
}

// attributes returns the attributes of a log line about r, beside those of the object.
func (r Recovery) attributes() []any {
	args := []any{"cause", r.Cause, "age", r.Age, "attempt", r.Attempt, "action", r.Action}
	if r.Task != "" {
		args = append(args, "task", r.Task)
	}
	return args
}

// report keeps the last recoveries of a host, as a ring: line n, counted from 0, is at n
// modulo reportMax. The mutex guards both fields; turns add lines, and callers of
// Recoveries read them.
type report struct {
	mu    sync.Mutex
	lines []Recovery
	total int // lines added since Open
}

// reportMax bounds the lines kept, so that a host which recovers for days does not grow.
const reportMax = 10_000

// add adds a line, in place of the oldest one if the ring is full.
func (p *report) add(r Recovery) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.lines) < reportMax {
		p.lines = append(p.lines, r)
	} else {
		p.lines[p.total%reportMax] = r
	}
	p.total++
}

// last returns a copy of the lines that are kept, the oldest first, and the number of all
// lines.
func (p *report) last() (lines []Recovery, total int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	oldest := 0
	if len(p.lines) == reportMax {
		oldest = p.total % reportMax
	}
	return slices.Concat(p.lines[oldest:], p.lines[:oldest]), p.total
}

// Recoveries returns the recovery report of the host since Open: the last 10,000 lines,
// the oldest first, and how many lines there were in all.
func (h *Host) Recoveries() (lines []Recovery, total int) {
	return h.report.last()
}

// OpenExecution stores the object's open-execution mark in the turn's batch, with data
// for the caller's own use. While the mark is stored, each opening of the store activates
// the object without a call (R1), so that its constructor can recover the execution. An
// object has one mark; a second call replaces it. It returns the size errors of
// Storage.Put.
func (d *Driver) OpenExecution(ctx context.Context, data []byte) error {
	t, err := d.state.turn(ctx)
	if err != nil {
		return err
	}
	m := openMark{epoch: d.Epoch(), at: d.state.Now(), id: d.state.act.object.ID, data: data}
	mark := encodeOpenMark(m)
	if err := d.state.storage.check(t, len(mark), "", data); err != nil {
		return err
	}
	t.write().SetOpenMark(*t.object, mark)
	t.writes.open = openSet
	return nil
}

// CloseExecution removes the object's open-execution mark in the turn's batch. It does
// nothing if there is none.
func (d *Driver) CloseExecution(ctx context.Context) error {
	t, err := d.state.turn(ctx)
	if err != nil {
		return err
	}
	if t.object.Number == 0 {
		return nil
	}
	t.write().DeleteOpenMark(*t.object)
	t.writes.open, t.writes.removes = openCleared, true
	return nil
}

// openMarkVersion is the first byte of an open-execution mark. Another one is an error.
const openMarkVersion = 1

// openMark is the value of an open-execution mark. It has the object's name, because
// recovery finds the marks by number and must know which object to activate.
type openMark struct {
	epoch uint64     // of the opening that wrote it
	at    time.Time  // when it was written
	id    storage.ID // of the object
	data  []byte     // of the caller of OpenExecution
}

// encodeOpenMark returns the row of a mark; FORMAT.md has its form.
func encodeOpenMark(m openMark) []byte {
	w := row.Writer{openMarkVersion}
	w = w.Uint(m.epoch).Int(m.at.UnixNano()).Text(m.id.Class).Text(m.id.Name)
	return append(w, m.data...)
}

// decodeOpenMark reads the row of a mark. It returns ErrCorrupt for a short row or another
// version.
func decodeOpenMark(b []byte) (m openMark, err error) {
	r := row.Read(b)
	version := r.Byte()
	m.epoch, m.at = r.Uint(), time.Unix(0, r.Int())
	m.id.Class, m.id.Name = r.Text(), r.Text()
	if r.Required(); version != openMarkVersion || !r.OK() {
		return openMark{}, fmt.Errorf("%w: open-execution mark %x", storage.ErrCorrupt, b)
	}
	m.data = slices.Clone(r.Rest())
	return m, nil
}

// ExecutionInfo is an execution that is open in the store, as Reader.Executions lists it.
type ExecutionInfo struct {
	ID storage.ID `json:"id"`
	// Since is the time of the commit that opened it, and Epoch the opening of the store in
	// which that was.
	Since time.Time `json:"since"`
	Epoch uint64    `json:"epoch"`
}

// Executions lists up to limit objects with an open execution, sorted by class and name, and
// counts all of them. It reads one row for each of them and no other object. A job that runs
// many executions at a time, such as a partition of a pool, is one of them. A mark that cannot
// be decoded is counted and not listed; with the list the error then names the rows, the first
// ten of them, and wraps storage.ErrCorrupt.
func (r Reader) Executions(ctx context.Context, limit int) (list []ExecutionInfo, total int, err error) {
	const mostErrors = 10
	var damaged []error
	list, err = read(ctx, r, storage.ID{}, func() (all []ExecutionInfo, err error) {
		if err := notNegative("limit", limit); err != nil {
			return nil, fmt.Errorf("object: Executions: %w", err)
		}
		err = r.store.OpenMarks(func(_ int, value []byte) error {
			total++
			m, err := decodeOpenMark(value)
			switch {
			case err == nil:
				all = append(all, ExecutionInfo{m.id, m.at, m.epoch})
			case len(damaged) < mostErrors:
				damaged = append(damaged, err)
			}
			return nil
		})
		return all, err
	})
	if err != nil {
		return nil, 0, err
	}
	slices.SortFunc(list, func(a, b ExecutionInfo) int {
		return cmp.Or(cmp.Compare(a.ID.Class, b.ID.Class), cmp.Compare(a.ID.Name, b.ID.Name))
	})
	return list[:min(limit, len(list))], total, errors.Join(damaged...)
}
