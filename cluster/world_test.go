package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-dev/holdfast/cluster"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/pebblestore"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/memlog"
)

// counter counts its calls.
type counter struct {
	state *object.State
	n     int
}

var (
	counters = object.Define("counter", func(ctx context.Context, s *object.State) (*counter, error) {
		c := &counter{state: s}
		_, err := s.Storage().GetInto(ctx, "n", &c.n)
		return c, err
	})
	add = object.Handle(counters, "add", func(c *counter, ctx context.Context, by int) (int, error) {
		c.n += by
		return c.n, c.state.Storage().Put(ctx, "n", c.n)
	})
)

// world is a cluster in one process: a log in memory, and nodes that reach it over links.
type world struct {
	t     *testing.T
	log   *memlog.Log
	seed  uint64
	mu    sync.Mutex // guards nodes
	nodes map[string]*machine
}

// machine is a machine of the world: a disk, a clock, and one process after the other.
type machine struct {
	w     *world
	id    string
	clock *skewed
	edit  func(*cluster.Options)
	probe seam.Probe // of the next process
	disk  *vfs.MemFS // of the next process

	process atomic.Pointer[process] // the one that runs; nil: none does
}

// process is one life of a node.
type process struct {
	link *link
	disk *vfs.MemFS
	node *cluster.Node
	up   atomic.Bool // it listens

	death sync.Once
	died  chan struct{} // closed by die
	image *vfs.MemFS    // what the disk had then
}

// die ends the process as kill -9 does: none of its calls of the log is made or answered from now on, its address refuses, and the disk has what
// was synced. It may be called by a goroutine of the node itself.
func (p *process) die() {
	p.death.Do(func() {
		p.link.kill()
		p.up.Store(false)
		p.image = p.disk.CrashClone(vfs.CrashCloneCfg{})
		close(p.died)
	})
}

// dead reports whether the process has died.
func (p *process) dead() bool {
	select {
	case <-p.died:
		return true
	default:
		return false
	}
}

// node is the node that runs on the machine, or the last one that did.
func (m *machine) node() *cluster.Node { return m.process.Load().node }

// link is the way of that node to the log.
func (m *machine) link() *link { return m.process.Load().link }

// skewed is a clock that is off.
type skewed struct{ by atomic.Int64 }

func (c *skewed) Now() time.Time    { return time.Now().Round(0).Add(time.Duration(c.by.Load())) }
func (c *skewed) Steady() time.Time { return time.Now() }
func (c *skewed) AfterFunc(d time.Duration, f func()) seam.Timer {
	return time.AfterFunc(d, f)
}

// bubble runs a test in a world of its own, on virtual time.
func bubble(t *testing.T, f func(*testing.T, *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		log := memlog.New()
		log.SetClock(time.Now)
		w := &world{t: t, log: log, seed: 1, nodes: map[string]*machine{}}
		defer w.end()
		f(t, w)
	})
}

// end ends all nodes.
func (w *world) end() {
	var all sync.WaitGroup
	for _, m := range w.nodes {
		if p := m.process.Load(); p != nil {
			p.link.set(whole)
			all.Go(func() { _ = p.node.Close() })
		}
	}
	all.Wait()
}

// machine makes a machine without a process.
func (w *world) machine(id string) *machine {
	m := &machine{w: w, id: id, disk: vfs.NewCrashableMem(), clock: new(skewed)}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.nodes[id] = m
	return m
}

// options are those of the next process of the machine, over a link.
func (m *machine) options(l *link) cluster.Options {
	o := cluster.Options{
		Log: l, ID: m.id, Addr: m.id + ":1", Dir: "/" + m.id, Logger: slog.New(slog.DiscardHandler),
		Storage: storage.Options{MinFreeBytes: -1, Pebble: pebblestore.Options{FS: m.disk, CacheBytes: 1 << 20, MemTableBytes: 256 << 10}},
		Seams:   seam.Seams{Clock: m.clock, Probe: m.probe},
		Dial:    m.w.dial,
	}
	if m.edit != nil {
		m.edit(&o)
	}
	return o
}

// newLink is a way to the log of the world.
func (w *world) newLink() *link {
	w.seed++
	return newLink(w.log, w.seed)
}

// dial connects to a machine.
func (w *world) dial(_ context.Context, addr string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, m := range w.nodes {
		if p := m.process.Load(); addr == id+":1" && p != nil && p.up.Load() {
			return nil
		}
	}
	return fmt.Errorf("%s: %w", addr, syscall.ECONNREFUSED)
}

// join starts a process, which must join.
func (m *machine) join() *cluster.Node {
	m.w.t.Helper()
	p, err := m.tryJoin()
	if err != nil {
		m.w.t.Fatalf("node %s: %v", m.id, err)
	}
	return p.node
}

// tryJoin starts a process. If that cannot join, the machine is left without one.
func (m *machine) tryJoin() (*process, error) {
	p := &process{link: m.w.newLink(), disk: m.disk, died: make(chan struct{})}
	if probe, ok := m.probe.(interface{ of(*process) }); ok {
		probe.of(p)
	}
	n, err := cluster.Join(m.w.t.Context(), m.options(p.link), counters)
	if err != nil {
		return p, err
	}
	p.node = n
	p.up.Store(true)
	m.process.Store(p)
	return p, nil
}

// start makes machines that run a node each, and waits until the first of them serves.
func (w *world) start(ids ...string) map[string]*machine {
	w.t.Helper()
	for i, id := range ids {
		m := w.machine(id)
		m.join()
		if i == 0 {
			m.serves()
		}
	}
	time.Sleep(2 * time.Second) // the others look at the first
	return w.nodes
}

// serves waits until the node serves, for a minute at most, and returns how long that took.
func (m *machine) serves() time.Duration {
	m.w.t.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(m.w.t.Context(), time.Minute)
	defer cancel()
	if _, err := m.node().Serving(ctx); err != nil {
		m.w.t.Fatalf("node %s does not serve: %v", m.id, err)
	}
	return time.Since(began)
}

// kill ends the process, and waits until nothing of it is left in memory.
func (m *machine) kill() {
	p := m.process.Load()
	p.die()
	m.process.Store(nil)
	m.disk = p.image
	_ = p.node.Close() // it has lost the log and its disk
}

// active returns the machines that serve and have not died.
func (w *world) active() (found []*machine) {
	for _, m := range w.nodes {
		p := m.process.Load()
		if p == nil {
			continue
		}
		if _, ok := p.node.Active(); ok && !p.dead() {
			found = append(found, m)
		}
	}
	return found
}

// until waits for an event, for a minute at most.
func (w *world) until(event string, happens func() bool) {
	w.t.Helper()
	w.within(event, time.Minute, happens)
}

// within waits for an event, for so long at most.
func (w *world) within(event string, most time.Duration, happens func() bool) {
	w.t.Helper()
	for began := time.Now(); !happens(); time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > most {
			w.t.Fatalf("in %v it does not happen that %s", most, event)
		}
	}
}

// head is the head of the log.
func (w *world) head() shardlog.State {
	w.t.Helper()
	s, err := w.log.Head(w.t.Context(), 0)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// add makes a call that must succeed, and returns its answer.
func (m *machine) add(name string) int {
	m.w.t.Helper()
	n, err := add.Call(m.w.t.Context(), m.node(), name, 1)
	if err != nil {
		m.w.t.Fatalf("a call at node %s: %v", m.id, err)
	}
	return n
}

// mustBeMoved fails unless a call at the node is refused with the address of another.
func (m *machine) mustBeMoved(owner string) {
	m.w.t.Helper()
	_, err := add.Call(m.w.t.Context(), m.node(), "x", 1)
	var moved *cluster.ErrMoved
	if !errors.As(err, &moved) || moved.Owner != owner || moved.Addr != owner+":1" {
		m.w.t.Errorf("a call at node %s: %v, want a move to %s", m.id, err, owner)
	}
}
