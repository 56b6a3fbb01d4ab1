package main

import (
	"fmt"
	"math/rand/v2"
	"sync"
)

// operation is a call with a key of its own.
type operation struct {
	account, key string
	first        *answer // the first answer; nil: none has come yet
	other        *answer // an answer that is not the first one; nil: there was none
}

// event is one that a follower was told of, or that the store has.
type event struct {
	seq uint64
	change
}

// feed is all that one follower was told of an account, over all its connections.
type feed struct {
	account, name string
	events        []event
	came          int // connections
}

// record is all that the clients were told.
type record struct {
	mu       sync.Mutex // guards all below
	all      []*operation
	feeds    []*feed
	answered int // answers, with those of repeats
	repeats  int // calls of an operation that was sent before
	odd      []string
	rand     *rand.Rand
	grown    chan struct{} // closes with the next answer or event
}

func newRecord(seed uint64) *record {
	return &record{rand: rand.New(rand.NewPCG(seed, 1)), grown: make(chan struct{})}
}

// accountCount is small, so that calls meet.
const accountCount = 4

func accountName(i int) string { return fmt.Sprint("account-", i) }

// next returns a new operation, or for one in four an earlier one, which may be under way.
func (r *record) next() *operation {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.all) > 0 && r.rand.IntN(4) == 0 {
		r.repeats++
		if r.rand.IntN(4) == 0 {
			return r.all[r.rand.IntN(len(r.all))]
		}
		return r.all[max(0, len(r.all)-1-r.rand.IntN(64))]
	}
	o := &operation{account: accountName(r.rand.IntN(accountCount)), key: fmt.Sprint("operation-", len(r.all))}
	r.all = append(r.all, o)
	return o
}

// repeat counts a repeat of an operation that has no answer yet.
func (r *record) repeat() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.repeats++
}

// told records an answer.
func (r *record) told(o *operation, a answer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answered++
	if o.first == nil {
		o.first = &a
	} else if *o.first != a {
		o.other = &a
	}
	r.grow()
}

// follows adds a follower of an account.
func (r *record) follows(account, name string) *feed {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := &feed{account: account, name: name}
	r.feeds = append(r.feeds, f)
	return f
}

// saw records an event of a feed.
func (r *record) saw(f *feed, e event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f.events = append(f.events, e)
	r.grow()
}

// strange records something that never happens to a client while the program is right.
func (r *record) strange(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.odd = append(r.odd, fmt.Sprintf(format, args...))
	r.grow()
}

// grow wakes those that wait for the record. The mutex is held.
func (r *record) grow() {
	close(r.grown)
	r.grown = make(chan struct{})
}

// unanswered counts the operations without an answer.
func (r *record) unanswered() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, o := range r.all {
		if o.first == nil {
			n++
		}
	}
	return n
}
