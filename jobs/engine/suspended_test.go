package engine_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/internal/testing/silent"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/recovery"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/memlog"
)

// stay is the time in which a work ran.
type stay struct{ from, to time.Time }

// node is one owner of a log with a run that takes a minute. The mutex guards the fields below it.
type node struct {
	*rigKind
	log  *silent.Log
	host *object.Host

	mu       sync.Mutex
	waiting  jobs.Run // is begun at its RetryAt
	stays    []stay
	outcomes []engine.Outcome
}

// newNode opens the store of a log at a node.
func newNode(t *testing.T, log shardlog.Log, name string, class object.ClassOptions) *node {
	t.Helper()
	n := &node{log: &silent.Log{Log: log}}
	n.rigKind = &rigKind{
		next: func() time.Time { n.mu.Lock(); defer n.mu.Unlock(); return n.waiting.RetryAt },
		due: func(ctx context.Context, r *rig, now time.Time) error {
			n.mu.Lock()
			run := n.waiting
			n.mu.Unlock()
			if run.Number == 0 || run.RetryAt.After(now) {
				return nil
			}
			_, err := r.engine.Begin(ctx, engine.Spec{Run: run, Work: n.work})
			n.wait(jobs.Run{}, err)
			return err
		},
		ended: func(_ context.Context, _ *rig, _ engine.Execution, out engine.Outcome) error {
			n.mu.Lock()
			n.outcomes = append(n.outcomes, out)
			n.mu.Unlock()
			if out.Waits() {
				n.wait(out.Run, nil)
			}
			return nil
		},
	}
	n.Class = object.Define("rig", func(ctx context.Context, st *object.State) (*rig, error) {
		r := &rig{st: st, kind: n.rigKind}
		var err error
		r.engine, err = engine.Attach(ctx, st, n.options, r)
		return r, err
	}, engine.ClassOptions(class))
	n.call = object.Handle(n.Class, "call", func(r *rig, ctx context.Context, _ int) (int, error) { return 0, n.fn(ctx, r) })
	e, err := shardlog.Open(shardlog.Options{Log: n.log, Owner: name}, memstore.New())
	if err != nil {
		t.Fatal(err)
	}
	o := object.Options{Storage: storage.Options{Engine: e, Shards: 1}, Logger: slog.New(slog.DiscardHandler)}
	if n.host, err = object.Open(o, n.Class); err != nil {
		t.Fatal(err)
	}
	return n
}

// wait keeps the run that is due next, unless err is not nil.
func (n *node) wait(run jobs.Run, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err == nil {
		n.waiting = run
	}
}

// work takes a minute, and ends at once when its context does.
func (n *node) work(ctx context.Context, _ engine.Execution) (engine.Result, error) {
	n.mu.Lock()
	at := len(n.stays)
	n.stays = append(n.stays, stay{from: time.Now()})
	n.mu.Unlock()
	var err error
	select {
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-time.After(time.Minute):
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.stays[at].to = time.Now()
	return engine.Result{}, err
}

// seen returns when works ran, and how executions ended.
func (n *node) seen() ([]stay, []engine.Outcome) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]stay(nil), n.stays...), append([]engine.Outcome(nil), n.outcomes...)
}

// end shuts the node down, however its log is.
func (n *node) end() {
	_ = n.host.Shutdown(cut())
	synctest.Wait()
}

// A work that is cut off because the log does not answer is run again, by the same process, when the log answers. That costs it
// nothing. An outage of less than two seconds cuts nothing off.
//
// Proves O14, R4 and N5 over a log.
func TestSuspendedWorkRunsAgain(t *testing.T) {
	for _, c := range []struct {
		silent  time.Duration
		overlap bool
		begins  int
	}{{1900 * time.Millisecond, false, 1}, {2100 * time.Millisecond, false, 2}, {50 * time.Second, false, 2}, {50 * time.Second, true, 1}} {
		synctest.Test(t, func(t *testing.T) {
			n := newNode(t, memlog.New(), "a", object.ClassOptions{OverlapWhileUnconfirmed: c.overlap})
			defer n.end()
			n.begin(t, n.host, engine.Spec{Run: jobs.Run{Number: 1}, Work: n.work})
			time.Sleep(10 * time.Second)
			synctest.Wait()
			mend := n.log.Stop()
			time.Sleep(c.silent)
			mend()
			time.Sleep(3 * time.Minute)
			synctest.Wait()
			stays, outcomes := n.seen()
			if len(stays) != c.begins || len(outcomes) != c.begins {
				t.Fatalf("silent for %v, overlap %t: the work ran at %v and ended with %+v, want %d times", c.silent, c.overlap, stays, outcomes, c.begins)
			}
			if last := outcomes[c.begins-1]; last.Kind != engine.Done {
				t.Errorf("silent for %v: the last end is %+v", c.silent, last)
			}
			if c.begins == 1 {
				return
			}
			run := outcomes[0].Run
			if outcomes[0].Kind != engine.Recover || run.Failures != 0 || run.Recoveries != 0 || run.Losses != 0 || run.Cuts != 0 || run.OwnersLost != 0 {
				t.Errorf("silent for %v: the suspension costs %+v", c.silent, outcomes[0])
			}
			if cutAfter := stays[0].to.Sub(stays[0].from); cutAfter != 12*time.Second {
				t.Errorf("silent for %v: the work was cut off after %v, want 12s", c.silent, cutAfter)
			}
			if !stays[1].from.After(stays[0].to) || stays[1].from.Sub(stays[0].from) < 10*time.Second+c.silent {
				t.Errorf("silent for %v: the work ran at %v", c.silent, stays)
			}
		})
	}
}

// The next owner runs a work again three seconds after its claim, and not before. By then an owner that is cut off from the log has
// cut the work off. The loss of an owner is counted apart from a crash of the same node.
//
// Proves N5, R2, R4 and J7 over a log.
func TestWorkOfACutOffOwner(t *testing.T) {
	for _, c := range []struct {
		cutAfter, claimAfter time.Duration // the way of the first owner is cut; then another claims
		node                 string
		cause                recovery.Cause
	}{
		{10 * time.Second, 0, "b", recovery.CauseOwnerLost},
		{10 * time.Second, time.Second, "b", recovery.CauseOwnerLost},
		{10*time.Second + 999*time.Millisecond, 0, "b", recovery.CauseOwnerLost},
		{10*time.Second + 500*time.Millisecond, 2500 * time.Millisecond, "b", recovery.CauseOwnerLost},
		{10 * time.Second, 0, "a", recovery.CauseCrash},
	} {
		synctest.Test(t, func(t *testing.T) {
			log := memlog.New()
			a := newNode(t, log, "a", object.ClassOptions{})
			a.begin(t, a.host, engine.Spec{Run: jobs.Run{Number: 1}, Work: a.work})
			time.Sleep(c.cutAfter)
			synctest.Wait()
			a.log.Stop()
			time.Sleep(c.claimAfter)
			claimed := time.Now()
			b := newNode(t, log, c.node, object.ClassOptions{})
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			old, _ := a.seen()
			next, outcomes := b.seen()
			a.end()
			b.end()
			if len(old) != 1 || len(next) != 1 || len(outcomes) != 2 {
				t.Fatalf("%+v: the work ran at %v and then at %v, and ended with %+v", c, old, next, outcomes)
			}
			if after := next[0].from.Sub(claimed); after < 3*time.Second || after > 4*time.Second {
				t.Errorf("%+v: the next owner runs the work %v after its claim, want 3s", c, after)
			}
			if overlap := old[0].to.Sub(next[0].from); old[0].to.IsZero() || overlap > 0 {
				t.Errorf("%+v: the work ran at both owners for %v: %v, %v", c, overlap, old, next)
			}
			run, lost, crashes := outcomes[0].Run, 1, 0
			if c.cause == recovery.CauseCrash {
				lost, crashes = 0, 1
			}
			if run.OwnersLost != lost || run.Recoveries != crashes || run.Cuts != crashes {
				t.Errorf("%+v: the run has %+v, want %d owners lost and %d crashes", c, run, lost, crashes)
			}
		})
	}
}

// The time limit of a work counts from its begin. A work that was started while the log does not answer begins when it answers, and
// has its whole time then, also if that was over before, with a lease on top.
//
// Proves J7 and N5 over a log.
func TestTimeoutOfAHeldWork(t *testing.T) {
	for _, silent := range []time.Duration{0, 1900 * time.Millisecond, 30 * time.Second, 80 * time.Second, 4 * time.Minute} {
		for timeout, ends := range map[time.Duration]time.Duration{55 * time.Second: 55 * time.Second, 65 * time.Second: time.Minute} {
			synctest.Test(t, func(t *testing.T) {
				n := newNode(t, memlog.New(), "a", object.ClassOptions{})
				defer n.end()
				n.begin(t, n.host, engine.Spec{Run: jobs.Run{Number: 1}, Work: n.work, Timeout: time.Hour}) // something runs
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				mend := n.log.Stop()
				began := time.Now()
				go func() {
					_ = n.turn(n.host, func(ctx context.Context, r *rig) error {
						_, err := r.engine.Begin(ctx, engine.Spec{Run: jobs.Run{Number: 2}, Work: n.work, Timeout: timeout})
						return err
					})
				}()
				time.Sleep(silent)
				mend()
				time.Sleep(5 * time.Minute)
				synctest.Wait()
				stays, outcomes := n.seen()
				if len(stays) != 2 || len(outcomes) != 2 {
					t.Fatalf("silent for %v: the works ran at %v and ended with %+v", silent, stays, outcomes)
				}
				if held := stays[1].from.Sub(began); held < silent {
					t.Errorf("silent for %v: the work began after %v", silent, held)
				}
				if ran := stays[1].to.Sub(stays[1].from); ran != ends {
					t.Errorf("silent for %v, timeout %v: the work ran for %v, want %v", silent, timeout, ran, ends)
				}
				if out := outcomes[1]; (out.Kind == engine.Done) != (ends < timeout) || errors.Is(out.Err, jobs.ErrTimeout) != (ends == timeout) {
					t.Errorf("silent for %v, timeout %v: the work ended with %+v", silent, timeout, out)
				}
			})
		}
	}
}
