package program

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/internal/prove/killtest/judge"
	"github.com/holdfast-dev/holdfast/object"
)

// CounterState is stored by a counter under StateKey, and by a timer TimerState.
// Each key that a counter has counted, and each token of a timer, has a row of its
// own below KeyPrefix.
const (
	StateKey  = "state"
	KeyPrefix = "k/"
)

// CounterState counts calls.
type CounterState struct {
	N    uint64 `json:"n"`
	Adds uint64 `json:"adds"` // without a key
}

// counter counts, in memory and in storage.
type counter struct {
	st    *object.State
	state CounterState
}

func newCounter(ctx context.Context, st *object.State) (*counter, error) {
	c := &counter{st: st}
	_, err := st.Storage().GetInto(ctx, StateKey, &c.state)
	return c, err
}

// add counts a call without a key.
func (c *counter) add(ctx context.Context, _ struct{}) (uint64, error) {
	next := c.state
	next.Adds++
	return c.count(ctx, next)
}

// once counts a call with a key. The host must run it once for each.
func (c *counter) once(ctx context.Context, key string) (uint64, error) {
	var times uint64
	if _, err := c.st.Storage().GetInto(ctx, KeyPrefix+key, &times); err != nil {
		return 0, err
	}
	if err := c.st.Storage().Put(ctx, KeyPrefix+key, times+1); err != nil {
		return 0, err
	}
	return c.count(ctx, c.state)
}

func (c *counter) count(ctx context.Context, next CounterState) (uint64, error) {
	next.N++
	if err := c.st.Storage().Put(ctx, StateKey, next); err != nil {
		return 0, err
	}
	if err := c.st.Emit(ctx, "counted", next.N); err != nil {
		return 0, err
	}
	c.state = next
	return next.N, nil
}

func (c *counter) read(context.Context, struct{}) (uint64, error) { return c.state.N, nil }

// TimerState is that of a timer.
type TimerState struct {
	Pending  uint64 `json:"pending"`
	Spurious uint64 `json:"spurious"`
}

// timer is an object that sets its alarm for one token after another.
type timer struct {
	p     *Program
	st    *object.State
	state TimerState
}

func (p *Program) newTimer(ctx context.Context, st *object.State) (*timer, error) {
	t := &timer{p: p, st: st}
	_, err := st.Storage().GetInto(ctx, StateKey, &t.state)
	return t, err
}

// setting is an alarm for a token.
type setting struct {
	Token uint64
	After time.Duration
}

func (t *timer) set(ctx context.Context, s setting) (struct{}, error) {
	if old := t.state.Pending; old != 0 {
		if err := t.mark(ctx, old, judge.TokenReplaced); err != nil {
			return struct{}{}, err
		}
	}
	if err := t.mark(ctx, s.Token, judge.TokenPending); err != nil {
		return struct{}{}, err
	}
	due := t.st.Now().Add(s.After)
	if err := t.st.SetAlarm(ctx, due); err != nil {
		return struct{}{}, err
	}
	next := t.state
	next.Pending = s.Token
	if err := t.put(ctx, next); err != nil {
		return struct{}{}, err
	}
	return struct{}{}, nil
}

func (t *timer) mark(ctx context.Context, token uint64, state string) error {
	return t.st.Storage().Put(ctx, KeyPrefix+strconv.FormatUint(token, 10), state)
}

func (t *timer) put(ctx context.Context, next TimerState) error {
	if err := t.st.Storage().Put(ctx, StateKey, next); err != nil {
		return err
	}
	t.state = next
	return nil
}

func (t *timer) read(context.Context, struct{}) (uint64, error) { return t.state.Pending, nil }

var errAgain = errors.New("to be tried again")

// Alarm leaves its effect outside, and then says in storage that it has come.
// Each third token needs a second attempt.
func (t *timer) Alarm(ctx context.Context, info object.AlarmInfo) error {
	token, early := t.state.Pending, ""
	if now := t.st.Now(); now.Round(0).Before(info.Scheduled) {
		early = fmt.Sprintf("early by %s", info.Scheduled.Sub(now.Round(0)))
	}
	next := t.state
	next.Pending = 0
	if token == 0 {
		next.Spurious++
		return t.put(ctx, next)
	}
	t.p.journal.write(judge.Line{Kind: judge.Effect, Verb: judge.Alarm, On: t.st.Name(), N: token, Key: early})
	if token%3 == 0 && info.Attempt == 1 {
		return errAgain
	}
	if err := t.mark(ctx, token, judge.TokenFired); err != nil {
		return err
	}
	return t.put(ctx, next)
}

// patient is the retry of everything here: soon, and without an end, since a
// process that is killed over and over again is no reason to give up.
var patient = alarm.Retry{MaxAttempts: 1 << 20, Backoff: alarm.Constant(time.Millisecond)}

const manyCrashes = 1 << 20
