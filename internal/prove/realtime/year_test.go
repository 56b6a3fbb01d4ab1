package realtime

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/object"
)

var (
	rounds  = flag.Int("rounds", 3, "how often TestShutdownWithAllInFlight shuts a host down on each store")
	days    = flag.Int("days", 10, "how long the year of TestYear is")
	century = flag.Int("years", 2, "how long the century of TestCentury is")
)

// tally is the state of a job: how often it ran, and when last.
type tally struct {
	Runs int
	Last time.Time
}

// clocked is a job that runs by cron. Each run must be at the very moment for which
// it was scheduled, and fit the one before.
func clocked(t testing.TB, name, cron, zone string, fits func(last, now time.Time) bool) *continuous.Job[tally] {
	return continuous.New(continuous.Config[tally]{
		Name: name, Schedule: jobs.Cron(cron, zone), StartLater: true, FewEvents: true,
		Run: func(_ context.Context, run *continuous.Run[tally]) error {
			now := time.Now()
			if !now.Equal(run.Scheduled) {
				t.Errorf("%s: the run for %v is at %v", name, run.Scheduled, now)
			}
			if last := run.State.Last; !last.IsZero() && !fits(last, now) {
				t.Errorf("%s: a run at %v follows one at %v", name, now, last)
			}
			run.State = tally{run.State.Runs + 1, now}
			return nil
		},
	})
}

// apart fits runs that are d apart.
func apart(d time.Duration) func(last, now time.Time) bool {
	return func(last, now time.Time) bool { return now.Sub(last) == d }
}

// daily fits one run on each day of a zone, at the given time of its clocks. On a day on
// which the clocks skip that time, the run comes later, by as much as they skip.
func daily(t testing.TB, zone, clock, skipped string) func(last, now time.Time) bool {
	in, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	return func(last, now time.Time) bool {
		day := func(at time.Time) int { return int(at.Unix()+int64(offset(at.In(in)))) / 86400 }
		read := now.In(in).Format("15:04:05")
		return day(now) == day(last)+1 && (read == clock || read == skipped && offset(now.In(in)) != offset(last.In(in)))
	}
}

// offset is how many seconds a zone's clocks are ahead of UTC.
func offset(at time.Time) int {
	_, seconds := at.Zone()
	return seconds
}

// reminder is an object with an alarm that counts days.
type reminder struct {
	t    testing.TB
	st   *object.State
	days int
}

func (r *reminder) set(ctx context.Context, _ struct{}) (int, error) {
	if _, ok, err := r.st.Alarm(ctx); ok || err != nil {
		return r.days, err
	}
	return r.days, r.st.SetAlarm(ctx, r.st.Now().Add(24*time.Hour))
}

func (r *reminder) Alarm(ctx context.Context, info object.AlarmInfo) error {
	if !info.Scheduled.Equal(r.st.Now()) {
		r.t.Errorf("the alarm for %v is at %v", info.Scheduled, r.st.Now())
	}
	r.days++
	if err := r.st.Storage().Put(ctx, "days", r.days); err != nil {
		return err
	}
	return r.st.SetAlarm(ctx, info.Scheduled.Add(24*time.Hour))
}

// Proves A3, C2, C3: through a year with changes of daylight-saving time, restarts and
// a crash, each job has all its runs, each once and each at its moment.
func TestYear(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		want := map[*continuous.Job[tally]]int{
			clocked(t, "minute", "0 * * * * *", "", apart(time.Minute)):                                              *days * 1440,
			clocked(t, "hour", "0 0 * * * *", "", apart(time.Hour)):                                                  *days * 24,
			clocked(t, "hour-there", "0 15 * * * *", "Europe/Berlin", apart(time.Hour)):                              *days * 24,
			clocked(t, "berlin", "0 30 2 * * *", "Europe/Berlin", daily(t, "Europe/Berlin", "02:30:00", "03:30:00")): *days,
			clocked(t, "new-york", "0 30 1 * * *", "America/New_York", daily(t, "America/New_York", "01:30:00", "")): *days,
		}
		reminders := object.Define("reminder", func(ctx context.Context, st *object.State) (*reminder, error) {
			r := &reminder{t: t, st: st}
			_, err := st.Storage().GetInto(ctx, "days", &r.days)
			return r, err
		})
		set := object.Handle(reminders, "set", (*reminder).set)
		defs := []object.Definition{reminders}
		for j := range want {
			defs = append(defs, j)
		}
		begin := time.Date(2001, 3, 24, 12, 0, 0, 0, time.UTC) // clocks change within days
		until(begin)
		m := newMachine(t, newMapDisk(), defs...)
		ctx := t.Context()
		for j := range want {
			if _, err := j.Start(ctx, m.host, "it", tally{}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := set.Call(ctx, m.host, "it", struct{}{}); err != nil {
			t.Fatal(err)
		}
		year := time.Duration(*days) * 24 * time.Hour
		until(begin.Add(year/4 + time.Second))
		m.restart()
		until(begin.Add(year/2 + time.Second))
		m.crash()
		until(begin.Add(year))
		for j, n := range want {
			got, err := j.State(ctx, m.host, "it")
			if err != nil || got.Runs != n {
				t.Errorf("%s ran %d times, want %d: %v", j.Name(), got.Runs, n, err)
			}
			st, err := j.Status(ctx, m.host, "it")
			if err != nil || st.Meta.RunCount != uint64(n) || st.Meta.RecoveryAttempts != 0 {
				t.Errorf("%s: %+v, %v", j.Name(), st.Meta, err)
			}
		}
		if n, err := set.Call(ctx, m.host, "it", struct{}{}); err != nil || n != *days {
			t.Errorf("%d alarms, want %d: %v", n, *days, err)
		}
		m.close()
		simulated.add(year)
	})
}

// Proves C2: of a century that ends with 2105, one run a year and one on each leap day
// happen, though eight years lie between that of 2096 and the next.
func TestCentury(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		jobs := map[*continuous.Job[tally]]int{
			clocked(t, "yearly", "0 0 0 1 1 *", "", func(last, now time.Time) bool { return now.Year() == last.Year()+1 }): *century,
			clocked(t, "leap", "0 0 0 29 2 *", "", func(last, now time.Time) bool {
				return leapYears(last.Year()+1, now.Year()) == 0 && leapYears(now.Year(), now.Year()+1) == 1
			}): leapYears(2106-*century, 2106),
		}
		begin := time.Date(2106-*century, 1, 1, 0, 0, 1, 0, time.UTC)
		until(begin)
		var defs []object.Definition
		for j := range jobs {
			defs = append(defs, j)
		}
		m := newMachine(t, newMapDisk(), defs...)
		for j := range jobs {
			if _, err := j.Start(t.Context(), m.host, "it", tally{}); err != nil {
				t.Fatal(err)
			}
		}
		end := begin.AddDate(*century, 0, 0)
		until(end)
		for j, n := range jobs {
			if got, err := j.State(t.Context(), m.host, "it"); err != nil || got.Runs != n {
				t.Errorf("%s ran %d times, want %d: %v", j.Name(), got.Runs, n, err)
			}
		}
		m.close()
		simulated.add(end.Sub(begin))
	})
}

// leapYears counts those of the years from the first to before the last that have a
// 29th of February.
func leapYears(first, last int) (n int) {
	for y := first; y < last; y++ {
		if time.Date(y, 2, 29, 0, 0, 0, 0, time.UTC).Day() == 29 {
			n++
		}
	}
	return n
}

// years adds up the time that the tests simulated.
type years struct {
	mu  sync.Mutex
	sum time.Duration
}

var simulated years

const year = 365 * 24 * time.Hour

// add prints the simulated time up to now, too: the last line counts.
func (y *years) add(d time.Duration) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.sum += d
	line, _ := json.Marshal(map[string]float64{"simulated_years": float64(y.sum) / float64(year)})
	fmt.Println(string(line))
}
