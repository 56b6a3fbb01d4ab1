package object_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// Shipment is a job type: it keeps the number of its dead letter while it is stuck.
type Shipment struct{ state *object.State }

// giveUp marks the shipment as stuck. Mark and letter are one commit.
func (s *Shipment) giveUp(ctx context.Context, cause string) (uint64, error) {
	seq, err := s.state.Driver().Bury(ctx, object.DeadLetter{
		Kind: "shipment", Verb: "retry", Attempts: 3, LastError: cause, Reason: "attempts",
		Data: json.RawMessage(`{"address":"Main Street 1"}`),
	})
	if err != nil {
		return 0, err
	}
	return seq, s.state.Storage().Put(ctx, "stuck", seq)
}

// retry lets a stuck shipment go on, and takes its letter away.
func (s *Shipment) retry(ctx context.Context, _ struct{}) (bool, error) {
	var seq uint64
	stuck, err := s.state.Storage().GetInto(ctx, "stuck", &seq)
	if err != nil || !stuck {
		return false, err
	}
	return true, errors.Join(s.state.Driver().Exhume(ctx, seq), s.state.Storage().Remove(ctx, "stuck"))
}

var (
	shipments = object.Define("shipment", func(_ context.Context, st *object.State) (*Shipment, error) { return &Shipment{st}, nil })
	giveUp    = object.Handle(shipments, "giveUp", (*Shipment).giveUp)
	retry     = object.Handle(shipments, "retry", (*Shipment).retry)
)

// A job type lists its dead work beside the dead letters of alarms. Its own verb acts on
// the letter, because the job has rows of its own that must change with it.
func ExampleDriver_Bury() {
	ctx := context.Background()
	host, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}}, shipments)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := giveUp.Call(ctx, host, "17", "no such street"); err != nil {
		log.Fatal(err)
	}
	page, err := host.DeadLetters(ctx, object.DeadLettersOptions{Kind: "shipment"})
	if err != nil {
		log.Fatal(err)
	}
	for _, d := range page.Letters {
		fmt.Println(d.ID, d.Kind, d.LastError, string(d.Data))
		err := host.ReplayDeadLetter(ctx, d.ID, d.Seq)
		fmt.Println(errors.Is(err, object.ErrUseVerb), d.Verb)
	}

	if _, err := retry.Call(ctx, host, "17", struct{}{}); err != nil {
		log.Fatal(err)
	}
	page, err = host.DeadLetters(ctx, object.DeadLettersOptions{Kind: "shipment"})
	fmt.Println(len(page.Letters), err)
	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// shipment/17 shipment no such street {"address":"Main Street 1"}
	// true retry
	// 0 <nil>
}
