package storage

import (
	"errors"
	"strings"
	"testing"
)

// Check names the first row that contradicts another. Each case plants one in a
// store that is otherwise in order.
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
			b.SetOpen(o, nil)
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
					b.SetOpen(o, nil)
					setMark(b, o, 0, "m", 5, "")
					b.MoveAlarm(o, nil, &due, nil, nil)
					b.AddEvent(o.Shard, o.ID, 1, 5, nil)
				}
			})
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
