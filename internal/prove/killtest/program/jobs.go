package program

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-dev/holdfast/internal/prove/killtest/judge"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/jobs/debounce"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
)

// Classes of the program.
const (
	CounterClass = "counter"
	TimerClass   = "timer"
	LoopClass    = "loop"
	BatchClass   = "batch"
	PoolClass    = "pool"
	TrayClass    = "tray"
)

// Partitions is how many partitions the pool has.
const Partitions = 2

// LoopState is the state of a continuous job.
type LoopState struct {
	N uint64 `json:"n"`
}

// BatchEvent is an event of a debounce job.
type BatchEvent struct {
	ID string `json:"id"`
}

// TaskInput is a task.
type TaskInput struct {
	Name string
	Text string // its order key
	Kind int
}

// The kinds of tasks.
const (
	easy   = iota
	flaky  // fails once
	slow   // takes a few milliseconds
	doomed // never succeeds
	kinds
)

var errDoomed = errors.New("never succeeds")

// recoveryDelay is short, because the program is killed often.
const recoveryDelay = 2 * time.Millisecond

func retry() jobs.Retry {
	return jobs.Retry{
		MaxAttempts: manyCrashes, Backoff: jobs.Constant(time.Millisecond),
		RetryIf: func(err error) bool { return !errors.Is(err, errDoomed) },
	}
}

func classOptions() object.ClassOptions {
	return object.ClassOptions{AlarmRetry: patient, MaxAlarmCrashes: manyCrashes}
}

// define makes the classes.
func (p *Program) define() {
	counters := object.Define(CounterClass, newCounter)
	p.add = object.Handle(counters, "add", (*counter).add)
	p.once = object.Handle(counters, "once", (*counter).once)
	p.read = object.Handle(counters, "read", (*counter).read)

	timers := object.Define(TimerClass, p.newTimer, classOptions())
	p.set = object.Handle(timers, "set", (*timer).set)
	p.pending = object.Handle(timers, "pending", (*timer).read)

	ballast := object.Define("ballast", newBallast)
	p.fill = object.Handle(ballast, "fill", (*ballastObject).fill)

	p.loop = continuous.New(continuous.Config[LoopState]{
		Name: LoopClass, Run: p.run, Schedule: jobs.Every(2 * time.Millisecond), Retry: retry(),
		MaxRecoveries: manyCrashes, RecoveryDelay: recoveryDelay, Class: classOptions(),
	})
	p.batch = debounce.New(debounce.Config[BatchEvent, struct{}]{
		Name: BatchClass, Quiet: 3 * time.Millisecond, MaxWait: 15 * time.Millisecond, MaxEvents: 12, MaxPending: 200,
		Flush: p.flush, Retry: retry(), MaxRecoveries: manyCrashes, RecoveryDelay: recoveryDelay, Class: classOptions(),
	})
	p.pool = workerpool.New(workerpool.Config[TaskInput, string]{
		Name: PoolClass, Work: p.work, Partitions: Partitions, Concurrency: 8, MaxQueued: 300,
		Queues: map[string]int{"": 1, "fast": 3}, Retry: retry(), OnDead: p.dead,
	})
	p.tray = workerpool.New(workerpool.Config[TaskInput, string]{
		Name: TrayClass, Concurrency: 8, MaxQueued: 100, Lease: p.lease, Retry: retry(),
	})
	p.classes = []object.Definition{counters, timers, ballast, p.loop, p.batch, p.pool, p.tray}
}

// run is one run of a continuous job. Each fifth needs a second attempt.
func (p *Program) run(ctx context.Context, r *continuous.Run[LoopState]) error {
	p.journal.write(judge.Line{Kind: judge.Effect, Verb: judge.Run, On: r.ID, N: r.Number, Key: r.Key})
	if err := p.tally(ctx, r, r.Key); err != nil {
		return err
	}
	if r.Number%5 == 0 && r.Attempt == 1 {
		return errAgain
	}
	r.State.N++
	return nil
}

// flush is a flush of a debounce job. Each third needs a second attempt.
func (p *Program) flush(ctx context.Context, f *debounce.Flush[BatchEvent, struct{}]) error {
	ids := make([]string, len(f.Events))
	for i, e := range f.Events {
		ids[i] = e.ID
	}
	p.journal.write(judge.Line{Kind: judge.Effect, Verb: judge.Flush, On: f.ID, N: f.Generation, Key: f.Key, IDs: ids})
	if err := p.tally(ctx, f, f.Key); err != nil {
		return err
	}
	if f.Generation%3 == 0 && f.Attempt == 1 {
		return errAgain
	}
	return nil
}

// work is a task. Its output is its name.
func (p *Program) work(ctx context.Context, t *workerpool.Task[TaskInput]) (string, error) {
	p.journal.write(judge.Line{
		Kind: judge.Effect, Verb: judge.Work, On: PoolClass + "/" + t.ID.String(), N: uint64(t.Attempt),
		IDs: []string{t.In.Name}, Text: t.In.Text, Key: t.OutsideKey,
	})
	switch {
	case t.In.Kind == doomed:
		return "", errDoomed
	case t.In.Kind == flaky && t.Attempt == 1:
		return "", errAgain
	case t.In.Kind == slow:
		if err := seams.Sleep(ctx, 3*time.Millisecond); err != nil {
			return "", err
		}
	}
	return t.In.Name, p.tally(ctx, t, t.OutsideKey)
}

func (p *Program) dead(_ context.Context, d workerpool.DeadLetter[TaskInput]) error {
	p.journal.write(judge.Line{Kind: judge.Effect, Verb: judge.Dead, On: PoolClass + "/" + d.ID.String()})
	return nil
}

// tally counts a work on a counter under its outside key.
func (p *Program) tally(ctx context.Context, from object.Caller, key string) error {
	name := "sum-" + string('0'+key[len(key)-1]%4)
	return p.tell(judge.Line{Verb: judge.Tally, On: name, Key: key}, func(l *judge.Line) (err error) {
		l.N, err = p.once.Call(ctx, from, name, key, object.Idempotent(key, 0))
		return err
	})
}

// ballastObject takes disk space, to show when there is none.
type ballastObject struct{ st *object.State }

func newBallast(_ context.Context, st *object.State) (*ballastObject, error) {
	return &ballastObject{st}, nil
}

func (b *ballastObject) fill(ctx context.Context, size int) (struct{}, error) {
	return struct{}{}, b.st.Storage().PutBytes(ctx, "bytes", make([]byte, size))
}
