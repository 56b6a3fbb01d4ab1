package object_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/object"
)

var (
	errUndone = errors.New("undone")
	errPanics = errors.New("panics")
)

// cached is a fixture of objects that keep the number of the rows under "n/" in memory.
func cached(t *testing.T, reloads *int, broken *error) *fixture {
	f := newFixture(t)
	f.handleConstruct(func(ctx context.Context, th *thing) error {
		reload := func(ctx context.Context) error {
			th.n = 0
			for _, err := range th.st.Storage().List(ctx, object.ListOptions{Prefix: "n/"}) {
				if err != nil {
					return err
				}
				th.n++
			}
			*reloads++
			if *broken == errPanics {
				panic(errPanics)
			}
			return *broken
		}
		return errors.Join(th.st.Driver().CacheRows(ctx, "n/", reload), reload(ctx))
	})
	return f.open()
}

// adds puts rows of the cache, as its package does.
func adds(th *thing, ctx context.Context, keys ...string) error {
	for _, key := range keys {
		if err := th.st.Storage().PutBytes(ctx, "n/"+key, nil); err != nil {
			return err
		}
		th.n++
	}
	return nil
}

// Proves S6: rows that an instance keeps in memory are read again when a Transaction that wrote
// is undone, and when a range of them is deleted, and at no other time.
func TestCachedRowsAreReadAgain(t *testing.T) {
	reloads, broken := 0, error(nil)
	f := cached(t, &reloads, &broken)
	defer f.close()
	f.must("a", func(th *thing, ctx context.Context) (any, error) {
		s := th.st.Storage()
		step := func(what string, wantReloads, wantRows int, err error) {
			t.Helper()
			if err != nil || reloads != wantReloads || th.n != wantRows {
				t.Errorf("%s: %d reloads, %d rows in memory, %v; want %d, %d", what, reloads, th.n, err, wantReloads, wantRows)
			}
		}
		undone := func(fn func(ctx context.Context, tx *object.Storage) error) error {
			err := s.Transaction(ctx, func(ctx context.Context, tx *object.Storage) error { return errors.Join(fn(ctx, tx), errUndone) })
			if !errors.Is(err, errUndone) {
				return errors.New("the transaction is not undone")
			}
			return nil
		}
		step("constructed", 1, 0, nil)
		step("added", 1, 2, adds(th, ctx, "1", "2"))
		step("a transaction", 1, 3, s.Transaction(ctx, func(ctx context.Context, _ *object.Storage) error { return adds(th, ctx, "3") }))
		step("undone", 2, 3, undone(func(ctx context.Context, _ *object.Storage) error { return adds(th, ctx, "4", "5") }))
		step("undone without a write", 2, 3, undone(func(context.Context, *object.Storage) error { return nil }))
		step("undone within", 3, 4, s.Transaction(ctx, func(ctx context.Context, _ *object.Storage) error {
			return errors.Join(adds(th, ctx, "4"), undone(func(ctx context.Context, _ *object.Storage) error { return adds(th, ctx, "5") }))
		}))
		step("rows before", 3, 4, s.DeletePrefix(ctx, "m"))
		step("rows behind", 3, 4, s.DeletePrefix(ctx, "n0"))
		step("a part", 4, 3, s.DeletePrefix(ctx, "n/1"))
		step("undone delete", 6, 3, undone(func(ctx context.Context, tx *object.Storage) error { return tx.DeleteAll(ctx) }))
		step("a shorter prefix", 7, 0, s.DeletePrefix(ctx, "n"))
		step("added again", 7, 1, adds(th, ctx, "1"))
		step("all", 8, 0, s.DeleteAll(ctx))
		return nil, nil
	})
}

// Proves S6: an instance with a cache that cannot be read again is reset, and the turn's writes
// are dropped.
func TestCacheThatCannotBeReadResetsTheInstance(t *testing.T) {
	for _, cause := range []error{errUndone, errPanics} {
		reloads, broken := 0, error(nil)
		f := cached(t, &reloads, &broken)
		f.must("a", func(th *thing, ctx context.Context) (any, error) { return nil, adds(th, ctx, "1") })
		_, err := f.call("a", func(th *thing, ctx context.Context) (any, error) {
			if err := adds(th, ctx, "2"); err != nil {
				return nil, err
			}
			broken = cause
			err := th.st.Storage().Transaction(ctx, func(ctx context.Context, _ *object.Storage) error {
				return errors.Join(adds(th, ctx, "3"), errUndone)
			})
			broken = nil
			if !errors.Is(err, errUndone) || !errors.Is(err, cause) {
				t.Error(err)
			}
			return nil, nil
		})
		if !errors.Is(err, object.ErrReset) {
			t.Errorf("the turn ended with %v", err)
		}
		f.must("a", func(th *thing, _ context.Context) (any, error) {
			if th.n != 1 {
				t.Errorf("%d rows are in memory, want 1", th.n)
			}
			return nil, nil
		})
		f.close()
	}
}

// CacheRows takes each row once, in a turn.
func TestCacheRowsRefusesMistakes(t *testing.T) {
	f := newFixture(t).open()
	defer f.close()
	none := func(context.Context) error { return nil }
	th := f.must("a", func(th *thing, ctx context.Context) (any, error) {
		d := th.st.Driver()
		if err := errors.Join(d.CacheRows(ctx, "ab", none), d.CacheRows(ctx, "ac", none)); err != nil {
			t.Error(err)
		}
		for _, prefix := range []string{"ab", "abc", "a", ""} {
			if err := d.CacheRows(ctx, prefix, none); err == nil || !strings.Contains(err.Error(), "overlap") {
				t.Errorf("%q: %v", prefix, err)
			}
		}
		return th, nil
	}).(*thing)
	if err := th.st.Driver().CacheRows(t.Context(), "x", none); !errors.Is(err, object.ErrNoTurn) {
		t.Error(err)
	}
}
