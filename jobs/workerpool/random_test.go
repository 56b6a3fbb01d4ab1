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

// Proves W1. Proves W2. Proves W3. Any calls in any order, with crashes anywhere
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
	p := newPool(s, config{
		Partitions: rapid.IntRange(1, 2).Draw(rt, "partitions"),
		Queues:     map[string]int{"q": 3},
		Work: func(_ context.Context, t *workerpool.Task[string]) (string, error) {
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
			if info := status(s, p, id); !info.State.Ended() {
				s.Errorf("W2: %+v", info)
			}
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
