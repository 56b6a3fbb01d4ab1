package engine_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// parcel is a job that is done once: it delivers itself, and is completed then.
type parcel struct{ *engine.Job }

// parcelType is the Type of a parcel.
type parcelType struct {
	st  *object.State
	due time.Time // of its delivery, as stored under "due"
}

func loadParcel(ctx context.Context, st *object.State) (*parcel, error) {
	t := &parcelType{st: st}
	if _, err := st.Storage().GetInto(ctx, "due", &t.due); err != nil {
		return nil, err
	}
	job, err := engine.NewJob(ctx, st, engine.JobOptions{
		Type: "parcel", Stuck: true, Retention: jobs.Retention{Completed: 7 * 24 * time.Hour, Cancelled: time.Hour},
	}, t)
	return &parcel{job}, err
}

func (t *parcelType) Prepare(context.Context, jobs.Run) (engine.Work, error) {
	return func(context.Context, engine.Execution) (engine.Result, error) {
		return engine.Result{Wish: engine.Complete, Reason: "delivered"}, nil
	}, nil
}

func (t *parcelType) Next() time.Time { return t.due }

func (t *parcelType) Ended(context.Context, engine.Execution, engine.Outcome) error { return nil }

// Retiring tells of a parcel that is about to go.
func (t *parcelType) Retiring(ctx context.Context) error { return t.st.Emit(ctx, "retiring", nil) }

var (
	parcels = object.Define("parcel", loadParcel, engine.ClassOptions(object.ClassOptions{}))

	// send makes a parcel that waits for deliver, and is paused for an hour.
	send = object.Handle(parcels, "send", func(p *parcel, ctx context.Context, _ struct{}) (jobs.Meta, error) {
		err := p.Turn(ctx, p.Create)
		if err == nil {
			err = p.PauseUntil(ctx, "waits for the van", p.Now().Add(time.Hour))
		}
		return p.Meta(), err
	})
	deliver = object.Handle(parcels, "deliver", func(p *parcel, ctx context.Context, _ struct{}) (jobs.Meta, error) {
		err := p.Resume(ctx)
		if err == nil {
			err = p.Turn(ctx, func(ctx context.Context) error { return p.RunNow(ctx, "the van") })
		}
		return p.Meta(), err
	})
	cancel = object.Handle(parcels, "cancel", func(p *parcel, ctx context.Context, reason string) (jobs.Meta, error) {
		err := p.Turn(ctx, func(ctx context.Context) error { return p.EndNow(ctx, jobs.Cancelled, reason, nil) })
		return p.Meta(), err
	})
	look = object.Handle(parcels, "look", func(p *parcel, _ context.Context, _ struct{}) (jobs.Meta, error) { return p.Meta(), nil })
)

// A job that is done once is completed by the wish of its work, and kept for a week.
func ExampleJob() {
	host, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}}, parcels)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	show := func(meta jobs.Meta, err error) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s is %s: %s\n", meta.ID, meta.Status, meta.StopReason)
		if !meta.RetireAt.IsZero() {
			fmt.Println("kept for", meta.RetireAt.Sub(meta.EndedAt))
		}
	}
	for _, id := range []string{"4711", "4712"} {
		show(send.Call(ctx, host, id, struct{}{}))
	}
	show(cancel.Call(ctx, host, "4712", "not wanted"))
	if _, err := deliver.Call(ctx, host, "4711", struct{}{}); err != nil {
		log.Fatal(err)
	}
	for e, err := range host.Watch(ctx, parcels.ID("4711"), 0) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("event", e.Kind)
		if e.Kind == jobs.EventCompleted {
			break
		}
	}
	show(look.Call(ctx, host, "4711", struct{}{}))
	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// 4711 is paused: waits for the van
	// 4712 is paused: waits for the van
	// 4712 is cancelled: not wanted
	// kept for 1h0m0s
	// event created
	// event paused
	// event resumed
	// event start
	// event success
	// event completed
	// 4711 is completed: delivered
	// kept for 168h0m0s
}
