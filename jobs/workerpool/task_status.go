package workerpool

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object"
)

// Status is the answer of Pool.Status: how a task is.
type Status[Out any] struct {
	ID       TaskID    `json:"id"`
	State    State     `json:"state"`
	Key      string    `json:"key,omitempty"`
	Queue    string    `json:"queue,omitempty"`
	Priority int       `json:"priority,omitempty"`
	Enqueued time.Time `json:"enqueued"`
	// NotBefore is the earliest time of the next attempt; zero means any time.
	NotBefore time.Time `json:"notBefore,omitzero"`
	// Attempt counts the attempts that have begun. A repetition after a crash
	// is the same attempt.
	Attempt  int       `json:"attempt,omitempty"`
	Failures []Failure `json:"failures,omitempty"` // beyond 100, the first and the last 50
	// Cancelling means that the task is running and that Cancel was called for
	// it.
	Cancelling bool `json:"cancelling,omitempty"`
	// Phases are those of Config.Phases in their order, and stored ones that it
	// has no more. Percent is how far the task is: with three phases, 50 percent
	// of the first are 17. It never falls while an attempt runs; the next attempt
	// begins with the phases that are done. Both are empty in a pool without phases.
	Phases  []PhaseStatus `json:"phases,omitempty"`
	Percent int           `json:"percent,omitempty"`
	Ended   time.Time     `json:"ended,omitzero"` // zero for a pending or running task
	Result  Out           `json:"result"`         // only of a done task
	// Webhook is how the posting of the outcome is, of a task with the option Webhook; nil: it has none. Wait does not tell it.
	Webhook *WebhookStatus `json:"webhook,omitempty"`
	// Raw has the stored output if it cannot be decoded, and DecodeError has
	// the reason. Then Result is zero.
	Raw         []byte `json:"raw,omitempty"`
	DecodeError string `json:"decodeError,omitempty"`
}

// Failure is one failed attempt.
type Failure struct {
	Attempt int       `json:"attempt"`
	At      time.Time `json:"at"`
	Error   string    `json:"error"`
}

// Status returns the state of a task and its history. It returns
// jobs.ErrNotFound for an unknown id, also when the task was done or cancelled
// more than Config.Retention ago.
func (p *Pool[In, Out]) Status(ctx context.Context, from object.Caller, id TaskID) (Status[Out], error) {
	s, err := p.info(ctx, from, id.object(), id.Number)
	if err == nil && s.Webhook != nil {
		err = p.pool.webhookOf(ctx, from, Outcome{Task: s.ID, State: s.State, Ended: s.Ended}, s.Webhook)
	}
	return s, err
}

// Wait waits until a task has ended and returns its output. The error is
// ErrFailed for a dead letter and ErrCancelled for a cancelled task; read
// Status for the history. During a shutdown it still waits for a task that runs
// in this process; for any other task it returns object.ErrShutdown.
func (p *Pool[In, Out]) Wait(ctx context.Context, from object.Caller, id TaskID) (Out, error) {
	info, err := again(func() (Status[Out], error) { return p.wait(ctx, from, id.object(), id.Number) })
	if err == nil {
		err = p.pool.unsuccessful(id, info.State, info.Failures, info.DecodeError)
	}
	return info.Result, err
}

// unsuccessful is the error of Wait for a task that has ended.
func (p *pool) unsuccessful(id TaskID, s State, failures []Failure, decodeError string) error {
	switch {
	case decodeError != "":
		return fmt.Errorf("workerpool: %s: read Status.Raw with Pool.Status", decodeError)
	case s == Dead:
		last := ""
		if n := len(failures); n > 0 {
			last = ": " + failures[n-1].Error
		}
		return fmt.Errorf("%s: task %s: %w%s", p.set.name, id, ErrFailed, last)
	case s == Cancelled:
		return fmt.Errorf("%s: task %s: %w", p.set.name, id, ErrCancelled)
	}
	return nil
}

// again repeats a wait that ended because the partition was evicted.
func again[R any](wait func() (R, error)) (R, error) {
	for {
		r, err := wait()
		if !errors.Is(err, object.ErrReset) {
			return r, err
		}
	}
}

// statusOf makes the answer to Status and Wait. An output that cannot be decoded
// is no error of the call: its bytes go to Status.Raw.
func statusOf[Out any](p *partition, r *row, err error) (s Status[Out], _ error) {
	if err != nil {
		return s, err
	}
	s.ID, s.State, s.Key, s.Queue, s.Priority = p.id(r.num), r.state, r.key, r.queue, r.priority
	s.Enqueued, s.Ended, s.NotBefore = timeOf(r.enqueued), timeOf(r.endedAt), timeOf(r.notBefore)
	s.Attempt, s.Failures, s.Cancelling, s.Webhook = r.seen(), r.rare.Failures, r.rare.Cancelling, r.webhookStatus()
	if r.state == Done {
		var out Out
		if s.DecodeError = p.decodeOutput(r, &out); s.DecodeError != "" {
			s.Raw = r.output
		} else {
			s.Result = out
		}
	}
	return s, nil
}

// decodeOutput sets *out to the output of a task, or says why it cannot be decoded.
func (p *partition) decodeOutput(r *row, out any) string {
	if err := p.st.Driver().Codec().Decode(r.output, out); err != nil {
		return fmt.Sprintf("%s: decode output of task %s: %v", p.st.ID(), p.id(r.num), err)
	}
	return ""
}

// seen is how many attempts have begun of a task in any state.
func (r *row) seen() int { return max(int(r.attempts), r.begun()) }

// look reads a task in any state. A running task gets its state and its
// progress from its open execution, because the row is not rewritten when a
// task begins.
func (p *partition) look(ctx context.Context, num uint64) (*row, error) {
	r, ok, err := p.task(ctx, num)
	if err != nil {
		return nil, err
	}
	if !ok {
		return p.outcome(ctx, num)
	}
	if a, runs := p.executing[num]; runs {
		x, _ := p.engine.Lookup(a.token)
		r.state, r.notBefore, r.rare.Run = Running, 0, x.Run
	}
	return r, nil
}

// outcome reads a task that is done, dead or cancelled.
func (p *partition) outcome(ctx context.Context, num uint64) (*row, error) {
	r, ok, err := p.letter(ctx, num)
	if err != nil || ok {
		return r, err
	}
	b, ok, err := p.st.Marked(ctx, numbered(outcomePrefix, num))
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("%s: %w: task %s", p.st.ID(), jobs.ErrNotFound, p.id(num))
	}
	return decodeRow(num, b)
}

// wait returns a task when it has ended. Other turns run while it waits. During
// a shutdown it waits only for a task that runs in this process: no other task
// will begin, and no call from outside can end one.
func (p *partition) wait(ctx context.Context, num uint64) (*row, error) {
	for {
		r, err := p.look(ctx, num)
		if err != nil || r.state.Ended() {
			return r, err
		}
		if err := p.await(ctx, num, r.state == Running); err != nil {
			return nil, err
		}
	}
}

// await waits until wake is called for num; runs says whether the task runs
// now. For a task that does not run in this process, a shutdown ends the wait:
// the first time without an error, so that the caller checks whether the task
// has begun meanwhile, and then with object.ErrShutdown.
func (p *partition) await(ctx context.Context, num uint64, runs bool) error {
	told := p.waiters[num]
	if told == nil {
		told = make(chan struct{})
		p.waiters[num] = told
	}
	if runs && p.set.work != nil {
		return p.st.Release(ctx, func(ctx context.Context) error {
			return p.st.Driver().Seams().Executor.Wait(ctx, told)
		})
	}
	began := p.st.Closing()
	err := p.st.Await(ctx, told)
	if errors.Is(err, object.ErrShutdown) && !began {
		return nil
	}
	return err
}

// PhaseResult decodes the stored result of a phase into the value that into points to, and
// reports whether there is one. There is none before the phase is Done, nor after the task
// was done or cancelled; the results of a dead letter stay for a replay. Error:
// jobs.ErrNotFound for an unknown id.
//
//go:noinline
func (p *control) PhaseResult(ctx context.Context, from object.Caller, id TaskID, phase string, into any) (bool, error) {
	v, err := p.pool.calls.phaseResult(ctx, from, id.object(), phaseName{id.Number, phase})
	if err != nil || !v.OK {
		return false, err
	}
	if err := v.codec.Decode(v.Value, into); err != nil {
		return false, fmt.Errorf("%s: decode result of phase %q of task %s: %w", p.pool.set.name, phase, id, err)
	}
	return true, nil
}

// PhaseResult is the stored result of a phase.
type PhaseResult struct {
	Name string `json:"name"`          // of the phase
	Raw  []byte `json:"raw,omitempty"` // as the host's codec has encoded it
}

// PhaseResults lists the stored results of a task's phases, in the order of Config.Phases, as
// bytes, for a tool that does not know their types. PhaseResult decodes one of them. The list
// is empty where PhaseResult finds none. All results are in memory at a time: up to 64, each
// of up to object.Options.MaxValueBytes. Error: jobs.ErrNotFound for an unknown id.
//
//go:noinline
func (p *control) PhaseResults(ctx context.Context, from object.Caller, id TaskID) ([]PhaseResult, error) {
	return p.pool.calls.phaseResults(ctx, from, id.object(), id.Number)
}
