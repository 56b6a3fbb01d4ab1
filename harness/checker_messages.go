package harness

import (
	"fmt"
	"maps"
	"slices"

	codec "github.com/holdfast-dev/holdfast/internal/row"
	"github.com/holdfast-dev/holdfast/storage"
)

// NoLostMessage checks that every message is handled or is a dead letter when the scenario has
// settled. Messages to a class that the last host does not have may wait (M6), and so may those
// whose time is yet to come (M4). It also checks that no stored message goes away unless its
// receiver was given a message since: in each state that a crash leaves, and at the end, each
// message of the state before is stored still, or a turn of the receiver has begun with a
// message between the two.
func NoLostMessage(c *Config) {
	checker(check{
		name:    "NoLostMessage",
		promise: promiseHandled.String(),
		stored:  func(s *Sim, view *storedState) error { return s.messages.compare(view) },
		end:     noneWaits,
	})(c)
}

// seenMessages is what NoLostMessage keeps of a run: the messages of the last stored state,
// and which receivers were given one since.
type seenMessages struct {
	stored map[storage.MessageID]bool
	given  map[string]bool // by receiver
}

// give notes that a turn with a message begins at an object.
func (m *seenMessages) give(object string) {
	if m.given == nil {
		m.given = make(map[string]bool)
	}
	m.given[object] = true
}

// compare looks for messages that have gone away since the last stored state.
func (m *seenMessages) compare(view *storedState) error {
	now := make(map[storage.MessageID]bool)
	err := eachMessage(view, func(m storage.StoredMessage) { now[m.MessageID] = true })
	if err != nil {
		return err
	}
	before, given := m.stored, m.given
	m.stored, m.given = now, nil
	for id := range before {
		if !now[id] && !given[id.To.String()] {
			return concerning{fmt.Errorf("message %d is gone, and %s was given none", id.Seq, id.To), id.To.String()}
		}
	}
	return nil
}

// noneWaits looks for messages that are left.
func noneWaits(s *Sim) error {
	classes := make(map[string]bool)
	for _, d := range s.defs {
		if c, ok := d.(interface{ Name() string }); ok {
			classes[c.Name()] = true
		}
	}
	var left error
	err := eachMessage(s.Store(), func(m storage.StoredMessage) {
		if left == nil && classes[m.To.Class] && (m.Due <= s.Now().UnixNano() || failedBefore(m)) {
			left = concerning{fmt.Errorf("message %d to %s waits still at the end", m.Seq, m.To), m.To.String()}
		}
	})
	if err == nil {
		err = left
	}
	return err
}

// failedBefore reports whether an attempt at the message has failed, so that its time is that
// of a retry.
func failedBefore(m storage.StoredMessage) bool {
	r := codec.Read(m.State)
	r.Byte() // the version of the state
	return r.Uint() > 0
}

// eachMessage calls f with each stored message.
func eachMessage(view *storage.Store, f func(storage.StoredMessage)) error {
	count, err := view.CountMessages()
	if err != nil {
		return err
	}
	var receivers []storage.ID
	for more := true; more && err == nil; {
		more, err = count.Next(func(to storage.ID, _ int) bool { receivers = append(receivers, to); return true })
	}
	if closed := count.Close(); err == nil {
		err = closed
	}
	for _, to := range receivers {
		for queue := byte(0); queue < storage.Queues && err == nil; queue++ {
			err = view.Messages(to, queue, 0, 1<<63, func(m storage.StoredMessage) bool { f(m); return true })
		}
	}
	return err
}

// Ordered checks, in each state that a crash leaves and in the last, the numbers that
// receivers have stored of messages in the order in which they were handled. got returns
// one list for each pair of a sender and a receiver, under any name. If the sender numbers
// its messages from 1 on, each list must be 1, 2, 3 and so on: another list means that a
// message was lost, was handled twice, or has passed another one. Messages whose handlers
// fail may pass one another (M3), so do not number those.
func Ordered(got func(store *storage.Store) (map[string][]int, error)) Option {
	return checker(check{
		name:    "Ordered",
		promise: promiseOrder.String(),
		stored: func(_ *Sim, view *storedState) error {
			lists, err := got(view)
			if err != nil {
				return err
			}
			for _, pair := range slices.Sorted(maps.Keys(lists)) {
				for i, n := range lists[pair] {
					if n != i+1 {
						return fmt.Errorf("%s: message %d was handled where number %d belongs: %v", pair, n, i+1, lists[pair])
					}
				}
			}
			return nil
		},
	})
}
