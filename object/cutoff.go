package object

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/storage"
)

// flights is the alarms under way. Before the handlers of a flight run, a row of
// the store tells which they are, durably. If the process dies, the next one
// finds the row and knows whose handlers were cut off (A8). One row and one sync
// serve a whole flight.
type flights struct {
	mu    sync.Mutex
	next  uint64
	ended []uint64 // flights that are over and whose rows are still stored
}

const (
	flightRow = "flight/" // then the epoch and the number of the flight
	// flightSize bounds the alarms of one flight.
	flightSize = 128
)

func flightName(epoch, n uint64) string { return fmt.Sprintf("%s%d/%d", flightRow, epoch, n) }

// announce stores which alarms are about to be handled, and waits until it is
// durable. Rows of flights that are over go in the same batch.
func (h *Host) announce(entries []alarm.Entry) (n uint64, err error) {
	f := &h.flights
	f.mu.Lock()
	f.next++
	n = f.next
	ended := f.ended
	f.ended = nil
	f.mu.Unlock()

	b := h.batches.Get().(*storage.Batch)
	for _, old := range ended {
		b.DeleteMeta(flightName(h.Epoch(), old))
	}
	b.SetMeta(flightName(h.Epoch(), n), encodeFlight(entries))
	t, err := h.store.Commit(b)
	b.Reset()
	h.batches.Put(b)
	if err != nil {
		f.over(ended...) // their rows are still there
		return 0, err
	}
	return n, h.store.WaitDurable(t)
}

// over notes that every handler of some flights has ended.
func (f *flights) over(n ...uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = append(f.ended, n...)
}

// judgeCrash finds out, in one commit, what the end of the process before says
// about the alarms that it cut off, and who is a suspect now.
func (h *Host) judgeCrash() error {
	left, err := readInquiry(h.store)
	if err != nil {
		return err
	}
	h.suspects.begin(h, left)
	var b storage.Batch
	if err := h.countCutOff(&b); err != nil {
		return err
	}
	if err := h.suspects.record(&b); err != nil || b.Empty() {
		return err
	}
	t, err := h.store.Commit(&b)
	if err != nil {
		return err
	}
	return h.store.WaitDurable(t)
}

// countCutOff finds the flights of earlier processes and counts, in the alarms
// that were not settled, that an attempt was cut off.
func (h *Host) countCutOff(b *storage.Batch) error {
	cut := make(map[uint64][]alarm.Entry) // by epoch
	err := h.store.Metas(flightRow, func(name string, value []byte) error {
		b.DeleteMeta(name)
		epoch, err := flightEpoch(name)
		if err != nil {
			return err
		}
		entries, err := decodeFlight(value)
		cut[epoch] = append(cut[epoch], entries...)
		return err
	})
	if err != nil || h.store.Previous().Clean {
		return err
	}
	for _, epoch := range slices.Sorted(maps.Keys(cut)) {
		for _, e := range cut[epoch] {
			if err := h.countCrash(b, e, epoch); err != nil {
				return err
			}
		}
	}
	return nil
}

// flightEpoch is the epoch in the name of a flight row.
func flightEpoch(name string) (uint64, error) {
	epoch, _, _ := strings.Cut(strings.TrimPrefix(name, flightRow), "/")
	n, err := strconv.ParseUint(epoch, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: flight row %q: %w", storage.ErrCorrupt, name, err)
	}
	return n, nil
}

// countCrash adds one to the crashes of an alarm, if it is still the one whose
// handler ran in the opening epoch. Its generation stays, so that a second flight
// row that names it counts too; its due time stays as well.
func (h *Host) countCrash(b *storage.Batch, e alarm.Entry, epoch uint64) error {
	o, err := h.store.Find(storage.ID{Class: e.Class, Name: e.Name})
	if err != nil {
		return err
	}
	value, ok, err := h.store.Alarm(o)
	if err != nil || !ok {
		return err
	}
	row, err := alarm.DecodeRow(value)
	if err != nil || row.Gen != e.Gen { // a generation is one of its kind, also in another life of the object
		return err
	}
	cuts := 1
	if row.CutEpoch > h.suspects.found.cleared {
		cuts = cutsOfSuspect
	}
	if h.suspects.found.suspected(cuts, epoch) {
		h.suspects.suspectAlarm(subjectOf(e))
	}
	h.metrics.recoveries.WithLabelValues("alarm cut off").Inc()
	old := row
	row.Crashes, row.CutEpoch = row.Crashes+1, epoch
	moveAlarm(b, o, &old, &row)
	return nil
}

// encodeFlight lists alarms: shard, number and generation, class, name.
func encodeFlight(entries []alarm.Entry) []byte {
	const most = 64 // bytes of most entries
	b, index := make([]byte, 0, most*len(entries)), make([]byte, 0, most)
	for _, e := range entries {
		b = binary.AppendUvarint(b, uint64(e.Shard))
		b = binary.AppendUvarint(b, e.Object)
		index = alarm.AppendIndex(index[:0], e.Gen, e.Class, e.Name)
		b = binary.AppendUvarint(b, uint64(len(index)))
		b = append(b, index...)
	}
	return b
}

func decodeFlight(b []byte) (entries []alarm.Entry, err error) {
	bad := fmt.Errorf("%w: flight row %x", storage.ErrCorrupt, b)
	for len(b) > 0 {
		var field [3]uint64
		for i := range field {
			v, n := binary.Uvarint(b)
			if n <= 0 {
				return nil, bad
			}
			field[i], b = v, b[n:]
		}
		if field[2] > uint64(len(b)) {
			return nil, bad
		}
		gen, class, name, err := alarm.DecodeIndex(b[:field[2]])
		if err != nil {
			return nil, errors.Join(bad, err)
		}
		b = b[field[2]:]
		entries = append(entries, alarm.Entry{Shard: int(field[0]), Object: field[1], Gen: gen, Class: class, Name: name})
	}
	return entries, nil
}
