package object

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/internal/row"
	"github.com/holdfast-dev/holdfast/object/internal/crew"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
)

// alarmIndex is the store's alarm index as the scheduler reads it.
type alarmIndex struct{ host *Host }

// Scan returns up to limit entries of a shard after a position, in the order of their
// due times. The scheduler calls it from one goroutine at a time, and holds no mutex.
func (x alarmIndex) Scan(shard int, after alarm.Position, limit int) ([]alarm.Entry, error) {
	var due int64
	if !after.Due.IsZero() {
		due = alarm.Nanos(after.Due)
	}
	raw, err := x.host.store.ScanAlarms(shard, due, storage.Number(after.Object), limit)
	if err != nil {
		return nil, err
	}
	entries := make([]alarm.Entry, 0, len(raw))
	for _, e := range raw {
		gen, class, name, err := alarm.DecodeIndex(e.Value)
		if err != nil {
			return nil, err
		}
		entries = append(entries, alarm.Entry{
			Due: time.Unix(0, e.Due), Shard: shard, Object: uint64(e.Number), Gen: gen, Class: class, Name: name,
		})
	}
	return entries, nil
}

// schedulerConfig connects the scheduler of package alarm to the host: it reads due times
// from the store's index and hands due alarms to fire. Open calls it.
func (h *Host) schedulerConfig() alarm.Config {
	return alarm.Config{
		Seams:    h.seams,
		Shards:   h.store.Shards(),
		Source:   alarmIndex{h},
		InFlight: h.options.AlarmsInFlight,
		Batch:    flightSize,
		Fire:     h.fire,
		OnError:  func(err error) { _ = h.storageError(storage.ID{}, err) },
	}
}

// fire takes alarms that are due from the scheduler. Their way from here:
//
//  1. fire holds back those of suspects, and those that have to wait for a permit.
//  2. fly has the flight log store which alarms run now, durably (flightLog.announce), and
//     depart gives them to the runway, and so to the crew, in portions.
//  3. alarmCall.Run (alarm_call.go) has the object run a turn for the alarm. The commit at
//     the end of the turn removes the alarm; if the handler failed, it stores the next
//     attempt.
//  4. landed has over called when that commit is durable, without a goroutine that waits.
//  5. over tells the flight log, and back tells the scheduler.
//
// The scheduler counts an alarm as in flight until Done or Return is called for it, and
// fires at most Options.AlarmsInFlight at a time. An alarm that is held back is Done at
// once, so that it takes no slot from others.
func (h *Host) fire(due []alarm.Entry) {
	due = h.delivered(due, seam.FaultAlarmTwice)
	many := make([]alarm.Entry, 0, len(due))
	for _, e := range due {
		c := h.hosted[e.Class]
		switch {
		case c == nil:
			h.alarms.Done(e) // it stays stored, and fires when its class is back (J12)
		case h.flightLog.suspects.some.Load() && h.holdAlarm(e):
		case c.permits != nil && !c.permits.enter(e):
			h.alarms.Done(e) // its object may have another alarm meanwhile
		default:
			many = append(many, e)
		}
	}
	if len(many) > 0 {
		h.fly(many, false)
	}
}

// delivered returns the due alarms or messages. A simulation adds some of them a second time
// by the fault twice, because the second delivery must change nothing.
func (h *Host) delivered(due []alarm.Entry, twice string) []alarm.Entry {
	if h.seams.Probe == nil {
		return due
	}
	out := due
	for _, e := range due {
		if h.seams.Fault(twice, e.Class+"/"+e.Name) {
			out = append(slices.Clip(out), e)
		}
	}
	return out
}

// holdAlarm holds a due alarm back if it is a suspect, and reports whether it did. The
// scheduler lets go of the alarm, so that it takes no slot; the object may have another
// alarm meanwhile. An alarm that is charged with too many crashes is not held back,
// because firing.stopped makes it a dead letter without running it.
func (h *Host) holdAlarm(e alarm.Entry) bool {
	x := subjectOf(e)
	s := &h.flightLog.suspects
	set, suspected := s.setOf(x, 0, 0)
	if !suspected || s.found.charges[x] >= h.hosted[e.Class].options.MaxAlarmCrashes {
		return false
	}
	s.hold(&suspect{subject: x, set: set, entry: e})
	h.alarms.Done(e)
	return true
}

// subjectOf names the handler of an alarm as a subject that a crash can end.
func subjectOf(e alarm.Entry) subject {
	return subject{id: storage.ID{Class: e.Class, Name: e.Name}, gen: e.Gen}
}

// RecheckAlarms looks at the clock now and fires the alarms that are due, also if
// a timer was lost or is late, for example after the machine has slept. A scrubber calls
// it at each walk. It also serves the alarms that wait for a start rate. Any goroutine
// may call it, at any time.
func (h *Host) RecheckAlarms() {
	h.alarms.Recheck()
	for _, name := range h.names {
		if p := h.hosted[name].permits; p != nil {
			p.ring()
		}
	}
}

// flight is a group of due alarms, stored as under way in one row of the flight log.
type flight struct {
	host   *Host
	number uint64       // of its row
	loose  bool         // the scheduler has let go of them: see fly
	left   atomic.Int64 // alarms that are not over; the last one releases the row
}

// flightLog stores which alarms are under way. Before the handlers of a flight run, a
// row of the store lists their alarms, durably. If the process dies, the next one finds
// the row and knows which handlers the crash has cut off (A8). One row and one sync serve
// a whole flight, because a sync of the disk takes longer than most handlers.
//
// Work that was cut off by crashes in a row is a suspect. The log holds the suspects,
// because the rows of flights are the evidence by which a crash is judged.
//
// A row may list an alarm that has been handled and committed already; countCrash compares
// generations, so such an alarm counts no crash.
type flightLog struct {
	host     *Host // set by open, constant after it
	suspects suspects

	mu   sync.Mutex
	next uint64   // the number of the latest flight; guarded by mu
	done []uint64 // flights that are over and have a row still; guarded by mu
}

const (
	flightRow = "flight/" // then the epoch and the number of the flight
	// flightSize bounds the alarms of one flight.
	flightSize = 128
)

// fly runs the handlers of alarms that are due. Loose ones are no longer in the
// scheduler, because they were held back or waited for a permit. It returns at once: a
// goroutine stores the flight and waits for the sync. If the host is closing, the alarms
// stay stored for the next Open.
func (h *Host) fly(entries []alarm.Entry, loose bool) {
	if h.lifecycle.enter(false) != nil {
		for _, e := range entries {
			h.alarms.Done(e)
		}
		return
	}
	h.seams.Executor.Go("alarms", func() {
		defer h.lifecycle.leave()
		n, err := h.flightLog.announce(entries)
		if err != nil {
			h.options.Logger.Error("alarms wait: the list of running alarms was not stored", "error", err)
			for _, e := range entries {
				h.unreserve(e)
				h.back(e, loose, false)
			}
			return
		}
		h.depart(&flight{host: h, number: n, loose: loose}, entries)
	})
}

// announce stores which alarms are about to be handled, and waits until that is durable.
// It returns the number of the flight. The same batch deletes the rows of flights that
// are over, so that their deletion costs no commit of its own. Goroutines of fly call it;
// it does not hold mu while it waits for the disk. While the host is suspended it waits for the log.
func (l *flightLog) announce(entries []alarm.Entry) (n uint64, err error) {
	h := l.host
	// Take the flights that are over, so that no other announce deletes their rows too.
	l.mu.Lock()
	l.next++
	n = l.next
	done := l.done
	l.done = nil
	l.mu.Unlock()

	b := h.batches.Get().(*storage.Batch)
	for _, old := range done {
		b.DeleteMeta(flightName(h.Epoch(), old))
	}
	b.SetMeta(flightName(h.Epoch(), n), encodeFlight(entries))
	t, err := h.store.Commit(b)
	b.Reset()
	h.batches.Put(b)
	if err != nil {
		l.over(done...) // their rows are still there
		return 0, err
	}
	err = h.store.WaitDurable(t)
	h.suspension.await()
	return n, err
}

// depart makes an alarmCall for each alarm of a flight and gives them to the runway. Each
// one counts in the lifecycle until over, so that Shutdown waits for it.
func (h *Host) depart(f *flight, entries []alarm.Entry) {
	f.left.Store(int64(len(entries)))
	calls := make([]alarmCall, len(entries))
	runners := make([]crew.Runner, len(entries))
	charges := h.flightLog.suspects.found.charges // constant while the host is open
	for i, e := range entries {
		c := &calls[i]
		c.flight, c.due, c.shard, c.object = f, e.Due, e.Shard, e.Object
		c.firing.gen, c.firing.charges = e.Gen, int32(charges[subjectOf(e)])
		c.request.id = storage.ID{Class: e.Class, Name: e.Name}
		c.request.op, c.request.turn, c.request.exempt, c.request.what = &c.firing, &c.turn, true, &whatAlarm
		runners[i] = c
		h.lifecycle.begin()
	}
	h.runway.Add(runners)
}

// over notes that all handlers of some flights have ended, and that their outcome is
// durable. The next announce deletes the rows.
func (l *flightLog) over(n ...uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done = append(l.done, n...)
}

// flightName is the name of a flight's row, for example "flight/7/42".
func flightName(epoch, n uint64) string { return fmt.Sprintf("%s%d/%d", flightRow, epoch, n) }

// flightEpoch returns the epoch in the name of a flight row: 7 for "flight/7/42".
func flightEpoch(name string) (uint64, error) {
	epoch, _, _ := strings.Cut(strings.TrimPrefix(name, flightRow), "/")
	n, err := strconv.ParseUint(epoch, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: flight row %q: %w", storage.ErrCorrupt, name, err)
	}
	return n, nil
}

// encodeFlight returns the value of a flight row: for each alarm its shard, the number of
// its object, and its index value with generation, class and name.
func encodeFlight(entries []alarm.Entry) []byte {
	const most = 64 // bytes of most entries
	w, index := make(row.Writer, 0, most*len(entries)), make([]byte, 0, most)
	for _, e := range entries {
		w = w.Uint(uint64(e.Shard))
		w = w.Uint(e.Object)
		index = alarm.AppendIndex(index[:0], e.Gen, e.Class, e.Name)
		w = w.Bytes(index)
	}
	return w
}

// decodeFlight returns the alarms and messages of a flight row without their shards, because
// countCrash finds the object by its name. A malformed row is ErrCorrupt.
func decodeFlight(b []byte) (entries []alarm.Entry, err error) {
	bad := fmt.Errorf("%w: flight row %x", storage.ErrCorrupt, b)
	for r := row.Read(b); r.Len() > 0; {
		r.Uint() // the shard
		object := r.Uint()
		index := r.Bytes()
		if r.Required(); !r.OK() {
			return nil, bad
		}
		gen, class, name, err := alarm.DecodeIndex(index)
		if err != nil {
			return nil, errors.Join(bad, err)
		}
		entries = append(entries, alarm.Entry{Object: object, Gen: gen, Class: class, Name: name})
	}
	return entries, nil
}
