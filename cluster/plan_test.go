package cluster_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-dev/holdfast/cluster"
	"github.com/holdfast-dev/holdfast/internal/testing/prove"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage/memstore"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// A plan is a minute and a half of faults, drawn from a seed, while clients count at the objects of the cluster.
//
//   - Each client has an object of its own. It makes one call after the other, each with a key, at one node after the other until it has the
//     answer. So the answer to its k-th call must be k: one that is lost or counted twice shows at the next.
//   - All clients count at one more object without keys. No two answers may be the same, and the count at the end lies between the
//     calls that were acknowledged and those that may have been.
//   - At the end each disk must hold a view of the log.
type plan struct {
	*world
	random *rand.Rand
	ids    []string
	healed bool // no more faults

	mu    sync.Mutex // guards story
	story []string

	stop         chan struct{}
	acked, asked atomic.Int64   // calls at the object without keys
	answers      sync.Map       // of that object
	counts       []atomic.Int64 // of the clients
}

// crashPoints are where a process of a plan may die.
var crashPoints = []string{"claim/before", "claim/after", "append/before", "append/after", "follow", "ack/before",
	"snapshot/copied", "snapshot/uploaded", "snapshot/registered", "truncate", "snapshot/collect", "snapshot/fetched"}

// tooLong is how long a client tries: longer than the whole plan, so the cluster has been well for a minute then.
const tooLong = 3 * time.Minute

const planTakes = 90 * time.Second

// note adds a line to the story of the plan, which a failure prints.
func (p *plan) note(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.story = append(p.story, time.Now().Format("04:05.000 ")+fmt.Sprintf(format, args...))
}

// drawn is a time between two others.
func (p *plan) drawn(least, most time.Duration) time.Duration {
	return least + time.Duration(p.random.Int64N(int64(most-least)))
}

// crashAt kills the process when it has reached a point so many times. It is a seam.Probe.
type crashAt struct {
	name    string
	left    atomic.Int64
	process atomic.Pointer[process]
}

func (c *crashAt) of(p *process) { c.process.Store(p) }

func (c *crashAt) At(at seam.Point) {
	if at.Name != c.name || c.left.Add(-1) != 0 {
		return
	}
	c.process.Load().die()
}

// up starts a process on the machine, which may die at a point.
func (p *plan) up(m *machine) {
	m.probe = nil
	if !p.healed && p.random.IntN(2) == 0 {
		c := &crashAt{name: crashPoints[p.random.IntN(len(crashPoints))]}
		c.left.Store(1 + p.random.Int64N(20))
		if c.name == "snapshot/fetched" {
			c.left.Store(1) // a process restores once
		}
		m.probe = c
		p.note("%s starts, and dies at %s number %d", m.id, c.name, c.left.Load())
	} else {
		p.note("%s starts", m.id)
	}
	process, err := m.tryJoin()
	for ; err != nil && process.dead(); process, err = m.tryJoin() {
		p.note("%s has died while it joined", m.id)
		planned.deaths.Add(1)
		m.disk, m.probe = process.image, nil
	}
	if err != nil {
		p.t.Fatalf("node %s: %v", m.id, err)
	}
}

// target is a machine for the next fault: the one that serves in two cases of three.
func (p *plan) target() *machine {
	if now := p.active(); len(now) > 0 && p.random.IntN(3) > 0 {
		return now[0]
	}
	return p.nodes[p.ids[p.random.IntN(len(p.ids))]]
}

// fault does something to a machine, and undoes it in the end.
func (p *plan) fault(m *machine) {
	d := p.drawn(200*time.Millisecond, 15*time.Second)
	say := func(what string) { p.note("%s %s for %v", m.id, what, d) }
	link := m.link()
	switch p.random.IntN(10) {
	case 0:
		say("is killed, and is away")
		m.kill()
		time.Sleep(d)
		p.up(m)
	case 1:
		say("is stopped")
		link.set(requests)
		time.Sleep(d)
		link.set(whole)
	case 2:
		say("gets no answers")
		link.set(answers)
		time.Sleep(d)
		link.set(whole)
	case 3:
		say("has appends that hang")
		link.hang(true)
		time.Sleep(d)
		link.hang(false)
	case 4:
		say("is slow, and loses answers")
		link.flaky(p.drawn(0, 400*time.Millisecond), 0.2)
		time.Sleep(d)
		link.flaky(0, 0)
	case 5:
		say("is drained, and away")
		_ = m.node().Drain(p.t.Context())
		time.Sleep(d)
		p.reap(m)
		p.up(m)
	case 6:
		say("has a clock that is off")
		m.clock.by.Store(int64(p.drawn(-10*time.Second, 10*time.Second)))
		time.Sleep(d)
		m.clock.by.Store(0)
	case 7:
		p.note("the log is down for %v", d)
		p.all(func(m *machine) { m.link().set(requests) })
		time.Sleep(d)
		p.all(func(m *machine) { m.link().set(whole) })
	case 8:
		say("loses its disk, and is away")
		m.kill()
		m.disk = vfs.NewCrashableMem()
		time.Sleep(d)
		p.up(m)
	case 9:
		p.note("all nodes but %s are killed at once, and come back", m.id)
		p.all(func(other *machine) {
			if other != m {
				other.kill()
			}
		})
		p.all(func(other *machine) {
			if other != m {
				p.up(other)
			}
		})
	}
}

// all calls f with each machine, in order.
func (p *plan) all(f func(*machine)) {
	for _, id := range p.ids {
		f(p.nodes[id])
	}
}

// reap lets go of a process that has died by itself, or that has left.
func (p *plan) reap(m *machine) {
	process := m.process.Load()
	if process.dead() {
		p.note("%s has died at its point", m.id)
		planned.deaths.Add(1)
		m.kill()
		return
	}
	_ = process.node.Close()
	m.disk = process.disk
}

// revive starts the processes that have died or ended.
func (p *plan) revive() {
	p.all(func(m *machine) {
		select {
		case <-m.process.Load().died:
		case <-m.node().Done():
			p.note("%s has ended: %v", m.id, m.node().Err())
		default:
			return
		}
		p.reap(m)
		p.up(m)
	})
}

// drive makes faults until the time is over, and then heals all.
func (p *plan) drive() {
	began := time.Now()
	for time.Since(began) < planTakes {
		time.Sleep(p.drawn(100*time.Millisecond, 6*time.Second))
		p.revive()
		p.fault(p.target())
	}
	p.note("all is well from now on")
	p.healed = true
	p.all(func(m *machine) {
		if c, ok := m.probe.(*crashAt); ok {
			c.left.Store(-1)
		}
	})
	p.revive()
}

// call makes a call at one node after the other, beginning with that of a client, until it has an answer, and returns it. Each try is
// told of to tried, if it is not nil, and with it a try of unknown outcome is the last.
func (p *plan) call(client int, name string, once bool, opts ...object.CallOption) (int, error) {
	var err error
	began := time.Now()
	for try := client; ; try++ {
		if process := p.nodes[p.ids[try%len(p.ids)]].process.Load(); process != nil {
			ctx, cancel := context.WithTimeout(context.Background(), 12*time.Second)
			var n int
			n, err = add.Call(ctx, process.node, name, 1, opts...)
			cancel()
			if err == nil {
				return n, nil
			}
			if once && !errors.As(err, new(*cluster.ErrMoved)) {
				return 0, err
			}
		}
		time.Sleep(time.Duration(20+7*client) * time.Millisecond)
		if once && p.stopped() || time.Since(began) > tooLong {
			return 0, fmt.Errorf("no answer: %w", err)
		}
	}
}

func (p *plan) stopped() bool {
	select {
	case <-p.stop:
		return true
	default:
		return false
	}
}

// client counts until the plan ends.
func (p *plan) client(client int) {
	name := fmt.Sprint("own-", client)
	random := rand.New(rand.NewPCG(uint64(client), 7))
	for k := 1; !p.stopped(); k++ {
		n, err := p.call(client, name, false, object.Idempotent(fmt.Sprint("key-", k), time.Hour))
		if n != k || err != nil {
			p.t.Errorf("call %d of client %d has the answer %d: %v", k, client, n, err)
			return
		}
		p.counts[client].Store(int64(k))
		p.asked.Add(1)
		if n, err := p.call(client, "shared", true); err == nil {
			p.acked.Add(1)
			if _, twice := p.answers.LoadOrStore(n, client); twice {
				p.t.Errorf("two calls have the answer %d", n)
			}
		}
		time.Sleep(time.Duration(random.Int64N(int64(400 * time.Millisecond))))
	}
}

// run runs the plan of a seed.
func runPlan(t *testing.T, w *world, seed uint64) {
	p := &plan{world: w, random: rand.New(rand.NewPCG(seed, 3)), ids: []string{"a", "b", "c", "d"}[:2+seed%3], stop: make(chan struct{}), counts: make([]atomic.Int64, 4)}
	w.seed = seed << 32
	defer func() {
		if t.Failed() {
			t.Logf("replay: go test ./cluster -run TestPlans -args -plans 1 -plan %d\n%s", seed, strings.Join(p.story, "\n"))
		}
	}()
	for _, id := range p.ids {
		m := w.machine(id)
		if seed%2 == 0 {
			m.edit = p.withSnapshots
		}
		p.up(m)
	}
	var clients sync.WaitGroup
	for client := range p.counts {
		clients.Go(func() { p.client(client) })
	}
	stop := sync.OnceFunc(func() { close(p.stop); clients.Wait() })
	defer stop() // a plan that fails in the middle
	p.drive()
	time.Sleep(20 * time.Second)
	stop()
	p.judge(t)
}

// withSnapshots has a node make snapshots often, and counts those that it restores.
func (p *plan) withSnapshots(o *cluster.Options) {
	o.Snapshots = cluster.Snapshots{EveryBytes: 8 << 10, Every: 5 * time.Second, BytesPerSecond: 64 << 10}
	o.Logger = slog.New(restores{slog.DiscardHandler})
}

// restores counts the lines of views that were made from a snapshot.
type restores struct{ slog.Handler }

func (restores) Enabled(context.Context, slog.Level) bool { return true }
func (r restores) WithAttrs([]slog.Attr) slog.Handler     { return r }
func (restores) Handle(_ context.Context, l slog.Record) error {
	if strings.HasPrefix(l.Message, "the view is that of a snapshot") {
		planned.restored.Add(1)
	}
	return nil
}

// judge compares the end with what clients were told.
func (p *plan) judge(t *testing.T) {
	for client := range p.counts {
		want := int(p.counts[client].Load()) + 1
		if n, err := p.call(0, fmt.Sprint("own-", client), false); n != want || err != nil {
			t.Errorf("client %d had %d answers, and its object is at %d: %v", client, want-1, n-1, err)
		}
	}
	n, err := p.call(0, "shared", false)
	if acked, asked := p.acked.Load(), p.asked.Load(); err != nil || int64(n-1) < acked || int64(n-1) > asked {
		t.Errorf("the object without keys is at %d, after %d acknowledged calls of %d: %v", n-1, acked, asked, err)
	}
	if now := p.active(); len(now) != 1 {
		t.Errorf("%d nodes serve in the end", len(now))
	}
	p.end()
	p.judgeViews(t)
	planned.calls.Add(p.acked.Load())
	planned.terms.Add(int64(p.head().Term))
}

// judgeViews opens what each machine has on its disk, reads the rest of the log into it, and compares that with the log, or with one another
// if the log is truncated.
func (p *plan) judgeViews(t *testing.T) {
	want, of := memstore.New(), "the log"
	switch err := replay(p.log, 1, want); {
	case errors.Is(err, shardlog.ErrTruncated):
		want = nil
		planned.truncated.Add(1)
	case err != nil:
		t.Fatal(err)
	}
	p.all(func(m *machine) {
		got := memstore.New()
		at, err := viewOf(m.process.Load().disk, "/"+m.id+"/view", got)
		if err == nil {
			err = replay(p.log, at+1, got)
		}
		switch {
		case errors.Is(err, shardlog.ErrTruncated):
			return // the node would begin with a snapshot
		case err != nil:
			t.Errorf("the view of %s: %v", m.id, err)
			return
		case want == nil:
			want, of = got, "the view of "+m.id
			return
		}
		planned.views.Add(1)
		if d := differ(t, got, want); d != "" {
			t.Errorf("the view of %s, which had record %d, differs from %s: %s", m.id, at, of, d)
		}
	})
}

// planned counts what the plans have done.
var planned struct{ calls, terms, views, truncated, deaths, restored atomic.Int64 }

var (
	plans     = flag.Int64("plans", 0, "how many plans are run at least; 0: 10, or 40 for scripts/prove")
	failovers = flag.Int64("failovers", 0, "and how many fail-overs they have together at least")
	firstPlan = flag.Uint64("plan", 1, "the seed of the first plan")
)

// Acknowledged calls are never lost and none is done twice, whatever happens to the nodes. -args -plan 7 -plans 1 runs the plan of seed 7 again.
//
// Proves N1, N2 and N6.
func TestPlans(t *testing.T) {
	n := &planned
	made, enough := int64(0), cmp.Or(*plans, 10)
	if *plans == 0 && prove.Long() {
		enough = 40
	}
	// The first term of a plan is no fail-over.
	for ; made < enough || n.terms.Load()-made < *failovers && !t.Failed(); made++ {
		seed := *firstPlan + uint64(made)
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) { runPlan(t, w, seed) })
		})
	}
	t.Logf("%d plans: %d acknowledged calls, %d terms, %d views equal to the log, %d logs truncated, %d processes died at a point, %d views made from a snapshot",
		made, n.calls.Load(), n.terms.Load(), n.views.Load(), n.truncated.Load(), n.deaths.Load(), n.restored.Load())
	fmt.Printf("{\"cluster_plans\":%d,\"cluster_failovers\":%d,\"cluster_calls\":%d}\n", made, n.terms.Load()-made, n.calls.Load())
	if made >= 10 && (n.terms.Load() < 3*made || n.calls.Load() < 500*made || n.views.Load() < made || min(n.truncated.Load(), n.deaths.Load(), n.restored.Load()) < made/4) {
		t.Error("the plans no longer do what they are for")
	}
}
