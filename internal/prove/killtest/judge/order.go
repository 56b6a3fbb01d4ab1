package judge

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
)

// Order checks that the calls of each counter fit one order that agrees with their times: that the counters are
// linearizable. It reads timed lines, of any number of processes whose clock is the same.
//
// A count is told to one call alone, so the counts give the order of the calls, and the check is exact: it gives each call
// the earliest moment that its begin and the calls before allow, and finds a call that has ended before its moment.
// Calls of unknown outcome take the counts that nobody was told of, in the order in which they began.
type Order struct {
	open     map[uint64]Line
	keyed    map[string]*counting // calls with one idempotency key are one call
	counters map[string]*counterOrder
	calls    int
}

// counterOrder is the calls of one counter.
type counterOrder struct{ adds, reads []*counting }

// counting is a call of a counter.
type counting struct {
	line         Line
	began, ended int64
	n            uint64 // 0 of an add: not told
	left         bool   // refused, so that it counts nothing
}

// never is the end of a call without an answer.
const never = math.MaxInt64

// NewOrder returns an Order without calls.
func NewOrder() *Order {
	return &Order{open: make(map[uint64]Line), keyed: make(map[string]*counting), counters: make(map[string]*counterOrder)}
}

// Read takes the next line. Lines of one process must be in their order.
func (o *Order) Read(l Line) {
	switch l.Kind {
	case Call:
		switch l.Verb {
		case Add, Once, Tally, Read:
			o.open[l.Op] = l
			o.begins(l)
		}
	case Ack, Refused:
		if call, ok := o.open[l.Op]; ok {
			delete(o.open, l.Op)
			o.ends(call, l)
		}
	}
}

// name is the key of a call in keyed. One without an idempotency key stands for itself.
func name(l Line) string {
	if l.Verb == Add || l.Verb == Read {
		return fmt.Sprintf("call %d", l.Op)
	}
	return keyOf(l)
}

func (o *Order) begins(l Line) {
	c := o.keyed[name(l)]
	if c == nil {
		c = &counting{line: l, began: l.At, ended: never, left: true}
		o.keyed[name(l)] = c
		of := o.counters[l.On]
		if of == nil {
			of = new(counterOrder)
			o.counters[l.On] = of
		}
		if l.Verb == Read {
			of.reads = append(of.reads, c)
		} else {
			of.adds = append(of.adds, c)
		}
	}
	c.began = min(c.began, l.At)
	c.left = false
}

func (o *Order) ends(call, l Line) {
	c := o.keyed[name(call)]
	switch {
	case l.Kind == Ack:
		c.ended, c.n = min(c.ended, l.At), l.N
		o.calls++
	case call.Verb == Add || call.Verb == Read:
		c.left = true
	}
}

// Calls is how many answers there were.
func (o *Order) Calls() int { return o.calls }

// Check returns an error that names the first call that fits no order.
func (o *Order) Check() error {
	for _, on := range slices.Sorted(maps.Keys(o.counters)) {
		if err := o.counters[on].check(); err != nil {
			return fmt.Errorf("counter %s: %w", on, err)
		}
	}
	return nil
}

// check gives each call its moment, count by count.
func (c *counterOrder) check() error {
	told, untold := make(map[uint64]*counting), []*counting{}
	last := uint64(0)
	for _, a := range c.adds {
		switch {
		case a.left:
		case a.ended == never:
			untold = append(untold, a)
		case told[a.n] != nil:
			return fmt.Errorf("calls %d and %d were both told the count %d", told[a.n].line.Op, a.line.Op, a.n)
		default:
			told[a.n], last = a, max(last, a.n)
		}
	}
	slices.SortFunc(untold, func(a, b *counting) int { return cmp.Compare(a.began, b.began) })
	reads := make(map[uint64][]*counting)
	for _, r := range c.reads {
		if r.ended != never {
			reads[r.n], last = append(reads[r.n], r), max(last, r.n)
		}
	}
	now := int64(math.MinInt64)
	for n := uint64(0); n <= last; n++ {
		if n > 0 {
			add := told[n]
			if add == nil {
				if len(untold) == 0 {
					return fmt.Errorf("the count %d was told to nobody, and no call of unknown outcome is left for it", n)
				}
				add, untold = untold[0], untold[1:]
			}
			if now = max(now, add.began); now > add.ended {
				return fmt.Errorf("call %d was told the count %d, and ended before a call that comes before it in each order began", add.line.Op, n)
			}
		}
		from := now
		for _, r := range reads[n] {
			at := max(from, r.began)
			if at > r.ended {
				return fmt.Errorf("the read %d was told %d, and ended before that count was reached", r.line.Op, n)
			}
			now = max(now, at)
		}
	}
	return nil
}
