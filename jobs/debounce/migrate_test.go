package debounce_test

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
	"github.com/holdfast-dev/holdfast/jobs/debounce"
	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// Two forms of events and states. The codec decodes each as an empty value of the other,
// so that only a migration tells them apart.
type (
	oldForm struct{ Text string }
	newForm struct{ Words []string }
)

// formOf is the version of the definition that stores values of this form.
func formOf(raw []byte) string {
	if bytes.Contains(raw, []byte(`"Text"`)) {
		return "1"
	}
	return "2"
}

func textOfOld(v oldForm) string { return v.Text }
func textOfNew(v newForm) string { return strings.Join(v.Words, " ") }
func oldOf(text string) oldForm  { return oldForm{text} }
func newOf(text string) newForm  { return newForm{strings.Fields(text)} }

// history is the outside of a story: the texts that were flushed, by generation.
type history struct {
	s       *harness.Sim
	folded  bool // by Reduce
	flushed map[uint64]string
}

// formed is a definition with values of the form This, and with migrations that make
// them of values of the form Other. It forgets nothing of an id for a day.
func formed[This, Other any](h *history, version string, of func(string) This, text func(This) string, textOfOther func(Other) string) *debounce.Job[This, This] {
	migrate := func(from string, raw []byte) (This, error) {
		h.s.Always("J15: migrated from the version that stored it", from != version && formOf(raw) == from, from, string(raw))
		var other Other
		err := json.Unmarshal(raw, &other)
		clear(raw) // it is the migration's own
		return of(textOfOther(other)), err
	}
	c := debounce.Config[This, This]{
		Name: "hooks", Version: version, Quiet: time.Hour, Retry: jobs.Retry{MaxAttempts: 9, Backoff: jobs.Constant(time.Second)},
		Flush: func(_ context.Context, f *debounce.Flush[This, This]) error {
			got := text(f.State)
			for _, e := range f.Events {
				got += " " + text(e)
			}
			was, again := h.flushed[f.Generation]
			h.s.Always("D3: a flush shows the same events in every attempt", !again || was == got, was, got)
			h.flushed[f.Generation] = got
			return nil
		},
	}
	if h.folded {
		c.Reduce = func(state This, _ bool, e This) (This, error) { return of(text(state) + " " + text(e)), nil }
		c.MigrateState = migrate
	} else {
		c.MigrateEvent = migrate
	}
	return debounce.New(c)
}

func oldJob(h *history) *debounce.Job[oldForm, oldForm] {
	return formed(h, "1", oldOf, textOfOld, textOfNew)
}

func newJob(h *history) *debounce.Job[newForm, newForm] {
	return formed(h, "2", newOf, textOfNew, textOfOld)
}

// addTo adds an event until it is acknowledged: its text is its id.
func addTo[F any](s *harness.Sim, j *debounce.Job[F, F], e F, id string) {
	s.OK(s.Retry(func() error {
		_, err := j.Add(s.Context(), s, name, e, debounce.EventID(id))
		return err
	}))
}

// trueVersions holds in each stored state: a value is stored as of the version of the
// definition that stored it.
func trueVersions(store *storage.Store) error {
	rows, err := storedRows(store)
	if err != nil || len(rows) == 0 {
		return err
	}
	return debounce.CheckVersions(rows, formOf)
}

// Proves J15, D2, D3. Cases JB12 and JB14: a deploy and its rollback in the midst of a
// generation. Each event, or the state, is migrated from the version that stored it,
// at each crash, and all are in one flush, in order.
func TestCrashMigration(t *testing.T) {
	for _, folded := range []bool{false, true} {
		t.Run(fmt.Sprintf("folded=%t", folded), func(t *testing.T) {
			crashes.Try(t, func(s *harness.Sim) {
				h := &history{s: s, folded: folded, flushed: map[uint64]string{}}
				older := oldJob(h)
				s.Host(older)
				addTo(s, older, oldOf("a"), "a")
				addTo(s, older, oldOf("b"), "b")
				newer := newJob(h)
				s.Restart(harness.WithCode(newer))
				var p debounce.Pending[newForm, newForm]
				s.OK(s.Retry(func() (err error) {
					p, err = newer.Pending(s.Context(), s, name)
					return err
				}))
				s.Always("the pending events are migrated", p.Count == 2 && (folded || textOfNew(p.Events[1]) == "b") && (!folded || textOfNew(p.State) == "a b"), p)
				addTo(s, newer, newOf("c"), "c")
				older = oldJob(h)
				s.Restart(harness.WithCode(older))
				addTo(s, older, oldOf("d"), "d")
				s.OK(s.Retry(func() error {
					_, err := older.FlushNow(s.Context(), s, name)
					return err
				}))
				s.Advance(5 * time.Second)
				newer = newJob(h)
				s.Restart(harness.WithCode(newer))
				addTo(s, newer, newOf("e"), "e")
				s.Advance(2 * time.Hour)
				s.Finally("each event is flushed once", func() error {
					all := ""
					for g := uint64(1); g <= uint64(len(h.flushed)); g++ {
						all += " " + strings.TrimSpace(h.flushed[g])
					}
					if all != " a b c d e" {
						return fmt.Errorf("D2: flushed %v", h.flushed)
					}
					return nil
				})
			}, harness.NoLostAck, harness.NoTornBatch, harness.OneAlarm, harness.NeverOrphaned,
				harness.Invariant("rows are whole", rowsAreWhole), harness.Invariant("J15: each value has its true version", trueVersions))
		})
	}
}

// Proves J15, J13, D5. Cases JB11 and JB13: a flush of events, or of a state, that cannot
// be read fails with one line that names the way out, and with it the job, also under
// Drop. An Add to such a state is refused with the same error. A rollback flushes all.
func TestEventsThatCannotBeRead(t *testing.T) {
	for _, folded := range []bool{false, true} {
		value, field := "event 1 of generation 1", "MigrateEvent"
		if folded {
			value, field = "state of generation 1", "MigrateState"
		}
		for name, c := range map[string]struct {
			migrate func(string, []byte) (int, error)
			want    string
		}{
			"none":   {nil, "does not decode: json: cannot unmarshal object into Go value of type int: give Config." + field + `, or go back to version "1"`},
			"panics": {func(string, []byte) (int, error) { panic("ouch") }, "is not migrated: it panicked: ouch: mend Config." + field + `, or go back to version "1"`},
		} {
			t.Run(fmt.Sprintf("folded=%t, %s", folded, name), func(t *testing.T) {
				var r loglines.Recorder
				harness.Run(t, func(s *harness.Sim) { cannotBeRead(s, &r, folded, c.migrate, value, c.want) },
					harness.HostOptions(func(o *object.Options) { o.Logger = r.Logger() }))
			})
		}
	}
}

func cannotBeRead(s *harness.Sim, r *loglines.Recorder, folded bool, migrate func(string, []byte) (int, error), value, why string) {
	h := &history{s: s, folded: folded, flushed: map[uint64]string{}}
	older := oldJob(h)
	s.Host(older)
	addTo(s, older, oldOf("a"), "a")
	config := debounce.Config[int, int]{
		Name: "hooks", Version: "2", Quiet: time.Hour, Exhausted: debounce.Drop,
		Flush: func(context.Context, *debounce.Flush[int, int]) error { return nil },
	}
	if folded {
		config.Reduce, config.MigrateState = func(state int, _ bool, e int) (int, error) { return state + e, nil }, migrate
	} else {
		config.MigrateEvent = migrate
	}
	newer := debounce.New(config)
	s.Restart(harness.WithCode(newer))
	want := "hooks/" + name + ": " + value + `, stored under version "1" and read under version "2", ` + why
	_, err := newer.Pending(s.Context(), s, name)
	s.Always("Pending says so", err != nil && err.Error() == want, err)
	if folded {
		ack, err := newer.Add(s.Context(), s, name, 7, debounce.EventID("7"))
		var bad *jobs.DecodeError
		s.Always("an Add is refused", errors.As(err, &bad) && err.Error() == want, ack, err)
	}
	st, err := newer.Status(s.Context(), s, name)
	s.OK(err)
	s.Always("nothing has changed", st.Events == 1 && st.Generation == 1, st)
	s.Advance(2 * time.Hour)
	lines := r.From(slog.LevelInfo)
	s.Always("one line", len(lines) == 1 && lines[0].Level == slog.LevelError && lines[0].Attrs["error"] == want, r.Text(slog.LevelInfo))
	st, err = newer.Status(s.Context(), s, name)
	s.OK(err)
	s.Always("failed, with all events", st.Meta.Status == jobs.Failed && st.Meta.LastError == want && st.Flushing == 1 && st.EventsDropped == 0, st)
	older = oldJob(h)
	s.Restart(harness.WithCode(older))
	s.OK(older.Resume(s.Context(), s, name))
	s.Advance(time.Second)
	s.Always("flushed after the rollback", strings.TrimSpace(h.flushed[1]) == "a", h.flushed)
}

// bufferRow is the buffer of an object as it is stored.
func bufferRow(s *harness.Sim) (row string) {
	s.OK(s.WithHost(func(ctx context.Context, h *object.Host) error {
		in, err := h.Keys(ctx, storage.ID{Class: "hooks", Name: name}, object.KeysOptions{Limit: object.MaxPage, Values: true})
		for _, item := range in.Keys {
			if item.Key == "b" {
				row = string(item.Value)
			}
		}
		return err
	}))
	return row
}

// A version makes adds no dearer, because they do not store the buffer for it: not for
// the first event of a generation after the begin of a flush, and not for later ones.
// Only the first event of another version stores the buffer once.
func TestVersionsCostNoRow(t *testing.T) {
	for _, folded := range []bool{false, true} {
		t.Run(fmt.Sprintf("folded=%t", folded), func(t *testing.T) {
			harness.Run(t, func(s *harness.Sim) {
				h := &history{s: s, folded: folded, flushed: map[uint64]string{}}
				older := oldJob(h)
				s.Host(older)
				addTo(s, older, oldOf("a"), "a")
				s.Advance(2 * time.Hour)
				was := bufferRow(s)
				for _, id := range []string{"b", "c"} {
					addTo(s, older, oldOf(id), id)
					s.Always("the buffer stays", bufferRow(s) == was, was, bufferRow(s))
				}
				newer := newJob(h)
				s.Restart(harness.WithCode(newer))
				addTo(s, newer, newOf("d"), "d")
				changed := bufferRow(s)
				s.Always("stored for the version", changed != was && strings.Contains(changed, "\x012"), changed)
				addTo(s, newer, newOf("e"), "e")
				s.Always("and not again", bufferRow(s) == changed, bufferRow(s))
			})
		})
	}
}

// A migration that would never be called is refused, and so is a Version that cannot be
// stored.
func TestVersionsThatAreRefused(t *testing.T) {
	state := func(string, []byte) ([]string, error) { return nil, nil }
	ev := func(string, []byte) (event, error) { return event{}, nil }
	for want, c := range map[string]config{
		"MigrateEvent needs a Version":  {MigrateEvent: ev},
		"MigrateState needs a Version":  {MigrateState: state, Reduce: collect},
		"with Reduce give MigrateState": {MigrateEvent: ev, Reduce: collect, Version: "1"},
		"MigrateState is for Reduce":    {MigrateState: state, Version: "1"},
		"the limit is 128":              {Version: strings.Repeat("v", engine.MaxVersionBytes+1)},
	} {
		c.Name, c.Quiet, c.Flush = "hooks", time.Hour, nop
		if err := c.Validate(); !errors.Is(err, jobs.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
