package workerpool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
)

// PhaseStatus is how a phase of a task is.
type PhaseStatus struct {
	Name string `json:"name"`
	// State is Done if the result of the phase was stored, and Running while the
	// function of the phase runs. Any other phase is Pending until its task ends,
	// and then Dead or Cancelled like the task. In a task that is Done, Pending
	// says that Work has left the phase out.
	State   State  `json:"state"`
	Percent int    `json:"percent,omitempty"` // of the phase: 100 if it is Done; else of Progress, while it is Running
	Note    string `json:"note,omitempty"`    // of the last Progress of the phase
	Error   string `json:"error,omitempty"`   // of the last failure of the phase, until a phase begins again
}

// Phase runs a phase of a task: it calls fn and stores the result, encoded by the host's
// codec, in one commit. When Phase has returned, no later attempt of the task calls fn
// again, whatever crashes in between: its Phase returns the stored result (H1). So the
// attempts of a task go on where the last one failed:
//
//	Work: func(ctx context.Context, t *workerpool.Task[string]) (Index, error) {
//		file, err := workerpool.Phase(ctx, t, "download", func(ctx context.Context) (string, error) {
//			return download(ctx, t.In)
//		})
//		if err != nil {
//			return Index{}, err
//		}
//		return workerpool.Phase(ctx, t, "parse", func(ctx context.Context) (Index, error) {
//			return parse(ctx, file)
//		})
//	},
//
// fn may run more than once, because a crash can come before its commit. An error or a
// panic of fn is the error of Phase; Work returns it, or it may call the phase again.
//
// The name must be one of Config.Phases. The phases of an attempt run one after another,
// in any order; one inside another is refused. Phase is for Config.Work; the task of a
// Claim has no phases. Mistakes of the call are a jobs.ErrInvalid, returned before
// anything is written. So is a stored result of another name at the place of the phase in
// Config.Phases, because it would be the result of its neighbour.
//
// A result may have object.Options.MaxValueBytes with its name, or half of MaxBatchBytes
// if that is less; beyond that the error is object.ErrValueTooLarge. Results stay until
// the task is done or cancelled; those of a dead letter are there for a replay. After
// Cancel no phase begins: Phase returns ErrCancelled, or the cause of the end of ctx.
// Other errors: jobs.ErrStaleExecution if the attempt was given up meanwhile, and those of
// the codec and of the store.
//
// A phase costs two commits: one begins it, with an event, and one stores its result.
func Phase[In, R any](ctx context.Context, t *Task[In], name string, fn func(context.Context) (R, error)) (R, error) {
	var result, none R
	if t.attempt == nil {
		return none, noPhases(t.ID, "Phase")
	}
	raw, stored, err := t.attempt.phase(ctx, name, func(ctx context.Context) ([]byte, error) {
		var err error
		if result, err = fn(ctx); err != nil {
			return nil, err
		}
		return t.attempt.encode(name, result)
	})
	if err == nil && stored {
		err = t.attempt.decode(name, raw, &result)
	}
	if err != nil {
		return none, err
	}
	return result, nil
}

// Progress tells how far the phase under way is, from 0 to 100 percent, with a note of up
// to 512 bytes; the rest of a longer one is cut off. It is for the function of a Phase.
// Status and the event EventPhase tell it, each only when it is stored durably.
//
// Progress may be called often: it stores at most four times a second, and the last call
// always, at the latest with the end of the phase. It does not wait for the disk, so a crash
// may lose the newest progress. A percent below an earlier one of the phase counts as that
// one (H2). Errors: jobs.ErrInvalid for a percent out of range or without a phase under way,
// and those of Phase.
func (t *Task[In]) Progress(ctx context.Context, percent int, note string) error {
	a := t.attempt
	switch {
	case a == nil:
		return noPhases(t.ID, "Progress")
	case percent < 0 || percent > 100:
		return a.refuse("Progress of %d percent: it must be from 0 to 100", percent)
	case ctx.Err() != nil:
		return seam.Cause(ctx)
	}
	due, err := a.note(percent, note)
	if err != nil || !due {
		return err
	}
	return a.tell(ctx)
}

const (
	maxPhases     = 64
	maxPhaseName  = 128
	maxNoteBytes  = 512
	progressEvery = 250 * time.Millisecond // between two stored progresses of a task
)

// validPhases reports the first mistake in Config.Phases.
func validPhases(names []string, works bool) error {
	switch {
	case len(names) == 0:
		return nil
	case !works:
		return fmt.Errorf("%w: Phases without Work: an outside worker has no phases", jobs.ErrInvalid)
	case len(names) > maxPhases:
		return fmt.Errorf("%w: %d Phases, at most %d are allowed", jobs.ErrInvalid, len(names), maxPhases)
	}
	for i, name := range names {
		switch {
		case name == "" || len(name) > maxPhaseName || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
			return fmt.Errorf("%w: phase %q must be 1 to %d bytes of UTF-8 without control characters", jobs.ErrInvalid, name, maxPhaseName)
		case slices.Contains(names[:i], name):
			return fmt.Errorf("%w: phase %q is in Phases twice", jobs.ErrInvalid, name)
		}
	}
	return nil
}

// noPhases is the error of a Task that can have no phases.
func noPhases(id TaskID, verb string) error {
	return engine.Invalidf("workerpool", "task %s: %s needs Config.Phases, and a task that Config.Work runs", id, verb)
}

// attempt is an execution of a task in a pool with phases, as its Work sees it. The
// goroutines of Work call its methods. The way of a phase:
//
//  1. enter refuses a wrong name, and a phase beside another.
//  2. begin looks in a turn for the stored result. If there is none, the turn stores that
//     the phase is under way.
//  3. The function runs. Its progress is noted in memory and stored by tell, at once or
//     a quarter of a second after the last.
//  4. finish stores the result, or failed the error, with the progress that was not
//     stored yet.
type attempt struct {
	part  *partition // never changes, like num and token
	num   uint64
	token engine.Token

	mu sync.Mutex // guards the fields below
	// underWay is true from enter to leave, and running while the function runs.
	underWay, running bool
	name              string // of the phase under way
	percent           int    // the newest progress
	text              string // its note
	untold            bool   // the newest progress is not stored
	toldAt            time.Time
	timer             seam.Timer // will call tellLate; nil if none is set
	timers            int        // counts the timers, so that one that is late tells nothing
}

// phase runs fn as the phase of that name, or returns its stored result.
func (a *attempt) phase(ctx context.Context, name string, fn func(context.Context) ([]byte, error)) (raw []byte, stored bool, err error) {
	index, err := a.enter(ctx, name)
	if err != nil {
		return nil, false, err
	}
	defer a.leave()
	if raw, stored, err = a.begin(ctx, index); stored || err != nil {
		return raw, stored, err
	}
	a.run()
	err = seam.Guard(func() (err error) {
		raw, err = fn(ctx)
		return err
	}, func(p *seam.PanicError) error {
		if p.Exited() { // nothing after Guard runs
			p.TakeStack()
			a.failed(p)
		}
		return p
	})
	if err != nil {
		if !errors.Is(context.Cause(ctx), object.ErrSuspended) { // else the attempt is made again, and counts for nothing
			a.failed(err)
		}
		return nil, false, err
	}
	return raw, false, a.finish(index, raw)
}

// refuse is the error of a mistake in a call of Phase or Progress.
func (a *attempt) refuse(format string, args ...any) error {
	return engine.Invalidf(a.part.set.name, "task %s: %w", a.part.id(a.num), fmt.Errorf(format, args...))
}

// enter takes the place of the phase under way and returns its index in Config.Phases.
func (a *attempt) enter(ctx context.Context, name string) (int, error) {
	index := slices.Index(a.part.set.phases, name)
	switch {
	case index < 0:
		return 0, a.refuse("phase %q is not in Config.Phases %q", name, a.part.set.phases)
	case ctx.Err() != nil:
		return 0, seam.Cause(ctx)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.underWay {
		return 0, a.refuse("phase %q was called while phase %q is under way: phases run one after another", name, a.name)
	}
	a.underWay, a.name = true, name
	return index, nil
}

// run allows Progress, because the phase under way has begun.
func (a *attempt) run() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.running, a.percent, a.text, a.untold = true, 0, "", false
}

// leave gives the place of the phase under way back.
func (a *attempt) leave() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.underWay, a.running, a.untold = false, false, false
	if a.timer != nil {
		a.timer.Stop()
		a.timer = nil
		a.timers++
	}
}

// note keeps a progress and reports whether the caller must tell it now. Otherwise a timer
// does, so that the last progress of a function that goes on in silence is told too.
func (a *attempt) note(percent int, text string) (due bool, err error) {
	seams := a.part.st.Driver().Seams()
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.running {
		return false, a.refuse("Progress without a phase under way: call it in the function of a Phase")
	}
	a.percent, a.text, a.untold = max(a.percent, percent), alarm.Cut(text, maxNoteBytes), true
	now := seams.Steady()
	wait := progressEvery - now.Sub(a.toldAt)
	switch {
	case a.toldAt.IsZero() || wait <= 0:
		a.toldAt = now
		if a.timer != nil { // it is due too, and would tell the next progress too soon
			a.timer.Stop()
			a.timer = nil
			a.timers++
		}
		return true, nil
	case a.timer == nil:
		a.timers++
		number := a.timers
		a.timer = seams.Clock.AfterFunc(wait, func() { a.tellLate(number) })
	}
	return false, nil
}

// tellLate is the function of a timer of note. It does nothing if the phase has ended.
func (a *attempt) tellLate(number int) {
	a.mu.Lock()
	late := number != a.timers
	if !late {
		a.timer, a.toldAt = nil, a.part.st.Driver().Seams().Steady()
	}
	a.mu.Unlock()
	if late {
		return
	}
	ctx, release := a.part.st.Driver().Context()
	defer release()
	_ = a.tell(ctx) // if it fails, the end of the phase stores the progress
}

// tell stores the newest progress, unless another turn has.
func (a *attempt) tell(ctx context.Context) error {
	err := a.turn(ctx, func(ctx context.Context, r *phaseRow) error {
		if !a.take(r) {
			return nil
		}
		return a.part.storeProgress(ctx, a.num, r)
	}, object.Unconfirmed())
	if err != nil {
		a.mu.Lock()
		a.untold = a.running
		a.mu.Unlock()
	}
	if errors.Is(err, object.ErrNoSpace) { // the end of the phase waits for space and stores the progress
		return nil
	}
	return err
}

// take moves the newest progress to r, and reports whether there was one that is not stored.
func (a *attempt) take(r *phaseRow) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.untold {
		return false
	}
	a.untold = false
	r.Note = a.text
	r.advance(a.percent, len(a.part.set.phases))
	return true
}

// encode encodes a result and checks its size.
func (a *attempt) encode(name string, result any) ([]byte, error) {
	raw, err := a.part.encode(fmt.Sprintf("result of phase %q of task %s", name, a.part.id(a.num)), result)
	if err != nil {
		return nil, err
	}
	d := a.part.st.Driver()
	if n, most := len(appendResult(nil, name, raw)), min(d.MaxValueBytes(), d.MaxBatchBytes()/2); n > most {
		return nil, fmt.Errorf("%s: %w: phase %q of task %s returned %d bytes with its name, the limit is %d: store it outside and return its name",
			a.part.st.ID(), object.ErrValueTooLarge, name, a.part.id(a.num), n, most)
	}
	return raw, nil
}

// decode decodes a stored result.
func (a *attempt) decode(name string, raw []byte, into any) error {
	if err := a.part.st.Driver().Codec().Decode(raw, into); err != nil {
		return fmt.Errorf("%s: decode result of phase %q of task %s: %w", a.part.st.ID(), name, a.part.id(a.num), err)
	}
	return nil
}
