package object

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/storage"
)

// OpenExecution stores the object's open-execution mark with data of the
// caller's, in the turn's batch. While the mark is stored, each opening of the
// store activates the object by itself (R1), and its constructor sees what was
// left open. An object has one mark; a second call replaces it.
func (s *State) OpenExecution(ctx context.Context, data []byte) error {
	t, err := s.turn(ctx)
	if err != nil {
		return err
	}
	m := openMark{epoch: s.Epoch(), at: s.Now(), id: s.act.id, data: data}
	mark := encodeOpenMark(m)
	if err := s.storage.check(t, len(mark), "", data); err != nil {
		return err
	}
	t.write().SetOpen(*t.object, mark)
	t.writes.open = openSet
	return nil
}

// CloseExecution removes the object's open-execution mark, if it has one.
func (s *State) CloseExecution(ctx context.Context) error {
	t, err := s.turn(ctx)
	if err != nil {
		return err
	}
	if t.object.Number == 0 {
		return nil
	}
	t.write().ClearOpen(*t.object)
	t.writes.open, t.writes.removes = openCleared, true
	return nil
}

// openMark is the value of an open-execution mark.
type openMark struct {
	epoch uint64    // of the opening that wrote it
	at    time.Time // when
	id    storage.ID
	data  []byte
}

func encodeOpenMark(m openMark) []byte {
	b := []byte{1}
	b = binary.AppendUvarint(b, m.epoch)
	b = binary.AppendVarint(b, m.at.UnixNano())
	for _, f := range []string{m.id.Class, m.id.Name} {
		b = binary.AppendUvarint(b, uint64(len(f)))
		b = append(b, f...)
	}
	return append(b, m.data...)
}

func decodeOpenMark(b []byte) (m openMark, err error) {
	bad := fmt.Errorf("%w: open-execution mark %x", storage.ErrCorrupt, b)
	if len(b) < 1 || b[0] != 1 {
		return m, bad
	}
	rest := b[1:]
	var n int
	if m.epoch, n = binary.Uvarint(rest); n <= 0 {
		return m, bad
	}
	rest = rest[n:]
	at, n := binary.Varint(rest)
	if n <= 0 {
		return m, bad
	}
	m.at, rest = time.Unix(0, at), rest[n:]
	for _, f := range []*string{&m.id.Class, &m.id.Name} {
		size, n := binary.Uvarint(rest)
		if n <= 0 || size > uint64(len(rest)-n) {
			return m, bad
		}
		*f, rest = string(rest[n:n+int(size)]), rest[n+int(size):]
	}
	m.data = slices.Clone(rest)
	return m, nil
}

// recoverOpen activates each object that an earlier process left with an open
// execution, a bounded number at a time. Its constructor does the rest. What an
// object costs here is one row read; objects without an execution cost nothing.
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
		if h.life.enter(false) != nil {
			return nil
		}
		h.seams.Executor.Go("recovery", func() {
			defer h.life.leave()
			for id, ok := queue.next(); ok && !h.life.closing.Load(); id, ok = queue.next() {
				h.wake(id)
			}
		})
	}
	return nil
}

// Wake takes an object out of memory, if it is idle there, and activates it by an
// empty turn, so that its constructor looks at what is stored. It returns the
// constructor's error, and returns when what it wrote is durable.
func (h *Host) Wake(ctx context.Context, id storage.ID) error {
	c, err := h.runnable(ctx, id)
	if err != nil {
		return err
	}
	if err := h.life.enter(false); err != nil {
		return named(id, err)
	}
	defer h.life.leave()
	if a, ok := c.live.Load(id.Name); ok {
		a.evict()
	}
	return h.outside(ctx, c, wakeUp(id))
}

func wakeUp(id storage.ID) *Request {
	return &Request{id: id, exempt: true, op: funcOp(func(context.Context, *activation) error { return nil })}
}

// wake activates an object that was left with an open execution.
func (h *Host) wake(id storage.ID) {
	if h.seams.Probe != nil {
		h.seams.At("wake", id.String())
	}
	if err := h.hosted[id.Class].deliver(context.Background(), wakeUp(id)); err != nil {
		h.options.Logger.Error("recovery: object does not activate", "class", id.Class, "object", id.Name, "error", err)
	}
}

type wakeQueue struct {
	mu  sync.Mutex
	ids []storage.ID
}

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
	At      time.Time     `json:"at"`                // when it was found; set by Recovered
	Task    string        `json:"task,omitempty"`    // of the object, which is concerned; empty: the object itself
	Cause   string        `json:"cause"`             // such as "process died"
	Age     time.Duration `json:"age"`               // how long ago what was cut off had begun, in nanoseconds
	Attempt int           `json:"attempt"`           // recoveries of it so far, this one included
	Action  string        `json:"action"`            // what follows
	GivenUp bool          `json:"givenUp,omitempty"` // it is not tried again; the line of the log that says so tells its error
}

// Recovered adds a line to the host's recovery report, once the turn commits.
func (s *State) Recovered(ctx context.Context, r Recovery) error {
	t, err := s.turn(ctx)
	if err != nil {
		return err
	}
	h := s.act.hosted.host
	r.ID, r.At = s.act.id, s.Now()
	t.then(func(storage.Ticket) {
		h.metrics.recoveries.WithLabelValues(r.Cause).Inc()
		h.report.add(r)
		if !r.GivenUp {
			s.Log().Info("recovered", r.attributes()...)
		}
	})
	return nil
}

// attributes are what a log line tells of r, beside the object.
func (r Recovery) attributes() []any {
	args := []any{"cause", r.Cause, "age", r.Age, "attempt", r.Attempt, "action", r.Action}
	if r.Task != "" {
		args = append(args, "task", r.Task)
	}
	return args
}

// report keeps the last recoveries of a host, as a ring: line n, counted from 0, is
// at n modulo reportMax.
type report struct {
	mu    sync.Mutex
	lines []Recovery
	total int
}

// reportMax bounds the lines kept.
const reportMax = 10_000

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

// last returns the lines that are kept, in the order of their coming.
func (p *report) last() (lines []Recovery, total int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	oldest := 0
	if len(p.lines) == reportMax {
		oldest = p.total % reportMax
	}
	return slices.Concat(p.lines[oldest:], p.lines[:oldest]), p.total
}

// Recoveries returns what the host has recovered since Open, in order: the last
// 10,000 lines, and how many there were in all.
func (h *Host) Recoveries() (lines []Recovery, total int) {
	return h.report.last()
}
