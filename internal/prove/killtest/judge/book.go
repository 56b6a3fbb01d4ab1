package judge

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// Book is the log of all lives of one store.
type Book struct {
	// Several says that lives of several processes overlap, as in a cluster. A line of a process that was paused may then come
	// late, so what rests on the order of lines alone is not judged: which of two effects came first, and which Pause or Resume was
	// the last.
	Several bool

	calls    map[uint64]*call
	keyed    map[string]*keyed // calls with an idempotency key, by verb, object and key
	counters map[string]*counted
	timers   map[string]*timed
	loops    map[string]*looped
	batches  map[string]*batched
	work     map[string]*worked // by task id
	told     map[string]bool    // task ids of dead letters that were told of
	chains   map[string]uint64  // the last task that has begun, by order key
	found    []Violation        // by Read

	// Acked, Refused and Recovered count the lines of these kinds.
	Acked, Refused, Recovered int
}

// NewBook returns an empty book.
func NewBook() *Book {
	return &Book{
		calls: make(map[uint64]*call), keyed: make(map[string]*keyed),
		counters: make(map[string]*counted), timers: make(map[string]*timed),
		loops: make(map[string]*looped), batches: make(map[string]*batched),
		work: make(map[string]*worked), told: make(map[string]bool), chains: make(map[string]uint64),
	}
}

// call is a call that has no outcome yet, or never got one.
type call struct{ Line }

// keyed is all calls with one idempotency key.
type keyed struct {
	first   Line
	asked   int // calls that were not refused
	acked   bool
	answerN uint64 // the first answer
	answerK string
}

// Violation is a promise that is broken.
type Violation struct {
	Promise string // its number in docs/CONTRACT.md
	Lost    int    // acknowledged calls that are lost
	Double  bool   // something has happened twice in the store
	Text    string
}

func (v Violation) String() string { return v.Promise + ": " + v.Text }

func broken(promise, format string, args ...any) Violation {
	return Violation{Promise: promise, Text: fmt.Sprintf(format, args...)}
}

func lost(promise string, n int, format string, args ...any) Violation {
	return Violation{Promise: promise, Lost: n, Text: fmt.Sprintf(format, args...)}
}

func doubled(promise, format string, args ...any) Violation {
	return Violation{Promise: promise, Double: true, Text: fmt.Sprintf(format, args...)}
}

// find notes a violation that the log alone shows.
func (b *Book) find(v Violation) { b.found = append(b.found, v) }

// Read takes the next line of the log.
func (b *Book) Read(l Line) {
	switch l.Kind {
	case Call:
		b.called(l)
	case Ack, Refused:
		b.answered(l)
	case Effect:
		b.effect(l)
	case Recovered:
		b.Recovered++
	case Trouble:
		b.find(broken("the program", "%s", l.Text))
	}
}

func (b *Book) called(l Line) {
	b.calls[l.Op] = &call{l}
	switch l.Verb {
	case Once, Tally, Enqueue, Event:
		k := at(b.keyed, keyOf(l))
		if k.asked == 0 && k.first.Op == 0 {
			k.first = l
		}
		k.asked++
	case Add:
		at(b.counters, l.On).maybe++
	case Set:
		at(b.timers, l.On).maybe[l.N] = true
	case Finish:
		at(b.work, l.On).ending(l)
	case Pause, Resume:
		loop := at(b.loops, l.On)
		loop.is, loop.was = "", loop.is
	}
}

func (b *Book) answered(l Line) {
	c := b.calls[l.Op]
	if c == nil {
		b.find(broken("the log", "an answer to call %d, which was not made", l.Op))
		return
	}
	delete(b.calls, l.Op)
	if l.Kind == Refused {
		b.Refused++
		b.refused(c.Line)
		return
	}
	b.Acked++
	switch c.Verb {
	case Once, Tally, Enqueue, Event:
		b.ackedKey(c.Line, l)
	case Add, Read:
		b.ackedCount(c.Line, l)
	case Set:
		at(b.timers, c.On).acked(c.N)
	case Finish:
		b.finished(c.Line)
	case Pause, Resume:
		at(b.loops, c.On).is = c.Verb
	case State:
		loop := at(b.loops, c.On)
		loop.seen = max(loop.seen, l.N)
	}
}

// refused takes back a call that has left nothing behind.
func (b *Book) refused(c Line) {
	switch c.Verb {
	case Once, Tally, Enqueue, Event:
		b.keyed[keyOf(c)].asked--
	case Add:
		b.counters[c.On].maybe--
	case Set:
		delete(b.timers[c.On].maybe, c.N)
	case Pause, Resume:
		loop := b.loops[c.On]
		loop.is = loop.was
	}
}

// ackedKey compares an answer with the first one under the same key.
func (b *Book) ackedKey(c, l Line) {
	k := b.keyed[keyOf(c)]
	if k.acked && (k.answerN != l.N || k.answerK != l.Key) {
		promise := map[Verb]string{Once: "O16", Tally: "O16", Enqueue: "W8", Event: "D2"}[c.Verb]
		b.find(broken(promise, "%s of %q on %s was answered with %d %s, and before with %d %s", c.Verb, c.Key, c.On, l.N, l.Key, k.answerN, k.answerK))
	}
	if k.acked {
		return
	}
	k.acked, k.answerN, k.answerK = true, l.N, l.Key
	if c.Verb == Once || c.Verb == Tally {
		b.ackedCount(c, l)
	}
}

func keyOf(l Line) string { return string(l.Verb) + " " + l.On + " " + l.Key }

// Repeats are calls with an idempotency key to be made again by the next life: all
// that have no answer, up to max, and some of those that have one.
func (b *Book) Repeats(rnd *rand.Rand, max, some int) []Line {
	var open, acked []Line
	for _, k := range b.keyed {
		switch {
		case k.first.Verb == Tally:
		case k.acked:
			acked = append(acked, k.first)
		default:
			open = append(open, k.first)
		}
	}
	pick := func(all []Line, n int) []Line {
		slices.SortFunc(all, func(a, b Line) int { return int(int64(a.Op - b.Op)) })
		rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		return all[:min(n, len(all))]
	}
	return append(pick(open, max), pick(acked, some)...)
}

// Check compares a store at rest with the log, which was read to its end, and returns
// the broken promises. In the end, after a life that ran until nothing was left to do,
// everything that was accepted must be done.
func (b *Book) Check(s *Stored, end bool) []Violation {
	c := &check{Book: b, stored: s, end: end, tallies: s.tallies(), all: slices.Clone(b.found)}
	c.counters()
	c.timers()
	c.loops()
	c.batches()
	c.tasks()
	return c.all
}

// check is one comparison.
type check struct {
	*Book
	stored  *Stored
	end     bool
	tallies map[string]bool
	all     []Violation
}

func (c *check) broken(promise, format string, args ...any) {
	c.all = append(c.all, broken(promise, format, args...))
}

func (c *check) doubled(promise, format string, args ...any) {
	c.all = append(c.all, doubled(promise, format, args...))
}

func (c *check) lost(promise string, n int, format string, args ...any) {
	c.all = append(c.all, lost(promise, n, format, args...))
}

// tallied checks that a work which is committed had its effect inside the store
// too: it called a counter under its outside key before it returned.
func (c *check) tallied(promise, what, key string) {
	if !c.tallies[key] {
		c.lost(promise, 1, "%s is committed, and its call under %q, answered before, is not stored", what, key)
	}
}

// begun is an entry of a book that knows how to begin.
type begun[T any] interface {
	*T
	begin()
}

// at returns the entry of a name, made if need be.
func at[T any, P begun[T]](m map[string]P, name string) P {
	v := m[name]
	if v == nil {
		v = new(T)
		v.begin()
		m[name] = v
	}
	return v
}

func (*keyed) begin() {}

// union calls f with each name of either map, in order.
func union[A, B any](a map[string]A, b map[string]B, f func(name string)) {
	names := make([]string, 0, len(a)+len(b))
	for n := range a {
		names = append(names, n)
	}
	for n := range b {
		if _, ok := a[n]; !ok {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	for _, n := range names {
		f(n)
	}
}
