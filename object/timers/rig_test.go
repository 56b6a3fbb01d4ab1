package timers_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/leaks"
	_ "github.com/holdfast-dev/holdfast/internal/testing/seeds" // the tests draw the same inputs in each run
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/object/timers"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// box is an object with timers, in which each test does what it wants.
type box struct {
	st     *object.State
	timers *timers.Timers
	rig    *rig
	began  time.Time // the turn of the newest alarm
}

func (b *box) Alarm(ctx context.Context, info object.AlarmInfo) error {
	b.rig.alarms++
	b.began = b.st.Now()
	err := b.timers.Alarm(ctx, info)
	if b.rig.after != nil {
		err = errors.Join(err, b.rig.after())
	}
	return err
}

// rig is a simulation with a class of boxes.
type rig struct {
	*harness.Sim
	class *object.Class[box]
	do    *object.Method[func(context.Context, *box) error, struct{}]
	// fire is the handler of the timers; nil notes each in the rows and outside.
	fire   func(ctx context.Context, b *box, t timers.Timer) error
	after  func() error // is called at the end of each Alarm; nil: nothing
	alarms int          // how often Alarm ran
}

// newRig opens a host with boxes.
func newRig(s *harness.Sim, o timers.Options, fire func(context.Context, *box, timers.Timer) error) *rig {
	r := &rig{Sim: s, fire: fire}
	r.class = r.define(o)
	s.Host(r.class)
	return r
}

func (r *rig) define(o timers.Options) *object.Class[box] {
	c := object.Define("box", func(ctx context.Context, st *object.State) (*box, error) {
		b := &box{st: st, rig: r}
		var err error
		b.timers, err = timers.Attach(ctx, st, o, func(ctx context.Context, t timers.Timer) error {
			if r.fire != nil {
				return r.fire(ctx, b, t)
			}
			return r.note(ctx, b, t)
		})
		return b, err
	}, timers.ClassOptions(object.ClassOptions{}))
	r.do = object.Handle(c, "do", func(b *box, ctx context.Context, fn func(context.Context, *box) error) (struct{}, error) {
		return struct{}{}, fn(ctx, b)
	})
	return c
}

// note counts a firing in the rows, and outside.
func (r *rig) note(ctx context.Context, b *box, t timers.Timer) error {
	r.World().Do("fire/"+t.Name, nil)
	return count(ctx, b, t.Name)
}

// count adds one to the row of a name.
func count(ctx context.Context, b *box, name string) error {
	n := 0
	if _, err := b.st.Storage().GetInto(ctx, "count/"+name, &n); err != nil {
		return err
	}
	return b.st.Storage().Put(ctx, "count/"+name, n+1)
}

// turn runs fn in a turn of the box "a".
func (r *rig) turn(fn func(context.Context, *box) error) error {
	_, err := r.do.Call(r.Context(), r, "a", fn)
	return err
}

// must runs fn in a turn of the box "a" until its answer is known. fn may run twice.
func (r *rig) must(fn func(context.Context, *box) error) {
	r.OK(r.Retry(func() error { return r.turn(fn) }))
}

// counted returns how often a timer has fired, by the rows.
func (r *rig) counted(name string) (n int) {
	r.must(func(ctx context.Context, b *box) error {
		n = 0
		_, err := b.st.Storage().GetInto(ctx, "count/"+name, &n)
		return err
	})
	return n
}

// want fails the test if a timer has not fired so often.
func (r *rig) want(name string, n int) {
	if got := r.counted(name); got != n {
		r.Errorf("timer %q has fired %d times, want %d", name, got, n)
	}
}

// at sets a timer of the box "a".
func (r *rig) at(name string, after time.Duration) {
	at := r.Now().Add(after)
	r.must(func(ctx context.Context, b *box) error { return b.timers.At(ctx, name, at, nil) })
}

// run runs a test in a simulation, with the checkers that fit each test.
func run(t *testing.T, o timers.Options, fire func(context.Context, *box, timers.Timer) error, test func(r *rig)) {
	t.Helper()
	harness.Run(t, func(s *harness.Sim) { test(newRig(s, o, fire)) }, harness.OneAlarm, harness.EarliestTimer, harness.NoLostAck)
}

// letters are the dead letters of the host.
func (r *rig) letters() (out []object.DeadLetter) {
	r.OK(r.WithHost(func(ctx context.Context, h *object.Host) (err error) {
		out, err = lettersOf(h.DeadLetters(ctx, object.DeadLettersOptions{Limit: object.MaxPage}))
		return err
	}))
	return out
}

var errNo = errors.New("no")

// lettersOf passes on the letters of a page.
func lettersOf(page object.DeadLetterPage, err error) ([]object.DeadLetter, error) {
	return page.Letters, err
}
