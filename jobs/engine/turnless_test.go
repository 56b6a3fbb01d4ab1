package engine_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// A method of the engine that gets another context than that of the turn returns
// ErrNoTurn.
func TestMethodsWithoutATurn(t *testing.T) {
	k := newRigKind(&rigKind{})
	inLives(t, func(t *testing.T, l *lives) {
		other := context.Background()
		held := k.begin(t, l.host, engine.Spec{Subject: "held"})
		for name, fn := range map[string]func(ctx context.Context, r *rig) error{
			"Attach": func(_ context.Context, r *rig) error {
				e, err := engine.Attach(other, r.st, engine.Options{}, r)
				if e != nil {
					t.Error("Attach returns an engine with its error")
				}
				return err
			},
			"Turn": func(_ context.Context, r *rig) error {
				return r.engine.Turn(other, func(context.Context) error { return nil })
			},
			"Alarm": func(_ context.Context, r *rig) error { return r.engine.Alarm(other, object.AlarmInfo{}) },
			"Begin": func(_ context.Context, r *rig) error {
				_, err := r.engine.Begin(other, engine.Spec{Work: hangs})
				return err
			},
			"Renew": func(_ context.Context, r *rig) error {
				_, err := r.engine.Renew(other, held.Token, 0)
				return err
			},
			"Discard": func(_ context.Context, r *rig) error { return r.engine.Discard(other, held.Token) },
			"Finish":  func(_ context.Context, r *rig) error { return r.engine.Finish(other, held.Token, engine.Result{}, nil) },
			"Purge":   func(_ context.Context, r *rig) error { return r.engine.Purge(other) },
		} {
			if err := k.do(l.host, fn); !errors.Is(err, object.ErrNoTurn) {
				t.Errorf("%s without a turn: %v", name, err)
			}
		}
		if open := k.open(t, l.host); len(open) != 1 || open[0].Token != held.Token {
			t.Errorf("open are %+v", open)
		}
	}, k)
}

// Proves J5: a turn that cannot store the open mark fails, and stores nothing.
func TestTurnWithoutItsMark(t *testing.T) {
	k := newRigKind(&rigKind{})
	inLives(t, func(t *testing.T, l *lives) {
		err := k.do(l.host, func(ctx context.Context, r *rig) error {
			return r.engine.Turn(context.Background(), func(context.Context) error {
				_, err := r.engine.Begin(ctx, engine.Spec{})
				return err
			})
		})
		if !errors.Is(err, object.ErrNoTurn) {
			t.Errorf("a turn with an execution and without its mark: %v", err)
		}
		if open := k.open(t, l.host); len(open) != 0 {
			t.Errorf("open are %+v", open)
		}
	}, k)
}

// Proves J5: a time of the job type that no alarm can have fails the turn, or the
// activation that asks for it.
func TestTimesThatNoAlarmCanHave(t *testing.T) {
	bad := at(time.Unix(-5, 0))
	nothing := func(context.Context, *rig) error { return nil }
	for name, test := range map[string]struct {
		before, now rigKind
		held        bool // an execution that is held outside is open
	}{
		"nothing is armed":              {now: rigKind{next: bad}},
		"no end is armed":               {now: rigKind{idle: bad}},
		"another time is armed":         {before: rigKind{next: at(noonOf2001)}, now: rigKind{next: bad}},
		"another end is armed":          {before: rigKind{idle: at(noonOf2001)}, now: rigKind{idle: bad}},
		"the end of a lease is armed":   {held: true, now: rigKind{next: bad}},
		"a time before 1970, once more": {before: rigKind{idle: at(noonOf2001)}, now: rigKind{next: bad}},
	} {
		t.Run(name, func(t *testing.T) {
			k := newRigKind(&rigKind{next: test.before.next, idle: test.before.idle})
			inLives(t, func(t *testing.T, l *lives) {
				switch {
				case test.held:
					k.begin(t, l.host, engine.Spec{})
				case test.before.next != nil || test.before.idle != nil:
					if err := k.turn(l.host, nothing); err != nil {
						t.Fatal(err)
					}
				}
				l.crash()
				k.next, k.idle = test.now.next, test.now.idle
				l.begin()
				if err := k.do(l.host, nothing); !errors.Is(err, object.ErrBadAlarmTime) {
					t.Errorf("the activation: %v", err)
				}
				l.crash()
				k.next, k.idle = nil, nil
				l.begin()
			}, k)
		})
	}
	k := newRigKind(&rigKind{})
	inLives(t, func(t *testing.T, l *lives) {
		err := k.turn(l.host, func(context.Context, *rig) error {
			k.next = bad
			return nil
		})
		if !errors.Is(err, object.ErrBadAlarmTime) {
			t.Errorf("the turn: %v", err)
		}
		k.next = nil
	}, k)
}

// noonOf2001 is more than a year after the begin of virtual time.
var noonOf2001 = time.Date(2001, 3, 4, 12, 0, 0, 0, time.UTC)

// Proves S9: an object with an execution that cannot be read answers no call.
func TestExecutionThatCannotBeRead(t *testing.T) {
	k := newRigKind(&rigKind{})
	inLives(t, func(t *testing.T, l *lives) {
		err := k.do(l.host, func(ctx context.Context, r *rig) error { return r.st.Storage().PutBytes(ctx, "x/bad", []byte{99}) })
		if err != nil {
			t.Fatal(err)
		}
		l.crash()
		l.begin()
		if err := k.do(l.host, func(context.Context, *rig) error { return nil }); !errors.Is(err, storage.ErrCorrupt) {
			t.Errorf("a call: %v", err)
		}
	}, k)
}

// Proves J5: an error of the job type fails the turn, which stores nothing.
func TestErrorsOfThePolicy(t *testing.T) {
	no := errors.New("no")
	for name, fail := range map[string]func(k *rigKind){
		"due":    func(k *rigKind) { k.due = func(context.Context, *rig, time.Time) error { return no } },
		"settle": func(k *rigKind) { k.settle = func(context.Context, *rig) error { return no } },
	} {
		k := newRigKind(&rigKind{})
		inLives(t, func(t *testing.T, l *lives) {
			put := func(ctx context.Context, r *rig) error {
				fail(k)
				return r.st.Storage().PutBytes(ctx, "key", nil)
			}
			if err := k.turn(l.host, put); !errors.Is(err, no) {
				t.Errorf("%s: the turn ends with %v", name, err)
			}
			if in, err := l.host.Inspect(t.Context(), k.ID("r")); err != nil || len(in.Keys) > 0 {
				t.Errorf("%s: stored is %+v, %v", name, in, err)
			}
		}, k)
	}
}

// Proves O14: while the host shuts down no execution begins, and the turn is stored all
// the same.
func TestTurnWhileTheHostShutsDown(t *testing.T) {
	k := newRigKind(&rigKind{})
	inLives(t, func(t *testing.T, l *lives) {
		entered, goOn := make(chan struct{}), make(chan struct{})
		ended := make(chan error, 1)
		var begun, settled int
		k.due = func(context.Context, *rig, time.Time) error { begun++; return nil }
		k.settle = func(context.Context, *rig) error { settled++; return nil }
		go func() {
			ended <- k.do(l.host, func(ctx context.Context, r *rig) error {
				close(entered)
				<-goOn
				return r.engine.Turn(ctx, func(ctx context.Context) error {
					if _, err := r.engine.Begin(ctx, engine.Spec{}); !errors.Is(err, engine.ErrClosing) {
						t.Errorf("an execution begins: %v", err)
					}
					return nil
				})
			})
		}()
		<-entered
		over := make(chan error, 1)
		go func() { over <- l.host.Shutdown(context.Background()) }()
		synctest.Wait()
		close(goOn)
		if err := <-ended; err != nil || begun != 0 || settled != 1 {
			t.Errorf("the turn ends with %v, after %d calls of Due and %d of Settle", err, begun, settled)
		}
		if err := <-over; err != nil {
			t.Error(err)
		}
		l.host = nil
	}, k)
}
