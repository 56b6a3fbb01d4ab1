package debounce_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs/debounce"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

type event struct {
	ID string `json:"id"`
	N  int    `json:"n,omitempty"`
}

func (e event) Validate() error {
	if e.N < 0 {
		return errors.New("N is negative")
	}
	return nil
}

type (
	config = debounce.Config[event, []string]
	flush  = debounce.Flush[event, []string]
)

const name = "contact-9"

// collect is a Reduce that keeps the ids.
func collect(ids []string, exists bool, e event) ([]string, error) {
	if !exists && ids != nil {
		return nil, errors.New("the first event found a state")
	}
	return append(ids, e.ID), nil
}

// ledger knows a scenario from outside: the promises to its clients, and the reports of
// the flushes.
type ledger struct {
	s   *harness.Sim
	job *debounce.Job[event, []string]

	acked   []string          // ids with an acknowledged Add
	unsure  []string          // ids that may have been added
	cleared map[string]bool   // ids that were discarded
	flushes map[uint64]*flush // by generation: its last attempt
	failed  map[uint64]int    // attempts that failed, by generation
	resumed int               // how often a job that had failed was resumed: attempts count anew
	lives   bool              // the job is terminated and begins anew: numbers repeat
	fail    func(f *flush) error
	also    func(ctx context.Context, f *flush) error // done by each attempt, after its effect
}

// newLedger opens a host with one job of the given definition and any others.
func newLedger(s *harness.Sim, c config, others ...object.Definition) *ledger {
	l := &ledger{s: s, flushes: map[uint64]*flush{}, failed: map[uint64]int{}, cleared: map[string]bool{}}
	c.Name = "hooks"
	c.Flush = l.flush
	l.job = debounce.New(c)
	s.Host(append([]object.Definition{l.job}, others...)...)
	s.Finally("each acknowledged event is in exactly one flush", l.checkFlushes)
	s.Finally("one event for each flush", l.checkEvents)
	return l
}

// flush is the work of the job: an effect for each attempt.
func (l *ledger) flush(ctx context.Context, f *flush) error {
	if !l.lives {
		l.s.World().Do(fmt.Sprintf("flush/%d/%d/%d", f.Generation, f.Attempt, l.resumed), func() { l.note(f) })
	}
	if l.also != nil {
		if err := l.also(ctx, f); err != nil {
			return err
		}
	}
	if l.fail == nil {
		return nil
	}
	err := l.fail(f)
	if err != nil {
		l.failed[f.Generation]++
	}
	return err
}

func ids(f *flush) []string {
	if f.Events == nil {
		return f.State
	}
	var out []string
	for _, e := range f.Events {
		out = append(out, e.ID)
	}
	return out
}

// note compares an attempt with the one before it: only its number may differ.
func (l *ledger) note(f *flush) {
	was := l.flushes[f.Generation]
	kept := *f
	kept.Events, kept.State = slices.Clone(f.Events), slices.Clone(f.State)
	l.flushes[f.Generation] = &kept
	if l.s.Now().Before(f.Due) {
		l.s.Errorf("A3: generation %d was due %v, and is flushed %v", f.Generation, f.Due, l.s.Now())
	}
	if len(ids(f)) != f.Count {
		l.s.Errorf("D1: generation %d has count %d and events %q", f.Generation, f.Count, ids(f))
	}
	if most := 1 + l.failed[f.Generation] + l.s.Crashes(); f.Attempt > most {
		l.s.Errorf("once per crash: generation %d is flushed for the %dth time after %d failures and %d crashes",
			f.Generation, f.Attempt, l.failed[f.Generation], l.s.Crashes())
	}
	if was == nil {
		return
	}
	if !slices.Equal(ids(was), ids(f)) || was.Key != f.Key {
		l.s.Errorf("D3: generation %d was %s %q, and is %s %q", f.Generation, was.Key, ids(was), f.Key, ids(f))
	}
	if was.Reason != f.Reason || !was.Due.Equal(f.Due) || !was.First.Equal(f.First) || !was.Last.Equal(f.Last) {
		l.s.Errorf("D4: generation %d was due %v for %s, and is due %v for %s", f.Generation, was.Due, was.Reason, f.Due, f.Reason)
	}
	if f.Attempt <= was.Attempt && l.resumed == 0 {
		l.s.Errorf("attempt %d of generation %d follows attempt %d", f.Attempt, f.Generation, was.Attempt)
	}
}

// pass lets d of time pass, and more after each crash beyond the first: a flush that
// two crashes in a row have cut off is held back for a little (R4).
func (l *ledger) pass(d time.Duration) {
	l.s.Advance(d)
	for n := 1; n < l.s.Crashes(); n++ {
		l.s.Advance(seconds(4))
	}
}

// add adds an event until it is acknowledged.
func (l *ledger) add(id string) (ack debounce.Ack) {
	l.s.OK(l.s.Retry(func() (err error) {
		ack, err = l.job.Add(l.s.Context(), l.s, name, event{ID: id}, debounce.EventID(id))
		return err
	}))
	if !slices.Contains(l.acked, id) {
		l.acked = append(l.acked, id)
	}
	return ack
}

// addOnce adds an event that has no id, once.
func (l *ledger) addOnce(id string) {
	_, err := l.job.Add(l.s.Context(), l.s, name, event{ID: id})
	switch {
	case err == nil:
		l.acked = append(l.acked, id)
	case harness.Unknown(err):
		l.unsure = append(l.unsure, id)
	default:
		l.s.Errorf("add %s: %v", id, err)
	}
}

// retry repeats a call until it is answered.
func (l *ledger) retry(call func(context.Context, object.Caller, string) error) error {
	return l.s.Retry(func() error { return call(l.s.Context(), l.s, name) })
}

func (l *ledger) status() (st debounce.Status) {
	l.s.OK(l.retry(func(ctx context.Context, c object.Caller, id string) (err error) {
		st, err = l.job.Status(ctx, c, id)
		return err
	}))
	return st
}

// checkFlushes proves D2.
func (l *ledger) checkFlushes() error {
	if l.lives {
		return nil
	}
	seen := map[string]uint64{}
	for g, f := range l.flushes {
		for _, id := range ids(f) {
			if other, twice := seen[id]; twice {
				return fmt.Errorf("D2: event %s is in generations %d and %d", id, other, g)
			}
			if !slices.Contains(l.acked, id) && !slices.Contains(l.unsure, id) {
				return fmt.Errorf("D2: event %s was never added", id)
			}
			seen[id] = g
		}
	}
	for _, id := range l.acked {
		if _, ok := seen[id]; !ok && !l.cleared[id] {
			return fmt.Errorf("D2: acknowledged event %s was not flushed", id)
		}
	}
	return nil
}

// checkEvents checks that each flush has exactly one event, for any reason of the flush.
func (l *ledger) checkEvents() error {
	if l.lives {
		return nil
	}
	told := map[uint64]debounce.FlushEvent{}
	return l.s.WithHost(func(ctx context.Context, h *object.Host) error {
		events, err := h.Events(ctx, l.job.ID(name), 0, 1000)
		if err != nil {
			return err
		}
		for _, e := range events {
			if e.Kind != debounce.EventFlushed && e.Kind != debounce.EventDropped {
				continue
			}
			var got debounce.FlushEvent
			if err := json.Unmarshal(e.Data, &got); err != nil {
				return err
			}
			f := l.flushes[got.Generation]
			if _, twice := told[got.Generation]; twice {
				return fmt.Errorf("J11: generation %d was told of twice", got.Generation)
			}
			if f == nil || f.Count != got.Events || f.Reason != got.Reason || f.Attempt != got.Attempt {
				return fmt.Errorf("J11: event %+v, flush %+v", got, f)
			}
			told[got.Generation] = got
		}
		if len(told) != len(l.flushes) {
			return fmt.Errorf("D4: %d generations were flushed, and %d told of it", len(l.flushes), len(told))
		}
		return nil
	})
}

// rowsAreWhole is the invariant of every stored state: the buffer accounts for
// all rows (D1, D3).
func rowsAreWhole(store *storage.Store) error {
	rows, err := storedRows(store)
	if err != nil || rows == nil {
		return err
	}
	return debounce.CheckRows(rows)
}

// storedRows are the keys of the job's object; nil if it is not there.
func storedRows(store *storage.Store) (map[string][]byte, error) {
	o, err := store.Find(storage.ID{Class: "hooks", Name: name})
	if err != nil || o.Number == 0 {
		return nil, err
	}
	it, err := store.ListData(nil, o, "", "", false)
	if err != nil {
		return nil, err
	}
	defer it.Close()
	rows := map[string][]byte{}
	for it.Next() {
		rows[string(it.Key())] = it.Value()
	}
	return rows, it.Err()
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }
