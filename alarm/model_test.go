package alarm

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// model is a host with a sorted index, driven at random. Commits change the
// index at once; the scheduler learns of each some time later, in order.
type model struct {
	t     *rapid.T
	w     *world
	x     *index
	s     *Scheduler
	cfg   Config
	gen   uint64
	off   map[int]bool
	fired []Entry  // in flight
	late  []notice // commits that have not been reported
}

type notice struct {
	entry Entry
	clear bool
}

const modelObjects = 24

func newModel(t *rapid.T) *model {
	m := &model{t: t, w: newWorld(), x: newIndex(), off: make(map[int]bool)}
	m.cfg = Config{
		Seams:     m.w.seams(),
		Shards:    rapid.IntRange(1, 3).Draw(t, "shards"),
		InFlight:  rapid.IntRange(1, 6).Draw(t, "inFlight"),
		LookAhead: rapid.IntRange(1, 6).Draw(t, "lookAhead"),
		Batch:     rapid.IntRange(1, 4).Draw(t, "batch"),
		Source:    m.x,
		Fire:      m.fire,
		OnError:   func(err error) { t.Fatal(err) },
	}
	m.x.during = m.meanwhile
	m.boot()
	return m
}

func (m *model) boot() {
	var err error
	if m.s, err = NewScheduler(m.cfg); err != nil {
		m.t.Fatal(err)
	}
	m.s.Start()
}

// fire is the host's: it checks the promises about each fired entry.
func (m *model) fire(batch []Entry) {
	if len(batch) > m.cfg.Batch {
		m.t.Fatalf("batch of %d", len(batch))
	}
	for _, e := range batch {
		if e.Due.After(m.w.Now()) {
			m.t.Fatalf("%v fired early, at %v", e, m.w.Now())
		}
		if m.off[e.Shard] {
			m.t.Fatalf("%v fired in a stopped shard", e)
		}
		if m.inFlight(e.Shard, e.Object) >= 0 {
			m.t.Fatalf("%v fired while in flight", e)
		}
		if row, ok := m.x.get(e.Shard, e.Object); (!ok || row != e) && !m.unreported(e) {
			m.t.Fatalf("%v fired, stored is %v", e, row)
		}
		m.fired = append(m.fired, e)
	}
	if len(m.fired) > m.cfg.InFlight {
		m.t.Fatalf("%d in flight", len(m.fired))
	}
	m.meanwhile()
}

// meanwhile plays the other tasks during a Fire or a Scan.
func (m *model) meanwhile() {
	for range rapid.IntRange(0, 2).Draw(m.t, "meanwhile") {
		switch rapid.IntRange(0, 4).Draw(m.t, "what") {
		case 0:
			m.set()
		case 1:
			m.clear()
		case 2:
			m.report(1)
		case 3:
			m.finish()
		case 4:
			m.toggle()
		}
	}
}

// toggle stops or starts a shard.
func (m *model) toggle() {
	shard := rapid.IntRange(0, m.cfg.Shards-1).Draw(m.t, "shard")
	if m.off[shard] = !m.off[shard]; m.off[shard] {
		m.s.StopShard(shard)
	} else {
		m.s.StartShard(shard)
	}
}

func (m *model) inFlight(shard int, object uint64) int {
	return slices.IndexFunc(m.fired, func(e Entry) bool { return e.Shard == shard && e.Object == object })
}

func (m *model) unreported(e Entry) bool {
	return slices.ContainsFunc(m.late, func(n notice) bool {
		return n.entry.Shard == e.Shard && n.entry.Object == e.Object
	})
}

func (m *model) object() (int, uint64) {
	o := rapid.Uint64Range(0, modelObjects-1).Draw(m.t, "object")
	return int(o) % m.cfg.Shards, o
}

func (m *model) due() time.Time {
	return m.w.Now().Add(time.Duration(rapid.IntRange(-5, 20).Draw(m.t, "due")) * time.Second)
}

func (m *model) commitSet(shard int, object uint64, due time.Time) {
	m.gen++
	e := Entry{Due: due, Shard: shard, Object: object, Gen: m.gen, Class: fmt.Sprint("c", object%2)}
	m.x.put(e)
	m.late = append(m.late, notice{entry: e})
}

func (m *model) commitClear(shard int, object uint64) {
	m.x.delete(shard, object)
	m.late = append(m.late, notice{entry: Entry{Shard: shard, Object: object}, clear: true})
}

func (m *model) set() {
	shard, object := m.object()
	m.commitSet(shard, object, m.due())
}

func (m *model) clear() { m.commitClear(m.object()) }

// report tells the scheduler of the first n commits.
func (m *model) report(n int) {
	for ; n > 0 && len(m.late) > 0; n-- {
		next := m.late[0]
		m.late = m.late[1:]
		if next.clear {
			m.s.Clear(next.entry.Shard, next.entry.Object)
		} else {
			m.s.Set(next.entry)
		}
	}
}

// finish returns an entry in flight, or ends its turn: it handles the alarm if
// that is still the stored one, and otherwise leaves it alone.
func (m *model) finish() {
	if len(m.fired) == 0 {
		return
	}
	i := rapid.IntRange(0, len(m.fired)-1).Draw(m.t, "finish")
	e := m.fired[i]
	if rapid.IntRange(0, 4).Draw(m.t, "return") == 0 {
		m.fired = slices.Delete(m.fired, i, i+1)
		m.s.Return(e)
		return
	}
	if row, ok := m.x.get(e.Shard, e.Object); ok && row.Gen == e.Gen {
		switch rapid.IntRange(0, 2).Draw(m.t, "handled") {
		case 0:
			m.commitClear(e.Shard, e.Object)
		case 1:
			m.commitSet(e.Shard, e.Object, e.Due)
		case 2:
			m.commitSet(e.Shard, e.Object, m.due())
		}
	}
	m.done(i)
}

func (m *model) done(i int) {
	e := m.fired[i]
	m.report(len(m.late))
	m.fired = slices.Delete(m.fired, i, i+1)
	m.s.Done(e)
}

// settled checks the model when no task is left to run.
func (m *model) settled() {
	for m.report(len(m.late)); len(m.w.tasks) > 0; m.report(len(m.late)) {
		m.w.run()
	}
	st := m.s.Stats()
	if st.InFlight != len(m.fired) {
		m.t.Fatalf("%d in flight, should be %d", st.InFlight, len(m.fired))
	}
	if st.Held > m.cfg.Shards*2*m.cfg.LookAhead {
		m.t.Fatalf("%d held", st.Held)
	}
	if len(m.w.timers) > 1 || m.x.len() == 0 && len(m.w.timers) > 0 {
		m.t.Fatalf("%d timers for %d stored", len(m.w.timers), m.x.len())
	}
	if st.InFlight == m.cfg.InFlight {
		return
	}
	for _, e := range m.armed() {
		if !e.Due.After(m.w.Now()) && m.inFlight(e.Shard, e.Object) < 0 {
			m.t.Fatalf("%v is due at %v and not fired; %+v", e, m.w.Now(), st)
		}
	}
}

func (m *model) armed() (all []Entry) {
	for shard := range m.cfg.Shards {
		if !m.off[shard] {
			all = append(all, m.x.rows[shard]...)
		}
	}
	return all
}

// drain lets time pass and handles everything until nothing is armed.
func (m *model) drain() {
	m.x.during = nil
	for range 10_000 {
		m.settled()
		for len(m.fired) > 0 {
			e := m.fired[0]
			if row, ok := m.x.get(e.Shard, e.Object); ok && row.Gen == e.Gen {
				m.commitClear(e.Shard, e.Object)
			}
			m.done(0)
		}
		if len(m.armed()) == 0 {
			return
		}
		m.w.advance(time.Second)
	}
	m.t.Fatalf("never fired: %v", m.armed())
}

// A3, A9: with any sequence of commits, reports, restarts and jumps of the
// clock, entries fire when due, never early, none is lost, memory is bounded.
func TestModelA3A9(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t)
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				m.t = t
				m.settled()
			},
			"set":    func(*rapid.T) { m.set() },
			"clear":  func(*rapid.T) { m.clear() },
			"report": func(*rapid.T) { m.report(1) },
			"finish": func(*rapid.T) { m.finish() },
			"burst": func(t *rapid.T) {
				for range 12 {
					m.set()
				}
			},
			"advance": func(t *rapid.T) {
				m.w.advance(time.Duration(rapid.IntRange(0, 5000).Draw(t, "ms")) * time.Millisecond)
			},
			"back": func(t *rapid.T) { m.w.jump(-time.Duration(rapid.IntRange(1, 30).Draw(t, "s")) * time.Second) },
			"ahead": func(t *rapid.T) {
				m.w.jump(time.Duration(rapid.IntRange(1, 30).Draw(t, "s")) * time.Second)
				m.w.advance(m.s.cfg.Recheck)
			},
			"restart": func(*rapid.T) {
				m.s.Stop()
				m.late, m.fired = nil, nil
				clear(m.off)
				m.boot()
			},
			"toggle": func(*rapid.T) { m.toggle() },
		})
		m.drain()
		m.s.Stop()
		if len(m.w.timers) > 0 {
			t.Fatalf("%d timers after Stop", len(m.w.timers))
		}
	})
}
