package workflow

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/internal/history"
	"github.com/holdfast-dev/holdfast/object"
)

// Status is the answer of Workflow.Status.
type Status struct {
	Meta jobs.Meta `json:"meta"`
	// Why is a word for the reason for which the run is where it is, the first of these that holds:
	//
	//   - ended, paused: its status tells.
	//   - wf-stuck: it cannot go on with this code, or in this process; see Meta.LastError.
	//   - wf-queued: it is due and has no place.
	//   - wf-blocked: a scope has begun no operation for a minute, and none is under way:
	//     its code waits for something that is no operation, such as a Go channel. Live only.
	//   - wf-step: a step is under way; see Steps.
	//   - wf-signal, wf-timer, wf-child: it waits for a signal, a time or a child; see Waits.
	//   - wf-breaker: the breaker of a step is open; see Through.
	//   - wf-step, too: it waits for the next attempt at a step.
	//   - executing: its function runs between two operations.
	Why string `json:"why,omitempty"`
	// Due is when the run goes on by itself; zero while it executes, and if it waits for
	// something else alone.
	Due time.Time `json:"due,omitzero"`
	// Queued means that the run is due and waits for Config.Concurrency.
	Queued bool `json:"queued,omitempty"`
	// Waits are the events and times that the run waits for. The first to come lets a suspended
	// run go on. Each Each that is under way is one of them, with its branches that have ended.
	Waits []Wait `json:"waits,omitempty"`
	// Steps are those that run now.
	Steps []UnderWay `json:"steps,omitempty"`
	// Generation counts how often the run has begun anew.
	Generation uint64 `json:"generation,omitempty"`
	// Kept is how many of the generations before have a history; see Config.KeepGenerations.
	Kept uint64 `json:"kept,omitempty"`
	// Entries and Bytes are the size of its history.
	Entries int `json:"entries"`
	Bytes   int `json:"bytes"`
	// Cancelling means that a Cancel was stored, and CancelReason is its reason.
	Cancelling   bool   `json:"cancelling,omitempty"`
	CancelReason string `json:"cancelReason,omitempty"`
}

// status answers Workflow.Status from memory.
func (in *instance) status(ctx context.Context, _ none) (Status, error) {
	if err := in.existing(); err != nil {
		return Status{}, err
	}
	if in.stretch == nil { // its history was not read yet
		if err := in.measure(ctx); err != nil {
			return Status{}, err
		}
	}
	s := Status{
		Meta: in.job.Meta(), Due: in.job.NextRun(), Queued: in.job.Waiting(), Generation: in.row.Generation, Kept: in.row.Kept, Waits: in.row.Waits,
		Entries: int(in.entries.Load()), Bytes: int(in.bytes.Load()), Cancelling: in.row.Cancel, CancelReason: in.row.Reason,
	}
	blocked := false
	if s.Meta.Status == jobs.Executing {
		s.Waits = nil
		if in.stretch != nil {
			s.Steps, s.Waits, blocked = in.stretch.present()
		}
	}
	if s.Meta.Status.Ended() {
		s.Waits, s.Cancelling = nil, false
	}
	s.Why = s.why(in.st.Now(), blocked)
	return s, nil
}

// measure counts the history.
func (in *instance) measure(ctx context.Context) error {
	entries, err := in.history(ctx)
	bytes := 0
	for i := range entries {
		bytes += entries[i].Bytes()
	}
	in.entries.Store(int64(len(entries)))
	in.bytes.Store(int64(bytes))
	return err
}

// present returns the steps that run, the waits of the parked tasks, and whether a scope is
// blocked.
func (s *stretch) present() (steps []UnderWay, waits []Wait, blocked bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.current {
		steps = append(steps, a.UnderWay)
	}
	return steps, s.waitsLocked(), s.blocked()
}

// waitsLocked returns the waits of the parked tasks. The caller holds s.mu.
func (s *stretch) waitsLocked() (waits []Wait) {
	for _, w := range s.waiters {
		what := w.what
		if w.each != nil {
			what.Done = w.each.done
		}
		if what.Kind != "" {
			waits = append(waits, what)
		}
	}
	return waits
}

// Entry is one record of a run's history, as History returns it.
type Entry struct {
	Seq      uint64    `json:"seq"`
	Scope    string    `json:"scope,omitempty"` // path of the branch; empty: the function
	Kind     string    `json:"kind"`            // step, try, atomic, sleep, wait, signal, child, answer, patch, nearfull, cancel, each, fail, undo, go, join or first
	Name     string    `json:"name,omitempty"`
	At       time.Time `json:"at"`                 // when it was made
	Until    time.Time `json:"until,omitzero"`     // of a sleep, a wait and a try
	Attempts int       `json:"attempts,omitempty"` // that have failed
	Error    string    `json:"error,omitempty"`
	TimedOut bool      `json:"timedOut,omitempty"`
	Value    []byte    `json:"value,omitempty"` // as the host's codec has encoded it
}

// page is the argument of History.
type page struct {
	After      uint64  `json:"after"`
	Limit      int     `json:"limit"`
	Generation *uint64 `json:"generation,omitempty"` // nil: the present one
}

// maxPage is the most entries that History returns.
const maxPage = 1000

// History returns up to limit entries of the run (0 and more than 1,000: 1,000) with a Seq of
// at least first, in order: those of the present generation. HistoryOf has those of others.
//
//go:noinline
func (w *control) History(ctx context.Context, from object.Caller, id string, first uint64, limit int) ([]Entry, error) {
	return w.d.calls.entries(ctx, from, id, page{After: first, Limit: limit})
}

// page reads a part of the history.
func (in *instance) page(ctx context.Context, p page) ([]Entry, error) {
	if err := in.existing(); err != nil {
		return nil, err
	}
	if p.Limit <= 0 || p.Limit > maxPage {
		p.Limit = maxPage
	}
	prefix, err := in.prefixOf(p.Generation)
	if err != nil {
		return nil, err
	}
	var out []Entry
	o := object.ListOptions{Prefix: prefix, Start: seqKey(prefix, p.After), Limit: p.Limit}
	for item, err := range in.st.Storage().List(ctx, o) {
		if err != nil {
			return nil, err
		}
		e, err := history.Decode(seqOf(item.Key, prefix), item.Value)
		if err != nil {
			return nil, err
		}
		out = append(out, Entry{
			Seq: e.Seq, Scope: e.Scope, Kind: e.Kind.String(), Name: e.Name, At: e.At, Until: e.Until, Attempts: e.Attempt,
			Error: e.Err, TimedOut: e.Flags&history.TimedOut != 0, Value: e.Value,
		})
	}
	return out, nil
}
