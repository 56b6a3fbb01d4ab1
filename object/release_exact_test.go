package object_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/object"
)

// Proves O2: after Release a handler has its object for itself again, also if no other
// turn ran meanwhile.
func TestTurnAfterReleaseIsAlone(t *testing.T) {
	for _, visited := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t).open()
			defer f.close()
			f.must("a", nothing)
			var wg sync.WaitGroup
			inside := 0
			enter := func() {
				if inside++; inside != 1 {
					t.Errorf("O2: %d turns of one object at a time", inside)
				}
				time.Sleep(time.Minute)
				inside--
			}
			wg.Go(func() {
				f.must("a", func(th *thing, ctx context.Context) (any, error) {
					err := th.st.Release(ctx, func(context.Context) error { time.Sleep(time.Minute); return nil })
					enter()
					return nil, err
				})
			})
			if visited {
				time.Sleep(time.Second)
				f.must("a", nothing)
			}
			time.Sleep(90 * time.Second)
			for range 3 {
				wg.Go(func() { f.must("a", func(*thing, context.Context) (any, error) { enter(); return nil, nil }) })
			}
			wg.Wait()
		})
	}
}

// Proves O6, O8: a turn undoes its first write and then lends its object out. It goes on
// with the object that other turns have stored meanwhile.
func TestWriteAfterOthersHaveStoredTheObject(t *testing.T) {
	f := newFixture(t).open()
	defer f.close()
	f.must("a", func(th *thing, ctx context.Context) (any, error) {
		s := th.st.Storage()
		err := s.Transaction(ctx, func(ctx context.Context, tx *object.Storage) error {
			return errors.Join(tx.PutBytes(ctx, "undone", nil), errOnPurpose)
		})
		if !errors.Is(err, errOnPurpose) {
			return nil, err
		}
		err = th.st.Release(ctx, func(context.Context) error { _, err := f.call("a", put("theirs", "1")); return err })
		return nil, errors.Join(err, s.PutBytes(ctx, "own", []byte("2")))
	})
	if f.stored("a", "theirs") != "1" || f.stored("a", "own") != "2" || f.stored("a", "undone") != "" {
		t.Errorf("O6: stored: %q, %q", f.stored("a", "theirs"), f.stored("a", "own"))
	}
	if err := f.host.Store().Check(); err != nil {
		t.Error(err)
	}
}

// Proves S6: a transaction in which a panic comes up is undone, also if the handler goes on.
func TestPanicOfATransactionIsUndone(t *testing.T) {
	f := newFixture(t).open()
	defer f.close()
	f.must("a", func(th *thing, ctx context.Context) (any, error) {
		s := th.st.Storage()
		func() {
			defer func() { _ = recover() }()
			_ = s.Transaction(ctx, func(ctx context.Context, tx *object.Storage) error {
				if err := tx.PutBytes(ctx, "undone", nil); err != nil {
					return err
				}
				panic("boom")
			})
			t.Error("S6: the panic has not come out")
		}()
		return nil, s.PutBytes(ctx, "kept", nil)
	})
	in, err := f.host.Inspect(context.Background(), f.id("a"))
	if err != nil || len(in.Keys) != 1 || in.Keys[0].Key != "kept" {
		t.Errorf("S6: stored: %+v, %v", in.Keys, err)
	}
}

// Proves S6, O4: a verb that would commit a part of a transaction is refused in it.
func TestNoCommitInATransaction(t *testing.T) {
	f := newFixture(t).open()
	defer f.close()
	for name, verb := range map[string]func(ctx context.Context, st *object.State) error{
		"Sync": func(ctx context.Context, st *object.State) error { return st.Sync(ctx) },
		"Release": func(ctx context.Context, st *object.State) error {
			return st.Release(ctx, func(context.Context) error { return nil })
		},
		"Await": func(ctx context.Context, st *object.State) error { return st.Await(ctx, nil) },
	} {
		before := f.host.Store().Applied()
		_, err := f.call("a", func(th *thing, ctx context.Context) (any, error) {
			return nil, th.st.Storage().Transaction(ctx, func(ctx context.Context, tx *object.Storage) error {
				return errors.Join(tx.PutBytes(ctx, "k", nil), verb(ctx, th.st))
			})
		})
		if err == nil || err.Error() != "thing/a: object: sync inside a transaction" || f.host.Store().Applied() != before {
			t.Errorf("S6: %s: %v", name, err)
		}
	}
}
