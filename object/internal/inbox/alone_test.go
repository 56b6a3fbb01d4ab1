package inbox

import "testing"

// Proves M7. A reader that has found no room rests until a message has landed, also if few but
// large ones are under way.
func TestReaderRestsBesideLargeMessages(t *testing.T) {
	for _, lands := range []bool{false, true} {
		var s Inboxes
		s.Found(anna, 2)
		s.Begin(anna)
		large := msg(anna, 1, MaxBytes-small)
		is(t, "takes the large one", s.Take(large), true)
		is(t, "takes one too large beside it", s.Take(msg(anna, 2, small+1)), false)
		if lands {
			is(t, "reads at its end", s.Land(large, true), false) // the reading is not over
			is(t, "next", s.End(anna, 1000, false), Again)
			continue
		}
		is(t, "next", s.End(anna, 1000, false), Rest)
		is(t, "hungry", s.Hungry(), false)
		is(t, "reads after it has landed", s.Land(large, true), true)
	}
}

// lone is a message that goes alone.
func lone(to Receiver, seq uint64) *Message {
	m := msg(to, seq, small)
	m.Alone = true
	return m
}

// Proves M3, A8. A message that goes alone has no other beside it.
func TestMessagesThatGoAlone(t *testing.T) {
	var s Inboxes
	s.Found(anna, 4)
	s.Begin(anna)
	first, second, third := lone(anna, 1), lone(anna, 2), msg(anna, 3, small)
	is(t, "takes the first", s.Take(first), true)
	is(t, "takes the second beside it", s.Take(lone(anna, 2)), false)
	is(t, "takes another beside it", s.Take(msg(anna, 3, small)), false)
	is(t, "next", s.End(anna, 1000, false), Rest)
	is(t, "reads after it has landed", s.Land(first, true), true)
	s.Begin(anna)
	is(t, "takes the second", s.Take(second), true)
	is(t, "takes a third", s.Take(msg(anna, 3, small)), false)
	is(t, "reads while the reading is not over", s.Land(second, true), false)
	is(t, "next", s.End(anna, 1000, false), Again)
	s.Begin(anna)
	is(t, "takes a usual one", s.Take(third), true)
	is(t, "takes one that goes alone", s.Take(lone(anna, 4)), false)
	is(t, "next", s.End(anna, 1000, false), Rest)
	is(t, "reads after it has landed", s.Land(third, true), true)
	s.Begin(anna)
	last := lone(anna, 4)
	is(t, "takes the last", s.Take(last), true)
	is(t, "next", s.End(anna, 1000, true), Rest)
	is(t, "reads after all", s.Land(last, true), false)
	empty(t, &s)
}

// Proves M3. A handler that lends its turn out lets the next message pass, once, because it
// may wait for it.
func TestLend(t *testing.T) {
	var s Inboxes
	s.Found(anna, 4)
	s.Begin(anna)
	first, second, third := lone(anna, 1), lone(anna, 2), lone(anna, 3)
	s.Take(first)
	s.Take(lone(anna, 2))
	is(t, "reads beside a reading", s.Lend(first), false)
	is(t, "next", s.End(anna, 1000, false), Again)
	s.Begin(anna)
	is(t, "takes the second", s.Take(second), true)
	is(t, "next", s.End(anna, 1000, false), Rest)
	is(t, "reads when the first lends again", s.Lend(first), false)
	is(t, "reads when the second lends", s.Lend(second), true)
	is(t, "reads when the first has landed", s.Land(first, true), false)
	s.Begin(anna)
	is(t, "takes the third", s.Take(third), true)
	is(t, "reads when the second has landed", s.Land(second, true), false)
	is(t, "takes a fourth beside the third", s.Take(lone(anna, 4)), false)
	is(t, "next", s.End(anna, 1000, false), Rest)
	is(t, "reads when all are detached", s.Detach(anna), true)
	is(t, "reads when one that is detached lends", s.Lend(third), false)
	s.Begin(anna)
	again := lone(anna, 3)
	is(t, "takes the third again", s.Take(again), true)
	is(t, "reads when the old third has landed", s.Land(third, false), false)
	is(t, "next", s.End(anna, 1000, false), Rest)
	is(t, "reads when it has landed", s.Land(again, true), true)
	is(t, "the box of anna remains", s.Known(anna), true)
}

// Proves M3. A pause while a message that has lent its turn out and another are under way
// begins anew with both.
func TestPauseBesideALentTurn(t *testing.T) {
	var s Inboxes
	s.Found(anna, 2)
	s.Begin(anna)
	first, second := lone(anna, 1), lone(anna, 2)
	s.Take(first)
	s.Lend(first)
	s.Take(second)
	s.End(anna, 1000, true)
	is(t, "pauses", s.Pause(first, errX), 1)
	is(t, "reads when the first has landed", s.Land(first, false), false)
	is(t, "reads when resumed", s.Resume(anna), false)
	is(t, "reads when the second has landed", s.Land(second, false), true)
	r, _ := s.Begin(anna)
	is(t, "begins with", r.From[1], 1)
	is(t, "takes the first again", s.Take(lone(anna, 1)), true)
	is(t, "takes the second beside it", s.Take(lone(anna, 2)), false)
}
