package main

import "fmt"

// stored is an account as the store has it.
type stored struct {
	total  int
	times  map[string]int // that an operation took effect, by its key
	events []event
}

// maxComplaints bounds the list of a judgement: the first ones tell most.
const maxComplaints = 20

// complaints are the differences between the record and the store.
type complaints struct{ list []string }

func (c *complaints) add(format string, args ...any) {
	if len(c.list) < maxComplaints {
		c.list = append(c.list, fmt.Sprintf(format, args...))
	}
}

// judge returns the differences between all that clients were told and the store after the last
// life. At that time each operation was answered and each follower had time to see all events.
func (r *record) judge(store map[string]stored) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var c complaints
	for _, odd := range r.odd {
		c.add("%s", odd)
	}
	sent := map[string]int{}
	for _, o := range r.all {
		sent[o.account]++
		c.operation(o, store[o.account])
	}
	for i := range accountCount {
		c.account(accountName(i), sent[accountName(i)], store[accountName(i)])
	}
	for _, f := range r.feeds {
		c.feed(f, store[f.account].events)
	}
	return c.list
}

// operation compares the answers of an operation with the store.
func (c *complaints) operation(o *operation, s stored) {
	switch {
	case o.first == nil:
		c.add("%s has no answer", o.key)
	case o.other != nil:
		c.add("%s was answered %+v, and then %+v", o.key, *o.first, *o.other)
	case o.first.Times != 1:
		c.add("%s was answered after it took effect %d times", o.key, o.first.Times)
	}
	switch n := s.times[o.key]; {
	case n == 0 && o.first != nil:
		c.add("%s was answered, and is lost", o.key)
	case n > 1:
		c.add("%s took effect %d times", o.key, n)
	}
}

// account compares the rows of an account with one another.
func (c *complaints) account(name string, sent int, s stored) {
	effects := 0
	for _, n := range s.times {
		effects += n
	}
	if len(s.times) > sent {
		c.add("%s has %d operations, of %d that were sent", name, len(s.times), sent)
	}
	if s.total != effects || len(s.events) != effects {
		c.add("%s has a total of %d and %d events after %d effects", name, s.total, len(s.events), effects)
	}
	for i, e := range s.events {
		if e.Total != i+1 {
			c.add("event %d of %s tells the total %d, want %d", e.seq, name, e.Total, i+1)
		}
		if s.times[e.Operation] == 0 {
			c.add("event %d of %s tells of %s, which the store does not have", e.seq, name, e.Operation)
		}
	}
}

// feed compares the events of a follower with those of the store.
func (c *complaints) feed(f *feed, want []event) {
	for i, e := range f.events {
		switch {
		case i > 0 && e.seq <= f.events[i-1].seq:
			c.add("%s of %s: event %d came after event %d", f.name, f.account, e.seq, f.events[i-1].seq)
			return
		case i >= len(want):
			c.add("%s of %s: event %d is not in the store", f.name, f.account, e.seq)
			return
		case e.seq > want[i].seq:
			c.add("%s of %s: event %d did not come before event %d", f.name, f.account, want[i].seq, e.seq)
			return
		case e != want[i]:
			c.add("%s of %s: event %d came as %+v, and the store has %+v", f.name, f.account, e.seq, e.change, want[i])
			return
		}
	}
	if len(f.events) < len(want) {
		c.add("%s of %s: %d events came, and the store has %d", f.name, f.account, len(f.events), len(want))
	}
}
