package continuous_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
	"github.com/holdfast-dev/holdfast/internal/testing/loglines"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// Two forms of one state, which lists the runs that it has seen. The codec decodes each
// form as an empty value of the other, so that only Migrate tells them apart.
type (
	oldForm struct{ Trace string }
	newForm struct{ Seen []uint64 }
)

// formOf is the version of the definition that stores states of this form.
func formOf(raw []byte) string {
	if bytes.Contains(raw, []byte(`"Trace"`)) {
		return "1"
	}
	return "2"
}

// oldVersion and newVersion are the definition before and after a deploy. Each can
// read the states of the other.
func oldVersion(s *harness.Sim) *continuous.Job[oldForm] {
	return continuous.New(continuous.Config[oldForm]{
		Name: "counter", Version: "1", Schedule: jobs.Every(30 * time.Minute),
		Run: func(_ context.Context, run *continuous.Run[oldForm]) error {
			run.State.Trace += fmt.Sprint(" ", run.Number)
			return nil
		},
		Migrate: func(from string, raw []byte) (state oldForm, err error) {
			s.Always("J15: migrated from the version that stored it", from == "2" && formOf(raw) == from, from, string(raw))
			var newer newForm
			err = json.Unmarshal(raw, &newer)
			for _, n := range newer.Seen {
				state.Trace += fmt.Sprint(" ", n)
			}
			return state, err
		},
	})
}

func newVersion(s *harness.Sim) *continuous.Job[newForm] {
	failed := false // its first run, once
	return continuous.New(continuous.Config[newForm]{
		Name: "counter", Version: "2", Schedule: jobs.Every(30 * time.Minute),
		Run: func(_ context.Context, run *continuous.Run[newForm]) error {
			run.State.Seen = append(run.State.Seen, run.Number)
			if !failed {
				failed = true
				return errors.New("not yet")
			}
			return nil
		},
		Migrate: func(from string, raw []byte) (state newForm, err error) {
			s.Always("J15: migrated from the version that stored it", from == "1" && formOf(raw) == from, from, string(raw))
			var older oldForm
			err = json.Unmarshal(raw, &older)
			for n := range strings.FieldsSeq(older.Trace) {
				state.Seen = append(state.Seen, uint64(n[0]-'0'))
			}
			clear(raw) // it is Migrate's own
			return state, err
		},
	})
}

// stateOf reads the state of a job, and how many runs it counts.
func stateOf[S any](s *harness.Sim, j *continuous.Job[S]) (state S, runs uint64) {
	s.OK(s.Retry(func() error {
		st, err := j.Status(s.Context(), s, "a")
		if err == nil {
			runs = st.Meta.RunCount
			state, err = j.State(s.Context(), s, "a")
		}
		return err
	}))
	return state, runs
}

// upTo is the trace of the runs from 1 on.
func upTo(runs uint64) (trace string) {
	for n := range runs {
		trace += fmt.Sprint(" ", n+1)
	}
	return trace
}

// versioned holds in each stored state: the version beside the state of a job is that of
// the definition that stored it.
func versioned(store *storage.Store) error {
	return each(store, func(id storage.ID, m jobs.Meta) error {
		var state json.RawMessage
		var cursor struct{ StateVersion string }
		if _, err := harness.Stored(store, id, "state", &state); err != nil {
			return err
		}
		if _, err := harness.Stored(store, id, "cursor", &cursor); err != nil {
			return err
		}
		if formOf(state) != cursor.StateVersion {
			return fmt.Errorf("%s is stored as of version %q: %s", id, cursor.StateVersion, state)
		}
		return nil
	})
}

// Proves J15, C3. Cases JB11 and JB12: a deploy, with a first run that fails, is rolled
// back, with a crash at any point. Each time the state is migrated from the version that
// stored it. State returns it in its present form and stores nothing.
func TestMigrationSurvivesCrashes(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		older := oldVersion(s)
		s.Host(older)
		s.OK(s.Retry(func() error {
			_, err := older.Start(s.Context(), s, "a", oldForm{})
			return err
		}))
		s.Advance(40 * time.Minute)
		newer := newVersion(s)
		s.Restart(harness.WithCode(newer))
		for range 2 {
			state, runs := stateOf(s, newer)
			s.Always("each run is in the state", len(state.Seen) == int(runs) && runs >= 2, state, runs)
			s.Advance(30 * time.Minute)
		}
		older = oldVersion(s)
		s.Crash(harness.Kill)
		s.Restart(harness.WithCode(older))
		for range 2 {
			state, runs := stateOf(s, older)
			s.Always("each run is in the state after the rollback", state.Trace == upTo(runs) && runs >= 3, state, runs)
			s.Advance(30 * time.Minute)
		}
	}, harness.NoLostAck, harness.OneAlarm, harness.NeverOrphaned, harness.Invariant("J15: a state has its true version", versioned))
}

// Proves J15, J13, Case JB11: a run that cannot read its state fails with one line of the
// log, which names the remedy. The status has the text too, and State returns it as an
// error. The state is kept, and after a rollback the job goes on from it.
func TestStateThatCannotBeRead(t *testing.T) {
	for name, c := range map[string]struct {
		stored, read string
		migrate      func(string, []byte) (int, error)
		want         string
	}{
		"no Migrate": {"1", "2", nil,
			`stored under version "1" and read under version "2", does not decode: json: cannot unmarshal object into Go value of type int: give Config.Migrate, or go back to version "1"`},
		"the same version": {"1", "1", nil,
			`stored under version "1" and read under version "1", does not decode: json: cannot unmarshal object into Go value of type int: give Config another Version, and Config.Migrate, or go back to the program that stored it`},
		"no versions": {"", "", nil,
			`stored under no version and read under no version, does not decode: json: cannot unmarshal object into Go value of type int: give Config a Version, and Config.Migrate, or go back to the program that stored it`},
		"a Migrate that fails": {"", "2", func(from string, _ []byte) (int, error) { return 7, errors.New("no way from " + from) },
			`stored under no version and read under version "2", is not migrated: no way from : mend Config.Migrate, or go back to the program that stored it`},
		"a Migrate that panics": {"1", "2", func(string, []byte) (int, error) { panic("ouch") },
			`stored under version "1" and read under version "2", is not migrated: it panicked: ouch: mend Config.Migrate, or go back to version "1"`},
	} {
		t.Run(name, func(t *testing.T) {
			var r loglines.Recorder
			harness.Run(t, func(s *harness.Sim) {
				older := ticking(s, continuous.Config[tally]{Version: c.stored, Schedule: jobs.Every(time.Hour)})
				s.Host(older)
				start(s, older, "a")
				s.Advance(time.Minute)
				newer := continuous.New(continuous.Config[int]{
					Name: "counter", Version: c.read, Migrate: c.migrate, Schedule: jobs.Every(time.Hour),
					Run: func(context.Context, *continuous.Run[int]) error {
						s.Always("nothing is run on a state that cannot be read", false)
						return nil
					},
				})
				s.Restart(harness.WithCode(newer))
				s.Advance(time.Hour)
				want := "counter/a: state, " + c.want
				lines := r.From(slog.LevelInfo)
				s.Always("one line", len(lines) == 1 && strings.HasPrefix(lines[0].String(), "ERROR run given up class=counter object=a run=2 attempt=1 error="+want),
					r.Text(slog.LevelInfo))
				s.Always("a panic has its stack there", (lines[0].Attrs["stack"] != "") == strings.Contains(want, "ouch"), lines[0].Attrs)
				st, err := newer.Status(s.Context(), s, "a")
				s.OK(err)
				s.Always("in the status, and the schedule goes on", st.Meta.LastError == want && st.Meta.RunCount == 1 && st.Meta.Status == jobs.Running, st.Meta)
				state, err := newer.State(s.Context(), s, "a")
				var bad *jobs.DecodeError
				s.Always("State says so too", err != nil && err.Error() == want && state == 0, err)
				s.Always("with its parts", errors.As(err, &bad) && bad.Stored == c.stored && bad.Version == c.read && bad.ID == newer.ID("a") && bad.Value == "state", bad)
				s.Restart(harness.WithCode(older))
				s.Advance(time.Hour)
				after, kept := know(s, older, "a")
				s.Always("the rollback goes on", after.Meta.RunCount == 2 && after.Meta.LastError == "", after.Meta)
				counted(s, after, kept, 0)
			}, logged(&r))
		})
	}
}

// Proves J15, Case JB13: a run cannot read its state and is given up under Purge. The job
// is not purged: it fails, and goes on from its state with a definition that can read it.
// If Run returns such an error about the state of another job, it is an error like any
// other, and Purge ends the job.
func TestUnreadableStateIsNotPurged(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		config := continuous.Config[tally]{Version: "1", Schedule: jobs.Every(time.Hour), Exhausted: jobs.Purge}
		older := ticking(s, config)
		s.Host(older)
		start(s, older, "a")
		s.Advance(time.Minute)
		told := 0
		newer := continuous.New(continuous.Config[int]{
			Name: "counter", Version: "2", Schedule: jobs.Every(time.Hour), Exhausted: jobs.Purge,
			Run:         func(context.Context, *continuous.Run[int]) error { return nil },
			OnExhausted: func(context.Context, *jobs.Exhaustion) error { told++; return nil },
		})
		s.Restart(harness.WithCode(newer))
		s.Advance(2 * time.Hour)
		st, err := newer.Status(s.Context(), s, "a")
		s.OK(err)
		s.Always("failed and kept", st.Meta.Status == jobs.Failed && told == 1 && !st.Meta.Purging, st.Meta, told)
		foreign := (&jobs.DecodeError{Err: errors.New("of another")}).Of(storage.ID{Class: "counter", Name: "b"}, "state")
		failing := false
		config.Run = func(context.Context, *continuous.Run[tally]) error {
			if failing {
				return foreign
			}
			return nil
		}
		older = ticking(s, config)
		s.Restart(harness.WithCode(older))
		s.OK(older.Resume(s.Context(), s, "a"))
		s.Advance(time.Minute)
		after, state := know(s, older, "a")
		s.Always("it goes on", after.Meta.RunCount == 2 && after.Meta.Status == jobs.Running, after.Meta)
		counted(s, after, state, 0)
		failing = true
		s.Advance(time.Hour)
		_, err = older.Status(s.Context(), s, "a")
		s.Always("purged for an error of its own", errors.Is(err, jobs.ErrNotFound), err)
	})
}

// Proves J15: rows of a job from before versions were kept are read as rows without a
// version. A definition without a Version still stores the same rows.
func TestStateOfBefore(t *testing.T) {
	const before = `{"anchor":"2026-01-01T00:00:00Z","last":"2026-01-01T00:00:00Z"}`
	rows := map[string]string{
		"meta":   `{"type":"continuous","name":"counter","id":"a","life":"1-x","status":"running","createdAt":"2026-01-01T00:00:00Z","updatedAt":"2026-01-01T00:00:00Z","runCount":1}`,
		"state":  `{"Trace":" 1"}`,
		"cursor": before,
	}
	raw := object.Define("counter", func(_ context.Context, st *object.State) (*object.State, error) { return st, nil })
	write := object.Handle(raw, "write", func(st *object.State, ctx context.Context, rows map[string]string) (int, error) {
		for _, key := range []string{"cursor", "meta", "state"} {
			if err := st.Storage().PutBytes(ctx, key, []byte(rows[key])); err != nil {
				return 0, err
			}
		}
		return 0, nil
	})
	cursorOf := func(s *harness.Sim) (row string) {
		s.OK(s.WithHost(func(ctx context.Context, h *object.Host) error {
			in, err := h.Keys(ctx, raw.ID("a"), object.KeysOptions{Limit: object.MaxPage, Values: true})
			for _, item := range in.Keys {
				if item.Key == "cursor" {
					row = string(item.Value)
				}
			}
			return err
		}))
		return row
	}
	for _, version := range []string{"", "2"} {
		t.Run("version "+version, func(t *testing.T) {
			harness.Run(t, func(s *harness.Sim) {
				s.Host(raw)
				s.Must(write.Call(s.Context(), s, "a", rows))
				c := continuous.Config[oldForm]{
					Name: "counter", Version: version, Run: func(_ context.Context, run *continuous.Run[oldForm]) error {
						run.State.Trace += " 2"
						return nil
					},
				}
				if version != "" {
					c.Migrate = func(from string, raw []byte) (oldForm, error) {
						s.Always("from no version", from == "" && string(raw) == rows["state"], from, string(raw))
						return oldForm{" one"}, nil
					}
				}
				j := continuous.New(c)
				s.Restart(harness.WithCode(j))
				for range 3 { // a read stores nothing
					state, err := j.State(s.Context(), s, "a")
					s.OK(err)
					s.Always("read", state.Trace == map[string]string{"": " 1", "2": " one"}[version], state)
				}
				s.Always("nothing is stored yet", cursorOf(s) == before, cursorOf(s))
				s.OK(j.Trigger(s.Context(), s, "a"))
				s.Advance(time.Minute)
				at := s.Now().Add(-time.Minute).Format(time.RFC3339Nano)
				want := fmt.Sprintf(`{"anchor":%q,"last":%q}`, at, at)
				if version != "" {
					want = strings.TrimSuffix(want, "}") + `,"stateVersion":"2"}`
				}
				s.Always("stored with its version", cursorOf(s) == want, cursorOf(s), want)
				state, runs := stateOf(s, j)
				s.Always("run", runs == 2 && strings.HasSuffix(state.Trace, " 2"), state)
			})
		})
	}
}

// A Migrate that would never be called is refused, and so is a Version that cannot be
// stored.
func TestVersionsThatAreRefused(t *testing.T) {
	migrate := func(string, []byte) (int, error) { return 0, nil }
	run := func(context.Context, *continuous.Run[int]) error { return nil }
	for _, c := range []struct {
		config continuous.Config[int]
		want   string
	}{
		{continuous.Config[int]{Migrate: migrate}, "Migrate needs a Version"},
		{continuous.Config[int]{Version: strings.Repeat("v", engine.MaxVersionBytes+1)}, "the limit is 128"},
		{continuous.Config[int]{Version: "\xff"}, "not UTF-8"},
		{continuous.Config[int]{Version: strings.Repeat("v", engine.MaxVersionBytes), Migrate: migrate}, ""},
	} {
		c.config.Name, c.config.Run = "counter", run
		err := c.config.Validate()
		if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, jobs.ErrInvalid) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
}
