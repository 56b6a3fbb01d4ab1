package storage

import (
	"bytes"

	"github.com/holdfast-dev/holdfast/storage/engine"
)

// MessageCount counts the stored messages of each receiver as they were when it was made. It
// is for one goroutine, and must be closed before the store.
type MessageCount struct {
	store *Store
	base  engine.Iterator // over the messages of all shards, and all that lies between
	shard int             // the shard read last; -1: none
	later int             // messages of the receiver that was counted last which have a time
}

// CountMessages returns a count over a snapshot of now. It reads nothing yet.
func (s *Store) CountMessages() (*MessageCount, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.exit()
	lower, _ := kindRange(0, kindMessage)
	_, upper := kindRange(s.shards-1, kindMessage)
	base, err := s.engine.NewIter(lower, upper)
	if err != nil {
		return nil, s.fail(err)
	}
	return &MessageCount{store: s, base: base, shard: -1}, nil
}

// Next calls f with each receiver of the next shard that has messages, and with how many,
// until f returns false. It reports whether the snapshot has further shards. f may call the
// store.
func (c *MessageCount) Next(f func(to ID, n int) bool) (more bool, err error) {
	c.shard++
	begin, _ := kindRange(c.shard, kindMessage)
	for {
		to, n, err := c.receiver(begin)
		if err != nil {
			return false, err
		}
		if n == 0 || !f(to, n) {
			return c.shard+1 < c.store.shards, nil
		}
		begin = nil
	}
}

// Later returns how many messages of the receiver that f has have an entry in the index by
// time. It is valid in f, and counts the states of the same snapshot. So a caller can tell
// receivers with messages to read now from those whose messages all wait for their time.
func (c *MessageCount) Later() int { return c.later }

// receiver counts the messages of one receiver of the shard: the first from the key begin on,
// or the next one if begin is nil. n is 0 if there is none.
func (c *MessageCount) receiver(begin []byte) (to ID, n int, err error) {
	s := c.store
	if err := s.enter(); err != nil {
		return ID{}, 0, err
	}
	defer s.exit()
	ok := c.base.Valid()
	if begin != nil {
		ok = c.base.SeekGE(begin)
	}
	lower, upper := kindRange(c.shard, kindMessage)
	c.later = 0
	for ; ok && bytes.Compare(c.base.Key(), upper) < 0; ok = c.base.Next() {
		id, row, err := decodeMessageKey(c.shard, c.base.Key()[len(lower):])
		if err != nil {
			return ID{}, 0, s.fail(err)
		}
		if n > 0 && id.To != to {
			break
		}
		if row == messageValue {
			to = id.To
			n++
			continue
		}
		m := StoredMessage{MessageID: id}
		state, err := c.base.ValueAndErr()
		if err == nil {
			err = m.readState(state)
		}
		if err != nil {
			return ID{}, 0, s.fail(err)
		}
		if m.Due != 0 {
			c.later++
		}
	}
	if err := c.base.Error(); err != nil {
		return ID{}, 0, s.fail(err)
	}
	return to, n, nil
}

// Close gives the snapshot back.
func (c *MessageCount) Close() error {
	if err := c.base.Close(); err != nil {
		return c.store.fail(err)
	}
	return nil
}
