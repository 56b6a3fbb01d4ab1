package program

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/holdfast-dev/holdfast/internal/prove/killtest/judge"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/debounce"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
)

// How many of each there are.
const (
	counters = 4
	timers   = 6
	loops    = 2
	batches  = 3
	chains   = 12 // order keys of tasks
)

// tell makes a call: a line before it, and one with its answer.
func (p *Program) tell(l judge.Line, call func(*judge.Line) error) error {
	l.Kind, l.Op = judge.Call, p.ops.Add(1)
	p.journal.write(l)
	answer := judge.Line{Kind: judge.Ack, Op: l.Op}
	err := call(&answer)
	switch {
	case err == nil:
		p.journal.write(answer)
	case unknown(err):
	case refused(err):
		p.journal.write(judge.Line{Kind: judge.Refused, Op: l.Op, Text: why(err)})
	default:
		p.journal.trouble("%s on %s: %v", l.Verb, l.On, err)
	}
	return err
}

// refused tells errors after which nothing of a call is left.
func refused(err error) bool {
	for _, e := range []error{object.ErrShutdown, jobs.ErrIllegalMove, jobs.ErrNotFound, jobs.ErrStaleExecution, workerpool.ErrQueueFull, debounce.ErrFull} {
		if errors.Is(err, e) {
			return true
		}
	}
	return object.Retryable(err)
}

// unknown tells errors after which a call may have been made or not.
func unknown(err error) bool {
	return errors.Is(err, object.ErrStorage) || errors.Is(err, object.ErrUnknown) || errors.Is(err, context.Canceled)
}

// why is the text of a refusal that the parent knows again.
func why(err error) string {
	if errors.Is(err, object.ErrNoSpace) {
		return NoSpace
	}
	return ""
}

// NoSpace is the text of a refusal for want of disk space.
const NoSpace = "no space"

// caller is one of the goroutines that call at the same time.
type caller struct {
	*Program
	id   int
	rand *rand.Rand
	n    int // calls so far
}

// name is a fresh name, unlike those of the other callers.
func (c *caller) name() string {
	c.n++
	return fmt.Sprintf("%d-%d-%d", c.config.FirstOp>>32, c.id, c.n)
}

// callers are the loops of all callers, each with its kind of call.
func (p *Program) callers() []func(*caller) error {
	var all []func(*caller) error
	several := func(n int, f func(*caller, int) error) {
		for i := range n {
			all = append(all, func(c *caller) error { return f(c, i) })
		}
	}
	several(2*counters, (*caller).counts)
	several(2*counters, (*caller).countsOnce)
	several(2, (*caller).reads)
	several(timers, (*caller).sets)
	several(loops, (*caller).controls)
	several(2*batches, (*caller).adds)
	several(6, (*caller).submits)
	several(3, (*caller).claims)
	return all
}

func (c *caller) counts(i int) error {
	on := fmt.Sprintf("count-%d", i%counters)
	return c.tell(judge.Line{Verb: judge.Add, On: on}, func(l *judge.Line) (err error) {
		l.N, err = c.add.Call(c.ctx, c.host, on, struct{}{})
		return err
	})
}

func (c *caller) countsOnce(i int) error {
	return c.repeatable(judge.Line{Verb: judge.Once, On: fmt.Sprintf("count-%d", i%counters), Key: c.name()})
}

func (c *caller) reads(int) error {
	c.pause(time.Duration(c.rand.IntN(1000)) * time.Microsecond)
	on := fmt.Sprintf("count-%d", c.rand.IntN(counters))
	return c.tell(judge.Line{Verb: judge.Read, On: on}, func(l *judge.Line) (err error) {
		l.N, err = c.read.Call(c.ctx, c.host, on, struct{}{})
		return err
	})
}

// sets moves an alarm, or lets it come before the next.
func (c *caller) sets(i int) error {
	c.n++
	on, s := fmt.Sprintf("timer-%d", i), setting{Token: c.config.FirstOp + uint64(c.n)}
	s.After = time.Duration(c.rand.IntN(6)-1) * time.Millisecond
	err := c.tell(judge.Line{Verb: judge.Set, On: on, N: s.Token}, func(*judge.Line) error {
		_, err := c.set.Call(c.ctx, c.host, on, s)
		return err
	})
	c.pause(time.Duration(c.rand.IntN(8)) * time.Millisecond)
	return err
}

// controls pauses and resumes a continuous job; only one caller does so.
func (c *caller) controls(i int) error {
	on := fmt.Sprintf("loop-%d", i)
	c.n++
	if c.n == 1 {
		return c.tell(judge.Line{Verb: judge.Other, On: on}, func(*judge.Line) error {
			_, err := c.loop.Start(c.ctx, c.host, on, LoopState{})
			return err
		})
	}
	defer c.pause(time.Duration(c.rand.IntN(5)) * time.Millisecond)
	verb := []judge.Verb{judge.Pause, judge.Resume, judge.State, judge.State, judge.Other}[c.rand.IntN(5)]
	return c.tell(judge.Line{Verb: verb, On: on}, func(l *judge.Line) error {
		switch verb {
		case judge.Pause:
			return c.loop.Pause(c.ctx, c.host, on)
		case judge.Resume:
			return c.loop.Resume(c.ctx, c.host, on)
		case judge.State:
			s, err := c.loop.State(c.ctx, c.host, on)
			l.N = s.N
			return err
		}
		return c.loop.Trigger(c.ctx, c.host, on)
	})
}

func (c *caller) adds(i int) error {
	if c.rand.IntN(20) == 0 {
		c.pause(5 * time.Millisecond) // a quiet time
	}
	return c.repeatable(judge.Line{Verb: judge.Event, On: fmt.Sprintf("batch-%d", i%batches), Key: c.name()})
}

// submits enqueues a task with a kind, order key and queue that follow from its name,
// so that a later life can submit the same.
func (c *caller) submits(int) error {
	l := judge.Line{Verb: judge.Enqueue, On: PoolClass, Key: c.name()}
	if c.rand.IntN(6) == 0 {
		l.On = TrayClass
	}
	if c.rand.IntN(2) == 0 {
		l.Text = fmt.Sprintf("chain-%d", c.rand.IntN(chains))
	}
	l.N = uint64(c.rand.IntN(10))
	return c.repeatable(l)
}

// repeatable makes a call that has an idempotency key.
func (p *Program) repeatable(l judge.Line) error {
	return p.tell(l, func(a *judge.Line) (err error) {
		switch l.Verb {
		case judge.Once:
			a.N, err = p.once.Call(p.ctx, p.host, l.On, l.Key, object.Idempotent(l.Key, 0))
		case judge.Event:
			var ack debounce.Ack
			ack, err = p.batch.Add(p.ctx, p.host, l.On, BatchEvent{l.Key}, debounce.EventID(l.Key))
			a.N = ack.Generation
		case judge.Enqueue:
			a.Key, err = p.submit(l)
		}
		return err
	})
}

func (p *Program) submit(l judge.Line) (string, error) {
	opts := []workerpool.Option{workerpool.Idempotent(l.Key, 0), workerpool.Key(l.Text), workerpool.Priority(int(l.N) % 4)}
	if l.On == TrayClass {
		ref, err := p.tray.Enqueue(p.ctx, p.host, TaskInput{l.Key, l.Text, easy}, opts...)
		return TrayClass + "/" + ref.ID.String(), err
	}
	if l.N%2 == 0 {
		opts = append(opts, workerpool.Queue("fast"))
	}
	if l.N == 9 {
		opts = append(opts, workerpool.Delay(5*time.Millisecond))
	}
	kind := map[uint64]int{1: flaky, 2: slow, 3: doomed}[l.N]
	ref, err := p.pool.Enqueue(p.ctx, p.host, TaskInput{l.Key, l.Text, kind}, opts...)
	return PoolClass + "/" + ref.ID.String(), err
}

// claims is an outside worker. It sometimes holds a task for longer than its lease, and
// ends it all the same, but not in the last life. A slow worker may report its begin after the task was given to
// another and the next task of the key has begun, so the order of keys is not reported
// for claimed tasks.
func (c *caller) claims(int) error {
	some, err := c.tray.Claim(c.ctx, c.host, 2, 0)
	for _, claim := range some {
		t := &claim.Task
		id := TrayClass + "/" + claim.ID.String()
		c.journal.write(judge.Line{
			Kind: judge.Effect, Verb: judge.Work, On: id, N: uint64(t.Attempt), IDs: []string{t.In.Name}, Key: t.OutsideKey,
		})
		if !c.config.Finish && c.rand.IntN(4) == 0 {
			c.pause(2 * c.lease)
		}
		if err := c.tally(c.ctx, c.host, t.OutsideKey); err != nil {
			return err
		}
		_ = c.tell(judge.Line{Verb: judge.Finish, On: id, N: uint64(t.Attempt)}, func(*judge.Line) error {
			return c.tray.Ack(c.ctx, c.host, claim.Lease, t.In.Name)
		})
	}
	if len(some) == 0 {
		c.pause(time.Millisecond)
	}
	return err
}
