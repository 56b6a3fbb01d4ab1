package storage

import "testing"

// BenchmarkCommitMessage is a commit with one message, beside one that sets the same key to
// the same value: the difference is the price of the number.
func BenchmarkCommitMessage(b *testing.B) {
	value := make([]byte, 100)
	run := func(b *testing.B, fill func(*Batch, MessageID), handOver bool) {
		s, o := benchStore(b)
		b.ReportAllocs()
		var batch Batch
		for n := uint64(1); b.Loop(); n++ {
			batch.Reset()
			fill(&batch, MessageID{To: o.ID, Shard: o.Shard, Seq: s.FirstSeq() + n})
			if _, err := s.Commit(&batch); err != nil {
				b.Fatal(err)
			}
			if handOver {
				s.HandedOver(batch.MessageSeq(0))
			}
		}
	}
	b.Run("message", func(b *testing.B) {
		run(b, func(batch *Batch, m MessageID) { batch.AddMessage(m.Shard, m.To, m.Queue, value) }, true)
	})
	b.Run("set", func(b *testing.B) {
		run(b, func(batch *Batch, m MessageID) {
			var room [2 * keyRoom]byte
			batch.Set(messageKey(room[:0], m, messageValue), value)
		}, false)
	})
}
