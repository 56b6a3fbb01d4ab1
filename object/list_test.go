package object_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/object"
)

// collect is the keys that a list yields, and the error that is its last element.
func collect(seq iter.Seq2[object.Item, error]) (keys string, err error) {
	for item, e := range seq {
		if err != nil {
			return keys, errors.New("an element follows the error")
		}
		keys, err = keys+item.Key, e
	}
	return keys, err
}

func listed(t *testing.T) *fixture {
	f := newFixture(t).open()
	f.must("a", func(th *thing, ctx context.Context) (any, error) {
		return nil, th.st.Storage().PutBatch(ctx, []object.Entry{{Key: "1"}, {Key: "2"}, {Key: "3"}})
	})
	return f
}

// A list that outlives its turn ends with an error, before its first element, between
// two, or after its last. It never ends as if it were whole.
//
// Case ST8. Proves S4.
func TestListOutlivesItsTurn(t *testing.T) {
	for taken := range 4 {
		f := listed(t)
		var seq iter.Seq2[object.Item, error]
		var next func() (object.Item, error, bool)
		stop := func() {}
		f.must("a", func(th *thing, ctx context.Context) (any, error) {
			seq = th.st.Storage().List(ctx, object.ListOptions{})
			next, stop = iter.Pull2(seq)
			for range taken {
				if _, err, ok := next(); err != nil || !ok {
					t.Errorf("in the turn: %v, %v", err, ok)
				}
			}
			return nil, nil
		})
		if _, err, ok := next(); !errors.Is(err, object.ErrNoTurn) || !ok {
			t.Errorf("after %d elements and the end of the turn: %v, %v", taken, err, ok)
		}
		if _, err, ok := next(); ok {
			t.Errorf("after the error: %v", err)
		}
		stop()
		if keys, err := collect(seq); keys != "" || !errors.Is(err, object.ErrNoTurn) {
			t.Errorf("a new range after the turn: %q, %v", keys, err)
		}
		f.close()
	}
}

// A list ends with ErrReset when its object is deleted meanwhile.
//
// Case ST8. Proves S4.
func TestListOfAResetTurn(t *testing.T) {
	f := listed(t)
	defer f.close()
	deleted := make(chan error, 1)
	defer func() { // before the host closes
		if err := <-deleted; err != nil {
			t.Error(err)
		}
	}()
	_, err := f.call("a", func(th *thing, ctx context.Context) (any, error) {
		for item, err := range th.st.Storage().List(ctx, object.ListOptions{}) {
			switch {
			case err != nil:
				return nil, err
			case item.Key != "1":
				return nil, errors.New("it went on with " + item.Key)
			}
			go func() { deleted <- f.host.Delete(context.WithoutCancel(context.Background()), f.id("a")) }()
			<-ctx.Done()
		}
		return nil, nil
	})
	if !errors.Is(err, object.ErrReset) {
		t.Errorf("got %v", err)
	}
}

// A list can be ranged over again and inside itself. Each range is whole, and sees the
// writes that its turn made before it.
//
// Case ST9. Proves S4.
func TestListStartsAgain(t *testing.T) {
	f := listed(t)
	defer f.close()
	f.must("a", func(th *thing, ctx context.Context) (any, error) {
		s := th.st.Storage()
		for _, o := range []object.ListOptions{{}, {Reverse: true}, {Limit: 3}, {Start: "0"}} {
			seq := s.List(ctx, o)
			want := "123"
			if o.Reverse {
				want = "321"
			}
			for range 3 {
				if keys, err := collect(seq); keys != want || err != nil {
					t.Errorf("%+v: %q, %v", o, keys, err)
				}
			}
			var inner []string
			for range s.List(ctx, o) {
				keys, err := collect(seq)
				if err != nil {
					t.Error(err)
				}
				inner = append(inner, keys)
			}
			if !slices.Equal(inner, []string{want, want, want}) {
				t.Errorf("%+v inside another: %v", o, inner)
			}
		}
		seq := s.List(ctx, object.ListOptions{})
		if err := s.PutBytes(ctx, "4", nil); err != nil {
			return nil, err
		}
		first, err1 := collect(seq)
		second, err2 := collect(seq)
		if first != "123" || second != "1234" || err1 != nil || err2 != nil {
			t.Errorf("around a write: %q, %q, %v, %v", first, second, err1, err2)
		}
		return nil, nil
	})
}

// A negative limit is an error, wherever one can be given; zero is none.
//
// Case ST9. Proves S4.
func TestNegativeLimits(t *testing.T) {
	f := listed(t)
	defer f.close()
	ctx := context.Background()
	list := func(limit int) error {
		_, err := f.call("a", func(th *thing, ctx context.Context) (any, error) {
			_, err := collect(th.st.Storage().List(ctx, object.ListOptions{Limit: limit}))
			return nil, err
		})
		return err
	}
	for what, try := range map[string]func(limit int) error{
		"List": list,
		"Objects": func(limit int) error {
			return second(f.host.Objects(ctx, "thing", object.ObjectsOptions{Limit: limit}))
		},
		"Events": func(limit int) error { return second(f.host.Events(ctx, f.id("a"), 0, limit)) },
	} {
		if err := try(-1); err == nil || !strings.Contains(err.Error(), "must not be negative") {
			t.Errorf("%s(-1): %v", what, err)
		}
		if err := try(0); err != nil {
			t.Errorf("%s(0): %v", what, err)
		}
	}
}
