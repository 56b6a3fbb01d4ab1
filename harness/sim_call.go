package harness

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
)

// AckAfter is the point at which the caller of a call has its reply.
const AckAfter = "ack/after"

var errUnknown = errors.New("harness: the process died before the reply: the call may have happened or not")

// Unknown reports whether err says that a call's process died before the reply,
// so that the call may have happened or not.
func Unknown(err error) bool { return errors.Is(err, errUnknown) }

// call is a call from outside that is under way.
type call struct {
	err   error
	ended bool
	done  chan struct{} // closed when ended is set
}

func (c *call) end(err error) {
	if !c.ended {
		c.err, c.ended = err, true
		close(c.done)
	}
}

func (c *call) lose() { c.end(errUnknown) }

// Call runs fn as a task of the process, in the same way as a call from outside, and
// waits for its end. Points of the task carry the name object. If the process dies
// first, the error is Unknown, and the next process is ready when the scenario goes on.
// Clients may call it.
func (s *Sim) Call(object string, fn func(ctx context.Context) error) error {
	s.m.Own()
	for !s.alive() || s.up != nil {
		if s.up == nil || !s.m.InTask() {
			return ErrDown
		}
		s.wait(s.up)
	}
	c := &call{done: make(chan struct{})}
	s.calls[c] = struct{}{}
	p := s.proc
	g := s.gate.begin(object)
	beganBroken := s.failed(p)
	p.Go("call "+object, func() {
		err := fn(context.Background())
		p.Live()
		if s.unanswered(p, object, beganBroken, err) {
			return
		}
		delete(s.calls, c)
		if err == nil {
			s.checkGate(object, g)
			s.haunts(p, atLateReply, object, func() { c.end(nil) })
		}
		c.end(err)
		p.At(seam.Point{Name: AckAfter, Object: object})
	})
	if s.m.InTask() {
		s.wait(c.done)
		return c.err
	}
	limit := s.patience()
	if !s.drive(s.m.Now().Add(limit), func() bool { return c.ended && s.up == nil }) {
		s.Fatalf("the call to %s gets no reply in %v of virtual time: it waits for an event that never comes, or for a time that is further away: then use Advance before the call", object, limit)
	}
	return c.err
}

// Must ends the test unless err is nil or Unknown. It takes the results of a
// call: s.Must(Add.Call(s.Context(), s, "alice", 1)).
func (s *Sim) Must(_ any, err error) { s.OK(err) }

// OK ends the test unless err is nil or Unknown.
func (s *Sim) OK(err error) {
	if err != nil && !Unknown(err) {
		s.Fatalf("unexpected error: %v", err)
	}
}

// Retry repeats fn, as a client that wants to be sure does, until its error is
// nil or one that a repeat will not mend, which it returns. Between repeats that
// were refused a second passes. Clients may call it.
func (s *Sim) Retry(fn func() error) error {
	const most = 100
	var err error
	for range most {
		err = fn()
		switch {
		case Unknown(err):
		case err != nil && object.Retryable(err):
			s.Sleep(time.Second)
		default:
			return err
		}
	}
	s.Fatalf("Retry: no answer after %d calls: %v", most, err)
	return err
}
