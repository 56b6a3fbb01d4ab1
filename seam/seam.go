// Package seam holds all that a host takes from outside itself: time, goroutines,
// randomness, and a probe that is told of the points where a crash can matter.
//
//   - In production these are the wall clock, ordinary goroutines, the runtime's
//     random source and no probe. The zero Seams means exactly that.
//   - In a simulation one harness implements all four, so that a whole host runs
//     on one goroutine at a time, on virtual time, and can be killed at any point.
//
// No other package of Holdfast calls time.Now, time.AfterFunc, math/rand or the
// go statement where a simulation must rule; a test of
// internal/lint checks that.
package seam

import (
	"context"
	"math"
	"math/bits"
	"math/rand/v2"
	"time"
)

// Clock tells the time and runs functions later. Its methods may be called from
// any goroutine.
type Clock interface {
	// Now is the current wall-clock time.
	Now() time.Time
	// AfterFunc runs f once, as a task of its own, when d has passed. A d that
	// is zero or negative means at once. f must not block for long.
	AfterFunc(d time.Duration, f func()) Timer
}

// Steady is a Clock with times that do not tell how long ago they were, because its
// wall clock jumps and they have no monotonic part, as those of package time have.
type Steady interface {
	Clock
	// Steady is a time that never jumps: only differences of it mean anything.
	Steady() time.Time
}

// Following is a Clock with timers that follow its wall clock when that jumps, as the clock
// of a simulation is. With any other Clock a caller that waits for a time of day looks at
// the clock now and then, because an ordinary timer does not notice a jump.
type Following interface {
	Clock
	// AtFunc runs f once, as AfterFunc does, when the clock shows at. If the clock jumps
	// beyond at, f runs when the caller would have looked: at the next multiple of look
	// since the timer was set. look must be positive.
	AtFunc(at time.Time, look time.Duration, f func()) Timer
}

// Timer is a function that a Clock has yet to run.
type Timer interface {
	// Stop keeps the function from running and reports whether it did. After
	// false the function has run, is running, or was stopped before.
	Stop() bool
}

// Executor runs tasks and lets them wait. Its methods may be called from any
// task. Waiting on anything but an Executor hides the wait from a simulation.
type Executor interface {
	// Go starts f as a task of its own. The name tells its purpose in
	// reports of a simulation.
	Go(name string, f func())
	// Wait returns nil once ready yields a value or is closed, and
	// Cause(ctx) if ctx ends first. If both have happened, ready wins.
	Wait(ctx context.Context, ready <-chan struct{}) error
}

// Exiter is an Executor that must know which tasks end their goroutines on purpose.
type Exiter interface {
	Executor
	// Exiting is called by the running task, immediately before it ends its goroutine.
	Exiting()
}

// Probe is told of each named point that a task reaches. A simulation counts
// points, switches tasks at them, and crashes at them.
type Probe interface {
	// At is called when the current task reaches p. It may end the task by
	// panicking with Killed.
	At(p Point)
}

// Faulty is a Probe that makes things go wrong on purpose.
type Faulty interface {
	Probe
	// Fault reports whether the fault of that name is to happen now.
	Fault(p Point) bool
}

// Sharing is a Probe that is told of handlers that keep memory which their callers
// have too.
type Sharing interface {
	Probe
	// WatchesSharing reports whether it wants to be told.
	WatchesSharing() bool
	// Shared is told of a handler of the object.
	Shared(object, problem string)
}

// Turns is a Probe that follows the turns of handlers, so that it sees which turn calls
// another object. It is not told of constructors.
type Turns interface {
	Probe
	// TurnBegan is told of a turn before its handler runs.
	TurnBegan(t Turn)
	// TurnCommitted is told that the turn of that ID has committed rows.
	TurnCommitted(id any)
	// TurnEnded is told that the handler of the turn has ended, and commits no more. It is
	// told at least once, and before the caller of the turn goes on.
	TurnEnded(id any)
}

// Turn is one run of a handler.
type Turn struct {
	ID         any    // of this turn; == tells one turn from another while both are under way
	Caller     any    // ID of the turn that made the call; nil if no turn did
	Object     string // class/name
	Method     string // its name; "alarm" for an alarm handler, "work" for State.Do
	Repeatable bool   // a repeat does no harm: the call has an idempotency key, or says so
}

// Faults that a simulation may choose: no machine does this by itself, but a
// host is to live with it.
const (
	FaultTimerLost  = "alarm/lost"  // a timer of the alarm scheduler rings in vain
	FaultAlarmTwice = "alarm/twice" // an alarm that is due is delivered twice
	// FaultMessageLate: a message that was sent waits on disk, as if the host had no room.
	FaultMessageLate = "message/late"
	// FaultMessageTwice: a message that is due for another attempt is delivered twice.
	FaultMessageTwice = "message/twice"
)

// Point is a place in the life of a host where a crash can matter.
type Point struct {
	Name   string // such as "commit/before"; constant for each place in the code
	Object string // class/name of the object concerned; empty if the point is the store's
}

// Killed is the value with which a simulated Executor or Probe ends the tasks of
// a process that has died. Code that recovers panics passes it on unchanged.
type Killed struct{}

// Seams is one set of the four. A nil field means the production one. All
// fields must be safe for concurrent use.
type Seams struct {
	Clock    Clock
	Executor Executor
	Rand     rand.Source // never for secrets
	Probe    Probe       // nil: no probe, at the cost of a branch
}

// WithDefaults returns s with each nil field but Probe set to the production one.
func (s Seams) WithDefaults() Seams {
	if s.Clock == nil {
		s.Clock = wall{}
	}
	if s.Executor == nil {
		s.Executor = goroutines{}
	}
	if s.Rand == nil {
		s.Rand = globalRand{}
	}
	return s
}

// At tells the probe, if there is one, that the current task reached the point.
func (s *Seams) At(name, object string) {
	if s.Probe != nil {
		s.Probe.At(Point{Name: name, Object: object})
	}
}

// Fault reports whether a fault is to happen now; without a simulation, never.
func (s *Seams) Fault(name, object string) bool {
	f, ok := s.Probe.(Faulty)
	return ok && f.Fault(Point{Name: name, Object: object})
}

// Steady returns a time for measuring how long something takes: the difference of
// two of them is not changed by a jump of the wall clock between.
func (s *Seams) Steady() time.Time {
	if c, ok := s.Clock.(Steady); ok {
		return c.Steady()
	}
	return s.Clock.Now()
}

// Sleep waits until d has passed on the clock or ctx ends, and then returns
// Cause(ctx).
func (s *Seams) Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	done := make(chan struct{})
	t := s.Clock.AfterFunc(d, func() { close(done) })
	defer t.Stop()
	return s.Executor.Wait(ctx, done)
}

// Uint64n returns a random number in [0, n). It is biased by less than n/2^64.
func Uint64n(src rand.Source, n uint64) uint64 {
	if n == 0 {
		return 0
	}
	return src.Uint64() % n
}

// Share returns d · share, rounded down to a nanosecond. It is exact for each d,
// which a product of floats is not beyond 2^53 ns. d must not be negative, and share
// must be from 0 to 1.
func Share(d time.Duration, share float64) time.Duration {
	const digits = 53 // of a float64
	part, exponent := math.Frexp(share)
	high, low := bits.Mul64(uint64(d), uint64(part*(1<<digits)))
	switch shift := digits - exponent; {
	case shift >= 128:
		return 0
	case shift >= 64:
		return time.Duration(high >> (shift - 64))
	default:
		return time.Duration(high<<(64-shift) | low>>shift)
	}
}
