package continuous_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/object"
)

func scheduled(s *harness.Sim, every time.Duration) *continuous.Job[tally] {
	return ticking(s, continuous.Config[tally]{Schedule: jobs.Every(every)})
}

// alarmOf is the alarm as it is stored.
func alarmOf(s *harness.Sim, id string) (at time.Time) {
	s.OK(s.Retry(func() error {
		return s.WithHost(func(ctx context.Context, h *object.Host) error {
			in, err := h.Inspect(ctx, scheduled(s, time.Hour).ID(id))
			if err == nil && in.Alarm != nil {
				at = in.Alarm.Due
			}
			return err
		})
	}))
	return at
}

// Proves C5, Case SC3: the first look at a job after a deploy moves its alarm if the new
// schedule asks for an earlier time, and never to a later one.
func TestDeployShortensTheSchedule(t *testing.T) {
	harness.Exhaust(t, func(s *harness.Sim) {
		s.Host(scheduled(s, 24*time.Hour))
		start(s, scheduled(s, 24*time.Hour), "a")
		s.Advance(30 * time.Minute)
		shorter := scheduled(s, time.Hour)
		s.Restart(harness.WithCode(shorter))
		st, _ := know(s, shorter, "a")
		s.Always("armed as the status says", alarmOf(s, "a").Equal(st.Due), alarmOf(s, "a"), st.Due)
		s.Advance(time.Hour)
		st, state := know(s, shorter, "a")
		s.Always("run by the new schedule", st.Meta.RunCount >= 2, st.Meta)
		counted(s, st, state, s.Crashes())

		due := st.Due
		longer := scheduled(s, 24*time.Hour)
		s.Restart(harness.WithCode(longer))
		know(s, longer, "a")
		s.Always("an alarm that is too early stays", !alarmOf(s, "a").After(due), alarmOf(s, "a"), due)
	}, harness.OneAlarm, harness.NeverOrphaned)
}

// Proves C5: a job that by the new schedule was due in the past runs at once.
func TestDeployMakesOverdue(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		j := scheduled(s, 24*time.Hour)
		s.Host(j)
		start(s, j, "a")
		s.Advance(5 * time.Hour)
		j = scheduled(s, time.Hour)
		s.Restart(harness.WithCode(j))
		know(s, j, "a")
		s.Advance(time.Second)
		st, _ := know(s, j, "a")
		s.Always("run", st.Meta.RunCount == 2 && st.Due.After(s.Now()), st)
	})
}

// Proves C5: Rearm finds all jobs, those that nothing has called too, page by page.
func TestRearmOfColdJobs(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		const page, n = 4, 2*4 + 1 // two pages and one job
		j := scheduled(s, 24*time.Hour)
		s.Host(j)
		for i := range n {
			start(s, j, fmt.Sprint(i))
		}
		s.Advance(time.Minute)
		j = scheduled(s, time.Hour)
		s.Restart(harness.WithCode(j))
		var told []jobs.Rearmed
		for _, moved := range []int{n, 0} { // the second walk finds nothing to do
			told = told[:0]
			s.OK(s.WithHost(func(ctx context.Context, h *object.Host) error {
				got, err := j.Rearm(ctx, h, jobs.RearmOptions{Page: page, Progress: func(r jobs.Rearmed) { told = append(told, r) }})
				s.Always("all are looked at", got == jobs.Rearmed{Jobs: n, Moved: moved}, got)
				return err
			}))
			s.Always("told page by page", len(told) == 3 && told[0].Jobs == page && told[2].Jobs == n, told)
		}
		s.Advance(time.Hour)
		for i := range n {
			st, _ := know(s, j, fmt.Sprint(i))
			s.Always("run by the new schedule", st.Meta.RunCount == 2, i, st.Meta)
		}
	})
}

// Proves C5: Rearm goes on beside jobs that cannot be woken, counts all of them, and
// joins the first ten of their errors.
func TestRearmOfUnreadableJobs(t *testing.T) {
	for n, joined := range map[int]int{1: 1, 10: 10, 11: 10} {
		harness.Run(t, func(s *harness.Sim) {
			j := scheduled(s, 24*time.Hour)
			s.Host(j)
			for i := range n + 1 {
				start(s, j, fmt.Sprintf("%02d", i))
			}
			s.Advance(time.Minute)
			s.Restart(harness.WithCode(raws))
			for i := range n {
				s.Must(writeRaw.Call(s.Context(), s, fmt.Sprintf("%02d", i), rawRow{Key: jobs.MetaKey, Value: []byte("{")}))
			}
			j = scheduled(s, time.Hour)
			s.Restart(harness.WithCode(j))
			s.OK(s.WithHost(func(ctx context.Context, h *object.Host) error {
				got, err := j.Rearm(ctx, h, jobs.RearmOptions{})
				s.Always("the other is moved", got.Jobs == n+1 && got.Moved == 1 && got.Failed == n, got)
				s.Always("the first errors are told", len(strings.Split(fmt.Sprint(got.Err), "\n")) == joined, got.Err)
				return err
			}))
		})
	}
}

// Proves C5: Rearm ends with its context, and says so.
func TestRearmEndsWithItsContext(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		j := scheduled(s, time.Hour)
		s.Host(j)
		start(s, j, "a")
		s.Advance(time.Minute)
		s.OK(s.WithHost(func(ctx context.Context, h *object.Host) error {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			if _, err := j.Rearm(ctx, h, jobs.RearmOptions{}); !errors.Is(err, context.Canceled) {
				return fmt.Errorf("got %w", err)
			}
			return nil
		}))
	})
}

// Proves C5, A6: an alarm that waits for a retry is not moved by activations, which
// would begin its attempts anew each time.
func TestDeployLeavesRetriesAlone(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		j := scheduled(s, time.Hour)
		s.Host(j)
		start(s, j, "a")
		s.Advance(time.Minute)
		broken := object.Define("counter", func(context.Context, *object.State) (*refusing, error) { return &refusing{}, nil },
			engine.ClassOptions(object.ClassOptions{}))
		s.Restart(harness.WithCode(broken))
		s.Advance(time.Hour + time.Second)
		waits := alarmOf(s, "a")
		s.Always("it waits for a retry", waits.After(s.Now()), waits, s.Now())
		s.Restart(harness.WithCode(j))
		know(s, j, "a")
		s.Always("the wake-up left it", alarmOf(s, "a").Equal(waits), alarmOf(s, "a"), waits)
	})
}

// refusing is an object that fails each of its wake-ups.
type refusing struct{}

func (*refusing) Alarm(context.Context, object.AlarmInfo) error { return errors.New("not now") }
