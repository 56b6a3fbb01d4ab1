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

// holdWatch finds turns that hold their object for longer than ClassOptions.HoldLimit. For
// example, a handler waits for a channel to which only another call of the same object
// sends. That is a deadlock, and the graph of calls (waits) does not show it.
//
// A turn reads no clock for it. The watch looks at the objects in memory from time to
// time, and takes a turn that it sees at two looks to have run in between. It rests while
// no turn runs or all that run have been reported, and the turn that begins next wakes it.
//
// Looks run one at a time, on the goroutine of the timer. The mutex guards only the
// pointer to the map: a map that has been put there is never changed, so that holder can
// read it while a look makes the next one. It is taken after a.mu, never before.
type holdWatch struct {
	host  *Host
	every time.Duration // between two looks; 0: no class has a limit
	awake atomic.Bool   // a look is planned, or no class has a limit

	mu   sync.Mutex
	seen map[*activation]heldTurn // of the last look
}

// heldTurn is a turn that a look has seen to hold its object.
type heldTurn struct {
	turn  uint32    // activation.turns, which tells turns of one object apart
	since time.Time // the steady time of the first look that has seen it
	told  bool      // it has been logged and counted
}

// looksPerLimit is how often the watch looks in the time of the shortest limit. So a turn
// is reported when it has held its object for the limit and at most a quarter more.
const looksPerLimit = 4

// init computes the time between two looks from the shortest limit of all classes. Without
// any limit it leaves the watch awake for good, so that no turn ever plans a look.
func (w *holdWatch) init(h *Host) {
	w.host = h
	for _, c := range h.hosted {
		if limit := c.options.HoldLimit; limit > 0 && (w.every == 0 || limit/looksPerLimit < w.every) {
			w.every = max(limit/looksPerLimit, time.Millisecond)
		}
	}
	w.awake.Store(w.every == 0)
}

// wake plans a look if the watch rests, and notes the turn of a, which has just begun. The
// caller holds a.mu. If turns of two objects call it at the same time, one of them plans
// the look, which finds the other turn by itself.
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

// look reports the turns that have held their object for too long, and plans the next
// look unless all turns that run have been reported. The timer calls it.
//
// Before it rests it clears awake and scans once more. A turn that begins before the clear
// is seen by the scan, and one that begins after it sees the flag and wakes the watch.
func (w *holdWatch) look() {
	if w.host.lifecycle.closing.Load() {
		return // Shutdown names the objects for which it waits
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

// keep keeps the map of a look for the next one, and for holder. It takes w.mu.
func (w *holdWatch) keep(seen map[*activation]heldTurn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = seen
}

// allTold reports whether all turns that a look has seen have been reported.
func allTold(seen map[*activation]heldTurn) bool {
	for _, held := range seen {
		if !held.told {
			return false
		}
	}
	return true
}

// scan returns the turns that hold their objects now, and the activations of those that
// have to be reported at this look. before is the map of the last look. It takes a.mu of
// one activation at a time, for an instant.
func (w *holdWatch) scan(before map[*activation]heldTurn, now time.Time) (seen map[*activation]heldTurn, stuck []*activation) {
	seen = make(map[*activation]heldTurn)
	for _, name := range w.host.names {
		c := w.host.hosted[name]
		if c.options.HoldLimit < 0 {
			continue
		}
		liveIn(c).Range(func(_ string, a *activation) bool {
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

// tell logs and counts turns that hold their object for too long. The stacks of all
// goroutines are taken once for all of them, because that stops the program for a moment.
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
		w.host.options.Logger.Warn("a turn holds its object for long: it may wait for another call of the same object", "class", a.object.ID.Class,
			"object", a.object.ID.Name, "method", method, "age", now.Sub(seen[a].since).Round(time.Millisecond), "stack", stack)
	}
}

// holder describes the turn behind which the calls of a wait, for the text of
// ErrOverloaded: its method, and its age if a look has seen it. The caller holds a.mu.
func (a *activation) holder() string {
	text := fmt.Sprintf("behind a turn of %s.%s", a.object.ID.Class, a.method())
	since, seen := a.heldSince()
	if !seen {
		return text
	}
	age := a.host.seams.Steady().Sub(since)
	return fmt.Sprintf("%s that has held the object for %v", text, age.Round(time.Second))
}

// heldSince returns the steady time of the first look that has seen the turn under way; false
// if none has. The caller holds a.mu.
func (a *activation) heldSince() (since time.Time, seen bool) {
	w := &a.host.held
	w.mu.Lock()
	defer w.mu.Unlock()
	held, ok := w.seen[a]
	return held.since, ok && held.turn == a.turns && a.running
}

// The names of turns that run no method, for the log and for holder.
var (
	whatAlarm   = "alarm"
	whatWork    = "work"
	whatRuntime = "runtime"
)

// method returns the name of the method that the turn runs, or one of the names above. The
// caller holds a.mu.
func (a *activation) method() string {
	if a.what == nil {
		return whatRuntime
	}
	return *a.what
}

const (
	// maxStacksLogged bounds the stacks that one look logs, because a thousand handlers
	// that wait for the same service all have the same stack.
	maxStacksLogged = 16
	// maxStackBytes bounds the stack in one line of the log.
	maxStackBytes = 16 << 10
	// maxDumpBytes bounds the memory for the stacks of all goroutines.
	maxDumpBytes = 32 << 20
)

// allStacks returns the stacks of all goroutines, as the runtime writes them, up to
// maxDumpBytes. It stops all goroutines while it writes.
func allStacks() []byte {
	for n := 1 << 20; ; n *= 2 {
		b := make([]byte, n)
		if got := runtime.Stack(b, true); got < n || n >= maxDumpBytes {
			return b[:got]
		}
	}
}

// goroutineStack returns the stack of the goroutine that runs the turn of a; empty if all
// has none. It finds the goroutine by the address of a, which the runtime writes as the
// receiver of serve.
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
