package jobs

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/storage"
)

// An open execution is stored as, with uvarint for each number and for the
// length of a text, and a varint of nanoseconds since 1970 for a time (the
// smallest number for the zero time):
//
//	version (1 byte) | flags | subject | key | epoch | began | lease |
//	number | attempt | failures | recoveries | scheduled | firstAt | cause | lastError |
//	losses | cuts | cutEpoch | earlier
//
// The last four are left out if all are zero.
//
// Fields are only ever added at the end. A reader passes over what it does not
// know, and takes what an older writer did not have for zero.
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
	b = binary.AppendUvarint(append(b, executionVersion), flags)
	b = appendText(appendText(b, x.Subject), x.Key)
	b = binary.AppendUvarint(b, x.Epoch)
	b = appendTime(appendTime(b, x.Began), x.Lease)
	b = binary.AppendUvarint(b, x.Run.Number)
	for _, n := range []int{x.Run.Attempt, x.Run.Failures, x.Run.Recoveries} {
		b = binary.AppendUvarint(b, uint64(max(n, 0)))
	}
	b = appendTime(appendTime(b, x.Run.Scheduled), x.Run.FirstAt)
	b = appendText(appendText(b, x.Run.Cause), x.Run.LastError)
	if x.Run.Losses == 0 && x.Run.Cuts == 0 && x.Run.CutEpoch == 0 && x.Run.Earlier == 0 {
		return b
	}
	b = binary.AppendUvarint(b, uint64(max(x.Run.Losses, 0)))
	b = binary.AppendUvarint(b, uint64(max(x.Run.Cuts, 0)))
	b = binary.AppendUvarint(b, x.Run.CutEpoch)
	return binary.AppendUvarint(b, uint64(max(x.Run.Earlier, 0)))
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendTime(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return binary.AppendVarint(b, zeroTime)
	}
	return binary.AppendVarint(b, t.UnixNano())
}

// DecodeExecution reads an open execution from the row of an object's storage that
// holds it, for tools that look at a store. The error says that the row is of
// another kind, or is a storage.ErrCorrupt.
func DecodeExecution(key string, value []byte) (Execution, error) {
	t, ok := strings.CutPrefix(key, executionPrefix)
	if !ok {
		return Execution{}, fmt.Errorf("jobs: the row %q is not that of an open execution", key)
	}
	return decodeExecution(Token(t), value)
}

// decodeExecution reads a row that Execution.append has written. Its error is a storage.ErrCorrupt.
func decodeExecution(t Token, b []byte) (x Execution, err error) {
	d := decoder{rest: b}
	if len(b) == 0 || b[0] != executionVersion {
		d.bad = true
	} else {
		d.rest = b[1:]
	}
	x.Token = t
	flags := d.number()
	x.Outside, x.Run.Recovering = flags&flagOutside != 0, flags&flagRecovering != 0
	x.Hook, x.Held = flags&flagHook != 0, flags&flagHeld != 0
	x.Subject, x.Key = d.text(), d.text()
	x.Epoch = d.number()
	x.Began, x.Lease = d.time(), d.time()
	x.Run.Number = d.number()
	x.Run.Attempt, x.Run.Failures, x.Run.Recoveries = d.count(), d.count(), d.count()
	x.Run.Scheduled, x.Run.FirstAt = d.time(), d.time()
	x.Run.Cause, x.Run.LastError = d.text(), d.text()
	x.Run.Losses, x.Run.Cuts, x.Run.CutEpoch = d.count(), d.count(), d.number()
	x.Run.Earlier = d.count()
	if d.bad {
		return Execution{}, fmt.Errorf("%w: execution %s: %x", storage.ErrCorrupt, t, b)
	}
	return x, nil
}

// decoder reads fields until it meets one that is not whole. At the end of the
// input every further field is zero.
type decoder struct {
	rest []byte
	bad  bool
}

func (d *decoder) number() uint64 {
	if d.bad || len(d.rest) == 0 {
		return 0
	}
	v, n := binary.Uvarint(d.rest)
	if d.bad = n <= 0; d.bad {
		return v // the fields of a bad row do not count
	}
	d.rest = d.rest[n:]
	return v
}

func (d *decoder) count() int { return int(min(d.number(), math.MaxInt32)) }

func (d *decoder) text() string {
	size := d.number()
	if d.bad = d.bad || size > uint64(len(d.rest)); d.bad {
		return ""
	}
	s := string(d.rest[:size])
	d.rest = d.rest[size:]
	return s
}

func (d *decoder) time() time.Time {
	if d.bad || len(d.rest) == 0 {
		return time.Time{}
	}
	v, n := binary.Varint(d.rest)
	if d.bad = n <= 0; d.bad {
		return time.Time{}
	}
	d.rest = d.rest[n:]
	if v == zeroTime {
		return time.Time{}
	}
	return time.Unix(0, v).UTC()
}
