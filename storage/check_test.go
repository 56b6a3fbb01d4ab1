package storage

import (
	"errors"
	"math"
	"strings"
	"testing"
)

// planted is the first message of o. It has a state, and is due at 10.
func planted(s *Store, o Object) (id MessageID) {
	_ = s.Messages(o.ID, 0, 0, math.MaxUint64, func(m StoredMessage) bool { id = m.MessageID; return false })
	return id
}

// Check names the first row that contradicts another. Each case plants one in a
// store that is otherwise in order. Proves S12.
func TestCheckFindsPlantedContradictions(t *testing.T) {
	due, later := int64(10), int64(20)
	type plant func(s *Store, b *Batch, o Object)
	for name, c := range map[string]struct {
		plant plant
		says  string
	}{
		"row without header": {func(s *Store, b *Batch, o Object) {
			o.Number += 1000
			b.SetData(o, "k", nil)
		}, "which has no header"},
		"rows left by a lost header": {func(s *Store, b *Batch, o Object) {
			b.Delete(headerKey(nil, o.Shard, o.ID))
		}, "which has no header"},
		"open mark without header": {func(s *Store, b *Batch, o Object) {
			o.Number += 1000
			b.SetOpenMark(o, nil)
		}, "open-execution mark of object number"},
		"open mark of the wrong length": {func(s *Store, b *Batch, o Object) {
			b.Set(openKey(nil, o.Shard, o.Number)[:6], nil)
		}, "files are damaged"},
		"alarm row without index": {func(s *Store, b *Batch, o Object) {
			b.Delete(indexKey(nil, o.Shard, due, o.Number))
		}, "the alarm row of c/n has no index entry"},
		"index without alarm row": {func(s *Store, b *Batch, o Object) {
			b.Delete(rowKey(nil, o.Shard, o.Number, subAlarm))
		}, "alarm index entry of c/n"},
		"two index entries": {func(s *Store, b *Batch, o Object) {
			b.Set(indexKey(nil, o.Shard, later, o.Number), nil)
		}, "alarm index entry of c/n"},
		"index entry of nobody": {func(s *Store, b *Batch, o Object) {
			b.Set(indexKey(nil, o.Shard, due, o.Number+1000), nil)
		}, "alarm index entry"},
		"index key of the wrong length": {func(s *Store, b *Batch, o Object) {
			b.Set(append(indexKey(nil, o.Shard, due, o.Number), 0), nil)
		}, "files are damaged"},
		"two objects of one number": {func(s *Store, b *Batch, o Object) {
			twin := o
			for twin.ID.Name += "+"; s.ShardOf(twin.ID) != o.Shard; {
				twin.ID.Name += "+"
			}
			b.SetHeader(twin)
		}, "share number"},
		"object in the wrong shard": {func(s *Store, b *Batch, o Object) {
			b.SetHeader(Object{ID: ID{"c", "stray"}, Shard: (s.ShardOf(ID{"c", "stray"}) + 1) % s.Shards(), Number: s.NewNumber()})
		}, "c/stray lies in a shard that is not its own"},
		"header of no version": {func(s *Store, b *Batch, o Object) {
			b.Set(headerKey(nil, o.Shard, o.ID), []byte{99})
		}, "files are damaged"},
		"row key too short": {func(s *Store, b *Batch, o Object) {
			b.Set(rowKey(nil, o.Shard, o.Number, 0)[:8], nil)
		}, "files are damaged"},
		"event of no name": {func(s *Store, b *Batch, o Object) {
			b.Set(prefix(nil, o.Shard, kindEvent), []byte("12345678"))
		}, "files are damaged"},
		"expiry of no time": {func(s *Store, b *Batch, o Object) {
			b.Set(prefix(nil, o.Shard, kindExpiry), nil)
		}, "files are damaged"},
		"mark without an entry in the expiry index": {func(s *Store, b *Batch, o Object) {
			b.SetMark(o, 99, "k", 99, nil)
		}, "never expires"},
		"mark that is removed too early": {func(s *Store, b *Batch, o Object) {
			setMark(b, o, 0, "k", 9, "")
			b.SetMark(o, 98, "k", 99, nil)
			b.IndexMarks(o, 98)
		}, "removed before it expires"},
		"mark without a time": {func(s *Store, b *Batch, o Object) {
			b.Set(markKey(o, 99, "")[:15], appendExpiring(nil, 99, nil))
		}, "files are damaged"},
		"label without a row": {func(s *Store, b *Batch, o Object) {
			o.Label = label(t, "failed")
			b.SetHeader(o)
		}, "the label \"failed\" of c/n has no row"},
		"label row without a label": {func(s *Store, b *Batch, o Object) {
			b.MoveLabel(o, Label{}, label(t, "failed"))
		}, "whose header has the label \"\""},
		"label row of another label": {func(s *Store, b *Batch, o Object) {
			o.Label = label(t, "failed")
			b.SetHeader(o)
			b.MoveLabel(o, Label{}, label(t, "stuck"))
		}, "a label row \"stuck\" of c/n"},
		"label row of no object": {func(s *Store, b *Batch, o Object) {
			o.ID.Name = "x"
			b.MoveLabel(o, Label{}, label(t, "failed"))
		}, "a label row \"failed\" of c/x"},
		"label row of no label": {func(s *Store, b *Batch, o Object) {
			b.Set(append(prefix(nil, o.Shard, kindLabel), "c\x00\x00n"...), nil)
		}, "files are damaged"},
		"message in the wrong shard": {func(s *Store, b *Batch, o Object) {
			m := planted(s, o)
			m.Shard = (o.Shard + 1) % s.Shards()
			b.Set(messageKey(nil, m, messageValue), nil)
		}, "of c/n lies in a shard that is not its own"},
		"state without a message": {func(s *Store, b *Batch, o Object) {
			b.DeleteMessage(planted(s, o), false, due)
		}, "has no message"},
		"state of a later number": {func(s *Store, b *Batch, o Object) {
			m := planted(s, o)
			m.Seq += 1000
			b.SetMessageState(m, 0, 0, nil)
		}, "has no message"},
		"state of the other queue": {func(s *Store, b *Batch, o Object) {
			m := planted(s, o)
			m.Queue = 1
			b.SetMessageState(m, 0, 0, nil)
		}, "has no message"},
		"message with a time and without an entry": {func(s *Store, b *Batch, o Object) {
			b.Delete(laterKey(nil, o.Shard, due, planted(s, o).Seq))
		}, "is due at a time and is not in the index by time"},
		"entry of a message without a state": {func(s *Store, b *Batch, o Object) {
			b.Delete(messageKey(nil, planted(s, o), messageState))
		}, "which is not due then"},
		"entry of a message without a time": {func(s *Store, b *Batch, o Object) {
			b.SetMessageState(planted(s, o), 0, 0, nil)
		}, "which is not due then"},
		"entry at another time": {func(s *Store, b *Batch, o Object) {
			b.SetMessageState(planted(s, o), 0, later, nil)
		}, "which is not due then"},
		"two entries of a message": {func(s *Store, b *Batch, o Object) {
			b.Set(laterKey(nil, o.Shard, later, planted(s, o).Seq), []byte("\x00c\x00n"))
		}, "which is not due then"},
		"entry of a message that is gone": {func(s *Store, b *Batch, o Object) {
			b.DeleteMessage(planted(s, o), true, 0)
		}, "which is not due then"},
		"entry of another receiver": {func(s *Store, b *Batch, o Object) {
			b.Set(laterKey(nil, o.Shard, due, planted(s, o).Seq), []byte("\x00c\x00nn"))
		}, "which is not due then"},
		"entry of another queue": {func(s *Store, b *Batch, o Object) {
			b.Set(laterKey(nil, o.Shard, due, planted(s, o).Seq), []byte("\x01c\x00n"))
		}, "which is not due then"},
		"message of no number": {func(s *Store, b *Batch, o Object) {
			b.Set(messageKey(nil, MessageID{To: o.ID, Shard: o.Shard}, messageValue), nil)
		}, "files are damaged"},
		"message of a third queue": {func(s *Store, b *Batch, o Object) {
			b.AddMessage(o.Shard, o.ID, Queues, nil)
		}, "files are damaged"},
		"message of a third row": {func(s *Store, b *Batch, o Object) {
			b.Set(messageKey(nil, planted(s, o), messageState+1), nil)
		}, "files are damaged"},
		"message with a short key": {func(s *Store, b *Batch, o Object) {
			key := messageKey(nil, planted(s, o), messageValue)
			b.Set(key[:len(key)-1], nil)
		}, "files are damaged"},
		"message of no class": {func(s *Store, b *Batch, o Object) {
			b.Set(append(prefix(nil, o.Shard, kindMessage), "c"...), nil)
		}, "files are damaged"},
		"state without a time": {func(s *Store, b *Batch, o Object) {
			b.Set(messageKey(nil, planted(s, o), messageState), make([]byte, 7))
		}, "files are damaged"},
		"state of a time before 1970": {func(s *Store, b *Batch, o Object) {
			b.SetMessageState(planted(s, o), 0, -1, nil)
		}, "files are damaged"},
		"entry with a short key": {func(s *Store, b *Batch, o Object) {
			b.Set(laterKey(nil, o.Shard, due, planted(s, o).Seq)[:18], []byte("\x00c\x00n"))
		}, "files are damaged"},
		"entry with a long key": {func(s *Store, b *Batch, o Object) {
			b.Set(append(laterKey(nil, o.Shard, due, planted(s, o).Seq), 0), []byte("\x00c\x00n"))
		}, "files are damaged"},
		"entry without a value": {func(s *Store, b *Batch, o Object) {
			b.Set(laterKey(nil, o.Shard, due, planted(s, o).Seq), nil)
		}, "files are damaged"},
		"entry without a class": {func(s *Store, b *Batch, o Object) {
			b.Set(laterKey(nil, o.Shard, due, planted(s, o).Seq), []byte("\x00n"))
		}, "files are damaged"},
		"entry at the time 0": {func(s *Store, b *Batch, o Object) {
			b.Set(laterKey(nil, o.Shard, 0, planted(s, o).Seq), []byte("\x00c\x00n"))
		}, "files are damaged"},
		"row of the feed without a feed": {func(s *Store, b *Batch, o Object) {
			b.AddToFeed(FeedEntry{ID: o.ID})
		}, "the store keeps no feed"},
		"row of the feed that has expired": {func(s *Store, b *Batch, o Object) {
			s.setFeedRow(b, s.feed.last.Load()+1)
			b.AddToFeed(FeedEntry{ID: o.ID})
		}, "which has expired up to"},
		"row of the feed with a later position": {func(s *Store, b *Batch, o Object) {
			s.setFeedRow(b, 0)
			var row Batch
			row.AddToFeed(FeedEntry{ID: o.ID})
			b.Set(feedKey(nil, (s.through.Load()+1)<<blockBits), valuesOf(t, &row)[0])
		}, "which no opening has given out"},
		"row of the feed without a position": {func(s *Store, b *Batch, o Object) {
			s.setFeedRow(b, 0)
			b.Set(feedKey(nil, 1)[:10], nil)
		}, "files are damaged"},
		"row of the feed without a value": {func(s *Store, b *Batch, o Object) {
			s.setFeedRow(b, 0)
			b.Set(feedKey(nil, 1), []byte{feedVersion, 1})
		}, "files are damaged"},
		"row of a kind between": {func(s *Store, b *Batch, o Object) {
			b.Set(prefix(nil, o.Shard, kindLabel-1), nil)
		}, "files are damaged"},
		"row of an unknown kind": {func(s *Store, b *Batch, o Object) {
			b.Set(prefix(nil, o.Shard, kindEnd), nil)
		}, "files are damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, memOptions(newMem()))
			o := newObject(t, s, "c", "n")
			other := newObject(t, s, "c", "m")
			commit(t, s, func(b *Batch) {
				for _, o := range []Object{o, other} {
					b.SetData(o, "k", nil)
					b.SetOpenMark(o, nil)
					setMark(b, o, 0, "m", 5, "")
					b.MoveAlarm(o, nil, &due, nil, nil)
					b.AddEvent(o.Shard, o.ID, 1, 5, nil)
				}
			})
			m := send(t, s, o.ID, 0, "tried", "fresh")[0]
			commit(t, s, func(b *Batch) { b.SetMessageState(m, 0, due, []byte("state")) })
			if err := s.Check(); err != nil {
				t.Fatalf("before: %v", err)
			}
			commit(t, s, func(b *Batch) { c.plant(s, b, o) })
			err := s.Check()
			if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n") {
				t.Errorf("Check says %v, want one line with %q", err, c.says)
			}
			if err := errors.Join(s.Close()); err != nil {
				t.Error(err)
			}
		})
	}
}
