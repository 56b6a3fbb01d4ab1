package judge

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// history is a log and the store after it. The good one breaks nothing.
type history struct {
	lines  []Line
	stored Stored
	end    bool
}

func (h *history) call(op uint64, l Line) {
	l.Kind, l.Op = Call, op
	h.lines = append(h.lines, l)
}

func (h *history) ack(op uint64, l Line) {
	l.Kind, l.Op = Ack, op
	h.lines = append(h.lines, l)
}

func (h *history) effect(l Line) {
	l.Kind = Effect
	h.lines = append(h.lines, l)
}

// done is a call with its answer.
func (h *history) done(op uint64, call, answer Line) {
	h.call(op, call)
	h.ack(op, answer)
}

// remove drops the lines that f chooses.
func (h *history) remove(f func(Line) bool) { h.lines = slices.DeleteFunc(h.lines, f) }

func good() *history {
	h := &history{end: true}
	h.done(1, Line{Verb: Add, On: "c"}, Line{N: 1})
	h.done(2, Line{Verb: Once, On: "c", Key: "k"}, Line{N: 2})
	h.done(3, Line{Verb: Once, On: "c", Key: "k"}, Line{N: 2}) // repeated
	h.call(4, Line{Verb: Add, On: "c"})                        // cut off
	h.done(5, Line{Verb: Read, On: "c"}, Line{N: 2})

	h.done(10, Line{Verb: Set, On: "t", N: 1}, Line{})
	h.done(11, Line{Verb: Set, On: "t", N: 2}, Line{})
	h.effect(Line{Verb: Alarm, On: "t", N: 2})

	h.effect(Line{Verb: Run, On: "l", N: 1, Key: "l/1"})
	h.done(20, Line{Verb: Tally, On: "s", Key: "l/1"}, Line{N: 1})
	h.done(21, Line{Verb: State, On: "l"}, Line{N: 1})
	h.done(22, Line{Verb: Pause, On: "l"}, Line{})

	h.done(30, Line{Verb: Event, On: "b", Key: "e1"}, Line{N: 1})
	h.done(31, Line{Verb: Event, On: "b", Key: "e2"}, Line{N: 1})
	h.effect(Line{Verb: Flush, On: "b", N: 1, IDs: []string{"e1", "e2"}, Key: "b/1"})
	h.done(32, Line{Verb: Tally, On: "s", Key: "b/1"}, Line{N: 2})

	h.done(40, Line{Verb: Enqueue, On: "pool", Key: "x"}, Line{Key: "pool/0-1"})
	h.done(41, Line{Verb: Enqueue, On: "pool", Key: "y"}, Line{Key: "pool/0-2"})
	h.effect(Line{Verb: Work, On: "pool/0-1", IDs: []string{"x"}, Text: "chain", Key: "p/1"})
	h.effect(Line{Verb: Work, On: "pool/0-2", IDs: []string{"y"}, Text: "chain", Key: "p/2"})
	h.done(42, Line{Verb: Tally, On: "s", Key: "p/1"}, Line{N: 3})
	h.effect(Line{Verb: Dead, On: "pool/0-2"})

	h.done(43, Line{Verb: Enqueue, On: "tray", Key: "z"}, Line{Key: "tray/0-1"})
	h.effect(Line{Verb: Work, On: "tray/0-1", IDs: []string{"z"}, Key: "y/1", N: 1})
	h.done(44, Line{Verb: Tally, On: "s", Key: "y/1"}, Line{N: 4})
	h.done(45, Line{Verb: Finish, On: "tray/0-1", N: 1}, Line{})

	h.stored = Stored{
		Counters: map[string]Counter{
			"c": {N: 2, Adds: 1, Keys: map[string]uint64{"k": 1}, Events: 2},
			"s": {N: 4, Keys: map[string]uint64{"l/1": 1, "b/1": 1, "p/1": 1, "y/1": 1}, Events: 4},
		},
		Timers:  map[string]Timer{"t": {Tokens: map[uint64]string{1: TokenReplaced, 2: TokenFired}}},
		Loops:   map[string]Loop{"l": {Status: "paused", Runs: 1, State: 1}},
		Batches: map[string]Batch{"b": {Open: 2, Flushed: 2}},
		Pools:   map[string]Pool{"pool/0": {Submitted: 2, Done: 1, Dead: 1}, "tray/0": {Submitted: 1, Done: 1}},
		Tasks:   map[string]Task{"pool/0-1": {"x", StateDone}, "pool/0-2": {"y", StateDead}, "tray/0-1": {"z", StateDone}},
	}
	return h
}

func (h *history) judge() []Violation {
	b := NewBook()
	for _, l := range h.lines {
		b.Read(l)
	}
	return b.Check(&h.stored, h.end)
}

func change[T any](m map[string]T, name string, f func(*T)) {
	v := m[name]
	f(&v)
	m[name] = v
}

func TestGoodHistory(t *testing.T) {
	if v := good().judge(); len(v) > 0 {
		t.Errorf("found %v", v)
	}
}

// doubles are the histories in which something has happened twice.
var doubles = map[string]bool{
	"more adds than calls": true, "refused add that is there": true, "key counted twice": true, "alarm fired twice": true,
	"event flushed twice": true, "task stored twice": true, "task ended twice": true,
}

// Each way to lose, to double or to invent something is found, and named.
func TestBrokenHistories(t *testing.T) {
	for name, c := range map[string]struct {
		promise string
		lost    int
		do      func(h *history)
	}{
		"lost add": {"O7", 2, func(h *history) { // one is missing, and a reader was told of it
			change(h.stored.Counters, "c", func(c *Counter) { c.N, c.Adds, c.Events = 1, 0, 1 })
		}},
		"more adds than calls": {"O6", 0, func(h *history) {
			change(h.stored.Counters, "c", func(c *Counter) { c.N, c.Adds, c.Events = 4, 3, 4 })
		}},
		"two calls with one count":  {"O7", 1, func(h *history) { h.ack(4, Line{N: 1}) }},
		"count without its event":   {"J11", 0, func(h *history) { change(h.stored.Counters, "c", func(c *Counter) { c.Events-- }) }},
		"torn count":                {"O6", 0, func(h *history) { change(h.stored.Counters, "c", func(c *Counter) { c.N, c.Events = 3, 3 }) }},
		"refused add that is there": {"O6", 0, func(h *history) { h.refuse(4); h.addTwo() }},
		"lost key": {"O7", 1, func(h *history) {
			change(h.stored.Counters, "c", func(c *Counter) { c.Adds, c.Keys = 2, nil })
		}},
		"key counted twice": {"O16", 0, func(h *history) {
			change(h.stored.Counters, "c", func(c *Counter) { c.N, c.Keys["k"], c.Events = 3, 2, 3 })
		}},
		"repeat with another answer": {"O16", 0, func(h *history) { h.answer(3, func(l *Line) { l.N = 3 }) }},
		"refused key that is there": {"O6", 0, func(h *history) {
			h.remove(func(l Line) bool { return l.Op == 3 })
			h.answer(2, func(l *Line) { l.Kind = Refused })
		}},

		"lost alarm":            {"O7", 1, func(h *history) { delete(h.stored.Timers["t"].Tokens, 1) }},
		"alarm without a row":   {"A2", 0, func(h *history) { h.end = false; h.pending(false) }},
		"alarm that is left":    {"A3", 0, func(h *history) { h.pending(true) }},
		"alarm fired twice":     {"A4", 0, func(h *history) { change(h.stored.Timers, "t", func(t *Timer) { t.Spurious = 1 }) }},
		"alarm with no effect":  {"A4", 0, func(h *history) { h.remove(func(l Line) bool { return l.Verb == Alarm }) }},
		"early alarm":           {"A3", 0, func(h *history) { h.effect(Line{Verb: Alarm, On: "t", N: 2, Key: "early by 1ms"}) }},
		"alarm nobody set":      {"O6", 0, func(h *history) { h.stored.Timers["t"].Tokens[3] = TokenReplaced }},
		"two pending tokens":    {"O6", 0, func(h *history) { h.stored.Timers["t"].Tokens[1] = TokenPending }},
		"state behind the runs": {"C3", 0, func(h *history) { change(h.stored.Loops, "l", func(l *Loop) { l.State = 0 }) }},
		"run with no effect":    {"C3", 0, func(h *history) { h.remove(func(l Line) bool { return l.Verb == Run }) }},
		"lost run": {"O7", 1, func(h *history) {
			change(h.stored.Loops, "l", func(l *Loop) { l.Runs, l.State = 0, 0 })
		}},
		"run with two keys": {"J8", 0, func(h *history) { h.effect(Line{Verb: Run, On: "l", N: 1, Key: "other"}) }},
		"run far ahead":     {"O7", 1, func(h *history) { h.effect(Line{Verb: Run, On: "l", N: 3}) }},
		"lost pause":        {"O7", 1, func(h *history) { change(h.stored.Loops, "l", func(l *Loop) { l.Status = "running" }) }},
		"lost resume":       {"O7", 1, func(h *history) { h.done(50, Line{Verb: Resume, On: "l"}, Line{}) }},
		"run without its call inside": {"O7", 2, func(h *history) {
			h.remove(func(l Line) bool { return l.Op == 20 })
			change(h.stored.Counters, "s", func(c *Counter) { c.N, c.Events = 3, 3; delete(c.Keys, "l/1") })
		}},

		"lost event": {"D2", 1, func(h *history) {
			h.flush([]string{"e1"})
			change(h.stored.Batches, "b", func(b *Batch) { b.Flushed = 1 })
		}},
		"event flushed twice": {"D2", 0, func(h *history) {
			h.effect(Line{Verb: Flush, On: "b", N: 2, IDs: []string{"e2"}, Key: "b/1"})
			change(h.stored.Batches, "b", func(b *Batch) { b.Open, b.Flushed = 3, 3 })
		}},
		"event in another flush": {"D2", 0, func(h *history) { h.answer(31, func(l *Line) { l.N = 2 }) }},
		"flush that changes": {"D3", 0, func(h *history) {
			h.effect(Line{Verb: Flush, On: "b", N: 1, IDs: []string{"e2", "e1"}, Key: "b/1"})
		}},
		"generation skipped": {"D2", 0, func(h *history) { change(h.stored.Batches, "b", func(b *Batch) { b.Open = 3 }) }},
		"flush taken back": {"O7", 2, func(h *history) {
			h.remove(func(l Line) bool { return l.Op == 30 || l.Op == 31 })
			change(h.stored.Batches, "b", func(b *Batch) { b.Open, b.Flushed = 1, 0 })
		}},
		"events that are left": {"D2", 0, func(h *history) {
			h.call(51, Line{Verb: Event, On: "b", Key: "e3"})
			change(h.stored.Batches, "b", func(b *Batch) {
				b.Rows, b.Count = map[uint64][]string{2: {"e3"}}, map[uint64]int{2: 1}
			})
		}},
		"rows of a flushed generation": {"D1", 0, func(h *history) {
			change(h.stored.Batches, "b", func(b *Batch) { b.Rows = map[uint64][]string{1: {"e1", "e2"}} })
		}},
		"dropped events": {"D2", 0, func(h *history) { change(h.stored.Batches, "b", func(b *Batch) { b.Dropped = 1 }) }},

		"lost task": {"W2", 1, func(h *history) {
			h.remove(func(l Line) bool { return l.On == "pool/0-2" })
			delete(h.stored.Tasks, "pool/0-2")
			change(h.stored.Pools, "pool/0", func(p *Pool) { p.Submitted, p.Dead = 1, 0 })
		}},
		"task under another id": {"W8", 0, func(h *history) { h.answer(40, func(l *Line) { l.Key = "pool/0-7" }) }},
		"task stored twice": {"W8", 0, func(h *history) {
			h.stored.Tasks["pool/0-3"] = Task{"x", StateQueued}
			change(h.stored.Pools, "pool/0", func(p *Pool) { p.Submitted, p.Pending = 3, 1 })
		}},
		"counters of the pool":  {"W1", 0, func(h *history) { change(h.stored.Pools, "pool/0", func(p *Pool) { p.Done = 2 }) }},
		"counter and its tasks": {"W1", 0, func(h *history) { change(h.stored.Pools, "pool/0", func(p *Pool) { p.Done, p.Dead = 2, 0 }) }},
		"done with no effect": {"W2", 0, func(h *history) {
			h.remove(func(l Line) bool { return l.Verb == Work && l.On == "pool/0-1" })
		}},
		"task that is left": {"W2", 0, func(h *history) {
			h.stored.Tasks["pool/0-1"] = Task{"x", StateQueued}
			change(h.stored.Pools, "pool/0", func(p *Pool) { p.Done, p.Running = 0, 1 })
		}},
		"dead letter not told of": {"W6", 0, func(h *history) { h.remove(func(l Line) bool { return l.Verb == Dead }) }},
		"order of a key": {"W3", 0, func(h *history) {
			h.effect(Line{Verb: Work, On: "pool/0-1", IDs: []string{"x"}, Text: "chain", Key: "p/1"})
		}},
		"end of an old attempt": {"J8", 0, func(h *history) {
			h.remove(func(l Line) bool { return l.Op == 45 })
			h.effect(Line{Verb: Work, On: "tray/0-1", IDs: []string{"z"}, Key: "y/1", N: 2})
			h.done(45, Line{Verb: Finish, On: "tray/0-1", N: 1}, Line{})
		}},
		"task ended twice": {"W2", 0, func(h *history) { h.done(46, Line{Verb: Finish, On: "tray/0-1", N: 1}, Line{}) }},
		"lost end": {"W2", 1, func(h *history) {
			h.end = false
			h.stored.Tasks["tray/0-1"] = Task{"z", StateQueued}
			change(h.stored.Pools, "tray/0", func(p *Pool) { p.Done, p.Pending = 0, 1 })
		}},
		"task nobody sent":  {"O6", 0, func(h *history) { h.remove(func(l Line) bool { return l.Op == 40 }) }},
		"trouble":           {"the program", 0, func(h *history) { h.lines = append(h.lines, Line{Kind: Trouble, Text: "panic"}) }},
		"answer to no call": {"the log", 0, func(h *history) { h.ack(99, Line{}) }},
	} {
		t.Run(name, func(t *testing.T) {
			h := good()
			c.do(h)
			found := h.judge()
			lost, named, double := 0, false, false
			for _, v := range found {
				lost += v.Lost
				named = named || v.Promise == c.promise
				double = double || v.Double
			}
			if want := doubles[name]; double != want {
				t.Errorf("want %t; found something doubled is %t: %v", want, double, found)
			}
			if !named || lost != c.lost {
				t.Errorf("want %s and %d lost; found %d lost: %v", c.promise, c.lost, lost, found)
			}
		})
	}
}

// answer changes the answer to a call.
func (h *history) answer(op uint64, f func(*Line)) {
	for i := range h.lines {
		if l := &h.lines[i]; l.Kind == Ack && l.Op == op {
			f(l)
		}
	}
}

func (h *history) refuse(op uint64) { h.lines = append(h.lines, Line{Kind: Refused, Op: op}) }

// addTwo stores both calls without a key.
func (h *history) addTwo() {
	change(h.stored.Counters, "c", func(c *Counter) { c.N, c.Adds, c.Events = 3, 2, 3 })
}

// pending makes the timer wait for its last token.
func (h *history) pending(alarm bool) {
	change(h.stored.Timers, "t", func(t *Timer) { t.Pending, t.Alarm, t.Tokens[2] = 2, alarm, TokenPending })
}

func (h *history) flush(ids []string) {
	for i := range h.lines {
		if h.lines[i].Verb == Flush {
			h.lines[i].IDs = ids
		}
	}
}

// The write of a call under way may be there or not, and neither is wrong.
func TestCallsInFlight(t *testing.T) {
	h := good()
	h.addTwo()
	h.call(60, Line{Verb: Once, On: "c", Key: "k2"})
	h.call(61, Line{Verb: Enqueue, On: "pool", Key: "w"})
	h.call(62, Line{Verb: Resume, On: "l"})
	if v := h.judge(); len(v) > 0 {
		t.Errorf("found %v", v)
	}
	change(h.stored.Loops, "l", func(l *Loop) { l.Status = "running" })
	change(h.stored.Counters, "c", func(c *Counter) { c.N, c.Keys["k2"], c.Events = 4, 1, 4 })
	if v := h.judge(); len(v) > 0 {
		t.Errorf("found %v", v)
	}
}

// Calls with a key that were cut off are made again, works' own are not.
func TestRepeats(t *testing.T) {
	h := good()
	h.call(60, Line{Verb: Once, On: "c", Key: "k2"})
	h.call(61, Line{Verb: Tally, On: "s", Key: "l/2"})
	b := NewBook()
	for _, l := range h.lines {
		b.Read(l)
	}
	var keys []string
	for _, l := range b.Repeats(rand.New(rand.NewPCG(1, 2)), 10, 2) {
		keys = append(keys, l.Key)
	}
	if len(keys) != 3 || keys[0] != "k2" || strings.Contains(strings.Join(keys, " "), "l/") {
		t.Errorf("repeats %v", keys)
	}
}

// With several processes the order of their lines proves nothing, and everything else is judged as before.
func TestSeveralProcesses(t *testing.T) {
	h := good()
	h.done(50, Line{Verb: Resume, On: "l"}, Line{})
	h.effect(Line{Verb: Work, On: "pool/0-1", IDs: []string{"x"}, Text: "chain", Key: "p/1"})
	h.remove(func(l Line) bool { return l.Op == 45 })
	h.effect(Line{Verb: Work, On: "tray/0-1", IDs: []string{"z"}, Key: "y/1", N: 2})
	h.done(45, Line{Verb: Finish, On: "tray/0-1", N: 1}, Line{})
	for several, want := range map[bool]int{false: 3, true: 0} {
		b := NewBook()
		b.Several = several
		for _, l := range h.lines {
			b.Read(l)
		}
		if v := b.Check(&h.stored, true); len(v) != want {
			t.Errorf("several %t: found %v", several, v)
		}
		change(h.stored.Loops, "l", func(l *Loop) { l.Status = "failed" })
		if v := b.Check(&h.stored, true); !slices.ContainsFunc(v, func(v Violation) bool { return v.Promise == "R4" }) {
			t.Errorf("several %t: a failed job is not found in %v", several, v)
		}
		change(h.stored.Loops, "l", func(l *Loop) { l.Status = "paused" })
	}
}
