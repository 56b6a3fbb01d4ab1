package continuous_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/object"
)

// raw is an object in place of a job. It writes rows that a job would never store. Its
// wake-ups fail, so that its alarm stays.
type raw struct {
	refusing
	st *object.State
}

type rawRow struct {
	Key    string
	Value  []byte
	Remove bool
}

var (
	raws = object.Define("counter", func(_ context.Context, st *object.State) (*raw, error) { return &raw{st: st}, nil },
		engine.ClassOptions(object.ClassOptions{}))
	writeRaw = object.Handle(raws, "write", func(r *raw, ctx context.Context, row rawRow) (bool, error) {
		if row.Remove {
			return r.st.Storage().Delete(ctx, row.Key)
		}
		return true, r.st.Storage().PutBytes(ctx, row.Key, row.Value)
	})
)

// keysOf are the keys of a job's rows.
func keysOf(s *harness.Sim, j *counter) (keys []string) {
	view := s.Store()
	o, err := view.Find(j.ID("a"))
	if err != nil {
		s.Fatalf("find: %v", err)
	}
	it, err := view.ListData(nil, o, "", "", false)
	if err != nil {
		s.Fatalf("list: %v", err)
	}
	for it.Next() {
		keys = append(keys, string(it.Key()))
	}
	s.OK(it.Close())
	return keys
}

// damaged runs a job until its run is given up and its call of OnExhausted is open. It
// then overwrites or removes a row of the job: the first with a key that begins with
// prefix.
func damaged(t *testing.T, prefix string, remove bool, then func(s *harness.Sim, j *counter)) {
	harness.Run(t, func(s *harness.Sim) {
		j := ticking(s, continuous.Config[tally]{
			Schedule: jobs.Every(time.Hour),
			Run:      func(context.Context, *continuous.Run[tally]) error { return errors.New("boom") },
			OnExhausted: func(ctx context.Context, x *jobs.Exhaustion) error {
				s.Sleep(time.Hour)
				return nil
			},
		})
		s.Host(j)
		start(s, j, "a")
		s.Advance(time.Second)
		keys := keysOf(s, j)
		at := slices.IndexFunc(keys, func(key string) bool { return strings.HasPrefix(key, prefix) })
		if at < 0 {
			s.Fatalf("no row %s in %v", prefix, keys)
		}
		s.Crash(harness.Kill)
		s.Restart(harness.WithCode(raws))
		if ok, err := writeRaw.Call(s.Context(), s, "a", rawRow{keys[at], []byte{0xff}, remove}); err != nil || !ok {
			s.Fatalf("write: %t, %v", ok, err)
		}
		s.Crash(harness.Kill)
		s.Restart(harness.WithCode(j))
		then(s, j)
	})
}

// Proves S9: each call of a job with a row that cannot be read fails. None answers as if
// the job did not exist or had done nothing. Calls and wake-ups leave all rows as they
// are.
func TestDamagedRowIsAnError(t *testing.T) {
	for _, prefix := range []string{"meta", "cursor", "h/", "x/"} {
		t.Run(strings.Trim(prefix, "/"), func(t *testing.T) {
			damaged(t, prefix, false, func(s *harness.Sim, j *counter) {
				before := rowsOf(s, j.ID("a"))
				for name, call := range map[string]func(*harness.Sim, *counter) error{
					"start": startIt, "trigger": triggerIt, "pause": pauseIt, "resume": resumeIt, "stop": stopIt, "terminate": terminateIt,
					"status": func(s *harness.Sim, j *counter) error { _, err := j.Status(s.Context(), s, "a"); return err },
					"state":  func(s *harness.Sim, j *counter) error { _, err := j.State(s.Context(), s, "a"); return err },
				} {
					err := call(s, j)
					s.Always(name+" fails", errors.Is(err, object.ErrConstructor) && !errors.Is(err, jobs.ErrNotFound), err)
				}
				s.Advance(time.Hour)
				after := rowsOf(s, j.ID("a"))
				s.Always("the rows are as they were", after == before, after, before)
			})
		})
	}
}

// Proves S9, J6: a run fails if its state cannot be read, and leaves the state as it is.
func TestDamagedState(t *testing.T) {
	damaged(t, "state", false, func(s *harness.Sim, j *counter) {
		_, err := j.State(s.Context(), s, "a")
		s.Always("the state is no answer", err != nil, err)
		s.Advance(3 * time.Hour)
		st, err := j.Status(s.Context(), s, "a")
		s.OK(err)
		s.Always("runs fail", st.Meta.RunCount == 0 && st.Meta.Failures > 1 && strings.Contains(st.Meta.LastError, "state, stored under no version and read under no version, does not decode"), st.Meta)
		_, err = j.State(s.Context(), s, "a")
		s.Always("and the state is as it was", err != nil, err)
	})
}

// Proves S9: a call of OnExhausted cannot end if its row is gone. The end is an error,
// and leaves the rows as they are.
func TestHookWithoutItsRow(t *testing.T) {
	damaged(t, "h/", true, func(s *harness.Sim, j *counter) {
		before := rowsOf(s, j.ID("a"))
		s.Advance(time.Second)
		after := rowsOf(s, j.ID("a"))
		s.Always("the rows are as they were", after == before, after, before)
	})
}
