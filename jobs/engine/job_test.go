package engine_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/object"
)

// errand is a small job type over Job: one run is due at each whole multiple of the
// period after the start, and its work is that of the kind.
type errand struct {
	*engine.Job
	st *object.State
}

// errandType is the Type of an errand.
type errandType struct {
	st   *object.State
	kind *errandKind
	last time.Time // of the end of the last run, as stored under "last"
}

// errandKind is the definition of errands.
type errandKind struct {
	*object.Class[errand]
	options engine.JobOptions
	period  time.Duration
	work    engine.Work
	load    func() // called by the constructor, if not nil
	// These take the place of what an errand does, if not nil.
	prepare func(ctx context.Context, run jobs.Run) (engine.Work, error)
	next    func() time.Time
	idleEnd func(updated time.Time) time.Time
	leaves  func() (bool, error) // with idleEnd
	// retiring, if not nil, makes the type of the errands a Retirer.
	retiring func(ctx context.Context, e *object.State) error

	fn   func(ctx context.Context, e *errand) error // the handler of the present act
	act  *object.Method[int, int]
	do   *object.Method[string, int]
	meta *object.Method[int, jobs.Meta]
}

func newErrandKind(k *errandKind) *errandKind {
	k.Class = object.Define("errand", func(ctx context.Context, st *object.State) (*errand, error) {
		if k.load != nil {
			k.load()
		}
		t := &errandType{st: st, kind: k}
		if _, err := st.Storage().GetInto(ctx, "last", &t.last); err != nil {
			return nil, err
		}
		var kind engine.Type = t
		if k.idleEnd != nil {
			kind = &guestType{t}
		}
		if k.retiring != nil {
			kind = &retiringType{t}
		}
		l, err := engine.NewJob(ctx, st, k.options, kind)
		return &errand{l, st}, err
	})
	k.do = object.Handle(k.Class, "do", (*errand).do)
	k.act = object.Handle(k.Class, "act", func(e *errand, ctx context.Context, _ int) (int, error) { return 0, k.fn(ctx, e) })
	k.meta = object.Handle(k.Class, "meta", func(e *errand, _ context.Context, _ int) (jobs.Meta, error) { return e.Meta(), nil })
	return k
}

// do calls a verb of the job.
func (e *errand) do(ctx context.Context, verb string) (int, error) {
	switch verb {
	case "create":
		return 0, e.Turn(ctx, e.Create)
	case "run":
		return 0, e.Turn(ctx, func(ctx context.Context) error { return e.RunNow(ctx, "asked") })
	case "pause":
		return 0, e.Pause(ctx)
	case "resume":
		return 0, e.Resume(ctx)
	case "stop":
		return 0, e.Stop(ctx, "enough")
	case "terminate":
		return 0, e.Terminate(ctx, "enough")
	case "count":
		return e.Count(), nil
	case "due without a turn":
		return 0, e.Due(context.Background(), e.st.Now())
	}
	return 0, nil
}

func (t *errandType) Prepare(ctx context.Context, run jobs.Run) (engine.Work, error) {
	if t.kind.prepare != nil {
		return t.kind.prepare(ctx, run)
	}
	return t.kind.work, nil
}

func (t *errandType) Next() time.Time {
	if t.kind.next != nil {
		return t.kind.next()
	}
	if t.last.IsZero() {
		return time.Unix(1, 0)
	}
	return t.last.Add(t.kind.period)
}

func (t *errandType) Ended(ctx context.Context, _ engine.Execution, _ engine.Outcome) error {
	now := t.st.Now().Round(0).UTC()
	if err := t.st.Storage().Put(ctx, "last", now); err != nil {
		return err
	}
	t.last = now
	return nil
}

// guestType is the Type of an errand that ends by itself.
type guestType struct{ *errandType }

func (t *guestType) IdleEnd(updated time.Time) time.Time { return t.kind.idleEnd(updated) }

func (t *guestType) PurgesIdle(context.Context) (bool, error) { return t.kind.leaves() }

// retiringType is the Type of an errand that has something to do before it is gone.
type retiringType struct{ *errandType }

func (t *retiringType) Retiring(ctx context.Context) error { return t.kind.retiring(ctx, t.st) }

// turn runs fn in a turn of the errand named a.
func (k *errandKind) turn(l *lives, fn func(ctx context.Context, e *errand) error) error {
	k.fn = fn
	_, err := k.act.Call(context.Background(), l.host, "a", 0)
	return err
}

// told returns the events of the errand named a, but starts: kind, reason and error of each.
func (k *errandKind) told(t *testing.T, l *lives) string {
	t.Helper()
	events, err := l.host.Events(t.Context(), k.ID("a"), 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range events {
		var ev jobs.Event
		if err := json.Unmarshal(e.Data, &ev); err != nil && len(e.Data) > 0 {
			t.Fatal(err)
		}
		if e.Kind == jobs.EventStart {
			continue
		}
		text := e.Kind
		for _, part := range []string{ev.Reason, ev.Error} {
			if part != "" {
				text += ":" + part
			}
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

// wantMeta checks the metadata of the errand named a.
func (k *errandKind) wantMeta(t *testing.T, l *lives, what string, ok func(m jobs.Meta) bool) {
	t.Helper()
	if m := k.metaOf(t, l); !ok(m) {
		t.Errorf("%s: the metadata is %+v", what, m)
	}
}

// alarmOf returns the alarm of the errand named a.
func (k *errandKind) alarmOf(t *testing.T, l *lives) (at time.Time) {
	t.Helper()
	err := k.turn(l, func(ctx context.Context, e *errand) (err error) {
		at, _, err = e.st.Alarm(ctx)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// countOf counts the events of a kind, or that begin with a text, in those that told returns.
func countOf(told, begin string) (n int) {
	for event := range strings.SplitSeq(told, ", ") {
		if strings.HasPrefix(event, begin) {
			n++
		}
	}
	return n
}
