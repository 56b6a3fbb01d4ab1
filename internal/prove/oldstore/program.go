package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/jobs/debounce"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
)

// madeAt is the time by the clock of the program that made the store.
var madeAt = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// clock begins at a given time and runs as fast as that of the machine.
type clock struct {
	seam.Clock
	ahead time.Duration // of the machine
}

func clockAt(base time.Time) clock {
	machine := seam.Seams{}.WithDefaults().Clock
	return clock{machine, base.Sub(machine.Now())}
}

func (c clock) Now() time.Time { return c.Clock.Now().Add(c.ahead).UTC() }

// account has a state, an event for each deposit, and an alarm far away.
type account struct {
	st      *object.State
	balance int
}

func newAccount(ctx context.Context, st *object.State) (*account, error) {
	a := &account{st: st}
	_, err := st.Storage().GetInto(ctx, "balance", &a.balance)
	return a, err
}

func (a *account) deposit(ctx context.Context, n int) (int, error) {
	balance := a.balance + n
	if err := a.st.Storage().Put(ctx, "balance", balance); err != nil {
		return 0, err
	}
	if err := a.st.Emit(ctx, "deposited", n); err != nil {
		return 0, err
	}
	a.balance = balance
	return balance, a.st.SetAlarm(ctx, madeAt.Add(24*time.Hour))
}

func (a *account) read(context.Context, struct{}) (int, error) { return a.balance, nil }

func (a *account) Alarm(context.Context, object.AlarmInfo) error { return nil }

// bell has an alarm that fails for good at once.
type bell struct{ st *object.State }

func (b *bell) set(ctx context.Context, _ struct{}) (struct{}, error) {
	return struct{}{}, b.st.SetAlarm(ctx, b.st.Now())
}

func (b *bell) Alarm(context.Context, object.AlarmInfo) error {
	return object.Permanent(errors.New("the bell is broken"))
}

// program is the definitions of the program that made the store, and of the one
// that reads it.
type program struct {
	accounts *object.Class[account]
	deposit  *object.Method[int, int]
	read     *object.Method[struct{}, int]
	bells    *object.Class[bell]
	ring     *object.Method[struct{}, struct{}]
	rang     chan object.DeadLetter
	polls    *continuous.Job[int]
	mails    *workerpool.Pool[string, string]
	digests  *debounce.Job[string, struct{}]
}

// newProgram defines everything. Work that the end of the maker cuts off calls stuck,
// with its name.
func newProgram(stuck func(ctx context.Context, name string) error) *program {
	p := &program{rang: make(chan object.DeadLetter, 1)}
	p.accounts = object.Define("account", newAccount)
	p.deposit = object.Handle(p.accounts, "deposit", (*account).deposit)
	p.read = object.Handle(p.accounts, "read", (*account).read)
	p.bells = object.Define("bell",
		func(_ context.Context, st *object.State) (*bell, error) { return &bell{st}, nil },
		object.ClassOptions{OnDeadLetter: func(_ context.Context, d object.DeadLetter) { p.rang <- d }})
	p.ring = object.Handle(p.bells, "ring", (*bell).set)
	p.polls = continuous.New(continuous.Config[int]{
		Name: "poll", Version: "1", Schedule: jobs.Every(30 * 24 * time.Hour),
		Run: func(ctx context.Context, run *continuous.Run[int]) error {
			run.State++
			if run.ID == "stuck" {
				return stuck(ctx, fmt.Sprintf("poll recovering=%v", run.Recovering))
			}
			return nil
		},
	})
	p.mails = workerpool.New(workerpool.Config[string, string]{
		Name: "mail", Version: "1", Retention: jobs.Retention{Completed: 365 * 24 * time.Hour, Cancelled: 365 * 24 * time.Hour},
		Work: func(ctx context.Context, t *workerpool.Task[string]) (string, error) {
			switch t.In {
			case "dead":
				return "", jobs.Permanent(errors.New("no such mailbox"))
			case "stuck":
				return "sent at last", stuck(ctx, fmt.Sprintf("mail attempt=%d", t.Attempt))
			}
			return "sent " + t.In, nil
		},
	})
	p.digests = debounce.New(debounce.Config[string, struct{}]{
		Name: "digest", Version: "1", Quiet: 30 * 24 * time.Hour, Dedup: 365 * 24 * time.Hour,
		Flush: func(context.Context, *debounce.Flush[string, struct{}]) error { return nil },
	})
	return p
}

// open opens a host with the program on a directory, at a time.
func (p *program) open(dir string, at time.Time) (*object.Host, error) {
	return object.Open(object.Options{
		Dir: dir, EventRetention: 365 * 24 * time.Hour,
		Storage: storage.Options{Shards: 4, MinFreeBytes: -1},
		Seams:   seam.Seams{Clock: clockAt(at)},
	}, p.accounts, p.bells, p.polls, p.mails, p.digests)
}

// fill makes everything but the work that is to be cut off.
func (p *program) fill(ctx context.Context, h *object.Host) error {
	for i, name := range []string{"alice", "bob", "bob"} {
		if _, err := p.deposit.Call(ctx, h, name, 100+i, object.Idempotent("first "+name, 365*24*time.Hour)); err != nil {
			return err
		}
	}
	if _, err := p.ring.Call(ctx, h, "door", struct{}{}); err != nil {
		return err
	}
	<-p.rang
	for _, event := range []string{"one", "two", "two", "three"} {
		if _, err := p.digests.Add(ctx, h, "carol", event, debounce.EventID(event)); err != nil {
			return err
		}
	}
	if _, err := p.polls.Start(ctx, h, "news", 6); err != nil {
		return err
	}
	for e, err := range h.Watch(ctx, p.polls.ID("news"), 0) {
		if err != nil {
			return err
		}
		if e.Kind == jobs.EventSuccess {
			break
		}
	}
	return p.enqueue(ctx, h)
}

func (p *program) enqueue(ctx context.Context, h *object.Host) error {
	for _, in := range []string{"dead", "hello"} {
		task, err := p.mails.Enqueue(ctx, h, in, workerpool.Idempotent(in, 365*24*time.Hour))
		if err != nil {
			return err
		}
		if _, err := p.mails.Wait(ctx, h, task.ID); err != nil && !errors.Is(err, workerpool.ErrFailed) {
			return err
		}
	}
	for _, in := range []string{"later", "behind"} {
		_, err := p.mails.Enqueue(ctx, h, in, workerpool.Delay(30*24*time.Hour), workerpool.Key("dave"),
			workerpool.Priority(3), workerpool.Unique(in))
		if err != nil {
			return err
		}
	}
	return nil
}
