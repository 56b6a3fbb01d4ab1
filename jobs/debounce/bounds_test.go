package debounce_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/debounce"
	"github.com/holdfast-dev/holdfast/object"
)

// MaxEvents is at most MaxPending, or the default of that.
func TestMostEvents(t *testing.T) {
	for _, c := range []struct {
		events, pending int
		good            bool
	}{{5, 5, true}, {6, 5, false}, {1, 1, true}, {2, 1, false}, {100_000, 0, true}, {100_001, 0, false}, {150_000, 200_000, true}, {0, 1, true}} {
		err := config{Name: "x", Quiet: time.Second, Flush: nop, MaxEvents: c.events, MaxPending: c.pending}.Validate()
		if (err == nil) != c.good || err != nil && !errors.Is(err, jobs.ErrInvalid) {
			t.Errorf("%d events of %d: %v", c.events, c.pending, err)
		}
	}
}

// plain is a host on virtual time with a job. Its flushes wait for a signal of the test.
func plain(t *testing.T, use func(ctx context.Context, h *object.Host, j *debounce.Job[string, struct{}], free chan bool)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		free := make(chan bool)
		j := debounce.New(debounce.Config[string, struct{}]{Name: "job", Quiet: time.Minute, Flush: func(context.Context, *debounce.Flush[string, struct{}]) error {
			<-free
			return nil
		}})
		d := newDisk(t)
		h := d.open(object.Options{}, j)
		use(t.Context(), h, j, free)
		d.shut(h)
	})
}

// Proves D5: each verb but Add answers ErrNotFound for an object that does not exist.
func TestVerbsOfNoObject(t *testing.T) {
	plain(t, func(ctx context.Context, h *object.Host, j *debounce.Job[string, struct{}], _ chan bool) {
		for name, verb := range map[string]func() error{
			"FlushNow":  func() error { _, err := j.FlushNow(ctx, h, "x"); return err },
			"Status":    func() error { _, err := j.Status(ctx, h, "x"); return err },
			"Pending":   func() error { _, err := j.Pending(ctx, h, "x"); return err },
			"Clear":     func() error { _, err := j.Clear(ctx, h, "x"); return err },
			"Pause":     func() error { return j.Pause(ctx, h, "x") },
			"Resume":    func() error { return j.Resume(ctx, h, "x") },
			"Terminate": func() error { return j.Terminate(ctx, h, "x", "") },
		} {
			if err := verb(); !errors.Is(err, jobs.ErrNotFound) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// Proves D4: FlushNow during a flush asks for no further attempt of that flush.
func TestFlushNowLeavesAFlushAlone(t *testing.T) {
	plain(t, func(ctx context.Context, h *object.Host, j *debounce.Job[string, struct{}], free chan bool) {
		if _, err := j.Add(ctx, h, "x", "a"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if n, err := j.FlushNow(ctx, h, "x"); n != 1 || err != nil {
			t.Errorf("FlushNow: %d, %v", n, err)
		}
		s, err := j.Status(ctx, h, "x")
		if err != nil || s.Flushing != 1 || !s.Meta.NextAt.IsZero() || s.Meta.NextCause != "" {
			t.Errorf("while the flush is under way: %+v, %v", s, err)
		}
		free <- true
		synctest.Wait()
		if s, err := j.Status(ctx, h, "x"); err != nil || s.Flushed != 1 || s.Meta.RunCount != 1 || s.Meta.Status != jobs.Running {
			t.Errorf("after it: %+v, %v", s, err)
		}
	})
}

// Proves S9: a flush of a state with a damaged row fails, and says so.
func TestFlushOfADamagedState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, d := context.Background(), newDisk(t)
		j := debounce.New(debounce.Config[string, []string]{
			Name: "job", Quiet: time.Minute, Retry: jobs.Retry{MaxAttempts: 2, Backoff: jobs.Constant(time.Hour)},
			Reduce: func(state []string, _ bool, ev string) ([]string, error) { return append(state, ev), nil },
			Flush:  func(context.Context, *debounce.Flush[string, []string]) error { return errors.New("not yet") },
		})
		h := d.open(object.Options{}, j)
		if _, err := j.Add(ctx, h, "x", "a"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		d.shut(h)
		class := object.Define("job", func(_ context.Context, st *object.State) (*bare, error) { return &bare{st}, nil })
		damage := object.Handle(class, "damage", func(b *bare, ctx context.Context, _ int) (int, error) {
			return 0, b.st.Storage().PutBytes(ctx, "s/000000000001", []byte{9})
		})
		h = d.open(object.Options{}, class)
		if _, err := damage.Call(ctx, h, "x", 0); err != nil {
			t.Fatal(err)
		}
		d.shut(h)
		h = d.open(object.Options{}, j)
		time.Sleep(2 * time.Hour)
		s, err := j.Status(ctx, h, "x")
		if err != nil || s.Meta.Status != jobs.Failed || !strings.Contains(s.Meta.LastError, "stored events are damaged") {
			t.Errorf("the status is %s %q, %v", s.Meta.Status, s.Meta.LastError, err)
		}
		d.shut(h)
	})
}
