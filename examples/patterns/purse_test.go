package patterns

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// purse is an account with the commonest bug of all: a transfer that is two commits.
type purse struct {
	st    *object.State
	cents int
}

func loadPurse(ctx context.Context, st *object.State) (*purse, error) {
	p := &purse{st: st}
	_, err := st.Storage().GetInto(ctx, "cents", &p.cents)
	return p, err
}

var (
	purses = object.Define("purse", loadPurse)
	take   = object.Handle(purses, "take", (*purse).take)
	give   = object.Handle(purses, "give", (*purse).give)
)

func (p *purse) take(ctx context.Context, cents int) (int, error) {
	p.cents += cents
	return p.cents, p.st.Storage().Put(ctx, "cents", p.cents)
}

func (p *purse) give(ctx context.Context, t Transfer) (int, error) {
	if t.Cents <= 0 || t.Cents > p.cents {
		return 0, ErrFunds
	}
	if _, err := take.Call(ctx, p.st, t.To, t.Cents); err != nil { // a commit, made before that of this turn
		return 0, err
	}
	p.cents -= t.Cents
	return p.cents, p.st.Storage().Put(ctx, "cents", p.cents)
}

// giveWithKey is give with an idempotency key for the other purse. A crash does the
// same harm to it, because the client does not ask again.
func (p *purse) giveWithKey(ctx context.Context, t Transfer) (int, error) {
	if _, err := take.Call(ctx, p.st, t.To, t.Cents, object.Idempotent("gift", month)); err != nil {
		return 0, err
	}
	p.cents -= t.Cents
	return p.cents, p.st.Storage().Put(ctx, "cents", p.cents)
}

// giveOwnFirst commits its own side first. A crash loses the money then.
func (p *purse) giveOwnFirst(ctx context.Context, t Transfer) (int, error) {
	p.cents -= t.Cents
	if err := p.st.Storage().Put(ctx, "cents", p.cents); err != nil {
		return 0, err
	}
	if err := p.st.Sync(ctx); err != nil {
		return 0, err
	}
	_, err := take.Call(ctx, p.st, t.To, t.Cents)
	return p.cents, err
}

var (
	giveWithKey  = object.Handle(purses, "giveWithKey", (*purse).giveWithKey)
	giveOwnFirst = object.Handle(purses, "giveOwnFirst", (*purse).giveOwnFirst)
)

// giveAndFail fails after the call.
func (p *purse) giveAndFail(ctx context.Context, t Transfer) (int, error) {
	if _, err := take.Call(ctx, p.st, t.To, t.Cents); err != nil {
		return 0, err
	}
	return 0, ErrFunds
}

var giveAndFail = object.Handle(purses, "giveAndFail", (*purse).giveAndFail)

// A call stays made if the turn that made it fails.
func TestFailedTurnKeepsItsCall(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		s.Host(purses)
		_, err := giveAndFail.Call(s.Context(), s, "alice", Transfer{"bob", 30})
		var cents int
		_, bad := harness.Stored(s.Store(), purses.ID("bob"), "cents", &cents)
		s.Always("bob has the money", errors.Is(err, ErrFunds) && bad == nil && cents == 30, err, bad, cents)
	})
}

// gift is the scenario of a transfer between two purses.
func gift(give *object.Method[Transfer, int]) harness.Scenario {
	return func(s *harness.Sim) {
		s.Host(purses)
		for _, name := range []string{"alice", "bob"} {
			s.OK(s.Retry(func() error {
				_, err := take.Call(s.Context(), s, name, 100, object.Idempotent("open", time.Hour))
				return err
			}))
		}
		s.Must(give.Call(s.Context(), s, "alice", Transfer{"bob", 30}))
		s.Finally("no money is made or lost", func() error { return has200(s.Store()) })
	}
}

func has200(store *storage.Store) error {
	total := 0
	for _, name := range []string{"alice", "bob"} {
		var cents int
		if _, err := harness.Stored(store, purses.ID(name), "cents", &cents); err != nil {
			return err
		}
		total += cents
	}
	if total != 200 {
		return fmt.Errorf("there are %d cents, want 200", total)
	}
	return nil
}

// The crash test of a transfer that is two commits finds its mistake. Without a crash
// there is nothing to find.
func TestTwoCommitsAreFound(t *testing.T) {
	for _, c := range []struct {
		name    string
		give    *object.Method[Transfer, int]
		problem string
	}{
		{"the other first", give, "no money is made or lost: there are 230 cents, want 200"},
		{"with a key", giveWithKey, "no money is made or lost: there are 230 cents, want 200"},
		{"its own first", giveOwnFirst, "no money is made or lost: there are 170 cents, want 200"},
	} {
		t.Run(c.name, func(t *testing.T) {
			harness.Run(t, gift(c.give))
			f := found(t, gift(c.give))
			if f.Problem != c.problem || f.Promise != "the test's own: no money is made or lost" {
				t.Errorf("found something else:\n%v", f)
			}
			if c.give == give {
				isShown(t, excerpt(f, 3))
			}
		})
	}
}
