package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/internal/testing/loglines"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
)

// outcomes keeps how executions ended, by their subjects.
type outcomes struct {
	mu    sync.Mutex
	ended map[string]engine.Outcome
	turns map[string]int // the turn in which each ended
	turn  int            // turns that have ended
}

// keep has a rig note the outcomes of its executions.
func (o *outcomes) keep(k *rigKind) {
	o.ended, o.turns = make(map[string]engine.Outcome), make(map[string]int)
	k.ended = func(_ context.Context, _ *rig, x engine.Execution, out engine.Outcome) error {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.ended[x.Subject], o.turns[x.Subject] = out, o.turn
		return nil
	}
	k.settle = func(context.Context, *rig) error {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.turn++
		return nil
	}
}

// of returns the outcome of an execution, and the number of its turn.
func (o *outcomes) of(subject string) (engine.Outcome, int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.ended[subject], o.turns[subject]
}

// Proves J8: an open execution is found by its token until it ends; tokens are in the
// order of their begin and have the epoch of the opening in their upper half.
func TestLookup(t *testing.T) {
	k := newRigKind(&rigKind{})
	inLives(t, func(t *testing.T, l *lives) {
		var want []engine.Execution
		for i := range 20 {
			want = append(want, k.begin(t, l.host, engine.Spec{Subject: strconv.Itoa(i), Work: hangs}))
		}
		if open := k.open(t, l.host); !slices.Equal(open, want) {
			t.Errorf("open are %+v, want %+v", open, want)
		}
		if n, err := strconv.ParseUint(string(want[0].Token), 16, 64); err != nil || n>>32 != want[0].Epoch {
			t.Errorf("the token of epoch %d is %s, %v", want[0].Epoch, want[0].Token, err)
		}
		err := k.turn(l.host, func(ctx context.Context, r *rig) error {
			for _, x := range want {
				if got, ok := r.engine.Lookup(x.Token); !ok || got != x {
					t.Errorf("found is %+v, %t, want %+v", got, ok, x)
				}
			}
			if err := r.engine.Discard(ctx, want[7].Token); err != nil {
				return err
			}
			if got, ok := r.engine.Lookup(want[7].Token); ok || got != (engine.Execution{}) || r.engine.Count() != 19 {
				t.Errorf("found is %+v, %t; %d are open", got, ok, r.engine.Count())
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}, k)
}

// Proves J8: the work of an execution that is discarded hears of it; its end is counted as
// stale and changes nothing. One that is held outside can be discarded too.
func TestDiscardedExecutions(t *testing.T) {
	var r loglines.Recorder
	k := newRigKind(&rigKind{})
	var o outcomes
	o.keep(k)
	inLives(t, func(t *testing.T, l *lives) {
		l.crash()
		l.options.Logger = r.Logger()
		l.begin()
		causes := make(chan error, 1)
		work := k.begin(t, l.host, engine.Spec{Subject: "work", Work: func(ctx context.Context, _ engine.Execution) (engine.Result, error) {
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return engine.Result{}, nil
		}})
		held := k.begin(t, l.host, engine.Spec{Subject: "held"})
		err := k.turn(l.host, func(ctx context.Context, r *rig) error {
			return errors.Join(r.engine.Discard(ctx, work.Token), r.engine.Discard(ctx, held.Token))
		})
		if err != nil {
			t.Fatal(err)
		}
		if cause := <-causes; cause != jobs.ErrStaleExecution {
			t.Errorf("the work ends because of %v", cause)
		}
		synctest.Wait()
		if out, _ := o.of("work"); out.Kind != "" {
			t.Errorf("the discarded execution ends as %+v", out)
		}
		want := fmt.Sprintf("DEBUG end of an execution is stale class=rig object=r error=rig/r: %v: %s", jobs.ErrStaleExecution, work.Token)
		if got := r.Text(slog.LevelDebug); got != want {
			t.Errorf("logged is\n%s\nwant\n%s", got, want)
		}
	}, k)
}

// Proves J7: a lease is renewed for the time that the caller asks for.
func TestRenewForATime(t *testing.T) {
	k := newRigKind(&rigKind{options: engine.Options{Lease: time.Minute}})
	inLives(t, func(t *testing.T, l *lives) {
		x := k.begin(t, l.host, engine.Spec{})
		for asked, want := range map[time.Duration]time.Duration{0: time.Minute, 1: 1, time.Hour: time.Hour} {
			err := k.turn(l.host, func(ctx context.Context, r *rig) error {
				until, err := r.engine.Renew(ctx, x.Token, asked)
				if !until.Equal(time.Now().Add(want)) {
					t.Errorf("a lease of %v is renewed until %v", asked, until)
				}
				_, err2 := r.engine.Renew(ctx, x.Token, time.Hour)
				return errors.Join(err, err2)
			})
			if err != nil {
				t.Error(err)
			}
		}
	}, k)
}

// Proves J7: a lease that is renewed for less time than it had ends at its new end, and not
// at the old one.
func TestRenewForLessTime(t *testing.T) {
	k := newRigKind(&rigKind{options: engine.Options{Lease: time.Hour}})
	var o outcomes
	o.keep(k)
	inLives(t, func(t *testing.T, l *lives) {
		x := k.begin(t, l.host, engine.Spec{Subject: "held"})
		err := k.turn(l.host, func(ctx context.Context, r *rig) error {
			_, err := r.engine.Renew(ctx, x.Token, time.Minute)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute - time.Millisecond)
		synctest.Wait()
		if out, _ := o.of("held"); out.Kind != "" {
			t.Errorf("before its end the execution is %+v", out)
		}
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		if out, _ := o.of("held"); !out.Lost {
			t.Errorf("after its end the execution is %+v", out)
		}
	}, k)
}

// Proves J9: an execution that fails stores no result. One whose result is too large for
// the store has failed, and leaves the other ends of its batch alone.
func TestResultsThatAreNotStored(t *testing.T) {
	k := newRigKind(&rigKind{})
	var o outcomes
	o.keep(k)
	inLives(t, func(t *testing.T, l *lives) {
		var stored atomic.Int32
		store := func(err error) engine.Result {
			return engine.Result{Store: func(context.Context) error { stored.Add(1); return err }}
		}
		for i, err := range []error{object.ErrValueTooLarge, object.ErrBatchTooLarge, object.ErrKeyTooLarge} {
			err = fmt.Errorf("large: %w", err)
			name := strconv.Itoa(i)
			k.begin(t, l.host, engine.Spec{Subject: name, Work: func(context.Context, engine.Execution) (engine.Result, error) {
				return store(err), nil
			}})
			synctest.Wait()
			if out, _ := o.of(name); out.Kind != engine.GaveUp || out.Err != err || stored.Load() != int32(i+1) {
				t.Errorf("%v: the execution ends as %+v", err, out)
			}
		}
		no := errors.New("no")
		k.begin(t, l.host, engine.Spec{Subject: "fails", Work: func(context.Context, engine.Execution) (engine.Result, error) {
			return store(nil), no
		}})
		synctest.Wait()
		if out, _ := o.of("fails"); out.Kind != engine.GaveUp || out.Err != no || stored.Load() != 3 {
			t.Errorf("after %d results are stored, an error ends as %+v", stored.Load(), out)
		}
	}, k)
}

// Proves J9: a result of several writes of which one is too large leaves none of them, and no
// event, in the batch that ends its execution.
func TestResultThatIsStoredInPart(t *testing.T) {
	k := newRigKind(&rigKind{})
	var o outcomes
	o.keep(k)
	inLives(t, func(t *testing.T, l *lives) {
		var in *rig
		if err := k.do(l.host, func(_ context.Context, r *rig) error { in = r; return nil }); err != nil {
			t.Fatal(err)
		}
		k.begin(t, l.host, engine.Spec{Subject: "large", Work: func(context.Context, engine.Execution) (engine.Result, error) {
			return engine.Result{Store: func(ctx context.Context) error {
				for i := 0; ; i++ {
					err := in.st.Storage().PutBytes(ctx, "part "+strconv.Itoa(i), make([]byte, 1<<20))
					if err == nil && i == 0 {
						err = in.st.Emit(ctx, "stored", "a part")
					}
					if err != nil {
						return err
					}
				}
			}}, nil
		}})
		synctest.Wait()
		if out, _ := o.of("large"); out.Kind != engine.GaveUp || !errors.Is(out.Err, object.ErrBatchTooLarge) {
			t.Errorf("the execution ends as %+v", out)
		}
		kept, err := l.host.Inspect(t.Context(), k.ID("r"))
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range kept.Keys {
			if strings.HasPrefix(item.Key, "part") {
				t.Errorf("%s of the result is stored", item.Key)
			}
		}
		events, err := l.host.Events(t.Context(), k.ID("r"), 0, 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			if e.Kind == "stored" {
				t.Errorf("event %+v of the result is stored", e)
			}
		}
	}, k)
}

// Proves J7, J9: a work that uses up its time has failed because of it, whatever its error,
// unless it succeeds all the same. One that does not return is fenced off a lease later.
func TestTimeoutOfAWork(t *testing.T) {
	k := newRigKind(&rigKind{options: engine.Options{Timeout: 10 * time.Second}})
	var o outcomes
	o.keep(k)
	mine := errors.New("mine")
	inLives(t, func(t *testing.T, l *lives) {
		ends := func(fail error) engine.Work {
			return func(ctx context.Context, _ engine.Execution) (engine.Result, error) {
				<-ctx.Done()
				return engine.Result{}, fail
			}
		}
		began := time.Now()
		k.begin(t, l.host, engine.Spec{Subject: "own error", Work: ends(mine)})
		k.begin(t, l.host, engine.Spec{Subject: "success", Work: ends(nil)})
		k.begin(t, l.host, engine.Spec{Subject: "a nanosecond", Timeout: 1, Work: ends(nil)})
		k.begin(t, l.host, engine.Spec{Subject: "early", Work: func(context.Context, engine.Execution) (engine.Result, error) {
			return engine.Result{}, mine
		}})
		k.begin(t, l.host, engine.Spec{Subject: "stuck", Timeout: 1, Work: func(context.Context, engine.Execution) (engine.Result, error) {
			time.Sleep(time.Hour)
			return engine.Result{}, nil
		}})
		time.Sleep(time.Microsecond)
		if out, _ := o.of("a nanosecond"); out.Kind != engine.Done {
			t.Errorf("a work with a nanosecond ends as %+v", out)
		}
		if out, _ := o.of("early"); out.Err != mine {
			t.Errorf("a work that fails in time ends as %+v", out)
		}
		time.Sleep(time.Minute)
		if out, _ := o.of("own error"); !errors.Is(out.Err, jobs.ErrTimeout) || !errors.Is(out.Err, mine) {
			t.Errorf("a work that returns its own error ends as %+v", out)
		}
		if out, _ := o.of("success"); out.Kind != engine.Done {
			t.Errorf("a work that succeeds after its time ends as %+v", out)
		}
		if out, _ := o.of("stuck"); !errors.Is(out.Err, jobs.ErrTimeout) || time.Since(began) > 2*time.Minute {
			t.Errorf("a work that does not return ends as %+v", out)
		}
		time.Sleep(time.Hour) // until it returns
	}, k)
}

// Proves J9: a work that ends its goroutine has failed.
func TestWorkThatExits(t *testing.T) {
	k := newRigKind(&rigKind{})
	var o outcomes
	o.keep(k)
	inLives(t, func(t *testing.T, l *lives) {
		k.begin(t, l.host, engine.Spec{Subject: "exits", Work: func(context.Context, engine.Execution) (engine.Result, error) {
			runtime.Goexit()
			return engine.Result{}, nil
		}})
		synctest.Wait()
		var p *seam.PanicError
		if out, _ := o.of("exits"); out.Kind != engine.GaveUp || !errors.As(out.Err, &p) || !p.Exited() || !strings.Contains(out.Stack(), "work_test.go") {
			t.Errorf("it ends as %+v with the stack %q", out, out.Stack())
		}
	}, k)
}

// oddTimers is a clock that notes when a function with an odd wait runs.
type oddTimers struct {
	seam.Clock
	wait time.Duration
	ran  atomic.Bool
}

func (c *oddTimers) AfterFunc(d time.Duration, f func()) seam.Timer {
	return c.Clock.AfterFunc(d, func() {
		if d == c.wait {
			c.ran.Store(true)
		}
		f()
	})
}

// points is a probe that counts the ends of works.
type points struct{ ends atomic.Int32 }

func (p *points) At(at seam.Point) {
	if at == (seam.Point{Name: "work/end", Object: "rig/r"}) {
		p.ends.Add(1)
	}
}

// Proves J7: the context of a work has ended when its result is stored, and the timer of
// its timeout is gone. A probe is told of the end.
func TestContextAfterAWork(t *testing.T) {
	k := newRigKind(&rigKind{})
	var o outcomes
	o.keep(k)
	inLives(t, func(t *testing.T, l *lives) {
		clock := &oddTimers{Clock: seam.Seams{}.WithDefaults().Clock, wait: time.Hour + 7}
		var p points
		l.crash()
		l.options.Seams = seam.Seams{Clock: clock, Probe: &p}
		l.begin()
		var after error
		k.begin(t, l.host, engine.Spec{Subject: "a", Timeout: clock.wait, Work: func(ctx context.Context, _ engine.Execution) (engine.Result, error) {
			return engine.Result{Store: func(context.Context) error { after = context.Cause(ctx); return nil }}, nil
		}})
		time.Sleep(2 * time.Hour)
		if out, _ := o.of("a"); out.Kind != engine.Done || after != context.Canceled || p.ends.Load() != 1 {
			t.Errorf("it ends as %+v; its context is %v; the probe was told %d times", out, after, p.ends.Load())
		}
		if clock.ran.Load() {
			t.Error("the timer of the timeout runs")
		}
	}, k)
}

// Proves J7: a work that a shutdown cuts off with an error ends without a try to store it.
func TestWorkThatIsCutOff(t *testing.T) {
	var r loglines.Recorder
	k := newRigKind(&rigKind{})
	inLives(t, func(t *testing.T, l *lives) {
		l.crash()
		l.options.Logger = r.Logger()
		l.begin()
		k.begin(t, l.host, engine.Spec{Subject: "a", Work: hangs})
		l.close()
		l.host = nil
		if got := r.Text(slog.LevelDebug); strings.Contains(got, "not stored") {
			t.Errorf("logged is\n%s", got)
		}
	}, k)
}

// Proves J6: ends share a batch up to a mebibyte, or up to a quarter of what a turn may
// write if that is less, and up to 512 of them.
func TestBatchOfEnds(t *testing.T) {
	const overhead = 512 // bytes that an end counts beside its result
	for _, test := range []struct {
		limit, maxBatch, ends int
		fail                  bool
	}{{1 << 20, 0, 2, false}, {1 << 20, 0, 2, true}, {100_000, 400_000, 2, false}, {1 << 20, 0, 512, false}} {
		for over := range 2 {
			k := newRigKind(&rigKind{})
			var o outcomes
			o.keep(k)
			inLives(t, func(t *testing.T, l *lives) {
				l.crash()
				l.options.MaxBatchBytes = test.maxBatch
				l.begin()
				n, size := test.ends, test.limit/test.ends-overhead
				if n == 512 {
					n, size = n+over, 1
				}
				free := make(chan struct{})
				for i := range n {
					s := engine.Spec{Subject: strconv.Itoa(i)}
					bytes := size
					if i == 0 && n == 2 {
						bytes += over
					}
					var res engine.Result
					var err error
					if test.fail {
						s.Size, err = bytes, errors.New("no")
					} else {
						res.Size = bytes
					}
					s.Work = func(context.Context, engine.Execution) (engine.Result, error) { <-free; return res, err }
					k.begin(t, l.host, s)
				}
				k.begin(t, l.host, engine.Spec{Subject: "first", Work: func(context.Context, engine.Execution) (engine.Result, error) {
					return engine.Result{Store: func(context.Context) error {
						close(free)
						synctest.Wait() // until the other ends are in the queue
						return nil
					}}, nil
				}})
				time.Sleep(time.Second)
				_, first := o.of("first")
				turns := make(map[int]bool)
				for i := range n {
					out, turn := o.of(strconv.Itoa(i))
					if out.Kind == "" || turn == first {
						t.Errorf("execution %d ends as %+v in turn %d", i, out, turn)
					}
					turns[turn] = true
				}
				if len(turns) != 1+over {
					t.Errorf("%+v, %d over: the ends are stored in %d turns", test, over, len(turns))
				}
			}, k)
		}
	}
}

// jumping is a clock that a test can put forward; timers go by the time that passes.
type jumping struct {
	seam.Clock
	ahead atomic.Int64
}

func (c *jumping) Now() time.Time { return c.Clock.Now().Add(time.Duration(c.ahead.Load())) }

// Proves J7: a work that is overdue because the clock was put forward hears of it.
func TestTimeoutAfterAJump(t *testing.T) {
	k := newRigKind(&rigKind{})
	inLives(t, func(t *testing.T, l *lives) {
		clock := &jumping{Clock: seam.Seams{}.WithDefaults().Clock}
		l.crash()
		l.options.Seams.Clock = clock
		l.begin()
		causes := make(chan error, 1)
		k.begin(t, l.host, engine.Spec{Timeout: time.Hour, Work: func(ctx context.Context, _ engine.Execution) (engine.Result, error) {
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return engine.Result{}, nil
		}})
		time.Sleep(5 * time.Second)
		clock.ahead.Store(int64(2 * time.Hour))
		time.Sleep(10 * time.Second)
		select {
		case cause := <-causes:
			if cause != jobs.ErrTimeout {
				t.Errorf("the work ends because of %v", cause)
			}
		default:
			t.Error("the work goes on")
		}
	}, k)
}
