package workerpool_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
)

// Proves W5, W6, R4. Case SU6: a task that kills its process each time is dead after at
// most 8 crashes. The tasks that ran beside it are not dead, and have lost no attempt.
func TestKillerAmongTasks(t *testing.T) {
	for _, killers := range []int{1, 2} {
		t.Run(fmt.Sprint(killers), func(t *testing.T) {
			harness.Run(t, func(s *harness.Sim) {
				kills, runs := false, make(map[string]int)
				p := workerpool.New(config{
					Name: "pool", Concurrency: 8,
					Work: func(_ context.Context, t *workerpool.Task[string]) (string, error) {
						runs[t.In]++
						s.Always("W5: a crash is no attempt", t.Attempt == 1, t.In, t.Attempt)
						if !strings.Contains(t.In, "killer") {
							s.Sleep(10 * time.Second)
							return "", nil
						}
						kills = true
						s.Sleep(time.Hour)
						return "", nil
					},
				})
				s.Host(p)
				ids := make(map[string]workerpool.TaskID)
				for i := range 12 {
					in := fmt.Sprint("n", i)
					if i%4 == 1 && i/4 < killers {
						in = "killer" + in
					}
					ids[in] = enqueue(s, p, in)
				}
				for range 1800 {
					s.Advance(time.Second)
					if kills {
						s.Crash(harness.Kill)
						kills = false
						s.Restart()
					}
				}
				for in, id := range ids {
					info := status(s, p, id)
					if !strings.Contains(in, "killer") {
						s.Always("W2: a task beside a killer is done at its first attempt",
							info.State == workerpool.Done && info.Attempt == 1 && len(info.Failures) == 0, in, info)
						continue
					}
					s.Always("R4: a killer is dead after at most 8 crashes", info.State == workerpool.Dead && runs[in] >= 4 && runs[in] <= 8, in, runs[in], info)
				}
				letters, err := p.DeadLetters(s.Context(), s, workerpool.TaskID{}, 10)
				s.OK(err)
				s.Always("W6: one dead letter for each killer", len(letters) == killers && letters[0].Reason == jobs.ReasonRecoveries, letters)
			})
		})
	}
}

// Proves W5, J9. Case SU7: crashes with a cause outside cost the tasks of a pool no
// attempt, however many there are.
func TestCrashesAreNoAttempts(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		p := workerpool.New(config{
			Name: "pool", Concurrency: 8,
			Work: func(_ context.Context, t *workerpool.Task[string]) (string, error) {
				s.Always("W5: a crash is no attempt", t.Attempt == 1, t.Attempt)
				s.Sleep(5 * time.Second)
				return "", nil
			},
		})
		s.Host(p)
		for i := range 8 {
			enqueue(s, p, fmt.Sprint(i))
		}
		for range 20 {
			s.Advance(4 * time.Second)
			s.Crash(harness.Kill)
			s.Restart()
		}
		s.Advance(10 * time.Minute)
		if st := stats(s, p); st.Done != 8 || st.Dead != 0 {
			s.Errorf("W2: %+v", st)
		}
	})
}
