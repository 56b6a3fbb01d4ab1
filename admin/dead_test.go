package admin_test

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/admin"
	"github.com/holdfast-dev/holdfast/object"
)

// letter returns the dead letter of a kind that is left, or fails.
func (w *ward) letter(t *testing.T, kind string) object.DeadLetter {
	t.Helper()
	page, err := w.host.DeadLetters(t.Context(), object.DeadLettersOptions{Kind: kind})
	check(t, err)
	if len(page.Letters) != 1 {
		t.Fatalf("%d letters of kind %s", len(page.Letters), kind)
	}
	return page.Letters[0]
}

// Proves A11, G3: one dead letter is replayed or discarded by the verb of its job type, or by the
// host. A replay leaves another alarm of the object, unless it is told to replace it.
func TestOneDeadLetter(t *testing.T) {
	inWard(t, func(t *testing.T, w *ward) {
		w.fall(t, 1)
		w.heal(true)
		ctx := t.Context()
		for _, kind := range []string{"task", "workflow"} {
			d := w.letter(t, kind)
			check(t, w.a.ReplayDead(ctx, d.ID, d.Seq, false))
			if err := w.a.ReplayDead(ctx, d.ID, d.Seq, false); !errors.Is(err, object.ErrNoDeadLetter) {
				t.Errorf("%s: replayed twice: %v", kind, err)
			}
		}
		d := w.letter(t, object.DeadAlarm)
		_, err := w.set.Call(ctx, w.host, d.ID.Name, time.Hour)
		check(t, err)
		if err := w.a.ReplayDead(ctx, d.ID, d.Seq, false); !errors.Is(err, admin.ErrArmed) {
			t.Errorf("replayed beside another alarm: %v", err)
		}
		w.letter(t, object.DeadAlarm)
		check(t, w.a.ReplayDead(ctx, d.ID, d.Seq, true))
		w.later(time.Minute)
		if n := [...]int{w.runs("image"), w.runs("order"), w.runs("clock")}; n != [...]int{1, 1, 1} {
			t.Errorf("replayed work ran %v times", n)
		}
		if a, err := w.host.Inspect(ctx, d.ID); err != nil || a.Alarm != nil {
			t.Errorf("the other alarm is still there: %+v, %v", a.Alarm, err)
		}
	})
}

// Proves A11, G3: a discarded letter is gone, and so is its work.
func TestOneDeadLetterDiscarded(t *testing.T) {
	inWard(t, func(t *testing.T, w *ward) {
		w.fall(t, 1)
		w.heal(true)
		ctx := t.Context()
		for _, kind := range []string{"task", "workflow", object.DeadAlarm} {
			d := w.letter(t, kind)
			check(t, w.a.DiscardDead(ctx, d.ID, d.Seq))
			if err := w.a.DiscardDead(ctx, d.ID, d.Seq); !errors.Is(err, object.ErrNoDeadLetter) {
				t.Errorf("%s: discarded twice: %v", kind, err)
			}
		}
		w.later(time.Hour)
		if n := w.runs("image") + w.runs("order") + w.runs("clock"); n != 0 {
			t.Errorf("discarded work ran %d times", n)
		}
		cold := admin.Cold(object.NewReader(w.host.Store()))
		if err := errors.Join(cold.DiscardDead(ctx, w.images.ID("0"), 1)); !errors.Is(err, admin.ErrNoProgram) {
			t.Errorf("on a directory: %v", err)
		}
	})
}
