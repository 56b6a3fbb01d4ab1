package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/admin"
	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/jobs/verbs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// ward is a program of which all work fails until healed is set.
type ward struct {
	mu     sync.Mutex // guards the next two
	healed bool
	ran    map[string]int

	clocks *object.Class[clock]
	set    *object.Method[time.Duration, int]
	gate   chan struct{} // set waits until it is closed, if it is not nil
	images *workerpool.Pool[int, int]
	orders *workflow.Workflow[int, int]
	beats  *continuous.Job[int]

	host *object.Host
	a    *admin.Admin
}

// clock is an object with an alarm.
type clock struct {
	w  *ward
	st *object.State
}

func (c *clock) Alarm(context.Context, object.AlarmInfo) error { return c.w.work("clock") }

// work fails, or counts.
func (w *ward) work(of string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.healed {
		return object.Permanent(errors.New("ill"))
	}
	w.ran[of]++
	return nil
}

// inWard runs a test in virtual time, in which one goroutine at a time has work.
func inWard(t *testing.T, f func(t *testing.T, w *ward)) {
	synctest.Test(t, func(t *testing.T) {
		w := &ward{ran: map[string]int{}}
		w.clocks = object.Define("clock", func(_ context.Context, st *object.State) (*clock, error) { return &clock{w, st}, nil }, object.ClassOptions{AlarmRetry: alarm.Retry{MaxAttempts: 1}})
		w.set = object.Handle(w.clocks, "set", func(c *clock, ctx context.Context, d time.Duration) (int, error) {
			if w.gate != nil {
				<-w.gate
			}
			return 0, c.st.SetAlarm(ctx, c.st.Now().Add(d))
		})
		w.images = workerpool.New(workerpool.Config[int, int]{
			Name: "image", Partitions: 1, Concurrency: 1, Work: func(context.Context, *workerpool.Task[int]) (int, error) { return 0, w.work("image") },
		})
		w.orders = workflow.New[int, int]("order", workflow.Config{Concurrency: 1})
		w.orders.Func(func(ctx *workflow.Context, in int) (int, error) {
			return workflow.Step(ctx, "pay", func(context.Context) (int, error) { return in, w.work("order") })
		})
		w.beats = continuous.New(continuous.Config[int]{
			Name: "beat", Exhausted: jobs.Fail, Concurrency: 1, Run: func(context.Context, *continuous.Run[int]) error { return w.work("beat") },
		})
		definitions := []object.Definition{w.clocks, w.images, w.orders, w.beats}
		var err error
		w.host, err = object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}}, definitions...)
		check(t, err)
		w.a = admin.Live(w.host, definitions...)
		f(t, w)
		check(t, w.host.Shutdown(t.Context()))
	})
}

// later lets virtual time pass, in which all work is done that is due.
func (w *ward) later(d time.Duration) { time.Sleep(d) }

// heal says whether work succeeds from now on.
func (w *ward) heal(healed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.healed = healed
}

// runs is how often work of a class has succeeded.
func (w *ward) runs(of string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ran[of]
}

// fall makes n pieces of work of each kind and waits until all have died.
func (w *ward) fall(t *testing.T, n int) {
	t.Helper()
	for i := range n {
		_, err := w.set.Call(t.Context(), w.host, fmt.Sprint("c", i), time.Second)
		check(t, err)
		_, err = w.images.Enqueue(t.Context(), w.host, i)
		check(t, err)
		_, err = w.orders.Start(t.Context(), w.host, fmt.Sprint("o", i), i)
		check(t, err)
		_, err = w.beats.Start(t.Context(), w.host, fmt.Sprint("b", i), i)
		check(t, err)
	}
	time.Sleep(time.Minute)
	synctest.Wait()
}

// letters is how many dead letters there are.
func (w *ward) letters(t *testing.T) int {
	t.Helper()
	page, err := w.host.DeadLetters(t.Context(), object.DeadLettersOptions{Limit: object.MaxPage})
	check(t, err)
	return len(page.Letters)
}

// Proves G3: a replay acts on all dead work that was counted, of each kind once, and on none that
// died later; and so does a discard.
func TestBulkDead(t *testing.T) {
	inWard(t, func(t *testing.T, w *ward) {
		ctx := t.Context()
		w.fall(t, 3)
		count, err := w.a.CountDead(ctx, true, object.DeadLettersOptions{})
		if err != nil || count.Matches != 9 || count.More || count.Token == "" {
			t.Fatalf("%+v, %v", count, err)
		}
		if w.letters(t) != 9 {
			t.Error("the count has changed letters")
		}
		late, err := w.images.Enqueue(ctx, w.host, 99) // dies after the count
		check(t, err)
		_, _ = w.images.Wait(ctx, w.host, late.ID)
		synctest.Wait()
		w.heal(true)
		_, err = w.set.Call(ctx, w.host, "c1", 24*time.Hour) // a replay would replace the alarm
		check(t, err)
		var seen []admin.Progress
		began := time.Now()
		p, err := w.a.Run(ctx, count.Token, func(p admin.Progress) { seen = append(seen, p) })
		if err != nil || p != (admin.Progress{Done: 8, Skipped: 1}) || len(seen) != 9 || seen[8] != p {
			t.Errorf("%+v, %v, told %+v", p, err, seen)
		}
		if took := time.Since(began); took < 8*time.Second/500 {
			t.Errorf("9 letters took %v", took)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if w.runs("clock") != 2 || w.runs("image") != 3 || w.runs("order") != 3 || w.letters(t) != 2 {
			t.Errorf("ran %d, %d, %d; %d letters are left", w.runs("clock"), w.runs("image"), w.runs("order"), w.letters(t))
		}
		if _, err := w.a.Run(ctx, count.Token, nil); !errors.Is(err, admin.ErrNoToken) {
			t.Errorf("the token a second time: %v", err)
		}

		count, err = w.a.CountDead(ctx, false, object.DeadLettersOptions{Kind: workerpool.DeadTask})
		check(t, err)
		p, err = w.a.Run(ctx, count.Token, nil)
		if err != nil || count.Matches != 1 || p != (admin.Progress{Done: 1}) || w.letters(t) != 1 {
			t.Errorf("discard: %+v, %+v, %v, %d letters are left", count, p, err, w.letters(t))
		}
		count, err = w.a.CountDead(ctx, false, object.DeadLettersOptions{})
		check(t, err)
		if p, err = w.a.Run(ctx, count.Token, nil); err != nil || p.Done != 1 || w.letters(t) != 0 {
			t.Errorf("discard: %+v, %v", p, err)
		}
	})
}

// Proves G3: a replay leaves an alarm that a call sets while the replay waits for its turn, and the
// letter stays.
func TestBulkReplayLeavesANewAlarm(t *testing.T) {
	inWard(t, func(t *testing.T, w *ward) {
		ctx := t.Context()
		w.fall(t, 1)
		count, err := w.a.CountDead(ctx, true, object.DeadLettersOptions{Kind: object.DeadAlarm})
		check(t, err)
		w.heal(true)
		w.gate = make(chan struct{})
		called := make(chan error, 1)
		go func() {
			_, err := w.set.Call(ctx, w.host, "c0", 24*time.Hour)
			called <- err
		}()
		synctest.Wait() // the call has its turn, and has set no alarm
		type outcome struct {
			p   admin.Progress
			err error
		}
		ran := make(chan outcome, 1)
		go func() {
			p, err := w.a.Run(ctx, count.Token, nil)
			ran <- outcome{p, err}
		}()
		synctest.Wait() // the replay waits for its turn
		due := time.Now().Add(24 * time.Hour)
		close(w.gate)
		check(t, <-called)
		if got := <-ran; got.err != nil || count.Matches != 1 || got.p != (admin.Progress{Skipped: 1}) {
			t.Errorf("of %d letters: %+v, %v", count.Matches, got.p, got.err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		in, err := w.host.Inspect(ctx, w.clocks.ID("c0"))
		check(t, err)
		if in.Alarm == nil || !in.Alarm.Due.Equal(due) || len(in.DeadLetters) != 1 || w.runs("clock") != 0 {
			t.Errorf("alarm %+v, want one at %v; letters %+v; it rang %d times", in.Alarm, due, in.DeadLetters, w.runs("clock"))
		}
	})
}

// Proves G3: a letter that cannot be read is refused, and the replay goes on with the others.
func TestBulkGoesOnAfterADamagedLetter(t *testing.T) {
	inWard(t, func(t *testing.T, w *ward) {
		ctx := t.Context()
		w.fall(t, 3)
		page, err := w.host.DeadLetters(ctx, object.DeadLettersOptions{Kind: object.DeadAlarm})
		check(t, err)
		count, err := w.a.CountDead(ctx, true, object.DeadLettersOptions{Kind: object.DeadAlarm})
		check(t, err)
		w.heal(true)
		damage := func(p admin.Progress) {
			if p.Done != 1 || p.Refused != 0 {
				return
			}
			w.damage(t, page.Letters[1]) // the next one
		}
		p, err := w.a.Run(ctx, count.Token, damage)
		if err != nil || count.Matches != 3 || p.Done != 2 || p.Refused != 1 || p.Skipped != 0 || !strings.Contains(p.LastError, " of clock/") {
			t.Errorf("of %d letters: %+v, %v", count.Matches, p, err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if w.runs("clock") != 2 {
			t.Errorf("%d alarms rang", w.runs("clock"))
		}
	})
}

// Proves G3: letters that cannot be read are named by the count, which leaves them out, and refused by the run.
// Neither ends there, wherever in the list they are.
func TestBulkPassesDamagedLetters(t *testing.T) {
	for first := range 3 {
		inWard(t, func(t *testing.T, w *ward) {
			ctx, o := t.Context(), object.DeadLettersOptions{Kind: object.DeadAlarm}
			w.fall(t, 4)
			page, err := w.host.DeadLetters(ctx, o)
			check(t, err)
			for _, d := range page.Letters[first : first+2] {
				w.damage(t, d)
			}
			last := page.Letters[first+1]
			name := fmt.Sprintf("dead letter %d of %s", last.Seq, last.ID)
			count, err := w.a.CountDead(ctx, false, o)
			if err != nil || count.Matches != 2 || count.Damaged != 2 || count.Token == "" || !strings.Contains(count.LastError, name) {
				t.Errorf("G3: %+v, %v, want %q", count, err, name)
			}
			p, err := w.a.Run(ctx, count.Token, nil)
			if err != nil || p.Done != 2 || p.Refused != 2 || p.Skipped != 0 || !strings.Contains(p.LastError, name) {
				t.Errorf("G3: %+v, %v, want %q", p, err, name)
			}
			count, err = w.a.CountDead(ctx, false, o)
			if err != nil || count.Matches != 0 || count.Damaged != 2 {
				t.Errorf("G3: what is left: %+v, %v", count, err)
			}
		})
	}
}

// damage makes a dead letter one that cannot be read.
func (w *ward) damage(t *testing.T, d object.DeadLetter) {
	t.Helper()
	o, err := w.host.Store().Find(d.ID)
	check(t, err)
	var b storage.Batch
	b.For(d.ID)
	b.SetDead(o.Shard, d.ID, d.Seq, []byte("no JSON"))
	_, err = w.host.Store().Commit(&b)
	check(t, err)
}

// Proves G3: a verb acts on all jobs with a label that were counted, but on none that has moved
// since then.
func TestBulkJobs(t *testing.T) {
	inWard(t, func(t *testing.T, w *ward) {
		ctx := t.Context()
		w.fall(t, 4)
		w.heal(true)
		failed := admin.JobsOptions{Class: "beat", Label: "failed"}
		count, err := w.a.CountJobs(ctx, "resume", nil, failed)
		if err != nil || count.Matches != 4 {
			t.Fatalf("%+v, %v", count, err)
		}
		w.heal(false)
		check(t, w.beats.Resume(ctx, w.host, "b2"), w.beats.Trigger(ctx, w.host, "b2")) // fails again, after the count
		time.Sleep(time.Minute)
		synctest.Wait()
		w.heal(true)
		p, err := w.a.Run(ctx, count.Token, nil)
		check(t, err)
		st, err := w.beats.Status(ctx, w.host, "b2")
		if p.Done != 3 || p.Refused != 0 || err != nil || st.Meta.Status != jobs.Failed {
			t.Errorf("%+v, %v, %+v", p, err, st.Meta)
		}
		count, err = w.a.CountJobs(ctx, "stop", []byte(`{"why": "x"}`), failed)
		check(t, err)
		if p, err = w.a.Run(ctx, count.Token, nil); err != nil || count.Matches != 1 || p.Refused != 1 || p.LastError == "" {
			t.Errorf("with a wrong argument: %+v, %v", p, err)
		}
		count, err = w.a.CountJobs(ctx, "terminate", nil, failed)
		check(t, err)
		if p, err = w.a.Run(ctx, count.Token, nil); err != nil || p.Done != 1 {
			t.Errorf("terminate: %+v, %v", p, err)
		}
		if got := walk(t, w.a, admin.JobsOptions{Class: "beat"}); len(got) != 3 {
			t.Errorf("left: %q", got)
		}
		for _, c := range []struct {
			verb string
			o    admin.JobsOptions
			is   error
		}{
			{"fly", failed, verbs.ErrUnknown},
			{"resume", admin.JobsOptions{Class: "image", Label: "failed"}, verbs.ErrUnknown}, // is of the whole pool
			{"resume", admin.JobsOptions{Class: "x", Label: "failed"}, admin.ErrNoType},
			{"resume", admin.JobsOptions{Label: "failed"}, jobs.ErrInvalid},
			{"resume", admin.JobsOptions{Class: "beat"}, jobs.ErrInvalid},
			{"resume", admin.JobsOptions{Class: "beat", Label: "failed", Limit: 1}, jobs.ErrInvalid},
		} {
			if got, err := w.a.CountJobs(ctx, c.verb, nil, c.o); !errors.Is(err, c.is) {
				t.Errorf("%s %+v: %+v, %v", c.verb, c.o, got, err)
			}
		}
		if _, err := w.a.CountDead(ctx, true, object.DeadLettersOptions{Limit: 1}); !errors.Is(err, jobs.ErrInvalid) {
			t.Error(err)
		}
		for n, is := range map[int]error{64 << 10: nil, 64<<10 + 1: jobs.ErrInvalid} {
			if _, err := w.a.CountJobs(ctx, "resume", make([]byte, n-1), admin.JobsOptions{Class: "beat", Label: "failed", Prefix: "x"}); !errors.Is(err, is) {
				t.Errorf("an argument of %d bytes: %v", n, err)
			}
			if _, err := w.a.CountDead(ctx, true, object.DeadLettersOptions{Error: strings.Repeat("x", n)}); !errors.Is(err, is) {
				t.Errorf("a filter of %d bytes: %v", n, err)
			}
		}
	})
}

// Proves G3: a token lives for ten minutes, and of more than 1,000 the oldest goes.
func TestTokensEnd(t *testing.T) {
	inWard(t, func(t *testing.T, w *ward) {
		for _, c := range []struct {
			wait time.Duration
			is   error
		}{{admin.TokenLife - time.Nanosecond, nil}, {admin.TokenLife, admin.ErrNoToken}} {
			count, err := w.a.CountDead(t.Context(), true, object.DeadLettersOptions{})
			check(t, err)
			time.Sleep(c.wait)
			if _, err := w.a.Run(t.Context(), count.Token, nil); !errors.Is(err, c.is) {
				t.Errorf("after %v: %v", c.wait, err)
			}
		}
		var all []string
		for range 1001 {
			count, err := w.a.CountDead(t.Context(), true, object.DeadLettersOptions{})
			check(t, err)
			all = append(all, count.Token)
		}
		slices.Sort(all)
		if len(slices.Compact(slices.Clone(all))) != 1001 {
			t.Error("two counts have one token")
		}
		gone := 0
		for _, token := range all {
			if _, err := w.a.Run(t.Context(), token, nil); errors.Is(err, admin.ErrNoToken) {
				gone++
			}
		}
		if gone != 1 {
			t.Errorf("of 1,001 tokens %d are gone", gone)
		}
	})
}

// Proves G3: a bulk verb ends with its context, and tells how far it has come.
func TestBulkIsStopped(t *testing.T) {
	inWard(t, func(t *testing.T, w *ward) {
		w.fall(t, 3)
		w.heal(true)
		count, err := w.a.CountDead(t.Context(), true, object.DeadLettersOptions{Kind: workerpool.DeadTask})
		check(t, err)
		stop := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		p, err := w.a.Run(ctx, count.Token, func(p admin.Progress) {
			if p.Done == 2 {
				cancel(stop)
			}
		})
		if !errors.Is(err, stop) || p.Done != 2 {
			t.Errorf("%+v, %v", p, err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if w.runs("image") != 2 {
			t.Errorf("%d tasks ran", w.runs("image"))
		}
		count, err = w.a.CountDead(t.Context(), false, object.DeadLettersOptions{Class: "order"})
		check(t, err)
		p, err = w.a.Run(t.Context(), count.Token, nil)
		if left := walk(t, w.a, admin.JobsOptions{Class: "order"}); err != nil || p.Done != 3 || len(left) != 0 {
			t.Errorf("discarded runs: %+v, %v, left %q", p, err, left)
		}
	})
}

// Proves G3: a Step acts on up to 100 jobs, its JSON is enough to go on elsewhere, and a part that is run twice acts on
// none twice. A Step that is stopped keeps its place and tells what it has done.
func TestBulkInSteps(t *testing.T) {
	inWard(t, func(t *testing.T, w *ward) {
		ctx := t.Context()
		const n = 150
		w.heal(true)
		for i := range n {
			id := fmt.Sprintf("s%03d", i)
			_, err := w.beats.Start(ctx, w.host, id, i)
			check(t, err)
			check(t, w.beats.Stop(ctx, w.host, id, "x"))
		}
		time.Sleep(time.Second)
		count, err := w.a.CountJobs(ctx, "terminate", nil, admin.JobsOptions{Class: "beat", Label: "stopped"})
		check(t, err)
		first, err := w.a.Take(count.Token)
		check(t, err)
		if _, err := w.a.Take(count.Token); !errors.Is(err, admin.ErrNoToken) {
			t.Errorf("a token is taken twice: %v", err)
		}
		stop := errors.New("enough")
		stopped, cancel := context.WithCancelCause(ctx)
		part, err := w.a.Step(stopped, first, func(p admin.Progress) {
			if p.Done == 3 {
				cancel(stop)
			}
		})
		if !errors.Is(err, stop) || part.Progress.Done != 3 || part.Jobs.After != first.Jobs.After || part.Ended {
			t.Errorf("a part that is stopped: %+v, %v", part, err)
		}
		raw, err := json.Marshal(part)
		check(t, err)
		var other admin.Bulk
		check(t, json.Unmarshal(raw, &other))
		again := admin.Live(w.host, w.beats)
		second, err := again.Step(ctx, other, nil)
		if err != nil || second.Progress != (admin.Progress{Done: 103}) || second.Ended {
			t.Errorf("the next part: %+v, %v", second, err)
		}
		twice, err := again.Step(ctx, other, nil) // as after a crash
		if err != nil || twice.Progress != (admin.Progress{Done: 3 + n - 103}) || !twice.Ended {
			t.Errorf("the part once more acts on the others alone: %+v, %v", twice, err)
		}
		last, err := again.Step(ctx, second, nil)
		if err != nil || last.Progress != second.Progress || !last.Ended {
			t.Errorf("a part without a job: %+v, %v", last, err)
		}
		if left := walk(t, w.a, admin.JobsOptions{Class: "beat"}); len(left) != 0 {
			t.Errorf("left: %q", left)
		}
		if _, err := admin.Cold(object.Reader{}).Step(ctx, first, nil); !errors.Is(err, admin.ErrNoProgram) {
			t.Error(err)
		}
	})
}
