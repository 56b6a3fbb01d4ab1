package shardlog

import (
	"math"
	"testing"
)

// ends are the positions of the first and the last record that are kept, and how many are.
func (k *kept) ends() (first, last Position, n int) {
	_, all := k.all()
	return all[0].At, all[len(all)-1].At, len(all)
}

// Records of up to 64 MiB are kept, and one byte more drops the oldest.
func TestKeptBytes(t *testing.T) {
	half := make([]byte, keptBytes/2)
	var k kept
	k.add(Record{At: 1, Payload: half})
	k.add(Record{At: 2, Payload: half})
	if first, last, n := k.ends(); first != 1 || last != 2 || n != 2 {
		t.Errorf("%d records of %d to %d are kept at the bound, want both", n, first, last)
	}
	k.add(Record{At: 3, Payload: half[:1]})
	if first, last, n := k.ends(); first != 2 || last != 3 || n != 2 {
		t.Errorf("%d records of %d to %d are kept a byte beyond the bound, want 2 and 3", n, first, last)
	}
}

// The newest record is kept, however long it is, and it drops all others.
func TestNewestRecordIsKept(t *testing.T) {
	var k kept
	for at := range Position(3) {
		k.add(Record{At: at + 1, Payload: make([]byte, 10)})
	}
	k.add(Record{At: 4, Payload: make([]byte, keptBytes+1)})
	if first, last, n := k.ends(); first != 4 || last != 4 || n != 1 {
		t.Errorf("%d records of %d to %d are kept, want the newest alone", n, first, last)
	}
	k.add(Record{At: math.MaxUint64})
	if _, last, n := k.ends(); last != math.MaxUint64 || n != 1 {
		t.Errorf("%d records up to %d are kept after it", n, last)
	}
}
