package storage

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/holdfast-dev/holdfast/storage/engine"
)

// A message is a call that the commit of one object has made of another one, the receiver.
// Its row is in the batch of the sender, and the batch of the receiver's turn deletes it.
// The rows lie in the receiver's shard, so each receiver has its messages in one range, in
// the order of their numbers:
//
//	shard 0x08 receiver's class 0x00 name length, name, queue, number, 0x00 → message
//	shard 0x08 the same                                               0x01 → its state
//	shard 0x09 due, number                                                 → queue, receiver
//
// The state has a row of its own, which is written when an attempt has failed, because a
// message may have two megabytes and an attempt must not write them again. A message that is
// sent with a delay has its state from the beginning. The state begins
// with the time at which the message is due, 8 bytes; 0 is none. A message with a time has
// one entry in the index by time, kind 0x09, and a message without a time has none (S12).

// MessageID names a stored message.
type MessageID struct {
	To    ID
	Shard int // of To
	// Queue is the queue of the receiver that has the message, 0 or 1. A receiver reads
	// queue 0 first.
	Queue byte
	// Seq is the number of the message. If a commit has begun after another one returned,
	// its messages have greater numbers. So the messages of one sender are in the order in
	// which it sent them.
	Seq uint64
}

// StoredMessage is a message as it is stored.
type StoredMessage struct {
	MessageID
	Value []byte
	// State is the state that SetMessageState stored last; Stated is false if there is none.
	State  []byte
	Stated bool
	Due    int64 // the time of its entry in the index by time; 0: it has no entry
}

// The last byte of a key of kind 0x08.
const (
	messageValue byte = 0
	messageState byte = 1
)

// Queues is how many queues a receiver has.
const Queues = 2

// queueKey begins the rows of one queue of a receiver.
func queueKey(dst []byte, shard int, to ID, queue byte) []byte {
	return append(namedPrefix(dst, shard, kindMessage, to), queue)
}

// messageKey is the key of one of the two rows of a message.
func messageKey(dst []byte, id MessageID, row byte) []byte {
	dst = binary.BigEndian.AppendUint64(queueKey(dst, id.Shard, id.To, id.Queue), id.Seq)
	return append(dst, row)
}

// decodeMessageKey reads a key that messageKey made, without its shard and kind. A key with
// the number 0 is damage, because Commit draws a number for each message.
func decodeMessageKey(shard int, rest []byte) (id MessageID, row byte, err error) {
	const tailLen = 1 + 8 + 1 // queue, number, row
	class, named, ok := cut0(rest)
	if !ok || len(named) < 2 {
		return MessageID{}, 0, errKey(rest)
	}
	n := int(binary.BigEndian.Uint16(named))
	if named = named[2:]; len(named) != n+tailLen {
		return MessageID{}, 0, errKey(rest)
	}
	name, tail := named[:n], named[n:]
	id = MessageID{To: ID{class, string(name)}, Shard: shard, Queue: tail[0], Seq: binary.BigEndian.Uint64(tail[1:])}
	if row = tail[9]; row > messageState || id.Queue >= Queues || id.Seq == 0 {
		return MessageID{}, 0, errKey(rest)
	}
	return id, row, nil
}

// AddMessage stores a message for a receiver in one of its queues, 0 or 1. shard is the
// receiver's. Commit draws the number of the message, and MessageSeq returns it after that,
// because readers would have to wait for the commit from the moment of the draw on (see
// MessagesBelow).
func (b *Batch) AddMessage(shard int, to ID, queue byte, value []byte) {
	var room [2 * keyRoom]byte
	b.record(engine.KindSet, messageKey(room[:0], MessageID{To: to, Shard: shard, Queue: queue}, messageValue))
	b.messages = append(b.messages, len(b.data)-8-1) // the number stands before the last byte of the key
	b.data = appendBytes(b.data, value)
}

// AddDelayedMessage is AddMessage for a message that has a state from the beginning, with an
// entry in the index by time. due is in nanoseconds since 1970, and positive. The message
// lies beside its queue: readers of the queue pass over it, because it has a time.
//
// The number of the message is part of three keys: its own, that of its state and that of its
// entry. Commit draws the number, so the batch keeps the places of the other two.
func (b *Batch) AddDelayedMessage(shard int, to ID, queue byte, value []byte, due int64, state []byte) {
	id := MessageID{To: to, Shard: shard, Queue: queue}
	d := delayedNumbers{message: len(b.messages)}
	b.AddMessage(shard, to, queue, value)
	var room [2 * keyRoom]byte
	b.record(engine.KindSet, messageKey(room[:0], id, messageState))
	d.state = len(b.data) - 8 - 1
	b.data = appendBytes(b.data, appendState(nil, due, state))
	b.record(engine.KindSet, laterKey(room[:0], shard, due, 0))
	d.entry = len(b.data) - 8
	b.data = appendBytes(b.data, appendLater(room[:0], id))
	b.delayed = append(b.delayed, d)
}

// delayedNumbers is the places of the number of a delayed message in a batch, beside that in
// the key of the message itself.
type delayedNumbers struct {
	message      int // index in Batch.messages
	state, entry int // places in data: in the key of its state, and in that of its entry by time
}

// setNumber puts the number that was drawn for the message into its other two keys.
func (d delayedNumbers) setNumber(b *Batch) {
	number := b.data[b.messages[d.message]:][:8]
	copy(b.data[d.state:], number)
	copy(b.data[d.entry:], number)
}

// MessageSeq returns the number of a message that the batch has added: i is 0 for the first
// call of AddMessage. Calls that Rollback has undone do not count. The number is valid from
// Commit until Reset.
func (b *Batch) MessageSeq(i int) uint64 { return binary.BigEndian.Uint64(b.data[b.messages[i]:]) }

// DeleteMessage removes a message; also its state, if stated, and its entry at the time due,
// if due is not 0. Both must be as the message was read.
func (b *Batch) DeleteMessage(id MessageID, stated bool, due int64) {
	var room [2 * keyRoom]byte
	b.Delete(messageKey(room[:0], id, messageValue))
	if stated {
		b.Delete(messageKey(room[:0], id, messageState))
	}
	if due != 0 {
		b.Delete(laterKey(room[:0], id.Shard, due, id.Seq))
	}
}

// SetMessageState stores the state of a message, in place of the one before. The message
// moves from the time from to the time to in the index by time. Times are nanoseconds since
// 1970 and not negative; 0 is no time, hence no entry in the index.
func (b *Batch) SetMessageState(id MessageID, from, to int64, state []byte) {
	var room [2 * keyRoom]byte
	b.Set(messageKey(room[:0], id, messageState), appendState(nil, to, state))
	if from != 0 && from != to {
		b.Delete(laterKey(room[:0], id.Shard, from, id.Seq))
	}
	if to != 0 {
		b.Set(laterKey(room[:0], id.Shard, to, id.Seq), appendLater(nil, id))
	}
}

// appendState appends the value of a state row.
func appendState(dst []byte, due int64, state []byte) []byte {
	return append(binary.BigEndian.AppendUint64(dst, uint64(due)), state...)
}

// readState reads the value of a state row.
func (m *StoredMessage) readState(value []byte) error {
	if len(value) < 8 || value[0] > 0x7f {
		return fmt.Errorf("%w: state %x of message %d of %s", ErrCorrupt, value, m.Seq, m.To)
	}
	m.Due, m.State, m.Stated = int64(binary.BigEndian.Uint64(value)), value[8:], true
	return nil
}

// Messages calls f with the messages of one queue of a receiver that have the numbers from
// lower on and before upper, in order, until f returns false. It reads a snapshot of the
// moment of the call. A reader that is to miss none takes upper from MessagesBelow.
func (s *Store) Messages(to ID, queue byte, lower, upper uint64, f func(StoredMessage) bool) error {
	if lower >= upper {
		return s.Err()
	}
	shard := s.ShardOf(to)
	first := MessageID{To: to, Shard: shard, Queue: queue, Seq: lower}
	end := MessageID{To: to, Shard: shard, Queue: queue, Seq: upper}
	it, err := s.iter(nil, messageKey(nil, first, messageValue), messageKey(nil, end, messageValue), false, 3)
	if err != nil {
		return err
	}
	defer it.Close()
	var m StoredMessage // f has it once the next row is read, because the state follows its message
	for it.Next() {
		id, row, err := decodeMessageKey(shard, it.Key())
		switch {
		case err != nil:
			return s.fail(err)
		case row == messageState:
			if err := m.addState(id, it.Value()); err != nil {
				return s.fail(err)
			}
		case m.Seq != 0 && !f(m):
			return it.Close()
		default:
			m = StoredMessage{MessageID: id, Value: it.Value()}
		}
	}
	if err := it.Close(); err != nil {
		return err
	}
	if m.Seq != 0 {
		f(m)
	}
	return nil
}

// addState adds the state that was read for the message id, which must be m.
func (m *StoredMessage) addState(id MessageID, value []byte) error {
	if id != m.MessageID {
		return fmt.Errorf("%w: the state of message %d of %s has no message", ErrCorrupt, id.Seq, id.To)
	}
	return m.readState(value)
}

// Message returns one stored message; ok is false if it is gone. Message and state are of
// one moment.
func (s *Store) Message(id MessageID) (m StoredMessage, ok bool, err error) {
	err = s.Messages(id.To, id.Queue, id.Seq, id.Seq+1, func(found StoredMessage) bool {
		m, ok = found, true
		return false
	})
	return m, ok, err
}

// HasMessages reports whether a receiver has a message with a number before upper. It seeks
// once in each queue and reads no message.
func (s *Store) HasMessages(to ID, upper uint64) (found bool, err error) {
	if err := s.enter(); err != nil {
		return false, err
	}
	defer s.exit()
	shard := s.ShardOf(to)
	base, err := s.engine.NewIter(queueKey(nil, shard, to, 0), queueKey(nil, shard, to, Queues))
	if err != nil {
		return false, s.fail(err)
	}
	for queue := byte(0); queue < Queues && !found; queue++ {
		end := messageKey(nil, MessageID{To: to, Shard: shard, Queue: queue, Seq: upper}, messageValue)
		found = base.SeekGE(queueKey(nil, shard, to, queue)) && bytes.Compare(base.Key(), end) < 0
	}
	err = base.Error()
	if closeErr := base.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return false, s.fail(err)
	}
	return found, nil
}
