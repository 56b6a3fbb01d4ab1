package workerpool

import (
	"encoding/binary"
	"fmt"

	"github.com/holdfast-dev/holdfast/storage"
)

// Keys of a partition. Numbers are 8 bytes, big-endian.
//
//	c                             counters
//	t/ number                     a task that is pending or running
//	r/ name length, queue, place  a task that is ready: number
//	w/ place                      a task that waits for a time: number
//	k/ key length, key, order     a task that has a key and has not ended: 0 or 1, number
//	z/ number                     a dead letter
//	u/ key                        the task that holds a unique key: number
//	v                             versions that inputs were stored under, if not empty: jobs.Versions by number
//	h/ number                     a dead letter of which OnDead has yet to be told: its run, JSON
//	o                             a call of OnEmpty that is to be made again: its run, JSON
//
// A pending task is in r/ or in w/, unless it waits for others of its key: then
// it is in k/ with a 0. A running task is in neither. The engine's keys begin with
// x/; ended tasks are marks e/ number, idempotency keys marks i/ key.
const (
	countersKey = "c"
	taskPrefix  = "t/"
	readyPrefix = "r/"
	waitPrefix  = "w/"
	chainPrefix = "k/"
	deadPrefix  = "z/"
	callPrefix  = "h/"
	emptyKey    = "o" // the progress of a call of OnEmpty that failed
	uniqueKeys  = "u/"
	versionsKey = "v"

	endedMark      = "e/"
	idempotentMark = "i/"
)

func numbered(prefix string, n uint64) string {
	return string(binary.BigEndian.AppendUint64([]byte(prefix), n))
}

func taskKey(num uint64) string { return numbered(taskPrefix, num) }
func deadKey(num uint64) string { return numbered(deadPrefix, num) }
func callKey(num uint64) string { return numbered(callPrefix, num) }

// numberOf reads the number at the end of a key.
func numberOf(key string) (uint64, error) {
	if len(key) < 8 {
		return 0, fmt.Errorf("%w: key %q", storage.ErrCorrupt, key)
	}
	return binary.BigEndian.Uint64([]byte(key[len(key)-8:])), nil
}

func placed(prefix []byte, p place) string {
	b := binary.BigEndian.AppendUint64(prefix, p.major)
	return string(binary.BigEndian.AppendUint64(b, p.order))
}

// placeOf reads the place at the end of a key.
func placeOf(key string) (place, error) {
	if len(key) < 16 {
		return place{}, fmt.Errorf("%w: key %q", storage.ErrCorrupt, key)
	}
	b := []byte(key[len(key)-16:])
	return place{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])}, nil
}

func linePrefix(queue string) []byte {
	b := make([]byte, 0, len(readyPrefix)+1+len(queue)+16)
	return append(append(append(b, readyPrefix...), byte(len(queue))), queue...)
}

func readyKey(queue string, p place) string { return placed(linePrefix(queue), p) }
func waitKey(p place) string                { return placed([]byte(waitPrefix), p) }

func chainOf(key string) []byte {
	b := make([]byte, 0, len(chainPrefix)+2+len(key)+8)
	return appendBytes(append(b, chainPrefix...), key)
}

func chainKey(key string, order uint64) string { return numbered(string(chainOf(key)), order) }

// readyPlace is the place of a task in its queue: the greatest priority first.
func readyPlace(priority int, order uint64) place {
	return place{uint64(maxPriority - priority), order}
}

// waitPlace is the place of a task that waits for a time.
func waitPlace(at int64, order uint64) place { return place{uint64(max(at, 0)), order} }

func encodeNumber(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

func decodeNumber(b []byte) (uint64, error) {
	if len(b) != 8 {
		return 0, fmt.Errorf("%w: number %x", storage.ErrCorrupt, b)
	}
	return binary.BigEndian.Uint64(b), nil
}
