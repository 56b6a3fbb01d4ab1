package workload

import (
	"encoding/binary"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/holdfast-dev/holdfast/bench/internal/raw"
	"github.com/holdfast-dev/holdfast/storage"
)

// RawTimers is the reference of Timers: the same rows in bare Pebble, with a mutex, a batch
// and the wait for its sync for each turn.
type RawTimers struct {
	db    *pebble.DB
	turns *raw.Turns
	base  int64
	due   []int64 // by timer; guarded by the mutex of turns
}

// NewRawTimers makes the reference over an empty database.
func NewRawTimers(db *pebble.DB) *RawTimers { return &RawTimers{db: db, turns: raw.NewTurns(db, 1)} }

// rawTimer is a value as long as that of a timer that fires once.
var rawTimer = make([]byte, 24)

func rawDueKey(due int64, i int) string {
	return "\x00t/d/" + string(binary.BigEndian.AppendUint64(nil, uint64(due))) + TimerName(i)
}

// setRows adds the rows of timer i in place of those at old; 0 is none.
func setRows(b *storage.Batch, o storage.Object, i int, old, due int64) {
	if old != 0 {
		b.DeleteData(o, rawDueKey(old, i))
	}
	b.SetData(o, rawDueKey(due, i), rawTimer)
	b.SetData(o, "\x00t/n/"+TimerName(i), binary.BigEndian.AppendUint64(nil, uint64(due)))
}

// fill sets the timers 0 to n, in portions.
func (r *RawTimers) fill(n int, at, step int64) error {
	r.base, r.due = at, make([]int64, n)
	const portion = 1000
	for i := 0; i < n; i += portion {
		err := r.turns.Rows(0, func(b *storage.Batch, o storage.Object, _ uint64) {
			for k := i; k < min(i+portion, n); k++ {
				r.due[k] = at + step*int64(k)
				setRows(b, o, k, 0, r.due[k])
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Fill is Timers.Fill.
func (r *RawTimers) Fill(n int) error {
	return r.fill(n+1, time.Now().Add(24*time.Hour).UnixNano(), int64(time.Millisecond))
}

// Move is Timers.Move.
func (r *RawTimers) Move(i int) error {
	return r.turns.Rows(0, func(b *storage.Batch, o storage.Object, _ uint64) {
		k, due := 1+i%(len(r.due)-1), spread(r.base, i, len(r.due))
		setRows(b, o, k, r.due[k], due)
		r.due[k] = due
	})
}

// SetCancel is Timers.SetCancel.
func (r *RawTimers) SetCancel(i int) error {
	k, due := 1_000_000+i, spread(r.base, i, len(r.due))
	err := r.turns.Rows(0, func(b *storage.Batch, o storage.Object, _ uint64) { setRows(b, o, k, 0, due) })
	if err != nil {
		return err
	}
	return r.turns.Rows(0, func(b *storage.Batch, o storage.Object, _ uint64) { removeRows(b, o, k, due) })
}

// removeRows adds the removal of the rows of timer i.
func removeRows(b *storage.Batch, o storage.Object, i int, due int64) {
	b.DeleteData(o, rawDueKey(due, i))
	b.DeleteData(o, "\x00t/n/"+TimerName(i))
}

// Drain stores n timers that are due, reads them in their order and removes 64 of them in
// each batch. It returns how long the second part takes, until the last batch is durable.
func (r *RawTimers) Drain(n int) (time.Duration, error) {
	if err := r.fill(n, time.Now().UnixNano(), 0); err != nil {
		return 0, err
	}
	start := time.Now()
	it, err := r.db.NewIter(nil)
	if err != nil {
		return 0, err
	}
	defer it.Close()
	more := it.First()
	for i := 0; i < n; i += 64 {
		err := r.turns.Rows(0, func(b *storage.Batch, o storage.Object, _ uint64) {
			for k := i; k < min(i+64, n) && more; k++ {
				removeRows(b, o, k, r.due[k])
				more = it.Next()
			}
		})
		if err != nil {
			return 0, err
		}
	}
	return time.Since(start), it.Error()
}
