package patterns

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-dev/holdfast/object"
)

// ErrSlow says that a shop has not answered in time.
var ErrSlow = errors.New("the shop has not answered within three seconds")

// Shop asks for a price. It may be slow, and should return soon after ctx has ended.
type Shop func(ctx context.Context, item string) (cents int, err error)

// offer is an item with the lowest price that any caller has found.
type offer struct {
	st    *object.State
	ask   Shop
	cents int
}

// Offers and the calls to them.
type Offers struct {
	*object.Class[offer]
	Ask, Watch *object.Method[none, int]
}

// none stands for no argument.
type none = struct{}

// NewOffers defines offers of a shop.
func NewOffers(ask Shop) *Offers {
	class := object.Define("offer", func(ctx context.Context, st *object.State) (*offer, error) {
		o := &offer{st: st, ask: ask}
		_, err := st.Storage().GetInto(ctx, "cents", &o.cents)
		return o, err
	})
	return &Offers{class, object.Handle(class, "ask", (*offer).now), object.Handle(class, "watch", (*offer).later)}
}

// now asks the shop, and answers with the lowest price so far. Other turns of the offer
// run meanwhile.
func (o *offer) now(ctx context.Context, _ none) (int, error) {
	var cents int
	err := o.st.Release(ctx, func(ctx context.Context) (err error) {
		ctx, cancel := o.st.Driver().Seams().WithDeadline(ctx, o.st.Now().Add(3*time.Second), ErrSlow)
		defer cancel()
		cents, err = o.ask(ctx, o.st.Name())
		return err
	})
	if err != nil {
		return 0, err
	}
	return o.lower(ctx, cents)
}

// lower stores a price if it is lower than that which is stored now.
func (o *offer) lower(ctx context.Context, cents int) (int, error) {
	if o.cents != 0 && o.cents <= cents { // another turn may have found less meanwhile
		return o.cents, nil
	}
	if err := o.st.Storage().Put(ctx, "cents", cents); err != nil {
		return 0, err
	}
	o.cents = cents
	return cents, nil
}

// later answers at once. A goroutine beside the turns asks the shop; it is gone after a
// crash, so the alarm starts it again until there is a price.
func (o *offer) later(ctx context.Context, _ none) (int, error) {
	if err := o.st.SetAlarm(ctx, o.st.Now().Add(time.Minute)); err != nil {
		return 0, err
	}
	return o.cents, o.st.Go(ctx, "ask", func(ctx context.Context) {
		cents, err := o.ask(ctx, o.st.Name())
		if err != nil {
			return // the alarm asks again
		}
		_ = o.st.Do(ctx, func(ctx context.Context) error { // a turn of its own
			if _, err := o.lower(ctx, cents); err != nil {
				return err
			}
			return o.st.DeleteAlarm(ctx)
		})
	})
}

// Alarm asks again.
func (o *offer) Alarm(ctx context.Context, _ object.AlarmInfo) error {
	_, err := o.later(ctx, none{})
	return err
}
