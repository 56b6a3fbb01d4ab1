package engine

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/internal/row"
	"github.com/holdfast-dev/holdfast/storage"
)

// An open execution is stored as, with uvarint for each number and for the
// length of a text, and a varint of nanoseconds since 1970 for a time (the
// smallest number for the zero time):
//
//	version (1 byte) | flags | subject | key | epoch | began | lease |
//	number | attempt | failures | recoveries | scheduled | firstAt | cause | lastError |
//	losses | cuts | cutEpoch | earlier | ownersLost
//
// The last is left out if it is zero, and then the four before it if all are zero.
//
// Fields are only ever added at the end. A reader ignores fields that it does not know,
// and reads a missing field as zero, because an older version did not write it.
const (
	executionVersion = 1

	flagOutside    = 1 << 0
	flagRecovering = 1 << 1
	flagHook       = 1 << 2
	flagHeld       = 1 << 3
)

const zeroTime = math.MinInt64

// append adds x as it is stored to b.
func (x *Execution) append(b []byte) []byte {
	var flags uint64
	if x.Outside {
		flags |= flagOutside
	}
	if x.Run.Recovering {
		flags |= flagRecovering
	}
	if x.Hook {
		flags |= flagHook
	}
	if x.Held {
		flags |= flagHeld
	}
	w := row.Writer(b)
	w = w.Byte(executionVersion)
	w = w.Uint(flags)
	w = w.Text(x.Subject)
	w = w.Text(x.Key)
	w = w.Uint(x.Epoch)
	w = w.Int(nanos(x.Began))
	w = w.Int(nanos(x.Lease))
	w = w.Uint(x.Run.Number)
	for _, n := range [...]int{x.Run.Attempt, x.Run.Failures, x.Run.Recoveries} {
		w = w.Uint(uint64(max(n, 0)))
	}
	w = w.Int(nanos(x.Run.Scheduled))
	w = w.Int(nanos(x.Run.FirstAt))
	w = w.Text(x.Run.Cause)
	w = w.Text(x.Run.LastError)
	if x.Run.Losses == 0 && x.Run.Cuts == 0 && x.Run.CutEpoch == 0 && x.Run.Earlier == 0 && x.Run.OwnersLost == 0 {
		return w
	}
	w = w.Uint(uint64(max(x.Run.Losses, 0)))
	w = w.Uint(uint64(max(x.Run.Cuts, 0)))
	w = w.Uint(x.Run.CutEpoch)
	w = w.Uint(uint64(max(x.Run.Earlier, 0)))
	if x.Run.OwnersLost > 0 {
		w = w.Uint(uint64(x.Run.OwnersLost))
	}
	return w
}

// nanos is a time as it is stored.
func nanos(t time.Time) int64 {
	if t.IsZero() {
		return zeroTime
	}
	return t.UnixNano()
}

// DecodeExecution reads an open execution from the row of an object's storage that
// holds it, for tools that look at a store. The error says that the row is of
// another kind, or is a storage.ErrCorrupt.
func DecodeExecution(key string, value []byte) (Execution, error) {
	t, ok := strings.CutPrefix(key, ExecutionPrefix)
	if !ok {
		return Execution{}, fmt.Errorf("jobs: the row %q is not that of an open execution", key)
	}
	return decodeExecution(Token(t), value)
}

// decodeExecution reads a row that Execution.append has written. Its error is a
// storage.ErrCorrupt.
func decodeExecution(t Token, b []byte) (x Execution, err error) {
	r := row.Read(b)
	if r.Byte() != executionVersion {
		r.Fail()
	}
	x.Token = t
	flags := r.Uint()
	x.Outside, x.Run.Recovering = flags&flagOutside != 0, flags&flagRecovering != 0
	x.Hook, x.Held = flags&flagHook != 0, flags&flagHeld != 0
	x.Subject, x.Key = r.Text(), r.Text()
	x.Epoch = r.Uint()
	x.Began, x.Lease = timeIn(&r), timeIn(&r)
	x.Run.Number = r.Uint()
	x.Run.Attempt, x.Run.Failures, x.Run.Recoveries = countIn(&r), countIn(&r), countIn(&r)
	x.Run.Scheduled, x.Run.FirstAt = timeIn(&r), timeIn(&r)
	x.Run.Cause, x.Run.LastError = r.Text(), r.Text()
	x.Run.Losses, x.Run.Cuts, x.Run.CutEpoch = countIn(&r), countIn(&r), r.Uint()
	x.Run.Earlier, x.Run.OwnersLost = countIn(&r), countIn(&r)
	if !r.OK() {
		return Execution{}, fmt.Errorf("%w: execution %s: %x", storage.ErrCorrupt, t, b)
	}
	return x, nil
}

// countIn reads a count, of which no more than 31 bits matter.
func countIn(r *row.Reader) int { return int(min(r.Uint(), math.MaxInt32)) }

// timeIn reads a time that nanos made, or the zero time behind the end of the row.
func timeIn(r *row.Reader) time.Time {
	if r.Len() == 0 {
		return time.Time{}
	}
	v := r.Int()
	if v == zeroTime || !r.OK() {
		return time.Time{}
	}
	return time.Unix(0, v).UTC()
}

// CutOff returns the row of an open execution for another store: one that a crash has cut off,
// with no crash charged to it. It returns an error of DecodeExecution.
func CutOff(key string, value []byte) ([]byte, error) {
	x, err := DecodeExecution(key, value)
	if err != nil {
		return nil, err
	}
	x.Epoch, x.Run.Cuts, x.Run.CutEpoch, x.Run.OwnersLost = 0, 0, 0, 0
	return x.append(nil), nil
}
