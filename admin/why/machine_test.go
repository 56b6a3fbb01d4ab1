package why_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/admin/why"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/engine"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// hanging is an engine whose syncs wait for a gate while it hangs.
type hanging struct {
	engine.Engine
	hangs atomic.Bool
	gate  chan struct{}
}

func (h *hanging) Sync() error {
	if h.hangs.Load() {
		<-h.gate
	}
	return h.Engine.Sync()
}

// holdsNow are the codes of an object of a living host.
func holdsNow(t *testing.T, h *object.Host, id storage.ID) []why.Code {
	t.Helper()
	a, err := why.Object(t.Context(), why.Live(h), id)
	if err != nil {
		t.Fatal(err)
	}
	return a.Holds()
}

// Proves Y1: a disk that does not answer is the reason of an object with a commit that waits for it, and of no other.
func TestCauseOfASlowDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken = nil
		disk := &hanging{Engine: memstore.New(), gate: make(chan struct{})}
		h, err := object.Open(object.Options{Storage: storage.Options{Engine: disk}}, desks)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"a", "b"} {
			if _, err := keep.Call(t.Context(), h, name, 1); err != nil {
				t.Fatal(err)
			}
		}
		disk.hangs.Store(true)
		go func() { _, _ = keep.Call(context.Background(), h, "a", 1) }()
		time.Sleep(time.Second)
		if got := holdsNow(t, h, desks.ID("a")); !slices.Contains(got, why.NotDurable) {
			t.Errorf("the disk hangs: %v", got)
		}
		if got := holdsNow(t, h, desks.ID("b")); slices.Contains(got, why.NotDurable) {
			t.Errorf("another object: %v", got)
		}
		disk.hangs.Store(false)
		close(disk.gate)
		synctest.Wait()
		if got := holdsNow(t, h, desks.ID("a")); slices.Contains(got, why.NotDurable) {
			t.Errorf("the disk has answered: %v", got)
		}
		if err := h.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// jumping is the real clock with a wall clock that someone sets.
type jumping struct {
	seam.Clock
	ahead atomic.Int64 // by so many nanoseconds
}

func (j *jumping) Now() time.Time { return j.Clock.Now().Add(time.Duration(j.ahead.Load())).Round(0) }

func (j *jumping) Steady() time.Time { return j.Clock.Now() }

// Proves Y1: a jump of the wall clock past an alarm is the reason for which it has not fired, until the scheduler looks.
func TestCauseOfAJumpOfTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock, fired := &jumping{Clock: seam.Seams{}.WithDefaults().Clock}, make(chan time.Time, 1)
		alarms := object.Define("alarm", func(_ context.Context, st *object.State) (*ringing, error) { return &ringing{st, fired}, nil })
		set := object.Handle(alarms, "set", func(r *ringing, ctx context.Context, after time.Duration) (int, error) {
			return 0, errors.Join(r.st.Storage().Put(ctx, "set", 1), r.st.SetAlarm(ctx, r.st.Now().Add(after)))
		})
		h, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}, Seams: seam.Seams{Clock: clock}}, alarms)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := set.Call(t.Context(), h, "a", time.Hour); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := holdsNow(t, h, alarms.ID("a")); got[0] != why.Scheduled {
			t.Errorf("before the jump: %v", got)
		}
		clock.ahead.Store(int64(2 * time.Hour))
		if got := holdsNow(t, h, alarms.ID("a")); got[0] != why.Clock {
			t.Errorf("after the jump: %v", got)
		}
		<-fired // at the next look of the scheduler
		synctest.Wait()
		if got := holdsNow(t, h, alarms.ID("a")); got[0] != why.IdleByDesign {
			t.Errorf("after the look: %v", got)
		}
		if err := h.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// ringing is an object with an alarm that tells when it fires.
type ringing struct {
	st    *object.State
	fired chan time.Time
}

func (r *ringing) Alarm(context.Context, object.AlarmInfo) error {
	r.fired <- r.st.Now()
	return nil
}
