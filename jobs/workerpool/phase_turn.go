package workerpool

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"

	codec "github.com/holdfast-dev/holdfast/internal/row"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/storage"
)

// phaseRow is how the phases of a task are, as JSON under phaseKey. Only a task that has
// begun a phase has the row. It says that a phase runs only while the execution Token is
// open, so an execution that is lost needs no other row.
type phaseRow struct {
	Token   engine.Token `json:"token"` // the execution that wrote the row
	Index   int          `json:"index"` // the phase that began last
	Name    string       `json:"name"`  // of that phase
	Running bool         `json:"running,omitempty"`
	Percent int          `json:"percent,omitempty"`
	Overall int          `json:"overall,omitempty"` // percent of the task; never falls while Token is open
	Note    string       `json:"note,omitempty"`
	Error   string       `json:"error,omitempty"`
	Done    []donePhase  `json:"done,omitempty"` // those with a stored result, by index

	stored bool // the task has the row
}

// donePhase is a phase with a stored result.
type donePhase struct {
	Index int    `json:"index"`
	Name  string `json:"name"`
}

func phaseKey(num uint64) string { return numbered(phasePrefix, num) }

// resultKey is the key of the result of a phase.
func resultKey(num uint64, index int) string {
	return string(binary.BigEndian.AppendUint16([]byte(phaseKey(num)), uint16(index)))
}

// appendResult appends a result as it is stored: version 1 · name · result to the end.
func appendResult(b []byte, name string, raw []byte) []byte {
	w := codec.Writer(append(b, rowVersion))
	w = w.Text(name)
	return append(w, raw...)
}

// result is the name of the phase at an index if its result is stored.
func (r *phaseRow) result(index int) (name string, ok bool) {
	i, ok := slices.BinarySearchFunc(r.Done, index, func(d donePhase, index int) int { return cmp.Compare(d.Index, index) })
	if !ok {
		return "", false
	}
	return r.Done[i].Name, true
}

// began notes that the execution has begun a phase, of n.
func (r *phaseRow) began(token engine.Token, index int, name string, n int) {
	if r.Token != token {
		r.Token, r.Overall = token, overall(len(r.Done), 0, n)
	}
	r.Index, r.Name, r.Running, r.Percent, r.Note, r.Error = index, name, true, 0, "", ""
	r.advance(0, n)
}

// advance notes the progress of the phase under way, of n.
func (r *phaseRow) advance(percent, n int) {
	r.Percent = max(r.Percent, percent)
	r.Overall = max(r.Overall, overall(r.Index, r.Percent, n))
}

// ended notes that the phase under way has a stored result, of n phases.
func (r *phaseRow) ended(n int) {
	r.advance(100, n)
	i, _ := slices.BinarySearchFunc(r.Done, r.Index, func(d donePhase, index int) int { return cmp.Compare(d.Index, index) })
	r.Done = slices.Insert(r.Done, i, donePhase{r.Index, r.Name})
	r.Running, r.Percent, r.Note = false, 0, ""
}

// overall is the percent of a task that has come to a percent of the phase at index, of n
// phases, rounded. It is never more than 100, because a deploy may have left phases out.
func overall(index, percent, n int) int {
	if n == 0 {
		return 0
	}
	return min(100, (2*(100*index+percent)+n)/(2*n))
}

// show lists the phases of a task in the given state, which the open execution runs.
// known is Config.Phases.
func (r *phaseRow) show(known []string, s State, open engine.Token) (all []PhaseStatus, percent int) {
	n := len(known)
	if i := len(r.Done); i > 0 {
		n = max(n, r.Done[i-1].Index+1)
	}
	for i := range n {
		name, done := r.result(i)
		switch {
		case done:
			all = append(all, PhaseStatus{Name: name, State: Done, Percent: 100})
		case i < len(known):
			all = append(all, r.unfinished(i, known[i], s, open))
		}
	}
	switch {
	case s == Done && n > 0:
		percent = 100
	case s == Running && r.Token == open:
		percent = r.Overall
	default:
		percent = overall(len(r.Done), 0, len(all))
	}
	return all, percent
}

// unfinished is how a phase without a stored result is.
func (r *phaseRow) unfinished(index int, name string, s State, open engine.Token) PhaseStatus {
	f := PhaseStatus{Name: name, State: s}
	if s == Running || s == Done {
		f.State = Pending
	}
	if r.Index != index || r.Name != name {
		return f
	}
	f.Note, f.Error = r.Note, r.Error
	if s == Running && r.Running && r.Token == open {
		f.State, f.Percent = Running, r.Percent
	}
	return f
}

// phases reads how the phases of a task are. Without a row none has begun.
func (p *partition) phases(ctx context.Context, num uint64) (*phaseRow, error) {
	r := &phaseRow{}
	if p.phased == 0 {
		return r, nil
	}
	b, ok, err := p.st.Storage().Get(ctx, phaseKey(num))
	if err != nil || !ok {
		return r, err
	}
	if err := json.Unmarshal(b, r); err != nil {
		return nil, fmt.Errorf("%w: phases of task %s: %w", storage.ErrCorrupt, p.id(num), err)
	}
	r.stored = true
	return r, nil
}

// putPhases stores how the phases of a task are.
func (p *partition) putPhases(ctx context.Context, num uint64, r *phaseRow) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return p.st.Storage().PutBytes(ctx, phaseKey(num), b)
}

// resultOf reads the result of a phase that the phaseRow tells of.
func (p *partition) resultOf(ctx context.Context, num uint64, index int) ([]byte, error) {
	b, ok, err := p.st.Storage().Get(ctx, resultKey(num, index))
	if err != nil {
		return nil, err
	}
	d := codec.Read(b)
	version := d.Byte()
	_ = d.Text() // the phaseRow has the name too
	if !ok || !d.OK() || version != rowVersion {
		return nil, fmt.Errorf("%w: result of phase %d of task %s", storage.ErrCorrupt, index, p.id(num))
	}
	return d.Rest(), nil
}

// begin returns the stored result of a phase, or else stores that the phase is under way.
func (a *attempt) begin(ctx context.Context, index int) (raw []byte, stored bool, err error) {
	p := a.part
	err = a.store(ctx, func(ctx context.Context, r *phaseRow) error {
		task, err := p.rowOf(ctx, a.num)
		if err != nil {
			return err
		}
		if task.rare.Cancelling {
			return fmt.Errorf("%s: task %s: %w", p.set.name, p.id(a.num), ErrCancelled)
		}
		if err := a.sameNames(r); err != nil {
			return err
		}
		if _, stored = r.result(index); stored {
			raw, err = p.resultOf(ctx, a.num, index)
			return err
		}
		first := !r.stored
		r.began(a.token, index, p.set.phases[index], len(p.set.phases))
		if err := p.storePhase(ctx, a.num, r, jobs.EventStart); err != nil {
			return err
		}
		if first {
			p.phased++
			p.dirty = true
		}
		return nil
	})
	return raw, stored, err
}

// sameNames returns an error if a result is stored under another name than Config.Phases has
// at its place. A phase that was put in front would otherwise get the result of its
// neighbour, which would run again.
func (a *attempt) sameNames(r *phaseRow) error {
	known := a.part.set.phases
	for _, d := range r.Done {
		if d.Index < len(known) && known[d.Index] != d.Name {
			return a.refuse("phase %d is %q in Config.Phases, but the task has stored the result of %q there: give phases back their places, or discard the task",
				d.Index+1, known[d.Index], d.Name)
		}
		if now := slices.Index(known, d.Name); now >= 0 && now != d.Index {
			return a.refuse("phase %d is %q in Config.Phases, but the task has stored its result as that of phase %d: give phases back their places, or discard the task",
				now+1, d.Name, d.Index+1)
		}
	}
	return nil
}

// finish stores the result of the phase under way, with its event and the last progress.
// The context of Work may have ended, for example by a Cancel; a result that is there is
// stored all the same, because a later attempt, or a replay, can use it.
func (a *attempt) finish(index int, raw []byte) error {
	ctx, release := a.part.st.Driver().Context()
	defer release()
	p, name := a.part, a.part.set.phases[index]
	return a.store(ctx, func(ctx context.Context, r *phaseRow) error {
		if err := p.st.Storage().PutBytes(ctx, resultKey(a.num, index), appendResult(nil, name, raw)); err != nil {
			return err
		}
		if err := a.tellLast(ctx, r); err != nil {
			return err
		}
		r.ended(len(p.set.phases))
		if err := p.storePhase(ctx, a.num, r, jobs.EventSuccess); err != nil {
			return err
		}
		return p.engine.Progressed(ctx, a.token)
	})
}

// tellLast tells the progress that was not stored yet, in the batch that ends the phase.
func (a *attempt) tellLast(ctx context.Context, r *phaseRow) error {
	if !a.take(r) {
		return nil
	}
	return a.part.tellPhase(ctx, a.num, r, reasonProgress)
}

// failed stores that the phase under way has failed. A Snooze is no failure, and of a task
// that was cancelled the end batch tells. If the execution was cut off, nothing is stored.
func (a *attempt) failed(cause error) {
	if _, snoozed := engine.SnoozeDelay(cause); snoozed {
		return
	}
	ctx, release := a.part.st.Driver().Context()
	defer release()
	p := a.part
	err := a.store(ctx, func(ctx context.Context, r *phaseRow) error {
		task, err := p.rowOf(ctx, a.num)
		if err != nil || task.rare.Cancelling {
			return err
		}
		if err := a.tellLast(ctx, r); err != nil {
			return err
		}
		r.Running, r.Error = false, engine.Shorten(cause.Error())
		return p.storePhase(ctx, a.num, r, jobs.EventFailure)
	})
	if err != nil {
		p.st.Log().Debug("failure of a phase not stored", "task", p.id(a.num), "error", err)
	}
}

// The reasons of EventPhase beside those of package jobs.
const (
	reasonProgress  = "progress"
	reasonCancelled = "cancelled"
)

// phaseEvent is the payload of EventPhase.
type phaseEvent struct {
	jobs.Event
	Phase   PhaseStatus `json:"phase"`
	Percent int         `json:"percent"` // of the task
}

// storePhase stores how the phases of a running task are, with an event about the phase that
// began last.
func (p *partition) storePhase(ctx context.Context, num uint64, r *phaseRow, reason string) error {
	if err := p.putPhases(ctx, num, r); err != nil {
		return err
	}
	return p.tellPhase(ctx, num, r, reason)
}

// storeProgress is storePhase for a progress.
func (p *partition) storeProgress(ctx context.Context, num uint64, r *phaseRow) error {
	return p.storePhase(ctx, num, r, reasonProgress)
}

// tellPhase emits an event about the phase of a running task that began last.
func (p *partition) tellPhase(ctx context.Context, num uint64, r *phaseRow, reason string) error {
	token := p.executing[num].token
	x, _ := p.engine.Lookup(token)
	f := PhaseStatus{Name: r.Name, State: Done, Percent: 100}
	if _, done := r.result(r.Index); !done {
		f = r.unfinished(r.Index, r.Name, Running, token)
	}
	return p.st.Emit(ctx, EventPhase, phaseEvent{
		Event: jobs.Event{Subject: subject(taskSubject, num), Run: 1, Attempt: x.Run.Attempt, Reason: reason, Error: r.Error},
		Phase: f, Percent: r.Overall,
	})
}

// tellCancelled emits the events of the end of a cancelled task: if it has begun a phase, one
// for each phase that is not done, and one for the task.
func (p *partition) tellCancelled(ctx context.Context, task *row) error {
	if p.phased > 0 {
		if err := p.tellCancelledPhases(ctx, task); err != nil {
			return err
		}
	}
	return p.emit(ctx, EventCancelled, task)
}

// tellCancelledPhases emits an event for each phase that is not done, if the task has begun
// one. In a task that has begun none the event of the task says all.
func (p *partition) tellCancelledPhases(ctx context.Context, task *row) error {
	r, err := p.phases(ctx, task.num)
	if err != nil || !r.stored {
		return err
	}
	all, percent := r.show(p.set.phases, Cancelled, "")
	for _, f := range all {
		if f.State != Cancelled {
			continue
		}
		err := p.st.Emit(ctx, EventPhase, phaseEvent{
			Event: jobs.Event{Subject: subject(taskSubject, task.num), Run: 1, Attempt: task.rare.Run.Attempt, Reason: reasonCancelled},
			Phase: f, Percent: percent,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// phasesOf lists the phases of a task, and tells its percent.
func (p *partition) phasesOf(ctx context.Context, task *row) ([]PhaseStatus, int, error) {
	if task.state == Done || task.state == Cancelled {
		if task.rare.Phases == nil {
			return nil, 0, nil
		}
		all := *task.rare.Phases
		return all, percentOf(all, task.state), nil
	}
	r, err := p.phases(ctx, task.num)
	if err != nil {
		return nil, 0, err
	}
	all, percent := r.show(p.set.phases, task.state, p.executing[task.num].token)
	return all, percent, nil
}

// percentOf is the percent of a task that is done or cancelled.
func percentOf(all []PhaseStatus, s State) int {
	done := 0
	for _, f := range all {
		if f.State == Done {
			done++
		}
	}
	if s == Done {
		done = len(all)
	}
	return overall(done, 0, len(all))
}

// endedPhases is how the phases of a task are that ends as done or cancelled; nil if it has none.
// Its outcome keeps them, because dropPhases removes their rows.
func (p *partition) endedPhases(ctx context.Context, num uint64, s State) (*[]PhaseStatus, error) {
	if len(p.set.phases) == 0 && p.phased == 0 {
		return nil, nil
	}
	r, err := p.phases(ctx, num)
	if err != nil {
		return nil, err
	}
	all, _ := r.show(p.set.phases, s, "")
	if all == nil {
		return nil, nil
	}
	return &all, nil
}

// dropPhases removes the phase rows of a task.
func (p *partition) dropPhases(ctx context.Context, num uint64) error {
	if p.phased == 0 { // so that a task without phases costs no allocation
		return nil
	}
	r, err := p.phases(ctx, num)
	if err != nil || !r.stored {
		return err
	}
	keys := []string{phaseKey(num)}
	for _, d := range r.Done {
		keys = append(keys, resultKey(num, d.Index))
	}
	if err := p.st.Storage().Remove(ctx, keys...); err != nil {
		return err
	}
	p.phased--
	p.dirty = true
	return nil
}

// Bytes that the phases of a task add to the batch in which it ends.
const (
	phaseBytes     = 96                                                                         // of one phase beside its name: a key to remove, and its status
	phaseBytesMost = maxPhases*(maxPhaseName+phaseBytes) + 2*(maxNoteBytes+engine.MaxTextBytes) // of any task
)

// phaseBytes is about how many bytes the phases of a task add to its end, if it has those
// of Config.Phases.
func (s *settings) phaseBytes() (n int) {
	for _, name := range s.phases {
		n += len(name) + phaseBytes
	}
	return n
}

// phaseBytes is how many bytes the phases of any task of the partition add to its end at
// most. Its phases may be those of an earlier Config.
func (p *partition) phaseBytes() int {
	if p.phased > 0 {
		return phaseBytesMost
	}
	return p.set.phaseBytes()
}
