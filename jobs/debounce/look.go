package debounce

import (
	"time"

	"github.com/holdfast-dev/holdfast/storage"
)

// Look is the events of a debounce object as its rows tell them, for tools that look at a store.
// It has no time at which they are due, because that depends on the Config.
type Look struct {
	Waiting     int       // events that wait for the next flush
	First, Last time.Time // when the first and the last of them came
	Full        bool      // they have reached Config.MaxEvents
	Manual      bool      // FlushNow was called for them
	// Closed is how many events the flush has that runs or waits for another attempt, and
	// Reason is why it began; 0 if there is none.
	Closed int
	Reason Reason
}

// LookAt reads the buffer of the debounce object that o is, and reports whether there is one. It
// reads two or three rows.
func LookAt(s *storage.Store, o storage.Object) (l Look, ok bool, err error) {
	stored, ok, err := s.Data(nil, o, bufferKey)
	if err != nil || !ok {
		return l, false, err
	}
	b, err := decodeBuffer(stored)
	if err != nil {
		return l, false, err
	}
	newest, err := lookNewest(s, o, b.open.number)
	if err == nil {
		b.open, err = caughtUp(b.open, newest)
	}
	g := b.open
	l = Look{
		Waiting: g.count, First: g.first, Last: g.last, Full: !g.full.IsZero(), Manual: !g.manual.IsZero(),
		Closed: b.closed.count, Reason: b.closed.reason,
	}
	return l, err == nil, err
}

// lookNewest is newestRow without a turn.
func lookNewest(s *storage.Store, o storage.Object, number uint64) ([]byte, error) {
	prefix := eventPrefix(number)
	it, err := s.ListData(nil, o, prefix, storage.PrefixEnd(prefix), true)
	if err != nil {
		return nil, err
	}
	defer it.Close()
	if it.Next() {
		return it.Value(), it.Err()
	}
	row, _, err := s.Data(nil, o, stateKey(number))
	return row, err
}
