package journal_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/object/journal"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// Measured is the event of today. Before, the event was a bare number in Fahrenheit.
type Measured struct{ Celsius float64 }

// upcast makes an event of today from the bytes of an older one.
func upcast(version int, data []byte) (Measured, error) {
	if version != 0 {
		return Measured{}, fmt.Errorf("there was no version %d", version)
	}
	var fahrenheit float64
	err := json.Unmarshal(data, &fahrenheit)
	return Measured{(fahrenheit - 32) / 1.8}, err
}

// A deploy changes the type of the events. The rows of before stay as they are.
func ExampleJournal_Append() {
	type thermometer struct {
		warm func(ctx context.Context, degrees float64) (float64, error)
	}
	define := func(attach func(context.Context, *object.State) (*thermometer, error)) (*object.Class[thermometer], *object.Method[float64, float64]) {
		class := object.Define("thermometer", attach)
		return class, object.Handle(class, "warm", func(t *thermometer, ctx context.Context, degrees float64) (float64, error) {
			return t.warm(ctx, degrees)
		})
	}
	before, measureBefore := define(func(ctx context.Context, st *object.State) (*thermometer, error) {
		j, err := journal.Attach(ctx, st, journal.Options[float64, float64]{
			Apply: func(most, fahrenheit float64) (float64, error) { return max(most, (fahrenheit-32)/1.8), nil },
		})
		return &thermometer{func(ctx context.Context, fahrenheit float64) (float64, error) {
			err := j.Append(ctx, fahrenheit)
			return j.State(), err
		}}, err
	})
	today, measure := define(func(ctx context.Context, st *object.State) (*thermometer, error) {
		j, err := journal.Attach(ctx, st, journal.Options[float64, Measured]{
			Apply:   func(most float64, e Measured) (float64, error) { return max(most, e.Celsius), nil },
			Version: 1, Upcast: upcast,
		})
		return &thermometer{func(ctx context.Context, celsius float64) (float64, error) {
			err := j.Append(ctx, Measured{celsius})
			return j.State(), err
		}}, err
	})

	ctx, disk := context.Background(), memstore.New()
	old, err := object.Open(object.Options{Storage: storage.Options{Engine: disk}}, before)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(measureBefore.Call(ctx, old, "roof", 68))
	if err := old.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	host, err := object.Open(object.Options{Storage: storage.Options{Engine: disk.Crash(0)}}, today)
	if err != nil {
		log.Fatal(err)
	}
	defer host.Shutdown(ctx)
	fmt.Println(measure.Call(ctx, host, "roof", 12))
	fmt.Println(measure.Call(ctx, host, "roof", 21.5))
	// Output:
	// 20 <nil>
	// 20 <nil>
	// 21.5 <nil>
}
