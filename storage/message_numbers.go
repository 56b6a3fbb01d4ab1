package storage

import (
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"
)

// # How a reader misses no message
//
// Commits are applied beside one another, so a message with a greater number may be visible
// before one with a lesser number. A reader that has gone on from the greater one would
// never see the lesser one. Hence:
//
//  1. Commit draws the numbers of the batch's messages, in order, and enters the first of
//     them in the list of open drawings (draw). Both happen under one mutex, so the list is
//     in the order of numbers.
//  2. Commit applies the batch. Now the messages are visible.
//  3. The caller hands each message over: it tells the readers of the receivers of it.
//  4. HandedOver ends the drawing.
//  5. MessagesBelow is the first number of the oldest open drawing. A reader calls it, then
//     reads the rows before that number, and the next time goes on from there. Each later
//     message has that number or a greater one.
//
// For example, commit A draws 7, commit B draws 8 and is applied and handed over first. A
// reader stops at 7 until A is handed over, and then reads 7 and 8.
//
// The number is drawn at the commit and not when a turn sends the message, because a reader
// would else stand still for as long as the turn takes.

// drawn is the numbers that commits have drawn and not handed over yet: those of messages, or the
// positions of the feed.
type drawn struct {
	mu   sync.Mutex
	open []drawing // from head on, in the order of numbers; those before head are done
	head int
}

// drawing is one commit.
type drawing struct {
	first uint64 // its first number
	done  bool   // it is handed over
}

// draw draws numbers for the messages of a batch that is about to be applied.
func (s *Store) draw(b *Batch) {
	d := &s.drawn
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, at := range b.messages {
		binary.BigEndian.PutUint64(b.data[at:], s.NextSeq())
	}
	for _, m := range b.delayed {
		m.setNumber(b)
	}
	d.open = append(d.open, drawing{first: b.MessageSeq(0)})
}

// HandedOver ends a commit with messages: the caller has told the reader of each receiver.
// first is the number of the commit's first message (Batch.MessageSeq). Each such Commit that
// returns nil must be followed by one call, because MessagesBelow stands still until then. A
// Commit that returns an error needs none.
func (s *Store) HandedOver(first uint64) {
	s.drawn.close(first)
}

// close ends the drawing that begins with a number.
func (d *drawn) close(first uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	i, found := slices.BinarySearchFunc(d.open, first, func(o drawing, first uint64) int {
		if o.first < first {
			return -1
		}
		return int(min(o.first-first, 1))
	})
	if found {
		d.open[i].done = true
	}
	d.forget()
}

// forget drops the drawings that are done, up to the oldest open one. It moves the others
// to the front when half of the list is gone, because the list never becomes empty while
// commits overlap.
func (d *drawn) forget() {
	for d.head < len(d.open) && d.open[d.head].done {
		d.head++
	}
	if 2*d.head >= len(d.open) {
		d.open, d.head = slices.Delete(d.open, 0, d.head), 0
	}
}

// MessagesBelow returns a number such that each message with a lesser one is visible and was
// handed over. A reader stops before it, because a message with that number or a greater one
// may be visible while a lesser one is not.
func (s *Store) MessagesBelow() uint64 {
	return s.drawn.below(&s.seqs)
}

// below returns the first number of the oldest open drawing, or without one the number behind
// the last of the counter that the numbers are drawn from.
func (d *drawn) below(counter *atomic.Uint64) uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.head < len(d.open) {
		return d.open[d.head].first
	}
	// Numbers of other rows may be drawn beside this, but none of a drawing.
	return counter.Load() + 1
}

// FirstSeq is less than each number that this opening of the store gives to a message, and
// greater than all that earlier openings gave.
func (s *Store) FirstSeq() uint64 { return s.epoch << blockBits }
