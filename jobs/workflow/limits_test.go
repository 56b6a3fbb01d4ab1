package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// inMemory opens a host over a store in memory, without a simulation.
func inMemory(t *testing.T, defs ...object.Definition) *object.Host {
	t.Helper()
	host, err := object.Open(object.Options{
		Storage: storage.Options{Engine: memstore.New(), Shards: 1, MinFreeBytes: -1}, Logger: slog.New(slog.DiscardHandler),
	}, defs...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := host.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return host
}

// outcome runs a function as a workflow, once, and returns its output or error as a text.
func outcome(t *testing.T, fn func(c *workflow.Context, w *workflow.Workflow[int, string]) (string, error)) (text string) {
	t.Helper()
	harness.Run(t, func(s *harness.Sim) {
		w := workflow.New[int, string]("order", workflow.Config{Signals: workflow.Signals{approved}})
		w.Func(func(c *workflow.Context, _ int) (string, error) { return fn(c, w) })
		s.Host(w)
		start(s, w, "1", 0)
		out, err := ends(s, w, "1")
		if text = out; err != nil {
			text = err.Error()
		}
	}, harness.HostOptions(func(o *object.Options) { o.MaxValueBytes = 4096 }))
	return text
}

// textOf is the text of an error, and "no error".
func textOf(err error) string {
	if err == nil {
		return "no error"
	}
	return err.Error()
}

// Each name has 1 to 128 bytes of UTF-8; the error says which rule it breaks.
func TestNames(t *testing.T) {
	const longest = 128
	for name, want := range map[string]string{
		"":                               "jobs: invalid: workflow: a %s needs a name",
		"a":                              "no error",
		strings.Repeat("a", longest):     "no error",
		strings.Repeat("a", longest+1):   "jobs: invalid: workflow: the name of a %s has 129 bytes, the limit is 128",
		strings.Repeat("ä", longest/2):   "no error",
		strings.Repeat("ä", longest/2+1): "jobs: invalid: workflow: the name of a %s has 130 bytes, the limit is 128",
		"\xff":                           "jobs: invalid: workflow: the name \"\\xff\" of a %s is not UTF-8",
		"a]":                             "no error",
		"/a":                             "no error",
		"undo":                           "no error",
		"x[0]/a":                         `jobs: invalid: workflow: the name "x[0]/a" of a %s is like a key of a branch or of an undo: leave out "]/" and "undo/"`,
		"undo/a":                         `jobs: invalid: workflow: the name "undo/a" of a %s is like a key of a branch or of an undo: leave out "]/" and "undo/"`,
	} {
		text := outcome(t, func(c *workflow.Context, _ *workflow.Workflow[int, string]) (string, error) {
			_, step := workflow.Step(c, name, func(context.Context) (int, error) { return 0, nil })
			_, atomic := workflow.Atomic(c, name, func(context.Context, *workflow.Tx) (int, error) { return 0, nil })
			_, each := workflow.Each(c, name, []int{1}, 1, func(*workflow.Context, int) (int, error) { return 0, nil })
			for _, err := range []error{step, atomic, each} {
				if err != nil && !errors.Is(err, jobs.ErrInvalid) {
					return "", fmt.Errorf("no ErrInvalid: %w", err)
				}
			}
			return textOf(step) + "\n" + textOf(atomic) + "\n" + textOf(each), nil
		})
		in := func(what string) string { return strings.Replace(want, "%s", what, 1) }
		if all := in("step") + "\n" + in("step") + "\n" + in("Each"); text != all {
			t.Errorf("name %q:\n%s\nwant\n%s", name, text, all)
		}
	}
}

// The name of an Each has no "#", because that counts the Each of one name, as in the path of
// the second of them.
func TestNamesOfEach(t *testing.T) {
	text := outcome(t, func(c *workflow.Context, _ *workflow.Workflow[int, string]) (string, error) {
		_, err := workflow.Each(c, "a#2", []int{1}, 1, func(*workflow.Context, int) (int, error) { return 0, nil })
		return textOf(err), nil
	})
	if want := `jobs: invalid: workflow: the name "a#2" of Each has a "#", which counts those of one name`; text != want {
		t.Errorf("%s, want %s", text, want)
	}
}

// The path of a branch has at most 512 bytes, because its entries have it beside a value.
func TestPathsOfEach(t *testing.T) {
	for last, ok := range map[int]bool{88: true, 89: false} {
		text := outcome(t, func(c *workflow.Context, _ *workflow.Workflow[int, string]) (string, error) {
			var nest func(c *workflow.Context, names []string) error
			nest = func(c *workflow.Context, names []string) error {
				if len(names) == 0 {
					v, err := workflow.Step(c, "a", func(context.Context) (string, error) { return strings.Repeat("x", entryLimit-2), nil })
					if err == nil && len(v) != entryLimit-2 {
						err = errors.New("not the value")
					}
					return err
				}
				_, err := workflow.Each(c, names[0], []int{0}, 1, func(c *workflow.Context, _ int) (int, error) { return 0, nest(c, names[1:]) })
				return err
			}
			long := strings.Repeat("n", 128)
			return textOf(nest(c, []string{long, long, long[:128], long[:9], long[:last]})), nil
		})
		want := "no error"
		if !ok {
			want = fmt.Sprintf(`item 0: item 0: item 0: item 0: jobs: invalid: workflow: the paths of the branches of Each %q have 513 bytes, the limit is 512: use shorter names`, strings.Repeat("n", last))
		}
		if text != want {
			t.Errorf("%d: %s", last, text)
		}
	}
}

// A wrong name of a signal is told by object.Open.
func TestSignalNames(t *testing.T) {
	for name, ok := range map[string]bool{"": false, "a": true, strings.Repeat("a", 128): true, strings.Repeat("a", 129): false, "\xff": false} {
		w := workflow.New[int, int]("order", workflow.Config{Signals: workflow.Signals{workflow.NewSignal[int](name)}})
		w.Func(func(*workflow.Context, int) (int, error) { return 0, nil })
		host, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New(), Shards: 1, MinFreeBytes: -1}}, w)
		if (err == nil) != ok || err != nil && !errors.Is(err, jobs.ErrInvalid) {
			t.Errorf("%q: %v", name, err)
		}
		if err == nil {
			if err := host.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
}

// entryLimit is the most bytes of a recorded value if MaxValueBytes is 4096. The rest is for
// the names of its entry.
const entryLimit = 4096 - 1024

// Case 37. A value of the greatest size is recorded, and one byte more fails its step at once.
func TestValueLimit(t *testing.T) {
	for size, ok := range map[int]bool{entryLimit: true, entryLimit + 1: false} {
		value := strings.Repeat("x", size-2) // JSON adds two quotes
		const text = `step "a": the value has 3073 bytes, the limit is 3072 bytes: store it outside and return its name`
		got := outcome(t, func(c *workflow.Context, _ *workflow.Workflow[int, string]) (string, error) {
			calls := 0
			v, step := workflow.Step(c, "a", func(context.Context) (string, error) { calls++; return value, nil })
			u, atomic := workflow.Atomic(c, "a", func(context.Context, *workflow.Tx) (string, error) { return value, nil })
			if ok {
				return fmt.Sprint(len(v), len(u)), errors.Join(step, atomic)
			}
			return fmt.Sprint(calls, textOf(step) == text, textOf(atomic) == text), nil
		})
		want := "1 true true"
		if ok {
			want = fmt.Sprint(len(value), len(value))
		}
		if got != want {
			t.Errorf("%d bytes: %s, want %s", size, got, want)
		}
		got = outcome(t, func(c *workflow.Context, _ *workflow.Workflow[int, string]) (string, error) { return value, nil })
		want = value
		if !ok {
			want = "workflow: failed: order/1: workflow: the output: the value has 3073 bytes, the limit is 3072 bytes: store it outside and return its name"
		}
		if got != want {
			t.Errorf("output of %d bytes: %s", size, got)
		}
	}
}

// A signal of the greatest size is taken, and a larger one is refused when it is sent, because
// the entry that takes it could not be stored.
func TestSignalSize(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		w := workflow.New[int, int]("order", workflow.Config{Signals: workflow.Signals{approved}})
		w.Func(func(c *workflow.Context, _ int) (int, error) {
			v, err := approved.Wait(c, 0)
			return len(v), err
		})
		s.Host(w)
		start(s, w, "1", 0)
		err := approved.Send(s.Context(), s, w, "1", strings.Repeat("x", entryLimit-1))
		s.Always("too large", errors.Is(err, object.ErrValueTooLarge) && strings.HasSuffix(err.Error(), "signal \"approved\" has 3073 bytes, the limit is 3072 bytes: store it outside and send its name"), err)
		s.OK(approved.Send(s.Context(), s, w, "1", strings.Repeat("x", entryLimit-2)))
		out, err := ends(s, w, "1")
		s.Always("the greatest is taken", err == nil && out == entryLimit-2, out, err)
	}, harness.HostOptions(func(o *object.Options) { o.MaxValueBytes = 4096 }))
}

// An input that is too large is refused, and nothing is stored.
func TestInputSize(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		w := workflow.New[string, int]("order", workflow.Config{})
		w.Func(func(c *workflow.Context, in string) (int, error) { return len(in), nil })
		s.Host(w)
		_, err := w.Start(s.Context(), s, "1", strings.Repeat("x", 4095))
		s.Always("refused", errors.Is(err, object.ErrValueTooLarge), err)
		_, err = w.Status(s.Context(), s, "1")
		s.Always("not stored", errors.Is(err, jobs.ErrNotFound), err)
		start(s, w, "1", strings.Repeat("x", 4094))
		out, err := ends(s, w, "1")
		s.Always("the greatest", err == nil && out == 4094, out, err)
	}, harness.HostOptions(func(o *object.Options) { o.MaxValueBytes = 4096 }))
}

// A run whose history is full is stuck, says which limit it is, and heals under a greater one.
func TestHistoryFull(t *testing.T) {
	for name, k := range map[string]struct {
		full, heals workflow.Config
		text        string
		entries     int
	}{
		"entries": {workflow.Config{MaxEntries: 3}, workflow.Config{MaxEntries: 5}, "it has 3 entries: raise Config.MaxEntries (3), or use ContinueAs when NearFull", 3},
		"bytes":   {workflow.Config{MaxBytes: 100}, workflow.Config{MaxBytes: 1000}, "bytes: raise Config.MaxBytes (100), or use ContinueAs when NearFull", 3},
	} {
		t.Run(name, func(t *testing.T) {
			harness.Run(t, func(s *harness.Sim) {
				code := func(c workflow.Config) *workflow.Workflow[int, int] {
					w := workflow.New[int, int]("order", c)
					w.Func(func(c *workflow.Context, n int) (int, error) {
						for range n {
							if _, err := do(s, c, "a"); err != nil {
								return 0, err
							}
						}
						return n, nil
					})
					return w
				}
				w := code(k.full)
				s.Host(w)
				start(s, w, "just", k.entries)
				out, err := ends(s, w, "just")
				s.Always("as many as the limit", err == nil && out == k.entries, out, err)
				start(s, w, "1", k.entries+2)
				s.RunUntilIdle()
				st := status(s, w, "1")
				s.Always("stuck", st.Meta.Status == jobs.Stuck && st.Entries == k.entries, st)
				s.Always("the text", strings.Contains(st.Meta.LastError, "workflow: order/1: the history is full: ") && strings.HasSuffix(st.Meta.LastError, k.text), st.Meta.LastError)
				w = code(k.heals)
				s.Restart(harness.WithCode(w))
				out, err = ends(s, w, "1")
				s.Always("healed", err == nil && out == k.entries+2, out, err)
				happened(s, "order/1", "a", "a#2", "a#3", "a#4", "a#5")
			})
		})
	}
}

// NearFull is true from 80 % of a limit on, and the same in each repeat.
func TestNearFull(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		w := workflow.New[int, string]("order", workflow.Config{MaxEntries: 20})
		w.Func(func(c *workflow.Context, n int) (string, error) {
			text := ""
			for range 17 {
				near := c.NearFull()
				if text += fmt.Sprint(near, " "); near {
					break
				}
				if _, err := do(s, c, "a"); err != nil {
					return "", err
				}
			}
			return fmt.Sprint(text, c.Entries()), workflow.Sleep(c, time.Minute)
		})
		s.Host(w)
		start(s, w, "1", 0)
		s.Advance(30 * time.Second)
		s.Restart()
		out, err := ends(s, w, "1")
		s.Always("at 80 %", err == nil && out == strings.Repeat("false ", 16)+"true 17", out, err)
	})
}

var number = workflow.NewSignal[int]("number")

// Signals are refused by a run that has ended, by none, and if they are not declared.
func TestSignalRefused(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		w := workflow.New[int, string]("order", workflow.Config{Signals: workflow.Signals{approved}})
		w.Func(func(c *workflow.Context, n int) (string, error) {
			if _, err := number.Wait(c, 0); !errors.Is(err, workflow.ErrUnknownSignal) {
				return "", fmt.Errorf("a wait for an unknown signal: %w", err)
			}
			if n == 0 {
				return "", errNo
			}
			return "fine", nil
		})
		s.Host(w)
		start(s, w, "failed", 0)
		start(s, w, "completed", 1)
		s.RunUntilIdle()
		for _, id := range []string{"failed", "completed"} {
			err := approved.Send(s.Context(), s, w, id, "")
			s.Always("ended", errors.Is(err, workflow.ErrEnded) && strings.HasSuffix(err.Error(), "workflow: the run has ended: order/"+id+" is "+id), err)
			var final interface{ Permanent() bool }
			s.Always("a message with it is a dead letter at once", errors.As(err, &final) && final.Permanent(), err)
		}
		s.Always("not found", errors.Is(approved.Send(s.Context(), s, w, "2", ""), jobs.ErrNotFound))
		err := number.Send(s.Context(), s, w, "completed", 1)
		s.Always("unknown", errors.Is(err, workflow.ErrUnknownSignal) && strings.HasSuffix(err.Error(), `"number" of workflow order: list it in Config.Signals`), err)
	})
}

// All verbs return ErrNotFound for a run that is not there.
func TestNotFound(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		w := workflow.New[int, string]("order", workflow.Config{Signals: workflow.Signals{approved}})
		w.Func(func(*workflow.Context, int) (string, error) { return "", nil })
		s.Host(w)
		ctx := s.Context()
		_, wait := w.Wait(ctx, s, "1")
		_, status := w.Status(ctx, s, "1")
		_, history := w.History(ctx, s, "1", 0, 0)
		_, _, get := shown.Get(ctx, s, w, "1")
		for name, err := range map[string]error{
			"Wait": wait, "Status": status, "History": history, "Get": get, "Cancel": w.Cancel(ctx, s, "1", ""),
			"Pause": w.Pause(ctx, s, "1", "", time.Time{}), "Resume": w.Resume(ctx, s, "1"), "Terminate": w.Terminate(ctx, s, "1", ""), "Retry": w.Retry(ctx, s, "1"),
		} {
			s.Always(name, errors.Is(err, jobs.ErrNotFound) && strings.Contains(err.Error(), "order/1"), err)
		}
	})
}

// The message that starts a child has the name of the parent too. An input that does not fit
// beside a long one is refused, and the run goes on.
func TestChildInputOfALongName(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		leaf := workflow.New[string, int]("leaf", workflow.Config{})
		leaf.Func(func(_ *workflow.Context, in string) (int, error) { return len(in), nil })
		w := workflow.New[int, string]("order", workflow.Config{})
		w.Func(func(c *workflow.Context, _ int) (string, error) {
			var errs []error
			got := 0
			for size := entryLimit - 200; size <= entryLimit; size++ {
				n, err := workflow.Child(c, leaf, fmt.Sprint("c", size), strings.Repeat("x", size-2))
				if got = max(got, n); err != nil {
					errs = append(errs, err)
				}
			}
			return fmt.Sprint(got > entryLimit-200, " ", len(errs) > 0 && errors.Is(errs[0], jobs.ErrInvalid)), nil
		})
		s.Host(w, leaf)
		id := strings.Repeat("y", storage.MaxNameBytes)
		start(s, w, id, 0)
		s.Advance(10 * time.Minute)
		st := status(s, w, id)
		s.Always("completed", st.Meta.Status == jobs.Completed, st.Meta.Status, st.Meta.LastError)
		out, err := ends(s, w, id)
		s.Always("some fit and some do not", err == nil && out == "true true", out, err)
	}, harness.HostOptions(func(o *object.Options) { o.MaxValueBytes = 4096 }))
}

// An input of the greatest size reaches its child, and one byte more is refused before the
// child is started.
func TestChildInputLimit(t *testing.T) {
	for size, want := range map[int]string{
		entryLimit:     fmt.Sprint(entryLimit - 2),
		entryLimit + 1: "jobs: invalid: workflow: the input of child leaf/c has 3073 bytes, the limit is 3072 bytes: store it outside and pass its name",
	} {
		harness.Run(t, func(s *harness.Sim) {
			leaf := workflow.New[string, int]("leaf", workflow.Config{})
			leaf.Func(func(_ *workflow.Context, in string) (int, error) { return len(in), nil })
			w := workflow.New[int, string]("order", workflow.Config{})
			w.Func(func(c *workflow.Context, _ int) (string, error) {
				n, err := workflow.Child(c, leaf, "c", strings.Repeat("x", size-2)) // JSON adds two quotes
				if err != nil {
					return textOf(err), nil
				}
				return fmt.Sprint(n), nil
			})
			s.Host(w, leaf)
			start(s, w, "1", 0)
			out, err := ends(s, w, "1")
			s.Always("the answer of the child", err == nil && out == want, out, err)
			_, err = leaf.Status(s.Context(), s, "c")
			s.Always("a child or none", (err == nil) == (size == entryLimit), err)
		}, harness.HostOptions(func(o *object.Options) { o.MaxValueBytes = 4096 }))
	}
}

// Proves J21: object.Open refuses a Retention of a workflow that cannot be kept, and names its field.
func TestRetentionIsRefused(t *testing.T) {
	for field, r := range map[string]jobs.Retention{"Retention.Stopped": {Stopped: -1}, "Retention.Failed": {Failed: time.Hour, StaleAfter: time.Hour + 1}} {
		w := workflow.New[int, int]("order", workflow.Config{Retention: r})
		w.Func(func(*workflow.Context, int) (int, error) { return 0, nil })
		if _, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New(), Shards: 1, MinFreeBytes: -1}}, w); !errors.Is(err, jobs.ErrInvalid) || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}
