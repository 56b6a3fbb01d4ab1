package workerpool_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/storage"
)

// Proves W1. Proves W2. Proves W3. Proves H1, H3. Any calls in any order, with crashes anywhere
// and windows of a few tasks: each stored state adds up, tasks of a key run in
// their order, and at the end every acknowledged task has ended.
func TestRandomCallsAndCrashes(t *testing.T) {
	harness.Check(t, randomStory,
		harness.NoTornBatch, harness.OneAlarm, harness.NeverOrphaned, harness.Shards(2), harness.Settle(10*time.Minute),
		harness.Invariant("W1, W3", func(store *storage.Store) error {
			return workerpool.Audit(store, "pool", 2, crashLimit, 1)
		}))
}

func randomStory(s *harness.Sim, rt *rapid.T) {
	done := map[string]bool{} // by task and phase: it has returned a result
	p := newPool(s, config{
		Partitions: rapid.IntRange(1, 2).Draw(rt, "partitions"),
		Queues:     map[string]int{"q": 3},
		Phases:     phaseNames,
		Work: func(ctx context.Context, t *workerpool.Task[string]) (string, error) {
			for i, name := range phaseNames[:len(t.In)%4] {
				key := t.ID.String() + name
				got, err := workerpool.Phase(ctx, t, name, func(context.Context) (string, error) {
					if done[key] {
						s.Errorf("H1: phase %s of task %s is run again", name, t.ID)
					}
					if n := len(t.In); i == 1 && t.Attempt < n%3 {
						return "", errors.New("not yet")
					}
					return key, t.Progress(ctx, 10*len(t.In)%101, name)
				})
				if err != nil {
					return "", err
				}
				if done[key] = true; got != key {
					s.Errorf("H1: phase %s of task %s has the result %q", name, t.ID, got)
				}
			}
			if n := len(t.In); t.Attempt < n%3 || n%7 == 0 {
				return "", errors.New("no")
			}
			return "", nil
		},
	})
	p.SetWindow(rapid.IntRange(1, 3).Draw(rt, "window"))
	s.Host(p)
	var ids []workerpool.TaskID
	for n := range rapid.IntRange(1, 15).Draw(rt, "calls") {
		switch rapid.SampledFrom([]string{"enqueue", "enqueue", "enqueue", "cancel", "pause", "resume", "advance", "discard", "dead"}).Draw(rt, "call") {
		case "enqueue":
			key := rapid.SampledFrom([]string{"", "x", "y"}).Draw(rt, "key")
			in := fmt.Sprintf("%s/%02d%s", key, n, strings.Repeat("-", rapid.IntRange(0, 6).Draw(rt, "length")))
			ids = append(ids, enqueue(s, p, in, workerpool.Key(key),
				workerpool.Priority(rapid.IntRange(-1, 1).Draw(rt, "priority")),
				workerpool.Queue(rapid.SampledFrom([]string{"", "q"}).Draw(rt, "queue")),
				workerpool.Delay(time.Duration(rapid.IntRange(0, 3).Draw(rt, "delay"))*time.Second)))
		case "cancel":
			if len(ids) > 0 {
				id := rapid.SampledFrom(ids).Draw(rt, "id")
				ask(s, func() (workerpool.State, error) { return p.Cancel(s.Context(), s, id) })
			}
		case "pause":
			s.OK(s.Retry(func() error { return p.Pause(s.Context(), s) }))
		case "resume":
			s.OK(s.Retry(func() error { return p.Resume(s.Context(), s) }))
		case "advance":
			s.Advance(time.Duration(rapid.IntRange(0, 3000).Draw(rt, "ms")) * time.Millisecond)
		case "discard":
			ask(s, func() (int, error) { return p.Discard(s.Context(), s) })
		case "dead":
			letters := ask(s, func() ([]workerpool.DeadLetter[string], error) {
				return p.DeadLetters(s.Context(), s, workerpool.TaskID{}, 10)
			})
			if len(letters) > 0 {
				_, err := p.DiscardDead(s.Context(), s, letters[0].ID)
				if !harness.Unknown(err) && !errors.Is(err, jobs.ErrNotFound) {
					s.OK(err)
				}
			}
		}
	}
	s.OK(s.Retry(func() error { return p.Resume(s.Context(), s) }))
	finally(s, func() {
		st := stats(s, p)
		if st.Pending+st.Running > 0 || st.Submitted != uint64(len(ids)) {
			s.Errorf("W2: of %d tasks: %+v", len(ids), st)
		}
		for _, id := range ids {
			info := status(s, p, id)
			if !info.State.Ended() {
				s.Errorf("W2: %+v", info)
			}
			checkPhases(s, info, done)
		}
		last := map[string]string{}
		for _, e := range s.World().Log() {
			key := e.Key[:len("work/x")]
			if !strings.HasSuffix(key, "/") && e.Key < last[key] {
				s.Errorf("W3: %q began after %q", e.Key, last[key])
			}
			last[key] = max(last[key], e.Key)
		}
	})
}

// checkPhases compares the phases of a task that has ended with those that have returned.
func checkPhases(s *harness.Sim, info workerpool.Status[string], done map[string]bool) {
	for _, f := range info.Phases {
		returned, want := done[info.ID.String()+f.Name], info.State
		if want == workerpool.Done {
			want = workerpool.Pending // Work has left it out
		}
		if returned && f.State != workerpool.Done || f.State != workerpool.Done && f.State != want {
			s.Errorf("H3: phase %s, which has returned: %v, of the task %+v", f.Name, returned, info)
		}
	}
	if len(info.Phases) != len(phaseNames) {
		s.Errorf("H3: the phases of %+v", info)
	}
}
