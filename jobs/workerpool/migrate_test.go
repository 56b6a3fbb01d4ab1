package workerpool_test

import (
	"bytes"
	"context"
	"encoding/binary"
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
	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// Two forms of one input. The codec decodes each as an empty value of the other, so that
// only Migrate tells them apart.
type (
	oldInput struct{ Text string }
	newInput struct{ Words []string }
)

// formOf is the version of the definition that stores inputs of this form.
func formOf(raw []byte) string {
	if bytes.Contains(raw, []byte(`"Text"`)) {
		return "1"
	}
	return "2"
}

// formed is a definition with a Migrate that makes an In from an Other; text is the text
// of an In. The task "dead" fails for good unless healed, "dead too" always does, and "a
// late one" fails once.
func formed[In, Other any](s *harness.Sim, version string, migrate func(Other) In, text func(In) string, healed bool) *workerpool.Pool[In, string] {
	return workerpool.New(workerpool.Config[In, string]{
		Name: "pool", Concurrency: crashLimit, Version: version, Retry: jobs.Retry{MaxAttempts: 5, Backoff: jobs.Constant(time.Second)},
		Work: func(_ context.Context, t *workerpool.Task[In]) (string, error) {
			in := text(t.In)
			s.World().Do("work/"+in, nil)
			switch {
			case in == "dead too", in == "dead" && !healed:
				return "", jobs.Permanent(errors.New("broken"))
			case in == "a late one" && t.Attempt == 1:
				return "", errors.New("not yet")
			}
			return in, nil
		},
		OnDead: func(_ context.Context, d workerpool.DeadLetter[In]) error {
			s.Always("OnDead has the input", strings.HasPrefix(text(d.In), "dead"), d)
			return nil
		},
		Migrate: func(from string, raw []byte) (In, error) {
			s.Always("J15: migrated from the version that stored it", from != version && formOf(raw) == from, from, string(raw))
			var other Other
			err := json.Unmarshal(raw, &other)
			clear(raw) // it is Migrate's own
			return migrate(other), err
		},
	})
}

func oldPool(s *harness.Sim) *workerpool.Pool[oldInput, string] {
	return formed(s, "1", func(n newInput) oldInput { return oldInput{strings.Join(n.Words, " ")} },
		func(in oldInput) string { return in.Text }, false)
}

func newPoolOf(s *harness.Sim) *workerpool.Pool[newInput, string] {
	return formed(s, "2", func(o oldInput) newInput { return newInput{strings.Fields(o.Text)} },
		func(in newInput) string { return strings.Join(in.Words, " ") }, true)
}

// submit submits a task until it is acknowledged.
func submit[In any](s *harness.Sim, p *workerpool.Pool[In, string], once string, in In, opts ...workerpool.Option) workerpool.TaskID {
	return ask(s, func() (workerpool.TaskRef, error) {
		return p.Enqueue(s.Context(), s, in, append(opts, workerpool.Idempotent(once, time.Hour))...)
	}).ID
}

// trueVersions holds in each stored state: an input is stored as of the version of the
// definition that stored it.
func trueVersions(store *storage.Store) error {
	return workerpool.AuditInputs(store, storage.ID{Class: "pool", Name: "0"}, func(version string, input []byte) error {
		if formOf(input) != version {
			return fmt.Errorf("its input is stored as of version %q: %s", version, input)
		}
		return nil
	})
}

// Proves J15, W2, W6. Case JB14: tasks of several versions are pending, dead and replayed
// side by side, before and after a deploy and its rollback. With a crash at any point
// each task runs on an input that was migrated from its own version.
func TestCrashMigration(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		older := oldPool(s)
		s.Host(older)
		dead := submit(s, older, "dead", oldInput{"dead"})
		submit(s, older, "dead too", oldInput{"dead too"})
		submit(s, older, "a", oldInput{"a late one"}, workerpool.Delay(time.Minute))
		s.Advance(30 * time.Second)
		newer := newPoolOf(s)
		s.Restart(harness.WithCode(newer))
		submit(s, newer, "b", newInput{[]string{"a", "new", "one"}}, workerpool.Delay(2*time.Minute))
		letters := ask(s, func() ([]workerpool.DeadLetter[newInput], error) {
			return newer.DeadLetters(s.Context(), s, workerpool.TaskID{}, 10)
		})
		s.Always("the letter is migrated", len(letters) == 0 || letters[0].DecodeError == "" && letters[0].In.Words[0] == "dead", letters)
		unknown := len(letters) == 0 // a crash has put off its end
		s.OK(s.Retry(func() error {
			_, err := newer.Replay(s.Context(), s, dead)
			if unknown && errors.Is(err, jobs.ErrNotFound) {
				return nil
			}
			unknown = unknown || harness.Unknown(err)
			return err
		}))
		s.Advance(time.Minute)
		older = oldPool(s)
		s.Restart(harness.WithCode(older))
		submit(s, older, "c", oldInput{"the last one"})
		s.Advance(2 * time.Minute)
		s.Finally("all tasks are over", func() error {
			for _, in := range []string{"a late one", "a new one", "the last one", "dead", "dead too"} {
				if s.World().Count("work/"+in) == 0 {
					return fmt.Errorf("W2: task %q has not run", in)
				}
			}
			st, err := older.Stats(s.Context(), s)
			if err == nil && (st.Pending+st.Running > 0 || st.Done+st.Dead != 5) {
				err = fmt.Errorf("W2: %+v", st)
			}
			return err
		})
	}, harness.NoTornBatch, harness.OneAlarm, harness.NoLostAck, harness.NeverOrphaned,
		harness.Invariant("J15: an input has its true version", trueVersions),
		harness.Invariant("W1, W3", func(store *storage.Store) error { return workerpool.Audit(store, "pool", 1, crashLimit, 1) }))
}

// Proves J15, J13, W6. Case JB11: a task with an input that cannot be read is dead. Its
// log line and its letter name the remedy, and the letter has the input as it is. A
// program that can read the input replays it.
func TestInputThatCannotBeRead(t *testing.T) {
	for name, c := range map[string]struct {
		version string
		migrate func(string, []byte) (int, error)
		want    string
	}{
		"no Migrate": {"2", nil,
			`read under version "2", does not decode: json: cannot unmarshal object into Go value of type int: give Config.Migrate, or go back to version "1"`},
		"no Version any more": {"", nil,
			`read under no version, does not decode: json: cannot unmarshal object into Go value of type int: give Config a Version, and Config.Migrate, or go back to version "1"`},
		"a Migrate that panics": {"2", func(string, []byte) (int, error) { panic("ouch") },
			`read under version "2", is not migrated: it panicked: ouch: mend Config.Migrate, or go back to version "1"`},
	} {
		for _, claimed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, claimed %t", name, claimed), func(t *testing.T) {
				var r loglines.Recorder
				harness.Run(t, func(s *harness.Sim) {
					older := oldPool(s)
					s.Host(older)
					id := submit(s, older, "a", oldInput{"a"}, workerpool.Delay(time.Minute))
					told := make(chan workerpool.DeadLetter[int], 1)
					config := workerpool.Config[int, string]{
						Name: "pool", Version: c.version, Migrate: c.migrate,
						OnDead: func(_ context.Context, d workerpool.DeadLetter[int]) error { told <- d; return nil },
					}
					if !claimed {
						config.Work = func(context.Context, *workerpool.Task[int]) (string, error) { return "", nil }
					}
					newer := workerpool.New(config)
					s.Restart(harness.WithCode(newer))
					s.Advance(2 * time.Minute)
					if claimed {
						claims, err := newer.Claim(s.Context(), s, 1, 0)
						s.Always("nothing to claim", len(claims) == 0 && err == nil, claims, err)
						s.Advance(time.Second)
					}
					want := `pool/0: input of task 0-1, stored under version "1" and ` + c.want
					lines := r.From(slog.LevelInfo)
					s.Always("one line", len(lines) == 1 && lines[0].Level == slog.LevelError && lines[0].Attrs["task"] == "0-1" && lines[0].Attrs["error"] == want,
						r.Text(slog.LevelInfo))
					letters, err := newer.DeadLetters(s.Context(), s, workerpool.TaskID{}, 10)
					s.OK(err)
					for _, d := range append(letters, <-told) {
						s.Always("a letter with the raw input", d.DecodeError == want && string(d.Raw) == `{"Text":"a"}` && d.In == 0 && d.Failures[0].Error == want, d)
					}
					older = oldPool(s)
					s.Restart(harness.WithCode(older))
					_, err = older.Replay(s.Context(), s, id)
					s.OK(err)
					s.Advance(time.Second)
					s.Always("run after the rollback", s.World().Count("work/a") == 1)
				}, harness.HostOptions(func(o *object.Options) { o.Logger = r.Logger() }))
			})
		}
	}
}

// versionsRow is the row of a partition that tells the versions of its inputs.
func versionsRow(s *harness.Sim) (row string) {
	s.OK(s.WithHost(func(ctx context.Context, h *object.Host) error {
		in, err := h.Keys(ctx, storage.ID{Class: "pool", Name: "0"}, object.KeysOptions{Limit: object.MaxPage, Values: true})
		for _, item := range in.Keys {
			if item.Key == "v" {
				row = string(item.Value)
			}
		}
		return err
	}))
	return row
}

// Proves J15: rows of a partition that were stored before versions were kept count as
// rows without a version. The row of versions has an entry for each version with stored
// inputs, and a pool without a Version has no such row.
func TestInputsOfBefore(t *testing.T) {
	number := func(n uint64) string { return string(binary.BigEndian.AppendUint64(nil, n)) }
	rows := map[string]string{
		"c":                                 "\x01\x00\x00\x0b\x01\x01\x00\x00\x00\x00\x00\x00\x01\x01\x00" + "\x02\x00\x01\x00\x00",
		"t/" + number(1):                    "\x01\x00\x01\x00\x00\x02\x00\x00\x00\x00" + "\x11" + `{"Text":"stored"}` + "\x00\x00",
		"r/\x00" + number(1000) + number(1): number(1),
	}
	raw := object.Define("pool", func(_ context.Context, st *object.State) (*object.State, error) { return st, nil })
	write := object.Handle(raw, "write", func(st *object.State, ctx context.Context, _ int) (int, error) {
		for key, value := range rows {
			if err := st.Storage().PutBytes(ctx, key, []byte(value)); err != nil {
				return 0, err
			}
		}
		return 0, nil
	})
	harness.Run(t, func(s *harness.Sim) {
		s.Host(raw)
		s.Must(write.Call(s.Context(), s, "0", 0))
		config := workerpool.Config[oldInput, string]{Name: "pool", Work: func(_ context.Context, t *workerpool.Task[oldInput]) (string, error) {
			s.World().Do("work/"+t.In.Text, nil)
			return "", nil
		}}
		held := workerpool.New(config)
		s.Restart(harness.WithCode(held))
		s.OK(held.Pause(s.Context(), s))
		submit(s, held, "plain", oldInput{"plain"})
		s.Always("no version takes no row", versionsRow(s) == "", versionsRow(s))
		deploy := func(version, once string) {
			config.Version = version
			config.Migrate = func(from string, raw []byte) (oldInput, error) {
				var in oldInput
				err := json.Unmarshal(raw, &in)
				return oldInput{in.Text + " of " + from + "."}, err
			}
			p := workerpool.New(config)
			s.Restart(harness.WithCode(p))
			submit(s, p, once, oldInput{once})
			submit(s, p, once+" again", oldInput{once + " again"})
		}
		deploy("x", "third")
		s.Always("a row for the first task of the version", versionsRow(s) == "\x03\x01x", versionsRow(s))
		deploy("y", "fifth")
		s.Always("a row for both", versionsRow(s) == "\x03\x01x\x05\x01y", versionsRow(s))
		last := workerpool.New(config)
		s.Restart(harness.WithCode(last))
		s.OK(last.Resume(s.Context(), s))
		s.Advance(time.Minute)
		for _, in := range []string{"stored of .", "plain of .", "third of x.", "third again of x.", "fifth", "fifth again"} {
			s.Always("run once", s.World().Count("work/"+in) == 1, in)
		}
		deploy("z", "seventh")
		s.Always("versions of which no input is left are forgotten", versionsRow(s) == "\x07\x01z", versionsRow(s))
	})
}

// A Migrate that would never be called is refused, and so is a Version that
// cannot be stored.
func TestVersionsThatAreRefused(t *testing.T) {
	for want, c := range map[string]config{
		"Migrate needs a Version": {Migrate: func(string, []byte) (string, error) { return "", nil }},
		"the limit is 128":        {Version: strings.Repeat("v", engine.MaxVersionBytes+1)},
	} {
		c.Name = "pool"
		h, err := object.Open(object.Options{Dir: t.TempDir()}, workerpool.New(c))
		if !errors.Is(err, jobs.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v of host %v, want %q", err, h, want)
		}
	}
}
