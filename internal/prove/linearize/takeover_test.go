package linearize

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
	"github.com/holdfast-dev/holdfast/storage/pebblestore"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/memlog"
)

var takeoverCount = flag.Int("takeovers", 20, "how many histories over take-overs are made")

const (
	nodeCount    = 3
	callerCount  = 8
	takeoverEach = 60 // calls between two take-overs, about
	takeoverOps  = 400
)

// takeover is a history of callers of several nodes over one log. A node that takes over leaves the one before as a zombie, which
// goes on until it learns of that.
type takeover struct {
	seed  uint64
	log   *cutLog
	nodes [nodeCount]*node

	clock  atomic.Int64 // orders the beginnings and ends of calls
	begun  atomic.Int64
	owner  atomic.Int32
	spared atomic.Bool // zombies get reads alone, so that they do not learn that they are replaced

	mu      sync.Mutex // guards the fields below
	claims  []int64    // when each term had begun
	unknown int
	refused int
}

// node is a machine with a view of its own, and the host of its newest term.
type node struct {
	disk vfs.FS // of the view; nil: each term begins with an empty view in memory
	life atomic.Pointer[life]
}

// life is one host over the log.
type life struct {
	host *object.Host
	term int // 0 for the first claim of the history
}

// cutLog cuts the answer of some appends, before the log has them or after that, and notes each claim.
type cutLog struct {
	shardlog.Log
	claimed func()
	mu      sync.Mutex // guards rand
	rand    *rand.Rand
}

var errCutOff = errors.New("the answer was cut off")

func (l *cutLog) Append(ctx context.Context, shard int, before uint64, r shardlog.Record) error {
	l.mu.Lock()
	fate := l.rand.IntN(40)
	l.mu.Unlock()
	if fate == 0 {
		return errCutOff
	}
	err := l.Log.Append(ctx, shard, before, r)
	if err == nil && fate == 1 {
		return errCutOff
	}
	return err
}

func (l *cutLog) Claim(ctx context.Context, shard int, owner string, seen uint64) (shardlog.State, error) {
	head, err := l.Log.Claim(ctx, shard, owner, seen)
	if err == nil {
		l.claimed()
	}
	return head, err
}

func newTakeover(seed uint64) *takeover {
	h := &takeover{seed: seed}
	h.log = &cutLog{Log: memlog.New(), claimed: h.claimed, rand: rand.New(rand.NewPCG(seed, 0))}
	for i := range h.nodes {
		h.nodes[i] = new(node)
		if seed%2 == 1 {
			h.nodes[i].disk = vfs.NewMem()
		}
	}
	return h
}

func (h *takeover) stamp() int64 { return h.clock.Add(1) }

// claimed notes that a term has begun. No commit of the term before has an effect after that.
func (h *takeover) claimed() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.claims = append(h.claims, h.stamp())
}

// term returns the newest term; 0 for the first.
func (h *takeover) term() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.claims) - 1
}

// begin reports whether one more call is wanted.
func (h *takeover) begin() bool { return h.begun.Add(1) <= takeoverOps }

// open makes a node the owner. The host that it had ends first, because it has the directory.
func (h *takeover) open(i int) error {
	n := h.nodes[i]
	if old := n.life.Swap(nil); old != nil {
		_ = old.host.Shutdown(ended()) // it was replaced, with any error
	}
	o := object.Options{MaxLive: 3, Logger: slog.New(slog.DiscardHandler)}
	log := shardlog.Options{Log: h.log, Owner: fmt.Sprint("node ", i)}
	if n.disk != nil {
		o.Storage = log.Storage(storage.Options{
			Dir: "view", Shards: 2, MinFreeBytes: -1, Pebble: pebblestore.Options{FS: n.disk, CacheBytes: 1 << 20, MemTableBytes: 64 << 10},
		})
	} else {
		e, err := shardlog.Open(log, memstore.New())
		if err != nil {
			return err
		}
		o.Storage = storage.Options{Engine: e, Shards: 2}
	}
	host, err := object.Open(o, numbers)
	if err != nil {
		return err
	}
	n.life.Store(&life{host, h.term()})
	h.owner.Store(int32(i))
	return nil
}

// play makes the history, and returns the calls as their callers saw them.
func (h *takeover) play() ([]made, error) {
	if err := h.open(0); err != nil {
		return nil, err
	}
	r := rand.New(rand.NewPCG(h.seed, 1))
	var callers [callerCount]*caller
	var all sync.WaitGroup
	for i := range callers {
		callers[i] = &caller{h: h, id: i, rand: rand.New(rand.NewPCG(h.seed, uint64(2+i)))}
		all.Go(callers[i].run)
	}
	var err error
	for next := int64(0); err == nil && h.begun.Load() < takeoverOps; {
		if next += 1 + r.Int64N(2*takeoverEach); next >= takeoverOps {
			break
		}
		for h.begun.Load() < next {
			yield(1)
		}
		h.spared.Store(r.IntN(2) == 0)
		err = h.open((int(h.owner.Load()) + 1 + r.IntN(nodeCount-1)) % nodeCount)
	}
	all.Wait()
	last, e := h.finish()
	ops := last
	for _, c := range callers {
		ops = append(ops, c.ops...)
	}
	return ops, errors.Join(err, e)
}

// finish reads each number at one more owner, and ends all hosts.
func (h *takeover) finish() (ops []made, err error) {
	owner := (int(h.owner.Load()) + 1) % nodeCount
	if err := h.open(owner); err != nil {
		return nil, err
	}
	c := &caller{h: h, id: callerCount}
	for n := range numberCount {
		c.call(h.nodes[owner].life.Load(), sumCall{number: n})
	}
	for i, n := range h.nodes {
		if l := n.life.Load(); l != nil {
			if e := l.host.Shutdown(ended()); i == owner {
				err = e
			}
		}
	}
	if len(c.ops) != numberCount {
		err = errors.Join(err, fmt.Errorf("%d of %d numbers could be read at the end", len(c.ops), numberCount))
	}
	return c.ops, err
}

// takeoverFigures are counts over histories.
type takeoverFigures struct {
	Histories int `json:"takeover_histories"`
	Takeovers int `json:"takeovers"`
	Ops       int `json:"takeover_ops"`
	Unknown   int `json:"takeover_unknown"`
	Refused   int `json:"takeover_refused"`
}

// Proves O2, O3, O7, O16, S9, N1, N2 and N4 over a log: while nodes take over from one another, and those before go on as
// zombies, each answer of any of them fits one order of the calls. Reads are never older than an acknowledged commit, and
// no acknowledged commit is lost.
func TestTakeovers(t *testing.T) {
	var (
		sum  takeoverFigures
		mu   sync.Mutex
		all  sync.WaitGroup
		next atomic.Int64
	)
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for n := next.Add(1); n <= int64(*takeoverCount) && !t.Failed(); n = next.Add(1) {
				h := newTakeover(uint64(n))
				ops, err := h.play()
				if err == nil {
					err = h.check(ops)
				}
				if err != nil {
					t.Errorf("seed %d: %v", n, err)
				}
				mu.Lock()
				sum.Histories++
				sum.Takeovers += h.term()
				sum.Ops += len(ops)
				sum.Unknown += h.unknown
				sum.Refused += h.refused
				mu.Unlock()
			}
		})
	}
	all.Wait()
	line, err := json.Marshal(sum)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(string(line))
	if !t.Failed() && slices.Contains([]int{sum.Takeovers, sum.Unknown, sum.Refused}, 0) {
		t.Errorf("the histories do not reach their cases: %s", line)
	}
}
