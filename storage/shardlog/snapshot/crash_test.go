package snapshot_test

import (
	"errors"
	"maps"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/testing/machine"
	"github.com/holdfast-dev/holdfast/internal/testing/prove"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// Proves N10: a crash at any step of snapshots and a truncation leaves each registered snapshot whole, each record that is needed in the log,
// and what was acknowledged in both.
func TestCrashesOfTakeAndTrim(t *testing.T) {
	acked := ""
	life := func(w *machine.World) error {
		s, err := w.Open("view")
		if err != nil {
			return err
		}
		defer s.Abandon() //nolint:errcheck // the machine may be off
		for _, value := range []string{"2", "3", "4"} {
			if err := machine.Set(s, "x", value); err != nil {
				return err
			}
			acked = value
			if err := w.Disk.RemoveAll("scratch"); err != nil {
				return err
			}
			if err := take(w, s); err != nil {
				return err
			}
		}
		if err := w.Snapshots().Trim(t.Context(), w.Term()); err != nil {
			return err
		}
		return machine.Set(s, "y", "1")
	}
	begin := func(w *machine.World) error {
		acked = "1"
		s, err := w.Open("view")
		if err != nil {
			return err
		}
		return errors.Join(machine.Set(s, "x", "1"), take(w, s), s.Close())
	}
	machine.EveryStep(t, prove.Long(), begin, life, func(about string, w *machine.World) {
		all, err := w.Log.Snapshots(t.Context(), 0)
		machine.Must(t, about, err)
		for _, s := range all {
			machine.Must(t, about, w.Snapshots().Verify(t.Context(), s))
		}
		w.Equal(about, nil)
		got, err := w.CaughtUp("view")
		machine.Must(t, about, err)
		if want := w.All(nil); !maps.Equal(got, want) {
			t.Fatalf("%s: the view differs from the log:\n%s", about, machine.Differences(got, want))
		}
		if got := got[machine.Meta("x")]; got < acked {
			t.Errorf("%s: x is %s, %s was acknowledged", about, got, acked)
		}
		machine.Must(t, about, w.Disk.RemoveAll("scratch"))
		s, err := w.Open("view")
		machine.Must(t, about, err)
		machine.Must(t, about, take(w, s))
		machine.Must(t, about, w.Snapshots().Trim(t.Context(), w.Term()))
		machine.Must(t, about, s.Close())
		w.Equal(about+", the next snapshot", nil)
	})
}

// Proves N10: a crash at any step of a restore, over an old view or into a new directory, leaves a directory that opens as the old view
// or as the new one, or not at all; and the next restore succeeds.
func TestCrashesOfRestore(t *testing.T) {
	for _, dir := range []string{"new", "old"} {
		t.Run(dir, func(t *testing.T) { crashesOfRestore(t, dir) })
	}
}

func crashesOfRestore(t *testing.T, dir string) {
	begin := func(w *machine.World) error {
		s, err := w.Open("old")
		if err != nil {
			return err
		}
		if err := errors.Join(machine.Set(s, "x", "1"), s.Close()); err != nil {
			return err
		}
		if s, err = w.Open("view"); err != nil {
			return err
		}
		for _, value := range []string{"2", "3"} {
			if err := errors.Join(machine.Set(s, "x", value), take(w, s)); err != nil {
				return err
			}
		}
		return errors.Join(w.Snapshots().Trim(t.Context(), w.Term()), machine.Set(s, "x", "4"), s.Close())
	}
	life := func(w *machine.World) error {
		_, err := w.Snapshots().Restore(t.Context(), dir)
		return err
	}
	refused, opened := 0, 0
	machine.EveryStep(t, true, begin, life, func(about string, w *machine.World) {
		want := w.All(nil)
		got, err := w.CaughtUp(dir)
		switch {
		case errors.Is(err, storage.ErrNotStore), errors.Is(err, shardlog.ErrTruncated):
			refused++
			restored, err := w.Snapshots().Restore(t.Context(), dir)
			machine.Must(t, about, err)
			if restored.Last == 0 {
				t.Errorf("%s: the snapshot that was restored has no place", about)
			}
			got, err = w.CaughtUp(dir)
			machine.Must(t, about, err)
		case err != nil:
			t.Fatalf("%s: the half restored directory: %v", about, err)
		default:
			opened++
		}
		if !maps.Equal(got, want) {
			t.Fatalf("%s: the view differs from the log:\n%s", about, machine.Differences(got, want))
		}
		s, err := w.Open(dir)
		machine.Must(t, about, err)
		machine.Must(t, about, s.Close())
	})
	if refused == 0 || opened == 0 {
		t.Errorf("%d directories were refused and %d opened: the crashes miss a part", refused, opened)
	}
}
