package linearize

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"maps"
	"strings"

	"github.com/anishathalye/porcupine"
)

// input is an operation of a history: a call of one cell, or the end of a process.
type input struct {
	cell        int
	command     command
	key         int  // of addOnce
	unconfirmed bool // the reply did not wait for the disk
	ending      ending
}

// ending is how a process ended, for operations that are such an end.
type ending int

const (
	notAnEnd  ending = iota
	crashed          // unsynced writes may be lost
	restarted        // in order: nothing is lost
)

// output is the result of an operation. Refused operations are not in a history.
type output struct {
	unknown bool // it may have happened or not
	answer  answer
}

// value is a cell as the model has it.
type value struct {
	content content
	answers string // the answers of addOnce: 4 bytes of key and 4 of the number each
}

// state is a cell and the earlier values that a crash may bring back. A reply that waited
// for the disk rules out the values before the one it shows (O7), whether its turn wrote
// or only read.
type state struct {
	now    value
	undone undone
}

func (s state) with(next value) state {
	if next == s.now {
		return s
	}
	return state{next, s.undone.add(s.now)}
}

// undone is a set of values, each as its length and its encoding, in order. So
// states can be compared and be keys of a map.
type undone string

func (u undone) add(v value) undone {
	c := v.content
	b := binary.BigEndian.AppendUint16(nil, uint16(24+len(v.answers)))
	b = binary.BigEndian.AppendUint64(b, uint64(c.Number))
	b = binary.BigEndian.AppendUint64(b, uint64(c.Length))
	b = binary.BigEndian.AppendUint64(b, c.Sum)
	one := undone(append(b, v.answers...))
	at := 0
	for at < len(u) {
		next, _ := u[at:].first()
		if next == one {
			return u
		}
		if next > one {
			break
		}
		at += len(next)
	}
	return u[:at] + one + u[at:]
}

// first is the first value of those that are left, encoded and decoded.
func (u undone) first() (undone, value) {
	number := func(at int) uint64 { return binary.BigEndian.Uint64([]byte(u[at : at+8])) }
	end := 2 + int(binary.BigEndian.Uint16([]byte(u[:2])))
	c := content{Number: int(number(2)), Length: int(number(10)), Sum: number(18)}
	return u[:end], value{c, string(u[26:end])}
}

func (u undone) all() (all []value) {
	for u != "" {
		one, v := u.first()
		all = append(all, v)
		u = u[len(one):]
	}
	return all
}

// step lists the states that may follow from an operation.
func step(s state, in input, out output) []state {
	switch in.ending {
	case restarted:
		return []state{{now: s.now}}
	case crashed:
		var all []state
		for _, v := range append(s.undone.all(), s.now) {
			all = append(all, state{now: v})
		}
		return all
	}
	next, want := s.now.after(in)
	switch {
	case out.unknown:
		return []state{s, s.with(next)}
	case out.answer != want:
		return nil
	case in.unconfirmed:
		return []state{s.with(next)}
	}
	return []state{{now: next}}
}

// after is the cell after a call that happened, and the answer to it.
func (v value) after(in input) (value, answer) {
	cmd, c := in.command, v.content
	ok := true
	switch cmd.kind {
	case add:
		c.Number += cmd.amount
	case addOnce:
		return v.once(in.key, cmd.amount)
	case keepAndFail:
		c.Number++
	case appendItem:
		c = c.appended(cmd.amount)
	case setIf:
		if ok = c.Number == cmd.old; ok {
			c.Number = cmd.amount
		}
	case purge:
		return value{}, answer{c, true}
	case remove:
		return value{}, answer{}
	}
	return value{c, v.answers}, answer{c, ok}
}

// once is addOnce, with the number alone as the answer.
func (v value) once(key, amount int) (value, answer) {
	for i := 0; i < len(v.answers); i += 8 {
		b := []byte(v.answers[i : i+8])
		if binary.BigEndian.Uint32(b) == uint32(key) {
			n := int(int32(binary.BigEndian.Uint32(b[4:])))
			return v, answer{content{Number: n}, true}
		}
	}
	v.content.Number += amount
	b := binary.BigEndian.AppendUint32(nil, uint32(key))
	v.answers += string(binary.BigEndian.AppendUint32(b, uint32(int32(v.content.Number))))
	return v, answer{content{Number: v.content.Number}, true}
}

// states are all states that are possible after some operations. porcupine's own
// NondeterministicModel compares each of them with each, which takes a minute where a
// crash has cut off a dozen calls of one cell.
type states struct {
	all  map[state]struct{}
	hash uint64
}

var seed = maphash.MakeSeed()

func (s *states) add(one state) {
	if _, has := s.all[one]; !has {
		s.all[one] = struct{}{}
		s.hash ^= maphash.Comparable(seed, one)
	}
}

func (s *states) step(in input, out output) *states {
	next := &states{all: make(map[state]struct{}, 2*len(s.all))}
	for one := range s.all {
		for _, n := range step(one, in, out) {
			next.add(n)
		}
	}
	return next
}

// model is the model of one cell, for porcupine. harness.Linearizable would not do,
// because it knows no crash that takes back unsynced writes and nothing else.
func model() porcupine.Model {
	return porcupine.Model{
		Init: func() any {
			first := &states{all: make(map[state]struct{})}
			first.add(state{})
			return first
		},
		Step: func(s, in, out any) (bool, any) {
			next := s.(*states).step(in.(input), out.(output))
			return len(next.all) > 0, next
		},
		Equal: func(a, b any) bool {
			x, y := a.(*states), b.(*states)
			return x.hash == y.hash && maps.Equal(x.all, y.all)
		},
		Hash:              func(s any) uint64 { return s.(*states).hash },
		DescribeOperation: func(in, out any) string { return describe(in.(input), out.(output)) },
		DescribeState: func(s any) string {
			var b strings.Builder
			for one := range s.(*states).all {
				fmt.Fprintf(&b, "{now %+v, or after a crash %+v} ", one.now, one.undone.all())
			}
			return b.String()
		},
	}
}

func describe(in input, out output) string {
	switch in.ending {
	case crashed:
		return "crash"
	case restarted:
		return "restart"
	}
	text := fmt.Sprintf("%s %+v", kindNames[in.command.kind], in.command)
	if in.command.kind == addOnce {
		text += fmt.Sprintf(" key %d", in.key)
	}
	if in.unconfirmed {
		text += " unconfirmed"
	}
	if out.unknown {
		return text + ": unknown"
	}
	return fmt.Sprintf("%s: %+v", text, out.answer)
}
