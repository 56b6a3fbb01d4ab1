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
	s, err := p.info.Call(ctx, from, id.object(), id.Number)
	if err == nil {
		err = p.webhookOf(ctx, from, &s)
	}
	return s, err
}

// Wait waits until a task has ended and returns its output. The error is
// ErrFailed for a dead letter and ErrCancelled for a cancelled task; read
// Status for the history. During a shutdown it still waits for a task that runs
// in this process; for any other task it returns object.ErrShutdown.
func (p *Pool[In, Out]) Wait(ctx context.Context, from object.Caller, id TaskID) (Out, error) {
	info, err := again(func() (Status[Out], error) { return p.wait.Call(ctx, from, id.object(), id.Number) })
	if err == nil && info.DecodeError != "" {
		err = fmt.Errorf("workerpool: %s: read Status.Raw with Pool.Status", info.DecodeError)
	}
	if err != nil {
		return info.Result, err
	}
	switch info.State {
	case Dead:
		last := ""
		if n := len(info.Failures); n > 0 {
			last = ": " + info.Failures[n-1].Error
		}
		return info.Result, fmt.Errorf("%s: task %s: %w%s", p.Name(), id, ErrFailed, last)
	case Cancelled:
		return info.Result, fmt.Errorf("%s: task %s: %w", p.Name(), id, ErrCancelled)
	}
	return info.Result, nil
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
func statusOf[Out any](p *partition, r *row, err error) (Status[Out], error) {
	if err != nil {
		return Status[Out]{}, err
	}
	f := Status[Out]{
		ID: p.id(r.num), State: r.state, Key: r.key, Queue: r.queue, Priority: r.priority,
		Enqueued: timeOf(r.enqueued), Ended: timeOf(r.endedAt), NotBefore: timeOf(r.notBefore),
		Attempt: max(int(r.attempts), r.begun()), Failures: r.rare.Failures, Cancelling: r.rare.Cancelling,
	}
	if r.rare.Webhook != nil {
		f.Webhook = &WebhookStatus{State: WebhookPending}
	}
	if r.state != Done {
		return f, nil
	}
	if err := p.st.Driver().Codec().Decode(r.output, &f.Result); err != nil {
		var none Out
		f.Result, f.Raw = none, r.output
		f.DecodeError = fmt.Sprintf("%s: decode output of task %s: %v", p.st.ID(), p.id(r.num), err)
	}
	return f, nil
}

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
func (p *Pool[In, Out]) PhaseResult(ctx context.Context, from object.Caller, id TaskID, phase string, into any) (bool, error) {
	v, err := p.phaseResult.Call(ctx, from, id.object(), phaseName{id.Number, phase})
	if err != nil || !v.OK {
		return false, err
	}
	if err := v.codec.Decode(v.Value, into); err != nil {
		return false, fmt.Errorf("%s: decode result of phase %q of task %s: %w", p.Name(), phase, id, err)
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
func (p *Pool[In, Out]) PhaseResults(ctx context.Context, from object.Caller, id TaskID) ([]PhaseResult, error) {
	return p.allResults.Call(ctx, from, id.object(), id.Number)
}
