package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/engine"
)

// suspectRun is a rig with one run that is repeated after each loss, and a diary of it.
type suspectRun struct {
	*rigKind
	began time.Time // when the test began

	rig *rig // the instance that has begun the run last

	mu    sync.Mutex
	lines []string
	life  int // the first line of the present process
}

// note adds a line to the diary.
func (s *suspectRun) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, fmt.Sprintf("%v ", time.Since(s.began))+fmt.Sprintf(format, args...))
}

// diary returns the lines of the diary and begins a new one.
func (s *suspectRun) diary() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := strings.Join(s.lines, "\n")
	s.lines, s.life = nil, 0
	return text
}

// waiting is the key of the run that waits for its next execution.
const waiting = "waiting"

func newSuspectRun(o engine.Options) *suspectRun {
	s := &suspectRun{rigKind: &rigKind{options: o}}
	s.ended = func(ctx context.Context, r *rig, x engine.Execution, out engine.Outcome) error {
		s.note("%s, held %t: %v", out.Kind, x.Held, out.Err)
		if out.Kind != engine.Recover {
			return nil
		}
		return r.st.Storage().Put(ctx, waiting, out.Run)
	}
	s.due = func(ctx context.Context, r *rig, now time.Time) error {
		var run jobs.Run
		if found, err := r.st.Storage().GetInto(ctx, waiting, &run); err != nil || !found {
			return err
		}
		s.rig = r
		x, err := r.engine.Begin(ctx, engine.Spec{Subject: "run", Run: run, Work: s.work})
		s.note("begun, held %t, cuts %d, epoch %d", x.Held, x.Run.Cuts, x.Run.CutEpoch)
		return errors.Join(err, r.st.Storage().Remove(ctx, waiting))
	}
	newRigKind(s.rigKind)
	return s
}

// beginRun begins the run.
func (s *suspectRun) beginRun(t *testing.T, l *lives) {
	s.began = time.Now()
	s.begin(t, l.host, engine.Spec{Subject: "run", Run: jobs.Run{Number: 1}, Work: s.work})
}

// work goes on until its context ends.
func (s *suspectRun) work(ctx context.Context, x engine.Execution) (engine.Result, error) {
	until := "without end"
	if at, ok := ctx.Deadline(); ok {
		until = at.Sub(s.began).String()
	}
	s.note("runs until %s", until)
	return hangs(ctx, x)
}

// has reports whether the diary of the present process has a text.
func (s *suspectRun) has(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Contains(strings.Join(s.lines[s.life:], "\n"), text)
}

// die lets the process live until the run has been under way for some seconds, notes its
// lease and the recoveries that the process has reported, and lets another follow.
func (s *suspectRun) die(t *testing.T, l *lives) {
	time.Sleep(time.Millisecond) // so that no look comes at the very time of a begin
	for n := 0; n < 3 || !s.has("runs") && !s.has("gave up") && n < 100; n++ {
		time.Sleep(5 * time.Second)
	}
	for _, x := range s.open(t, l.host) {
		s.note("open, held %t, lease until %v", x.Held, x.Lease.Sub(s.began))
	}
	time.Sleep(5 * time.Second)
	s.noteTold(l)
	l.crash()
	s.mu.Lock()
	s.life = len(s.lines)
	s.mu.Unlock()
	l.begin()
	synctest.Wait() // until the object is in memory
}

// noteTold notes the recoveries that the process has reported of the run.
func (s *suspectRun) noteTold(l *lives) {
	told, _ := l.host.Recoveries()
	for _, r := range told {
		if r.Task == "run" {
			s.note("told %s %s, attempt %d, age %v, given up %t", r.Cause, r.Action, r.Attempt, r.Age, r.GivenUp)
		}
	}
}

// suspectsDiary is that of a run which kills its process each time.
const suspectsDiary = `0s runs until 1m40s
15.001s open, held false, lease until 40s
20.101s recover, held false: jobs: execution was lost: crash
20.101s begun, held false, cuts 1, epoch 1
20.101s runs until 2m0.101s
35.002s open, held false, lease until 1m0.101s
40.002s told crash re-run, attempt 1, age 20.101s, given up false
40.102s recover, held false: jobs: execution was lost: crash
40.102s begun, held true, cuts 2, epoch 2
43.002s runs until 2m23.002s
55.003s open, held false, lease until 1m20.102s
1m0.003s told crash re-run, attempt 2, age 20.001s, given up false
1m0.103s recover, held false: jobs: execution was lost: crash
1m0.103s begun, held true, cuts 1, epoch 3
1m40.005s runs until 3m20.005s
1m45.004s open, held false, lease until 2m10.103s
1m50.004s told crash re-run, attempt 3, age 20.001s, given up false
1m50.104s recover, held false: jobs: execution was lost: crash
1m50.104s begun, held true, cuts 1, epoch 4
3m30.006s runs until 5m10.006s
3m35.005s open, held false, lease until 4m0.104s
3m40.005s told crash re-run, attempt 4, age 50.001s, given up false
3m40.105s recover, held false: jobs: execution was lost: crash
3m40.105s begun, held true, cuts 1, epoch 5
7m20.007s runs until 9m0.007s
7m25.006s open, held false, lease until 7m50.105s
7m30.006s told crash re-run, attempt 5, age 1m50.001s, given up false
7m30.106s gave up, held false: jobs: execution was lost: the process died 4 times while it ran and no other suspect did
7m50.007s told crash fail, attempt 5, age 3m50.001s, given up true`

// Proves R4: a run that kills its process is held back after two crashes, its timeout counts
// from when it begins to run, and it is given up once four crashes are charged to it.
func TestSuspectIsHeldBack(t *testing.T) {
	s := newSuspectRun(engine.Options{Timeout: 100 * time.Second})
	inLives(t, func(t *testing.T, l *lives) {
		s.beginRun(t, l)
		for range 7 {
			s.die(t, l)
		}
		if got := s.diary(); got != suspectsDiary {
			t.Errorf("the diary is\n%s\nwant\n%s", got, suspectsDiary)
		}
	}, s)
}

// Proves R4: with a negative number of recoveries a run is given up after its next crash,
// with the number of crashes that are charged to it, if there are any.
func TestSuspectWithoutRecoveries(t *testing.T) {
	for n, want := range map[int]string{
		2: "gave up, held false: jobs: execution was lost: crash",
		4: "gave up, held false: jobs: execution was lost: the process died 1 times while it ran and no other suspect did",
	} {
		s := newSuspectRun(engine.Options{})
		inLives(t, func(t *testing.T, l *lives) {
			s.beginRun(t, l)
			for range n - 2 {
				s.die(t, l)
			}
			s.options.MaxRecoveries = -1
			s.die(t, l)
			time.Sleep(time.Second)
			if got := s.diary(); !strings.HasSuffix(got, want) {
				t.Errorf("after %d lives the diary is\n%s\nwant\n%s", n, got, want)
			}
		}, s)
	}
}

// Proves J8, R4: an execution that is cancelled while its work is held back ends at once,
// and the work never runs.
func TestSuspectIsCancelled(t *testing.T) {
	s := newSuspectRun(engine.Options{})
	inLives(t, func(t *testing.T, l *lives) {
		s.beginRun(t, l)
		s.die(t, l)
		s.die(t, l)
		s.diary()
		time.Sleep(time.Second)
		unwanted := errors.New("unwanted")
		for _, x := range s.open(t, l.host) {
			err := s.do(l.host, func(_ context.Context, r *rig) error {
				if !x.Held || !r.engine.Cancel(x.Token, unwanted) {
					t.Errorf("no work is cancelled of %+v", x)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		}
		time.Sleep(time.Minute)
		if got := s.diary(); !strings.HasSuffix(got, "cancelled, held true: unwanted") || strings.Contains(got, "runs") {
			t.Errorf("the diary is\n%s", got)
		}
	}, s)
}

// Proves O14, R6: a run that a shutdown in order cut off is repeated, and that is told as no
// recovery of its own.
func TestRecoveryAfterAShutdown(t *testing.T) {
	s := newSuspectRun(engine.Options{})
	inLives(t, func(t *testing.T, l *lives) {
		s.beginRun(t, l)
		time.Sleep(time.Second)
		if err := l.host.Shutdown(cut()); err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		l.mem = l.mem.Crash(0)
		l.begin()
		time.Sleep(time.Second)
		s.noteTold(l)
		want := `0s runs until without end
1.1s recover, held false: jobs: execution was lost: shutdown
1.1s begun, held false, cuts 0, epoch 0
1.1s runs until without end
2s told shutdown re-run, attempt 0, age 1.1s, given up false`
		if got := s.diary(); got != want {
			t.Errorf("the diary is\n%s\nwant\n%s", got, want)
		}
	}, s)
}

// Proves W5: an execution that is held outside is no suspect, also of a run that a crash has
// cut off.
func TestSuspectThatIsHeldOutside(t *testing.T) {
	k := newRigKind(&rigKind{})
	inLives(t, func(t *testing.T, l *lives) {
		if x := k.begin(t, l.host, engine.Spec{Run: jobs.Run{Number: 1, Cuts: 5, CutEpoch: 1}}); x.Held || !x.Outside {
			t.Errorf("begun is %+v", x)
		}
	}, k)
}
