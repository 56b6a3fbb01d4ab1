package object_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// parcel is a message to a bin.
type parcel struct {
	N     int
	Delay time.Duration
	Kind  string
}

// bin is an object that is deleted again and again, with the messages to it.
type bin struct{ st *object.State }

// bins is a class of bins, and one of objects that send to them.
type bins struct {
	bin, sender *object.Class[bin]
	take        *object.Method[parcel, int]
	send        *object.Method[[]parcel, int]
}

func newBins(s *harness.Sim) *bins {
	make := func(_ context.Context, st *object.State) (*bin, error) { return &bin{st}, nil }
	p := &bins{bin: object.Define("bin", make, exactly(3)), sender: object.Define("sender", make)}
	p.take = object.Handle(p.bin, "take", func(b *bin, ctx context.Context, l parcel) (int, error) {
		switch l.Kind {
		case "fails":
			return 0, errOnPurpose
		case "lends":
			if err := b.st.Release(ctx, func(ctx context.Context) error { return s.SleepContext(ctx, time.Second) }); err != nil {
				return 0, err
			}
		}
		return 0, b.st.Storage().Put(ctx, fmt.Sprint(l.N), 1)
	})
	p.send = object.Handle(p.sender, "send", func(b *bin, ctx context.Context, ls []parcel) (int, error) {
		for _, l := range ls {
			if err := p.take.Send(ctx, b.st, "b", l, object.After(l.Delay)); err != nil {
				return 0, err
			}
		}
		return 0, nil
	})
	return p
}

// deletions has three clients send to a bin, and two others delete it with its messages at the
// moments at which they are handled.
func deletions(parked bool) harness.Scenario {
	return func(s *harness.Sim) {
		p := newBins(s)
		if parked {
			s.Host(p.sender)
		} else {
			s.Host(p.sender, p.bin)
		}
		for i := range 3 {
			s.Go(fmt.Sprint("sender ", i), func() {
				for j := range 4 {
					s.OK(s.Retry(func() error {
						_, err := p.send.Call(s.Context(), s, fmt.Sprint("s", i), []parcel{
							{N: j}, {N: j, Kind: "fails"}, {N: j, Delay: 5 * time.Second}, {N: j, Delay: 5 * time.Second, Kind: "fails"},
							{N: j, Delay: 5 * time.Second, Kind: "lends"}, {N: j, Kind: "lends"},
						})
						return err
					}))
					s.Sleep(5 * time.Second)
				}
			})
		}
		for i := range 2 {
			s.Go(fmt.Sprint("deleter ", i), func() {
				for range 6 {
					s.OK(s.Retry(func() error {
						return s.WithHost(func(ctx context.Context, h *object.Host) error {
							return h.Delete(ctx, p.bin.ID("b"), object.WithMessages())
						})
					}))
					s.Sleep(5 * time.Second)
				}
			})
		}
		s.Advance(2 * time.Minute)
		s.OK(s.Retry(func() error {
			return s.WithHost(func(_ context.Context, h *object.Host) error { return counted(h, p.bin.ID("b")) })
		}))
	}
}

// counted checks that the counts of messages in memory are those of the store, which must be
// sound.
func counted(h *object.Host, to storage.ID) error {
	n, err := underWay(h.Store())
	if err = errors.Join(err, h.Store().Check()); err != nil {
		return err
	}
	later, err := h.Store().CountLater(to, n+1)
	if stored, timed := object.StoredCount(h), object.LaterCount(h, to); stored != n || timed != later {
		return fmt.Errorf("%d messages are counted, %d with a time, but %d are stored, %d with a time", stored, timed, n, later)
	}
	return err
}

// Proves M4, S12. Delete with messages beside senders, retries and delayed messages, at the moments
// at which they are due, leaves no row behind and counts none twice, over any schedule and
// any crash. So it does for a class that is not registered.
func TestDeleteWithMessagesBesideSenders(t *testing.T) {
	for _, parked := range []bool{false, true} {
		t.Run(fmt.Sprint("parked ", parked), func(t *testing.T) {
			for seed := range uint64(4) {
				t.Run(fmt.Sprint("seed ", seed+1), func(t *testing.T) {
					harness.Exhaust(t, deletions(parked), harness.Seed(seed+1), crashes.Budget(100),
						harness.AllowFaults(harness.Faults{DupMessage: 2, LateMessage: 2}), harness.NoLostAck, harness.NoTornBatch)
				})
			}
		})
	}
}
