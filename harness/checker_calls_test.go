package harness_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/object"
)

// party is an object whose handlers do as the test says.
type party struct {
	st   *object.State
	deed func(p *party, ctx context.Context) error
}

func (p *party) Alarm(ctx context.Context, _ object.AlarmInfo) error { return p.deed(p, ctx) }

func (p *party) put(ctx context.Context) error { return p.st.Storage().Put(ctx, "n", 1) }

// parties is a class of parties with its methods, for one deed.
type parties struct {
	class *object.Class[party]
	// act does the deed, and later does it in the alarm handler. put writes, read does not,
	// both writes and fails, and through calls put of another party and writes nothing.
	act, later, put, read, fails *object.Method[struct{}, struct{}]
	through                      *object.Method[string, struct{}]
}

func newParties(do step) *parties {
	ps := &parties{}
	// The constructor of a fresh party writes, which is a commit of no method.
	ps.class = object.Define("party", func(ctx context.Context, st *object.State) (*party, error) {
		return &party{st, func(p *party, ctx context.Context) error { return do(ps, p, ctx) }}, st.Storage().Put(ctx, "born", true)
	})
	on := func(name string, f func(p *party, ctx context.Context) error) *object.Method[struct{}, struct{}] {
		return object.Handle(ps.class, name, func(p *party, ctx context.Context, _ struct{}) (struct{}, error) { return struct{}{}, f(p, ctx) })
	}
	ps.act = on("act", func(p *party, ctx context.Context) error { return p.deed(p, ctx) })
	ps.later = on("later", func(p *party, ctx context.Context) error { return p.st.SetAlarm(ctx, p.st.Now().Add(time.Second)) })
	ps.put = on("put", (*party).put)
	ps.read = on("read", func(p *party, ctx context.Context) error {
		_, err := p.st.Storage().GetInto(ctx, "n", new(int))
		return err
	})
	ps.fails = on("fails", func(p *party, ctx context.Context) error {
		return errors.Join(p.put(ctx), p.st.Sync(ctx), errors.New("after the commit"))
	})
	ps.through = object.Handle(ps.class, "through", func(p *party, ctx context.Context, to string) (struct{}, error) {
		return ps.put.Call(ctx, p.st, to, struct{}{})
	})
	return ps
}

// step is a part of a deed: each that fails is passed over, but its error fails the deed.
type step func(ps *parties, p *party, ctx context.Context) error

// calls is a step that calls a method of another party, and its error does not count.
func calls(m func(ps *parties) *object.Method[struct{}, struct{}], to string, opts ...object.CallOption) step {
	return func(ps *parties, p *party, ctx context.Context) error {
		_, _ = m(ps).Call(ctx, p.st, to, struct{}{}, opts...)
		return nil
	}
}

func putOf(ps *parties) *object.Method[struct{}, struct{}]   { return ps.put }
func readOf(ps *parties) *object.Method[struct{}, struct{}]  { return ps.read }
func failsOf(ps *parties) *object.Method[struct{}, struct{}] { return ps.fails }

var (
	call    = calls(putOf, "b")
	callKey = calls(putOf, "b", object.Idempotent("k", time.Hour))
	put     = step(func(_ *parties, p *party, ctx context.Context) error { return p.put(ctx) })
	syncNow = step(func(_ *parties, p *party, ctx context.Context) error { return p.st.Sync(ctx) })
	fail    = step(func(*parties, *party, context.Context) error { return object.Permanent(errors.New("no")) })
	sendPut = step(func(ps *parties, p *party, ctx context.Context) error { return ps.put.Send(ctx, p.st, "b", struct{}{}) })
	outbox  = step(func(ps *parties, p *party, ctx context.Context) error {
		_, _ = ps.put.Call(ctx, p.st.Outbox(), "b", struct{}{})
		return nil
	})
	callFar = step(func(ps *parties, p *party, ctx context.Context) error {
		_, err := ps.through.Call(ctx, p.st, "b", "c")
		return err
	})
	callFarK = step(func(ps *parties, p *party, ctx context.Context) error {
		_, err := ps.through.Call(ctx, p.st, "b", "c", object.Idempotent("k", time.Hour))
		return err
	})
)

// lent does a step while the turn is lent out.
func lent(in step) step {
	return func(ps *parties, p *party, ctx context.Context) error {
		return p.st.Release(ctx, func(ctx context.Context) error { return in(ps, p, ctx) })
	}
}

// routine does steps in a routine, and turn does steps in a turn of it.
func routine(steps ...step) step {
	return func(ps *parties, p *party, ctx context.Context) error {
		return p.st.Go(ctx, "work", func(ctx context.Context) { _ = deed(steps).do(ps, p, ctx) })
	}
}

func turn(steps ...step) step {
	return func(ps *parties, p *party, ctx context.Context) error {
		return p.st.Do(ctx, func(ctx context.Context) error { return deed(steps).do(ps, p, ctx) })
	}
}

// deed is the steps of a handler.
type deed []step

func (d deed) do(ps *parties, p *party, ctx context.Context) error {
	var errs []error
	for _, f := range d {
		errs = append(errs, f(ps, p, ctx))
	}
	return errors.Join(errs...)
}

// Proves O6: a call that commits before its caller's commit is a warning, and with
// NoCallBeforeCommit a failure. Calls that leave no half are neither.
func TestCallsBeforeCommit(t *testing.T) {
	const pair = "party.act party.put party/a party/b"
	for name, c := range map[string]struct {
		deed  deed
		later bool   // the alarm handler does it
		want  string // the pair; empty: there is none
	}{
		"call, put":                             {deed: deed{call, put}, want: pair},
		"put, call":                             {deed: deed{put, call}, want: pair},
		"call, put, sync":                       {deed: deed{call, put, syncNow}, want: pair},
		"sync of nothing, call, put":            {deed: deed{syncNow, call, put}, want: pair},
		"call alone":                            {deed: deed{call}},
		"call that reads, put":                  {deed: deed{calls(readOf, "b"), put}},
		"call that fails after its commit, put": {deed: deed{calls(failsOf, "b"), put}, want: "party.act party.fails party/a party/b"},
		"put, call, failure":                    {deed: deed{put, call, fail}},
		"put, sync, call":                       {deed: deed{put, syncNow, call}},
		"put, sync, call, put":                  {deed: deed{put, syncNow, call, put}},
		"call with a key, put":                  {deed: deed{callKey, put}},
		"repeatable call, put":                  {deed: deed{calls(putOf, "b", object.Repeatable()), put}},
		"send, put":                             {deed: deed{sendPut, put}},
		"call of the outbox, put":               {deed: deed{outbox, put}},
		"lent out: call, then put":              {deed: deed{lent(call), put}, want: pair},
		"put, lent out: call, then put":         {deed: deed{put, lent(call), put}},
		"lent out: call of itself, then put":    {deed: deed{lent(calls(putOf, "a")), put}},
		"call through another, put":             {deed: deed{callFar, put}, want: "party.act party.put party/a party/c"},
		// With the key there is a row of b, its answer.
		"call with a key through another, put": {deed: deed{callFarK, put}, want: "party.through party.put party/b party/c"},
		// The commit of an alarm removes its row.
		"alarm: call":                           {deed: deed{call}, later: true, want: "party.alarm party.put party/a party/b"},
		"alarm: call with a key":                {deed: deed{callKey}, later: true},
		"alarm: call, failure":                  {deed: deed{call, fail}, later: true},
		"routine: call, and a turn with a put":  {deed: deed{routine(call, turn(put))}},
		"routine: a turn with a call and a put": {deed: deed{routine(turn(call, put))}, want: "party.work party.put party/a party/b"},
	} {
		t.Run(name, func(t *testing.T) {
			scenario := func(s *harness.Sim) {
				ps := newParties(c.deed.do)
				s.Host(ps.class)
				m := ps.act
				if c.later {
					m = ps.later
				}
				_, _ = m.Call(s.Context(), s, "a", struct{}{})
				s.Advance(time.Minute)
			}
			report, err := harness.Explore(scenario, harness.Budget(1))
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, b := range report.CallsBeforeCommit {
				got += strings.Join([]string{b.Caller, b.Called, b.From, b.To}, " ")
			}
			if got != c.want {
				t.Errorf("O6: the report tells of %q, want %q", got, c.want)
			}
			_, err = harness.Explore(scenario, harness.NoCallBeforeCommit, harness.Budget(1))
			var f *harness.Failure
			if failed := errors.As(err, &f); failed != (c.want != "") {
				t.Fatalf("O6: with NoCallBeforeCommit: %v", err)
			} else if !failed {
				return
			}
			says := report.CallsBeforeCommit[0].String()
			if f.Problem != "NoCallBeforeCommit: "+says || f.Warnings != "" || !strings.HasPrefix(f.Promise, "O6: ") {
				t.Errorf("O6: the failure is %q, warning %q, promise %q", f.Problem, f.Warnings, f.Promise)
			}
		})
	}
}

// Calls of one pair of methods are one warning with their count, and a failed run says it
// once. Proves O6.
func TestCallsBeforeCommitAreToldOnce(t *testing.T) {
	ps := newParties(deed{call, calls(putOf, "c"), put}.do)
	scenario := func(s *harness.Sim) {
		s.Host(ps.class)
		for _, name := range []string{"y", "x"} {
			_, _ = ps.act.Call(s.Context(), s, name, struct{}{})
		}
		if s.Crashes() > 0 {
			s.Errorf("after a crash")
		}
	}
	_, err := harness.Explore(scenario)
	var f *harness.Failure
	if !errors.As(err, &f) {
		t.Fatalf("no failure: %v", err)
	}
	const want = "the turn act of party/x called put of party/b, which committed, and then committed itself: " +
		"a crash between the two commits leaves half. Make the call a part of the turn's commit (Method.Send, or the verb of a job " +
		"with State.Outbox), or say that a repeat of it does no harm (object.Idempotent, object.Repeatable)"
	if f.Warnings != want || !strings.Contains(f.Error(), "\n\nWARNING\n  the turn act of party/x called put of party/b,") {
		t.Errorf("O6: the warning is %q, want %q, in\n%v", f.Warnings, want, f)
	}
	report, err := harness.Explore(func(s *harness.Sim) {
		s.Host(ps.class)
		_, _ = ps.act.Call(s.Context(), s, "x", struct{}{})
	}, harness.Budget(0))
	if err != nil || len(report.CallsBeforeCommit) != 1 || report.CallsBeforeCommit[0].Count != 2 {
		t.Errorf("O6: %+v, %v, want one pair with two calls", report.CallsBeforeCommit, err)
	}
}
