package object_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// lost is a letter as a job type buries it.
func lost(data string) object.DeadLetter {
	return object.DeadLetter{
		Kind: "errand", Verb: "Errands.Retry", Scheduled: time.Unix(5, 0), Attempts: 3, Crashes: 1,
		LastError: "no", Reason: "attempts", Stack: "main.go:1", Data: json.RawMessage(data),
	}
}

// bury buries a letter and returns its number.
func bury(d object.DeadLetter) action {
	return func(th *thing, ctx context.Context) (any, error) { return th.st.Driver().Bury(ctx, d) }
}

// exhume removes a letter.
func exhume(seq uint64) action {
	return func(th *thing, ctx context.Context) (any, error) { return nil, th.st.Driver().Exhume(ctx, seq) }
}

// letters are the dead letters of the host.
func (f *fixture) letters() []object.DeadLetter {
	f.t.Helper()
	letters, err := lettersOf(f.host.DeadLetters(context.Background(), object.DeadLettersOptions{Limit: object.MaxPage}))
	if err != nil {
		f.t.Fatal(err)
	}
	return letters
}

// storeDead stores a letter behind the back of the host.
func (f *fixture) storeDead(name string, seq uint64, value string) {
	f.t.Helper()
	store := f.host.Store()
	var b storage.Batch
	b.SetDead(store.ShardOf(f.id(name)), f.id(name), seq, []byte(value))
	if _, err := store.Commit(&b); err != nil {
		f.t.Fatal(err)
	}
}

// Proves A11: the letter of a job is in the list with all that it tells, makes no object
// exist, is told to the hook, and survives a restart. Exhume takes it out.
func TestBuriedLetterIsListed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		told := make(chan object.DeadLetter, 10)
		f := newFixture(t, object.ClassOptions{OnDeadLetter: func(_ context.Context, d object.DeadLetter) { told <- d }}).open()
		seq := f.must("a", bury(lost(`{"n":1}`))).(uint64)
		want := lost(`{"n":1}`)
		want.ID, want.Seq, want.Died = f.id("a"), seq, time.Now()
		synctest.Wait()
		check := func(when string, d object.DeadLetter) {
			t.Helper()
			if !d.Died.Equal(want.Died) || !d.Scheduled.Equal(want.Scheduled) {
				t.Errorf("%s: the times are %v and %v", when, d.Scheduled, d.Died)
			}
			d.Died, d.Scheduled = want.Died, want.Scheduled
			if got, want := fmt.Sprintf("%+v", d), fmt.Sprintf("%+v", want); got != want {
				t.Errorf("A11: %s: %s, want %s", when, got, want)
			}
		}
		check("the hook", <-told)
		check("the list", f.letters()[0])
		wantValues(t, f, map[string]float64{"holdfast_dead_letters_total": 1})
		in, err := f.host.Inspect(context.Background(), f.id("a"))
		if err != nil || in.Exists || len(in.DeadLetters) != 1 {
			t.Errorf("O1: a letter makes its object exist: %+v, %v", in, err)
		}
		f.close()
		f.open()
		defer f.close()
		check("the next process", f.letters()[0])
		second := lost("")
		second.Died = time.Unix(7, 0)
		next := f.must("a", bury(second)).(uint64)
		f.must("a", exhume(seq))
		if all := f.letters(); len(all) != 1 || all[0].Seq != next || !all[0].Died.Equal(second.Died) {
			t.Errorf("A11: after Exhume of %d: %+v", seq, all)
		}
	})
}

// Proves A11, O6: a turn that fails, and a transaction that is undone, neither bury nor
// exhume a letter, and nothing is told.
func TestBuryOfADroppedTurn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		told := 0
		f := newFixture(t, object.ClassOptions{OnDeadLetter: func(context.Context, object.DeadLetter) { told++ }}).open()
		defer f.close()
		seq := f.must("a", bury(lost(""))).(uint64)
		boom := errors.New("boom")
		both := func(th *thing, ctx context.Context) error {
			_, err := th.st.Driver().Bury(ctx, lost(""))
			return errors.Join(err, th.st.Driver().Exhume(ctx, seq))
		}
		if _, err := f.call("a", func(th *thing, ctx context.Context) (any, error) {
			return nil, errors.Join(both(th, ctx), boom)
		}); !errors.Is(err, boom) {
			t.Error(err)
		}
		f.must("a", func(th *thing, ctx context.Context) (any, error) {
			err := th.st.Storage().Transaction(ctx, func(ctx context.Context, _ *object.Storage) error { return errors.Join(both(th, ctx), boom) })
			if !errors.Is(err, boom) {
				t.Error(err)
			}
			return nil, nil
		})
		synctest.Wait()
		if all := f.letters(); len(all) != 1 || all[0].Seq != seq || told != 1 {
			t.Errorf("A11: %d were told, and the letters are %+v", told, all)
		}
	})
}

// Proves A11: the host's verbs refuse the letter of a job with an error that names the verb
// to use, whether the class is registered or not, and leave the letter.
func TestJobLetterNeedsItsVerb(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		seq := f.must("a", bury(lost(""))).(uint64)
		ctx := context.Background()
		refused := func(when string, err error) {
			t.Helper()
			want := fmt.Sprintf("thing/a: object: the dead letter is of a job or a timer: letter %d is of the kind errand: use Errands.Retry", seq)
			if !errors.Is(err, object.ErrUseVerb) || err.Error() != want {
				t.Errorf("A11: %s: %v, want %s", when, err, want)
			}
			if len(f.letters()) != 1 {
				t.Errorf("A11: %s: the letter is gone", when)
			}
		}
		refused("replay", f.host.ReplayDeadLetter(ctx, f.id("a"), seq))
		refused("discard", f.host.DiscardDeadLetter(ctx, f.id("a"), seq))
		if in, err := f.host.Inspect(ctx, f.id("a")); err != nil || in.Alarm != nil {
			t.Errorf("A11: a replay that was refused set an alarm: %+v, %v", in, err)
		}
		f.close()
		other := object.Define("other", func(context.Context, *object.State) (*struct{}, error) { return &struct{}{}, nil })
		f.options.Storage = storage.Options{Engine: f.mem, Shards: 2}
		var err error
		if f.host, err = object.Open(f.options, other); err != nil {
			t.Fatal(err)
		}
		refused("discard of a parked class", f.host.DiscardDeadLetter(ctx, f.id("a"), seq))
		if err := f.host.Delete(ctx, f.id("a")); err != nil || len(f.letters()) != 0 {
			t.Errorf("A11: Delete of a parked object without rows: %v, %v", err, f.letters())
		}
		if err := f.host.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
}

// Proves A11: a stored letter without a kind is an alarm's. One of a kind that this program
// does not know is not replayed, and can be discarded.
func TestKindsOfStoredLetters(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.close()
		rings := 0
		f.handleAlarm(func(*thing, context.Context, object.AlarmInfo) error { rings++; return nil })
		f.storeDead("old", 1, `{"scheduled":"2000-01-01T00:00:00Z","died":"2000-01-01T00:00:00Z","attempts":1,"crashes":0,"lastError":"no","reason":"permanent error"}`)
		f.storeDead("new", 2, `{"kind":"novelty"}`)
		kinds := make(map[string]string)
		for _, d := range f.letters() {
			kinds[d.ID.Name] = d.Kind
		}
		if kinds["old"] != object.DeadAlarm || kinds["new"] != "novelty" {
			t.Errorf("A11: the kinds are %v", kinds)
		}
		ctx := context.Background()
		if err := f.host.ReplayDeadLetter(ctx, f.id("old"), 1); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		err := f.host.ReplayDeadLetter(ctx, f.id("new"), 2)
		if err == nil || !strings.Contains(err.Error(), `thing/new: object: dead letter 2 is of the kind "novelty", which this program cannot replay`) {
			t.Errorf("A11: replay of an unknown kind: %v", err)
		}
		if rings != 1 || len(f.letters()) != 1 {
			t.Errorf("A11: the alarm rang %d times, and the letters are %v", rings, f.letters())
		}
		if err := f.host.DiscardDeadLetter(ctx, f.id("new"), 2); err != nil || len(f.letters()) != 0 {
			t.Errorf("A11: discard of an unknown kind: %v", err)
		}
	})
}

// Proves A11: ReplayIfUnarmed leaves the letter of an alarm while the object has another alarm,
// also one that a call sets while the replay waits for its turn, and replays it without one. The
// letter of a job is refused with its verb.
func TestReplayIfUnarmed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.close()
		f.handleAlarm(func(*thing, context.Context, object.AlarmInfo) error { return object.Permanent(errors.New("no")) })
		ctx := context.Background()
		f.must("a", setAlarm(0))
		synctest.Wait()
		seq := f.letters()[0].Seq
		var rings atomic.Int32
		f.handleAlarm(func(*thing, context.Context, object.AlarmInfo) error { rings.Add(1); return nil })
		replay := func(when string, want bool) {
			t.Helper()
			if done, err := f.host.ReplayIfUnarmed(ctx, f.id("a"), seq); done != want || err != nil {
				t.Errorf("A11: %s: %v, %v", when, done, err)
			}
		}

		begun, gate, set := make(chan struct{}), make(chan struct{}), make(chan struct{})
		go func() {
			defer close(set)
			f.must("a", func(th *thing, ctx context.Context) (any, error) {
				close(begun)
				<-gate
				return setAlarm(time.Hour)(th, ctx)
			})
		}()
		<-begun
		go func() {
			synctest.Wait() // the replay waits for its turn
			close(gate)
		}()
		replay("an alarm that is set before its turn", false)
		<-set
		replay("an alarm that is set", false)
		if in, err := f.host.Inspect(ctx, f.id("a")); err != nil || in.Alarm == nil || time.Until(in.Alarm.Due) != time.Hour || len(in.DeadLetters) != 1 || rings.Load() != 0 {
			t.Errorf("A11: the alarm is %+v, %v; %d letters; it rang %d times", in.Alarm, err, len(in.DeadLetters), rings.Load())
		}
		pass(2 * time.Hour)
		replay("no alarm", true)
		synctest.Wait()
		if rings.Load() != 2 || len(f.letters()) != 0 {
			t.Errorf("A11: the alarms rang %d times; letters %+v", rings.Load(), f.letters())
		}

		if done, err := f.host.ReplayIfUnarmed(ctx, f.id("a"), seq); done || !errors.Is(err, object.ErrNoDeadLetter) {
			t.Errorf("A11: a letter that is gone: %v, %v", done, err)
		}
		seq = f.must("a", bury(lost(""))).(uint64)
		f.must("a", setAlarm(time.Hour))
		if done, err := f.host.ReplayIfUnarmed(ctx, f.id("a"), seq); done || !errors.Is(err, object.ErrUseVerb) {
			t.Errorf("A11: the letter of a job: %v, %v", done, err)
		}
	})
}

// Proves A11: Delete removes the letters of jobs, one by one or as a range, and leaves the
// others and those of other objects.
func TestDeleteRemovesLettersOfJobs(t *testing.T) {
	for _, n := range []int{1, 999, 1024, 1025} {
		bubble(t, func(t *testing.T) {
			f := newFixture(t).open()
			defer f.close()
			f.handleAlarm(func(*thing, context.Context, object.AlarmInfo) error { return object.Permanent(errors.New("no")) })
			f.must("a", setAlarm(0))
			f.must("b", bury(lost("")))
			pass(time.Second)
			f.must("a", func(th *thing, ctx context.Context) (any, error) {
				for range n {
					if _, err := th.st.Driver().Bury(ctx, lost("")); err != nil {
						return nil, err
					}
				}
				return nil, th.st.Storage().Put(ctx, "k", 1)
			})
			in, err := f.host.Inspect(context.Background(), f.id("a"))
			if want := min(n+1, 1000); err != nil || len(in.DeadLetters) != want {
				t.Errorf("O15: Inspect shows %d letters, %v, want %d", len(in.DeadLetters), err, want)
			}
			f.storeDead("a", 1<<62, "no JSON")
			if err := f.host.Delete(context.Background(), f.id("a")); err != nil {
				t.Fatal(err)
			}
			var left []string
			if _, err := f.host.Store().ListDead(storage.DeadOptions{}, func(id storage.ID, _ uint64, value []byte) bool {
				left = append(left, id.Name+" "+string(value[:7]))
				return true
			}); err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(left, ", "); got != `a {"sched, a no JSON, b {"kind"` && got != `b {"kind", a {"sched, a no JSON` {
				t.Errorf("A11: after Delete of an object with %d letters of a job: %s", n, got)
			}
		})
	}
}

// Proves A11, S7: Bury refuses a letter that is not one of a job, is too large, or does not
// fit in the batch, and takes the largest that is not. It cuts texts.
func TestBuryChecksTheLetter(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.close()
		long := func(n int) string { return strings.Repeat("x", n) }
		for name, c := range map[string]struct {
			change func(*object.DeadLetter)
			want   string
		}{
			"alarm":       {func(d *object.DeadLetter) { d.Kind = object.DeadAlarm }, `kind "alarm" is not one of a job type`},
			"message":     {func(d *object.DeadLetter) { d.Kind = object.DeadMessage }, `kind "message" is not`},
			"no kind":     {func(d *object.DeadLetter) { d.Kind = "" }, `kind "" is not`},
			"kind 128":    {func(d *object.DeadLetter) { d.Kind = long(128) }, ""},
			"kind 129":    {func(d *object.DeadLetter) { d.Kind = long(129) }, "of at most 128 bytes"},
			"no verb":     {func(d *object.DeadLetter) { d.Verb = "" }, `verb "": name the functions`},
			"verb 128":    {func(d *object.DeadLetter) { d.Verb = long(128) }, ""},
			"verb 129":    {func(d *object.DeadLetter) { d.Verb = long(129) }, "at most 128 bytes"},
			"method":      {func(d *object.DeadLetter) { d.Method = "m" }, "is of a message: use Data"},
			"argument":    {func(d *object.DeadLetter) { d.Arg = []byte("m") }, "is of a message: use Data"},
			"sender":      {func(d *object.DeadLetter) { d.From = f.id("b") }, "is of a message: use Data"},
			"data 64 KiB": {func(d *object.DeadLetter) { d.Data = json.RawMessage(`"` + long(object.MaxDeadData-2) + `"`) }, ""},
			"data beyond": {func(d *object.DeadLetter) { d.Data = json.RawMessage(`"` + long(object.MaxDeadData-1) + `"`) }, "value is too large: Data of a dead letter has 65537 bytes, the limit is 65536"},
			"data":        {func(d *object.DeadLetter) { d.Data = json.RawMessage(`{`) }, "its data is not JSON"},
		} {
			d := lost("")
			c.change(&d)
			before := len(f.letters())
			_, err := f.call("a", bury(d))
			switch {
			case c.want == "" && err == nil && len(f.letters()) == before+1:
			case c.want != "" && err != nil && strings.HasPrefix(err.Error(), "thing/a: object: ") && strings.Contains(err.Error(), c.want) && len(f.letters()) == before:
			default:
				t.Errorf("A11: %s: %v, want %s; %d letters", name, err, c.want, len(f.letters())-before)
			}
		}
		d := lost("")
		d.LastError, d.Reason, d.Stack = long(10_000), long(10_000), long(10_000)
		seq := f.must("cut", bury(d)).(uint64)
		for _, d := range f.letters() {
			if d.Seq == seq && (len(d.LastError) != 1024 || len(d.Reason) != 1024 || len(d.Stack) != object.MaxStackBytes) {
				t.Errorf("A11: %d, %d and %d bytes of texts are kept", len(d.LastError), len(d.Reason), len(d.Stack))
			}
		}
	})
}

// Proves A11, S7: a letter counts against the limit of the turn's batch, and so does its
// removal. A turn that was refused changes nothing, and the largest that was not commits.
func TestLettersCountInTheBatch(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t)
		f.options.MaxBatchBytes = 2000
		f.open()
		defer f.close()
		fits, name := 0, strings.Repeat("n", 500) // the key has it
		for n := 1; n < 4000; n++ {
			before := len(f.letters())
			_, err := f.call(name, bury(lost(`"`+strings.Repeat("x", n)+`"`)))
			if err != nil {
				if !errors.Is(err, object.ErrBatchTooLarge) || len(f.letters()) != before {
					t.Fatalf("A11: data of %d bytes: %v", n, err)
				}
				break
			}
			f.must(name, exhume(f.letters()[0].Seq))
			fits = n
		}
		if fits < 1100 || fits > 1300 {
			t.Errorf("S7: data of %d bytes fits in a batch of 2000 beside a name of 500", fits)
		}
		removals := 0
		_, err := f.call(name, func(th *thing, ctx context.Context) (any, error) {
			for {
				if err := th.st.Driver().Exhume(ctx, 1); err != nil {
					return nil, err
				}
				removals++
			}
		})
		if !errors.Is(err, object.ErrBatchTooLarge) || removals != 3 {
			t.Errorf("S7: %d removals fit in a batch of 2000: %v", removals, err)
		}
		f.must(name, func(th *thing, ctx context.Context) (any, error) {
			for range removals {
				if err := th.st.Driver().Exhume(ctx, 1); err != nil {
					return nil, err
				}
			}
			return nil, nil
		})
	})
}

// Proves A11: the letter of a message names its method, its argument and its sender, and is
// not taken for an alarm's. It can be discarded.
func TestLetterOfAMessage(t *testing.T) {
	bubble(t, func(t *testing.T) {
		type note struct{ st *object.State }
		class := object.Define("note", func(_ context.Context, st *object.State) (*note, error) { return &note{st}, nil })
		take := object.Handle(class, "take", func(*note, context.Context, string) (int, error) {
			return 0, object.Permanent(errors.New("no"))
		})
		send := object.Handle(class, "send", func(n *note, ctx context.Context, text string) (int, error) {
			return 0, take.Send(ctx, n.st, "b", text)
		})
		f := newFixture(t)
		f.options.Storage = storage.Options{Engine: f.mem, Shards: 2}
		var err error
		if f.host, err = object.Open(f.options, class); err != nil {
			t.Fatal(err)
		}
		ctx := context.Background()
		if _, err := send.Call(ctx, f.host, "a", "hello"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		d := f.letters()[0]
		if d.ID != class.ID("b") || d.Kind != object.DeadMessage || d.Method != "take" || string(d.Arg) != `"hello"` || d.From != class.ID("a") || d.LastError != "no" {
			t.Errorf("A11: the letter is %+v", d)
		}
		if err := f.host.DiscardDeadLetter(ctx, d.ID, d.Seq); err != nil || len(f.letters()) != 0 {
			t.Errorf("A11: discard: %v", err)
		}
		if err := f.host.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
}

// lettersOf passes on the letters of a page.
func lettersOf(page object.DeadLetterPage, err error) ([]object.DeadLetter, error) {
	return page.Letters, err
}
