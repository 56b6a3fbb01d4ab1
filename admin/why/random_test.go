package why_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/admin/why"
	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/breaker"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/jobs/debounce"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// hostile is a name that would move a cursor or break out of HTML.
const hostile = "../<script>\x1b[2J"

// shop is a host with something of each kind, and all that is asked for.
type shop struct {
	*harness.Sim
	failing bool          // what fails now: runs, flushes, tasks, steps and alarms
	takes   time.Duration // how long they take, but for tasks

	ticks, hands *continuous.Job[int]
	mails        *debounce.Job[string, string]
	work, claims *workerpool.Pool[time.Duration, int]
	orders       *workflow.Workflow[string, string]
	bank         *breaker.Breaker
	bells        *object.Class[bell]
	ring         *object.Method[time.Duration, int]

	tasks map[string][]workerpool.TaskID // by pool
}

var (
	errNo    = errors.New(hostile)
	approved = workflow.NewSignal[string]("approved")
)

// bell is a plain object with an alarm.
type bell struct {
	st   *object.State
	shop *shop
}

func (b *bell) Alarm(ctx context.Context, _ object.AlarmInfo) error { return b.shop.mistake(ctx) }

func (b *bell) ring(ctx context.Context, d time.Duration) (int, error) {
	return 0, errors.Join(b.st.Storage().Put(ctx, "rung", 1), b.st.SetAlarm(ctx, b.st.Now().Add(d)))
}

func (p *shop) mistake(ctx context.Context) error {
	if p.takes > 0 {
		if err := p.SleepContext(ctx, p.takes); err != nil {
			return err
		}
	}
	if p.failing {
		return errNo
	}
	return nil
}

// open makes the definitions and starts the host.
func open(s *harness.Sim) *shop {
	p := &shop{Sim: s, tasks: map[string][]workerpool.TaskID{}}
	retry := jobs.Retry{MaxAttempts: 3, Backoff: jobs.Constant(7 * time.Second)}
	run := func(ctx context.Context, _ *continuous.Run[int]) error { return p.mistake(ctx) }
	p.ticks = continuous.New(continuous.Config[int]{Name: "tick", Schedule: jobs.Every(20 * time.Second), Retry: retry, Exhausted: jobs.Fail, Run: run})
	p.hands = continuous.New(continuous.Config[int]{Name: "hand", Retry: retry, Run: run})
	p.mails = debounce.New(debounce.Config[string, string]{Name: "mail", Quiet: 5 * time.Second, MaxWait: 12 * time.Second, Retry: retry, Flush: func(ctx context.Context, _ *debounce.Flush[string, string]) error { return p.mistake(ctx) }})
	p.work = workerpool.New(workerpool.Config[time.Duration, int]{Name: "work", Concurrency: 2, Retry: retry, Work: func(ctx context.Context, t *workerpool.Task[time.Duration]) (int, error) {
		return 0, errors.Join(t.Sleep(ctx, t.In), p.mistake(ctx))
	}})
	p.claims = workerpool.New(workerpool.Config[time.Duration, int]{Name: "claim", Retry: retry})
	p.bank = breaker.New(breaker.Config{Name: "bank", Failures: 1})
	p.orders = workflow.New[string, string]("order", workflow.Config{Signals: workflow.Signals{approved}, Retention: jobs.Retention{Completed: time.Minute}})
	p.orders.Func(p.order)
	p.bells = object.Define("bell", func(_ context.Context, st *object.State) (*bell, error) { return &bell{st, p}, nil })
	p.ring = object.Handle(p.bells, "ring", (*bell).ring)
	s.Host(p.definitions()...)
	return p
}

func (p *shop) definitions() []object.Definition {
	if p.ticks == nil { // the host of another test
		return nil
	}
	return []object.Definition{p.ticks, p.hands, p.mails, p.work, p.claims, p.bank, p.orders, p.bells}
}

// order is a workflow with each kind of wait; its input says which.
func (p *shop) order(c *workflow.Context, kind string) (string, error) {
	step := func(ctx context.Context) (string, error) { return "", p.mistake(ctx) }
	if rest, ok := strings.CutPrefix(kind, "deepx"); ok {
		return workflow.Child(c, p.orders, c.ID()+"x", "deep"+rest)
	}
	switch kind {
	case "deep":
		return approved.Wait(c, 0)
	case "signal":
		return approved.Wait(c, time.Hour)
	case "sleep":
		return "", workflow.Sleep(c, 30*time.Second)
	case "child":
		return workflow.Child(c, p.orders, c.ID()+"-child", "signal")
	case "breaker":
		return workflow.Step(c, "charge", step, workflow.Through(p.bank, "visa"), workflow.Retry(jobs.Retry{MaxAttempts: 9}))
	case "stuck":
		if p.failing {
			panic(hostile)
		}
	case "undo":
		workflow.Undo(c, "refund", p.mistake)
		return "", errNo
	}
	return workflow.Step(c, "pack", step, workflow.Retry(jobs.Retry{MaxAttempts: 5, Backoff: jobs.Constant(9 * time.Second)}))
}

// act does one thing at random.
func (p *shop) act(rt *rapid.T) {
	ctx, id := p.Context(), rapid.SampledFrom([]string{"1", hostile}).Draw(rt, "id")
	acts := []func() error{
		func() error { p.failing = !p.failing; return nil },
		func() error { _, err := p.ticks.Start(ctx, p, id, 0); return err },
		func() error { _, err := p.hands.Start(ctx, p, id, 0); return err },
		func() error { return p.hands.Trigger(ctx, p, id) },
		func() error { return p.ticks.Pause(ctx, p, id) },
		func() error { return p.ticks.Resume(ctx, p, id) },
		func() error { return p.hands.Stop(ctx, p, id, hostile) },
		func() error { _, err := p.mails.Add(ctx, p, id, hostile); return err },
		func() error { _, err := p.mails.FlushNow(ctx, p, id); return err },
		func() error { return p.enqueue(p.work, rt) },
		func() error { return p.enqueue(p.work, rt) },
		func() error { return p.enqueue(p.claims, rt) },
		func() error { _, err := p.claims.Claim(ctx, p, 1, 25*time.Second); return err },
		func() error { return p.work.Pause(ctx, p) },
		func() error { return p.work.Resume(ctx, p) },
		func() error { return p.startOrder(rt) },
		func() error { return p.startOrder(rt) },
		func() error { return p.orders.Pause(ctx, p, "signal", hostile, time.Time{}) },
		func() error { return approved.Send(ctx, p, p.orders, "signal", hostile) },
		func() error { return p.orders.Cancel(ctx, p, "child", hostile) },
		func() error { _, err := p.ring.Call(ctx, p, id, 11*time.Second); return err },
	}
	_ = rapid.SampledFrom(acts).Draw(rt, "act")() // a refusal and a crash are part of the story
}

func (p *shop) enqueue(pool *workerpool.Pool[time.Duration, int], rt *rapid.T) error {
	took := time.Duration(rapid.IntRange(0, 40).Draw(rt, "took")) * time.Second
	options := []workerpool.Option{workerpool.Priority(rapid.IntRange(0, 2).Draw(rt, "priority"))}
	switch rapid.IntRange(0, 3).Draw(rt, "option") {
	case 0:
		options = append(options, workerpool.Key(hostile))
	case 1:
		options = append(options, workerpool.Delay(15*time.Second))
	}
	ref, err := pool.Enqueue(p.Context(), p, took, options...)
	if err == nil {
		p.tasks[pool.Name()] = append(p.tasks[pool.Name()], ref.ID)
	}
	return err
}

func (p *shop) startOrder(rt *rapid.T) error {
	kind := rapid.SampledFrom([]string{"signal", "sleep", "child", "breaker", "undo", "step", "stuck"}).Draw(rt, "kind")
	_, err := p.orders.Start(p.Context(), p, kind, kind)
	return err
}

// asked is a question for a reason.
type asked struct {
	name string
	ask  func(context.Context, why.Source) (why.Answer, error)
}

// about asks for an object.
func (p *shop) about(class, name string) asked {
	id := storage.ID{Class: class, Name: name}
	return asked{fmt.Sprintf("%q", id), func(ctx context.Context, src why.Source) (why.Answer, error) { return why.Object(ctx, src, id) }}
}

// kinds are the names of the workflows, which say how they wait.
var kinds = []string{"signal", "sleep", "child", "child-child", "breaker", "undo", "step", "stuck"}

// questions are about all that the shop may have.
func (p *shop) questions() (all []asked) {
	about := func(class, name string) { all = append(all, p.about(class, name)) }
	for _, class := range []string{"tick", "hand", "mail", "bell"} {
		about(class, "1")
		about(class, hostile)
	}
	for _, kind := range kinds {
		about("order", kind)
	}
	about("bank", "visa")
	for _, pool := range []string{"work", "claim"} {
		about(pool, "0")
		for _, id := range p.tasks[pool] {
			all = append(all, asked{pool + "/" + id.String(), func(ctx context.Context, src why.Source) (why.Answer, error) { return why.Task(ctx, src, pool, id) }})
		}
	}
	return all
}

// live asks the living process; ok is false if it died meanwhile.
func (p *shop) live(q asked) (a why.Answer, ok bool) {
	err := p.WithHost(func(ctx context.Context, h *object.Host) (err error) {
		a, err = q.ask(ctx, why.Live(h, p.definitions()...))
		return err
	})
	if err != nil && !harness.Unknown(err) {
		p.Errorf("%s: %v", q.name, err)
	}
	return a, err == nil
}

// cold asks a copy of the store.
func (p *shop) cold(q asked) why.Answer {
	store := p.Store()
	defer store.Close()
	a, err := q.ask(p.Context(), why.Cold(store, p.Now(), p.definitions()...))
	if err != nil {
		p.Errorf("%s: %v", q.name, err)
	}
	return a
}

// fixed are the codes of an answer that need no fact of the process.
func fixed(a why.Answer) (codes []why.Code) {
	for _, c := range why.Codes() {
		if !c.Live && slices.Contains(a.Holds(), c.Code) {
			codes = append(codes, c.Code)
		}
	}
	return codes
}

// agree compares the answers of the process with those of its store (Y2), and looks for answers
// that can never be right.
func (p *shop) agree(q asked) {
	crashes := p.Crashes()
	a, ok := p.live(q)
	c := p.cold(q)
	if !ok || p.Crashes() != crashes {
		return
	}
	if !slices.Equal(fixed(a), fixed(c)) {
		p.Errorf("%s: live %v, cold %v\n%+v\n%+v", q.name, a.Holds(), c.Holds(), a, c)
	}
	for _, code := range append(a.Holds(), c.Holds()...) {
		if code == why.Unexplained || code == why.Orphan {
			p.Errorf("%s: %s\n%+v\n%+v", q.name, code, a, c)
		}
	}
}

// whys are the codes for the words of workflow.Status.
var whys = map[string][]why.Code{
	"ended": {why.Ended}, "paused": {why.Paused}, "wf-stuck": {why.Stuck}, "wf-queued": {why.AlarmQueued}, "wf-signal": {why.WaitsForSignal},
	"wf-timer": {why.WaitsForTimer}, "wf-child": {why.WaitsForChild}, "wf-breaker": {why.BreakerOpen}, "wf-step": {why.Step, why.Executing, why.Lost}, "executing": {why.Executing, why.Lost, why.AlarmSuspect},
}

// typed compares answers, which are made of rows, with those of the jobs themselves.
func (p *shop) typed(rt *rapid.T) {
	ctx, crashes := p.Context(), p.Crashes()
	kind, id := rapid.SampledFrom(kinds).Draw(rt, "typed"), rapid.SampledFrom([]string{"1", hostile}).Draw(rt, "job")
	order, err := p.orders.Status(ctx, p, kind)
	a, ok := p.live(p.about("order", kind))
	if ok && err == nil && p.Crashes() == crashes && !slices.ContainsFunc(whys[order.Why], func(c why.Code) bool { return slices.Contains(a.Holds(), c) }) {
		p.Errorf("order/%s: %v, and its status is %s", kind, a.Holds(), order.Why)
	}
	tick, err := p.ticks.Status(ctx, p, id)
	if a, ok = p.live(p.about("tick", id)); ok && err == nil && tick.Due.After(p.Now()) && p.Crashes() == crashes && !a.Next.Equal(tick.Due) {
		p.Errorf("tick: next %v, and it is due %v", a.Next, tick.Due)
	}
	mail, err := p.mails.Status(ctx, p, id)
	if a, ok = p.live(p.about("mail", id)); ok && err == nil && p.Crashes() == crashes && mail.Meta.Status == jobs.Running {
		if waits := mail.Events > 0; waits != slices.Contains(a.Holds(), why.Collecting) {
			p.Errorf("mail: %v, and %d events wait", a.Holds(), mail.Events)
		}
	}
	for _, task := range p.tasks["work"] {
		st, err := p.work.Status(ctx, p, task)
		a, ok := p.live(asked{task.String(), func(ctx context.Context, src why.Source) (why.Answer, error) { return why.Task(ctx, src, "work", task) }})
		if !ok || err != nil || p.Crashes() != crashes {
			continue
		}
		ends, runs := slices.Contains(a.Holds(), why.Ended), slices.Contains(a.Holds(), why.Executing) || slices.Contains(a.Holds(), why.Lost) || slices.Contains(a.Holds(), why.AlarmSuspect)
		if ends != st.State.Ended() || runs != (st.State == workerpool.Running) {
			p.Errorf("task %s: %v, and it is %s", task, a.Holds(), st.State)
		}
	}
}

// goesOn lets time pass up to the Next of an answer (Y1).
func (p *shop) goesOn(rt *rapid.T) {
	crashes := p.Crashes()
	var waits []asked
	var before []why.Answer
	for _, q := range p.questions() {
		if a, ok := p.live(q); ok && !a.Next.IsZero() && a.Next.Sub(p.Now()) < 2*time.Hour {
			waits, before = append(waits, q), append(before, a)
		}
	}
	if len(waits) == 0 {
		return
	}
	n := rapid.IntRange(0, len(waits)-1).Draw(rt, "next")
	p.Advance(before[n].Next.Sub(p.Now()))
	p.RunUntilIdle()
	after, ok := p.live(waits[n])
	if ok && p.Crashes() == crashes && same(before[n], after) && !after.Next.After(p.Now()) {
		p.Errorf("%s: at %v the answer is still %+v", waits[n].name, p.Now(), after)
	}
}

// same reports whether two answers differ in Next alone.
func same(a, b why.Answer) bool {
	a.Next, b.Next = time.Time{}, time.Time{}
	for i := range a.Also {
		a.Also[i].Next = time.Time{}
	}
	for i := range b.Also {
		b.Also[i].Next = time.Time{}
	}
	return reflect.DeepEqual(a, b)
}

// Proves Y1 and Y2. Random stories with each type of job, with failures and crashes: at Next the
// answer is another, and a process and its store give the same reasons.
func TestRandomReasons(t *testing.T) {
	harness.Check(t, func(s *harness.Sim, rt *rapid.T) {
		p := open(s)
		p.failing = rapid.Bool().Draw(rt, "failing")
		for range rapid.IntRange(5, 25).Draw(rt, "steps") {
			p.act(rt)
			s.RunUntilIdle()
			all := p.questions()
			for range 4 {
				p.agree(rapid.SampledFrom(all).Draw(rt, "question"))
			}
			p.typed(rt)
			if rapid.Bool().Draw(rt, "wait") {
				p.goesOn(rt)
			}
		}
	}, harness.Shards(2))
}
