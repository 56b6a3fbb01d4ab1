package object

import (
	"bytes"
	"fmt"
	"maps"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// holdWatch finds turns that hold their object beyond ClassOptions.HoldLimit: a
// handler that waits for what cannot come while it holds the object is a deadlock
// that no graph of calls shows.
//
// A turn reads no clock for it. The watch looks at the objects in memory from time to
// time, and takes a turn that it finds twice to have run since. While no turn runs, or
// all that run have been told of, it rests, and the turn that begins next wakes it.
type holdWatch struct {
	host  *Host
	every time.Duration // between two looks
	awake atomic.Bool   // a look is planned, or no class has a limit

	mu   sync.Mutex
	seen map[*activation]heldTurn // by the last look; the map itself never changes
}

// heldTurn is a turn that has been seen to hold its object.
type heldTurn struct {
	turn  uint32 // activation.turns
	since time.Time
	told  bool
}

// looksPerLimit is how often the watch looks in the time of the shortest limit. A
// turn is told of when it has held its object for the limit and at most a quarter
// more.
const looksPerLimit = 4

func (w *holdWatch) init(h *Host) {
	w.host = h
	for _, c := range h.hosted {
		if limit := c.options.HoldLimit; limit > 0 && (w.every == 0 || limit/looksPerLimit < w.every) {
			w.every = max(limit/looksPerLimit, time.Millisecond)
		}
	}
	w.awake.Store(w.every == 0)
}

// wake plans a look if the watch rests. The caller holds a.mu, and a turn of a has
// just begun.
func (w *holdWatch) wake(a *activation) {
	if w.awake.Load() || !w.awake.CompareAndSwap(false, true) {
		return
	}
	w.mu.Lock()
	seen := maps.Clone(w.seen) // a look may still read the old one
	if seen == nil {
		seen = make(map[*activation]heldTurn)
	}
	seen[a] = heldTurn{turn: a.turns, since: w.host.seams.Steady()}
	w.seen = seen
	w.mu.Unlock()
	w.host.seams.Clock.AfterFunc(w.every, w.look)
}

// look tells of the turns that have held their object for too long.
func (w *holdWatch) look() {
	if w.host.life.closing.Load() {
		return // Shutdown names what it waits for
	}
	now := w.host.seams.Steady()
	w.mu.Lock()
	before := w.seen
	w.mu.Unlock()
	seen, stuck := w.scan(before, now)
	w.keep(seen)
	w.tell(stuck, seen, now)
	if allTold(seen) {
		w.awake.Store(false)
		if seen, _ = w.scan(seen, now); allTold(seen) { // a turn that found the watch awake has not begun meanwhile
			return
		}
		if !w.awake.CompareAndSwap(false, true) {
			return
		}
		w.keep(seen)
	}
	w.host.seams.Clock.AfterFunc(w.every, w.look)
}

// keep keeps what a look has seen for the next one.
func (w *holdWatch) keep(seen map[*activation]heldTurn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = seen
}

// allTold reports whether no turn that was seen has yet to be told of.
func allTold(seen map[*activation]heldTurn) bool {
	for _, held := range seen {
		if !held.told {
			return false
		}
	}
	return true
}

// scan finds the turns that hold their objects now, and which of them have to be told
// of.
func (w *holdWatch) scan(before map[*activation]heldTurn, now time.Time) (seen map[*activation]heldTurn, stuck []*activation) {
	seen = make(map[*activation]heldTurn)
	for _, name := range w.host.names {
		c := w.host.hosted[name]
		if c.options.HoldLimit < 0 {
			continue
		}
		c.live.Range(func(_ string, a *activation) bool {
			a.mu.Lock()
			running, turns := a.running && !a.gone, a.turns
			a.mu.Unlock()
			if !running {
				return true
			}
			held, ok := before[a]
			if !ok || held.turn != turns {
				held = heldTurn{turn: turns, since: now}
			}
			if !held.told && now.Sub(held.since) >= c.options.HoldLimit {
				held.told = true
				stuck = append(stuck, a)
			}
			seen[a] = held
			return true
		})
	}
	return seen, stuck
}

// tell logs and counts turns that hold their object for too long.
func (w *holdWatch) tell(stuck []*activation, seen map[*activation]heldTurn, now time.Time) {
	if len(stuck) == 0 {
		return
	}
	all := allStacks()
	for i, a := range stuck {
		a.mu.Lock()
		method := a.method()
		a.mu.Unlock()
		stack := ""
		if i < maxStacksLogged {
			stack = goroutineStack(all, a)
		}
		a.hosted.counts.stuck.Add(1)
		w.host.options.Logger.Warn("a turn holds its object for long: it may wait for what needs the object", "class", a.id.Class,
			"object", a.id.Name, "method", method, "age", now.Sub(seen[a].since).Round(time.Millisecond), "stack", stack)
	}
}

// holder tells of the turn that calls wait behind. The caller holds a.mu.
func (a *activation) holder() string {
	w := &a.hosted.host.held
	w.mu.Lock()
	held, ok := w.seen[a]
	w.mu.Unlock()
	text := fmt.Sprintf("behind a turn of %s.%s", a.id.Class, a.method())
	if !ok || held.turn != a.turns || !a.running {
		return text
	}
	age := w.host.seams.Steady().Sub(held.since)
	return fmt.Sprintf("%s that has held the object for %v", text, age.Round(time.Second))
}

// What a turn runs if it is not a method.
var (
	whatAlarm   = "alarm"
	whatWork    = "work"
	whatRuntime = "runtime"
)

// method names what the turn runs. The caller holds a.mu.
func (a *activation) method() string {
	if a.what == nil {
		return whatRuntime
	}
	return *a.what
}

const (
	// maxStacksLogged bounds the stacks that one look logs: if a service that all
	// handlers call is down, a few of them tell the story.
	maxStacksLogged = 16
	// maxStackBytes bounds the stack that one line of the log holds.
	maxStackBytes = 16 << 10
	// maxDumpBytes bounds what is read of the stacks of all goroutines.
	maxDumpBytes = 32 << 20
)

// allStacks is the stacks of all goroutines, as the runtime writes them.
func allStacks() []byte {
	for n := 1 << 20; ; n *= 2 {
		b := make([]byte, n)
		if got := runtime.Stack(b, true); got < n || n >= maxDumpBytes {
			return b[:got]
		}
	}
}

// goroutineStack is the stack of the goroutine that runs the turn of a. It is told from
// others by the address of a, which the runtime writes as the receiver of serve.
func goroutineStack(all []byte, a *activation) string {
	const frame = "/object.(*activation).serve("
	address := []byte(fmt.Sprintf("%s%p", frame, a))
	for stack := range bytes.SplitSeq(all, []byte("\n\n")) {
		at := bytes.Index(stack, address)
		if at < 0 {
			continue
		}
		if end := at + len(address); end < len(stack) && strings.IndexByte(",?)", stack[end]) >= 0 {
			return string(stack[:min(len(stack), maxStackBytes)])
		}
	}
	return ""
}
