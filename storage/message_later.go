package storage

import (
	"encoding/binary"
	"math"
)

// LaterMessage is an entry of the index by time: a message and the time at which it is due,
// in nanoseconds since 1970.
type LaterMessage struct {
	MessageID
	Due int64
}

// laterKey is the key of a message in the index by time. The number tells messages apart
// that are due at the same time, because no two messages of a store share it.
func laterKey(dst []byte, shard int, due int64, seq uint64) []byte {
	dst = prefix(dst, shard, kindLater)
	dst = binary.BigEndian.AppendUint64(dst, uint64(due))
	return binary.BigEndian.AppendUint64(dst, seq)
}

// appendLater appends the value of an entry of the index by time.
func appendLater(dst []byte, id MessageID) []byte {
	dst = append(append(append(dst, id.Queue), id.To.Class...), 0)
	return append(dst, id.To.Name...)
}

// decodeLater reads an entry of the index by time: its key without shard and kind, and its
// value.
func decodeLater(shard int, key, value []byte) (LaterMessage, error) {
	if len(key) != 16 || len(value) == 0 || value[0] >= Queues {
		return LaterMessage{}, errKey(key)
	}
	m := LaterMessage{Due: int64(binary.BigEndian.Uint64(key))}
	to, err := decodeHeaderKey(value[1:])
	if err != nil {
		return LaterMessage{}, err
	}
	m.MessageID = MessageID{To: to, Shard: shard, Queue: value[0], Seq: binary.BigEndian.Uint64(key[8:])}
	if m.Due <= 0 || m.Seq == 0 {
		return LaterMessage{}, errKey(key)
	}
	return m, nil
}

// ScanLater returns up to limit entries of a shard's index by time, in order of due time and
// number, from the first after (due, seq) on.
func (s *Store) ScanLater(shard int, due int64, seq uint64, limit int) ([]LaterMessage, error) {
	_, upper := kindRange(shard, kindLater)
	it, err := s.iter(nil, append(laterKey(nil, shard, due, seq), 0), upper, false, 3)
	if err != nil {
		return nil, err
	}
	defer it.Close()
	var out []LaterMessage
	for len(out) < limit && it.Next() {
		m, err := decodeLater(shard, it.Key(), it.Value())
		if err != nil {
			return nil, s.fail(err)
		}
		out = append(out, m)
	}
	return out, it.Err()
}

// CountLater counts the messages to a receiver that have an entry in the index by time, up to
// limit of them. It reads the receiver's messages, because the index is in the order of time
// and not of receivers. So the cost is that of all stored messages before the last one that is
// counted; a caller with a cheap bound from above should look at that first.
func (s *Store) CountLater(to ID, limit int) (n int, err error) {
	for queue := byte(0); queue < Queues && n < limit && err == nil; queue++ {
		err = s.Messages(to, queue, 0, math.MaxUint64, func(m StoredMessage) bool {
			if m.Due != 0 {
				n++
			}
			return n < limit
		})
	}
	return n, err
}
