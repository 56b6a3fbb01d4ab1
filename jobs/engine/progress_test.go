package engine_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/engine"
)

// progress calls Progressed for the one open execution of the rig.
func (k *rigKind) progress(t *testing.T, l *lives) {
	t.Helper()
	err := k.do(l.host, func(ctx context.Context, r *rig) error {
		return r.engine.Progressed(ctx, r.engine.Executions()[0].Token)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// lasts lets the process live until the run has been under way for some seconds.
func (s *suspectRun) lasts() {
	for n := 0; n < 3 || !s.has("runs") && !s.has("gave up") && n < 1000; n++ {
		time.Sleep(5 * time.Second)
	}
}

// dies ends the process and begins another.
func (s *suspectRun) dies(l *lives) {
	l.crash()
	s.mu.Lock()
	s.life = len(s.lines)
	s.mu.Unlock()
	l.begin()
	synctest.Wait()
}

// Proves R4: a run with progress between any two crashes is never given up, and never held back.
// Each way to begin is tried: progress in each process, and only after the run has become a
// suspect that is charged. Without progress it is given up exactly where TestSuspectIsHeldBack
// has it: in the seventh process.
func TestProgressForgetsCrashes(t *testing.T) {
	for name, c := range map[string]struct {
		from, deaths int // the first process that makes progress, and how many die
		heldLast     bool
	}{"always": {1, 12, false}, "a suspect": {3, 13, false}, "charged thrice": {6, 16, false}, "never": {100, 6, true}} {
		t.Run(name, func(t *testing.T) {
			s := newSuspectRun(engine.Options{})
			inLives(t, func(t *testing.T, l *lives) {
				s.beginRun(t, l)
				for life := 1; life <= c.deaths; life++ {
					time.Sleep(time.Millisecond)
					s.lasts()
					if life >= c.from {
						s.progress(t, l)
						time.Sleep(time.Second)
						for _, x := range s.open(t, l.host) {
							if r := x.Run; x.Held || r.Recoveries != 0 || r.Cuts != 0 || r.CutEpoch != 0 || r.Losses != 0 || r.Recovering {
								t.Errorf("process %d: after progress the execution is %+v", life, x)
							}
						}
					}
					if s.has("held true") != (life > 2 && life <= max(c.from, 2)) {
						t.Errorf("process %d: held is %t", life, s.has("held true"))
					}
					s.dies(l)
				}
				time.Sleep(time.Second)
				if s.has("gave up") != c.heldLast {
					t.Errorf("the last process:\n%s", s.diary())
				}
			}, s)
		})
	}
}

// Proves R4: a crash after the progress of a run that is alone on trial is not charged to it,
// also if the host was closing, so that the end of the trial was not stored. Three crashes were
// charged to the run before, and a fourth would be its end.
func TestProgressWhileTheHostCloses(t *testing.T) {
	for name, progresses := range map[string]bool{"progress": true, "none": false} {
		t.Run(name, func(t *testing.T) {
			s := newSuspectRun(engine.Options{})
			inLives(t, func(t *testing.T, l *lives) {
				s.beginRun(t, l)
				for range 5 {
					s.lasts()
					s.dies(l)
				}
				s.lasts()
				ctx, cut := context.WithCancel(t.Context())
				go func() { _ = l.host.Shutdown(ctx) }()
				synctest.Wait()
				r := s.rig
				err := r.st.Do(ctx, func(ctx context.Context) error {
					if !progresses {
						return nil
					}
					return r.engine.Progressed(ctx, r.engine.Executions()[0].Token)
				})
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				left := l.mem.Crash(0) // before the host has ended
				cut()
				synctest.Wait()
				l.mem = left
				s.diary()
				l.begin()
				time.Sleep(time.Second)
				if got := s.diary(); strings.Contains(got, "gave up") == progresses || strings.Contains(got, "recover") != progresses {
					t.Errorf("the next process:\n%s", got)
				}
			}, s)
		})
	}
}

// Proves R4: progress ends the trial of a suspect when it is durable, so that the next suspect
// is tried at once and not after the window of ten seconds or more.
func TestProgressEndsTheTrial(t *testing.T) {
	for name, progresses := range map[string]bool{"progress": true, "none": false} {
		t.Run(name, func(t *testing.T) {
			var running atomic.Int32
			k := newErrandKind(&errandKind{period: year, options: engine.JobOptions{Stuck: true}})
			k.work = func(ctx context.Context, x engine.Execution) (engine.Result, error) {
				running.Add(1)
				defer running.Add(-1)
				return hangs(ctx, x)
			}
			inLives(t, func(t *testing.T, l *lives) {
				for _, id := range []string{"a", "b"} {
					if _, err := k.do.Call(t.Context(), l.host, id, "create"); err != nil {
						t.Fatal(err)
					}
				}
				for range 2 { // the two are suspects
					time.Sleep(20 * time.Second)
					l.crash()
					l.begin()
				}
				time.Sleep(3*time.Second + time.Millisecond)
				synctest.Wait()
				if n := running.Load(); n != 1 {
					t.Fatalf("%d suspects are on trial", n)
				}
				for _, id := range []string{"a", "b"} {
					k.fn = func(ctx context.Context, e *errand) error {
						for _, x := range e.Engine().Executions() {
							if progresses {
								return e.Engine().Progressed(ctx, x.Token)
							}
						}
						return nil
					}
					if _, err := k.act.Call(t.Context(), l.host, id, 0); err != nil {
						t.Fatal(err)
					}
				}
				synctest.Wait()
				if n := running.Load(); n != map[bool]int32{true: 2, false: 1}[progresses] {
					t.Errorf("%d suspects run", n)
				}
			}, k)
		})
	}
}

// Proves R4, J8: Progressed writes nothing if there is nothing to forget, and refuses a token
// that is not open. The metadata of a job tells of progress when it is next stored.
func TestProgressed(t *testing.T) {
	k := newErrandKind(&errandKind{period: year, work: hangs})
	inLives(t, func(t *testing.T, l *lives) {
		k.create(t, l)
		written := func(token engine.Token) (n int) {
			err := k.turn(l, func(ctx context.Context, e *errand) error {
				if token == "" {
					token = e.Engine().Executions()[0].Token
				}
				if err := e.Engine().Progressed(ctx, token); err != nil {
					return err
				}
				var err error
				n, err = e.st.Driver().WrittenBytes(ctx)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		if n := written(""); n != 0 {
			t.Errorf("progress without a crash writes %d bytes", n)
		}
		time.Sleep(time.Second)
		l.crash()
		l.begin()
		time.Sleep(time.Second)
		k.wantMeta(t, l, "repeated", func(m jobs.Meta) bool { return m.Run.Recoveries == 1 && m.Run.Cuts == 1 && m.Run.Recovering })
		if first, second := written(""), written(""); first == 0 || second != 0 {
			t.Errorf("progress writes %d bytes, and the second %d", first, second)
		}
		if err := k.verb(t, l, "pause"); err != nil { // it stores the metadata
			t.Fatal(err)
		}
		for range 2 {
			k.wantMeta(t, l, "after progress", func(m jobs.Meta) bool {
				return m.Status == jobs.Executing && m.RecoveryAttempts == 0 && m.Run.Recoveries == 0 && m.Run.Cuts == 0 && !m.Run.Recovering && m.Run.Attempt == 2
			})
			m := l.mem.Crash(0) // read from the disk
			_ = l.host.Shutdown(cut())
			l.mem = m
			l.begin()
		}
		err := k.turn(l, func(ctx context.Context, e *errand) error { return e.Engine().Progressed(ctx, "none") })
		if !errors.Is(err, jobs.ErrStaleExecution) {
			t.Errorf("progress of no execution: %v", err)
		}
	}, k)
}

// Proves R4, O17: an execution that a reset loses costs a recovery, and none with FreeResets,
// however often, also where no recovery is left. A crash costs one all the same.
func TestFreeResets(t *testing.T) {
	for free, want := range map[bool]string{true: "recover recover recover recover recover", false: "recover recover recover gave up"} {
		for _, limit := range []int{0, -1} {
			k := newErrandKind(&errandKind{period: year, work: hangs, options: engine.JobOptions{FreeResets: free}})
			k.options.MaxRecoveries = limit
			inLives(t, func(t *testing.T, l *lives) {
				k.create(t, l)
				broken := errors.New("broken")
				for range 5 {
					err := k.turn(l, func(ctx context.Context, e *errand) error {
						return errors.Join(e.st.Storage().Put(ctx, "some", 1), broken)
					})
					if !errors.Is(err, broken) {
						t.Fatal(err)
					}
					time.Sleep(time.Minute)
				}
				expected := want
				if !free && limit < 0 {
					expected = "gave up"
				}
				var got []string
				for event := range strings.SplitSeq(k.told(t, l), ", ") {
					switch kind, _, _ := strings.Cut(event, ":"); kind {
					case jobs.EventRecovery:
						got = append(got, "recover")
					case jobs.EventExhausted:
						got = append(got, "gave up")
					}
				}
				if text := strings.Join(got, " "); text != expected {
					t.Errorf("free %t, limit %d: %s, want %s", free, limit, text, expected)
				}
				if !free {
					return
				}
				k.wantMeta(t, l, "free", func(m jobs.Meta) bool {
					return m.RecoveryAttempts == 0 && m.Run.Losses == 0 && m.Status == jobs.Executing
				})
				l.crash()
				k.options.MaxRecoveries = 3
				l.begin()
				time.Sleep(time.Second)
				k.wantMeta(t, l, "after a crash", func(m jobs.Meta) bool { return m.RecoveryAttempts == 1 && m.Status == jobs.Executing })
			}, k)
		}
	}
}
