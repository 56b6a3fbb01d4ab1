package shardlog

import "sync"

// keptBytes bounds the acknowledged records in memory.
const keptBytes = 64 << 20

// kept are the newest acknowledged records, the oldest first. If the log loses them, they are the only copy.
type kept struct {
	mu      sync.Mutex
	before  uint64 // the chain before the first of them
	records []Record
	bytes   int
}

// add keeps a record, and drops the oldest ones beyond keptBytes. The newest is always kept.
func (k *kept) add(r Record) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.records = append(k.records, r)
	k.bytes += len(r.Payload)
	drop := 0
	for k.bytes > keptBytes && drop < len(k.records)-1 {
		k.bytes -= len(k.records[drop].Payload)
		k.before = k.records[drop].Chain
		k.records[drop] = Record{} // frees its payload
		drop++
	}
	k.records = k.records[drop:]
}

// all returns the records, and the chain before the first of them.
func (k *kept) all() (before uint64, records []Record) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.before, append([]Record(nil), k.records...)
}
