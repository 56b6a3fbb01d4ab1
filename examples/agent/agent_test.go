package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
	"github.com/holdfast-dev/holdfast/object/journal"
	"github.com/holdfast-dev/holdfast/storage"
)

// desk is a queue of so many files, whose verdicts differ.
func desk(t testing.TB, files int) *source {
	t.Helper()
	tree := fstest.MapFS{}
	for n := range files {
		text := strings.Repeat("package p\n", 1+n*7%40)
		if n%3 == 0 {
			text += strings.Repeat("// "+note+"\n", n%5)
		}
		if n%4 == 0 {
			text += "import \"unsafe\"\n"
		}
		tree[fmt.Sprintf("p%03d/p.go", n)] = &fstest.MapFile{Data: []byte(text)}
	}
	tree["p000/p.txt"] = &fstest.MapFile{Data: []byte(note)}
	queue, err := newSource(tree, 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(queue.paths) != files {
		t.Fatalf("the queue has %d files, want %d", len(queue.paths), files)
	}
	return queue
}

// deciding is a scenario in which the agent looks at a queue.
func deciding(queue *source) (harness.Scenario, []harness.Option) {
	a := newAgents(queue)
	return func(s *harness.Sim) {
			s.Host(a.class)
			s.OK(s.Retry(func() error {
				_, err := a.begin.Call(s.Context(), s, "agent", struct{}{})
				return err
			}))
			s.Advance(time.Minute)
		}, []harness.Option{
			harness.NoLostAck, harness.OneAlarm, harness.NoTornBatch, harness.Shards(1),
			harness.Invariant("there is an alarm while files are left", func(st *storage.Store) error { return awake(st, len(queue.paths)) }),
			harness.StateMatches(func(s *harness.Sim) error {
				return s.Retry(func() error {
					got, err := a.look.Call(s.Context(), s, "agent", struct{}{})
					if err != nil {
						return err
					}
					differences, err := a.check(s.Context(), s, "agent", queue, got.State)
					if err == nil && (!got.Done || len(differences) > 0) {
						err = fmt.Errorf("done %v: %s", got.Done, strings.Join(differences, "; "))
					}
					return err
				})
			}),
		}
}

// awake checks that the stored agent has an alarm while it has looked at fewer files than there
// are, and none when it has looked at all.
func awake(st *storage.Store, files int) error {
	o, err := st.Find(storage.ID{Class: "agent", Name: "agent"})
	if err != nil || o.Number == 0 {
		return err
	}
	it, err := st.ListData(nil, o, "\x00e/", "\x00e0", false)
	if err != nil {
		return err
	}
	seen := 0
	for it.Next() {
		seen++
	}
	err = errors.Join(it.Err(), it.Close())
	if _, armed, failed := st.Alarm(o); err == nil && (failed != nil || armed != (seen < files)) {
		err = fmt.Errorf("the agent has seen %d of %d files, and its alarm is %v, %v", seen, files, armed, failed)
	}
	return err
}

// Wherever the process dies, the decisions are those of a plain loop (E1, E3).
func TestCrashAgent(t *testing.T) {
	scenario, checks := deciding(desk(t, 2*filesPerTurn+3))
	crashes.Try(t, scenario, checks...)
}

// More files than a snapshot waits for, killed at each point once.
func TestCrashAgentOverSnapshots(t *testing.T) {
	scenario, checks := deciding(desk(t, 115))
	crashes.Try(t, scenario, append(checks, crashes.Budget(120))...)
}

// The verdicts of the test differ, and depend on the files before.
func TestDecide(t *testing.T) {
	events, end, err := plain(desk(t, 115))
	if err != nil {
		t.Fatal(err)
	}
	if end.Read == 0 || end.Skim == 0 || end.Skip == 0 || end.Seen != 115 || end.Read+end.Skim+end.Skip != 115 {
		t.Errorf("the state is %+v", end)
	}
	for name, c := range map[string]struct {
		s    state
		o    observation
		want verdict
	}{
		"broken":                  {state{Budget: 100}, observation{Unsafe: true, Broken: true}, skipIt},
		"unsafe":                  {state{Budget: 100}, observation{Lines: 100, Unsafe: true}, readIt},
		"unsafe, no time to read": {state{Budget: 99}, observation{Lines: 100, Unsafe: true}, skimIt},
		"no time to skim":         {state{Budget: 9}, observation{Lines: 100, Unsafe: true}, skipIt},
		"time to skim":            {state{Budget: 10}, observation{Lines: 100, Unsafe: true}, skimIt},
		"twice the notes":         {state{Lines: 999, Notes: 10, Budget: 100}, observation{Lines: 99, Notes: 2}, skimIt},
		"more than twice":         {state{Lines: 999, Notes: 10, Budget: 100}, observation{Lines: 99, Notes: 3}, readIt},
		"as many notes":           {state{Lines: 999, Notes: 10, Budget: 100}, observation{Lines: 99, Notes: 1}, skipIt},
		"none":                    {state{Budget: 100}, observation{Lines: 9}, skipIt},
	} {
		if got := decide(c.s, c.o); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	if _, err := apply(state{}, event{Verdict: "maybe"}); err == nil {
		t.Error("a verdict that does not exist was applied")
	}
	slices.Reverse(events)
	back := state{}
	for _, e := range events {
		back, _ = apply(back, e)
	}
	if back.Trail == end.Trail {
		t.Error("the trail does not depend on the order")
	}
}

// A difference is told with its place.
func TestCheckTellsDifferences(t *testing.T) {
	queue := desk(t, 5)
	a := newAgents(queue)
	harness.Run(t, func(s *harness.Sim) {
		s.Host(a.class)
		s.Must(a.begin.Call(s.Context(), s, "agent", struct{}{}))
		s.Advance(time.Second)
		got, err := a.look.Call(s.Context(), s, "agent", struct{}{})
		s.Must(got, err)
		other := *queue
		other.paths = slices.Concat(queue.paths[1:2], queue.paths[1:4])
		differences, err := a.check(s.Context(), s, "agent", &other, got.State)
		s.OK(err)
		all := strings.Join(differences, "\n")
		s.Always("told", strings.Contains(all, "event 1: ") && strings.Contains(all, "events: 5, and in the plain loop 4") && strings.Contains(all, "state: "), all)
		_, err = a.asOf.Call(s.Context(), s, "agent", 6)
		s.Always("no such file yet", err != nil && !errors.Is(err, journal.ErrTrimmed), err)
		s.Must(a.begin.Call(context.Background(), s, "agent", struct{}{})) // has ended: nothing happens
	})
}
