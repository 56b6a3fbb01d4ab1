package object_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// docs/OBJECTS.md shows the code of this file.

// Parcel is an object: one for each parcel, named by its number.
type Parcel struct {
	st    *object.State
	scans int // how many are stored; a copy of the key "scans"
}

// NewParcel makes a parcel in memory from its stored rows.
func NewParcel(ctx context.Context, st *object.State) (*Parcel, error) {
	p := &Parcel{st: st}
	_, err := st.Storage().GetInto(ctx, "scans", &p.scans)
	return p, err
}

// Scan stores where the parcel is. Both rows are one commit.
func (p *Parcel) Scan(ctx context.Context, place string) (int, error) {
	n := p.scans + 1
	err := p.st.Storage().PutBatch(ctx, []object.Entry{
		{Key: "scans", Value: n},
		{Key: fmt.Sprintf("place/%06d", n), Value: place},
	})
	if err != nil {
		return 0, err
	}
	p.scans = n // after the write, because a write that is refused leaves memory as it is
	return n, nil
}

// Parcels is the class, and Scan a method of it.
var (
	Parcels = object.Define("parcel", NewParcel, object.ClassOptions{OnDeadLetter: givenUp})
	Scan    = object.Handle(Parcels, "scan", (*Parcel).Scan)
)

// runParcels is a whole program.
func runParcels(ctx context.Context, dir string) error {
	host, err := object.Open(object.Options{Dir: dir}, Parcels)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := host.Shutdown(ctx); err != nil {
			log.Print(err)
		}
	}()
	scans, err := Scan.Call(ctx, host, "RR-17", "Bern")
	fmt.Println(scans, err)
	return err
}

// The second process finds the rows of the first.
func Example_parcel() {
	dir, err := os.MkdirTemp("", "parcels")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	for range 2 {
		if err := runParcels(context.Background(), dir); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// 1 <nil>
	// 2 <nil>
}

// Places lists the last places, the newest first.
var Places = object.Handle(Parcels, "places", func(p *Parcel, ctx context.Context, limit int) ([]string, error) {
	var places []string
	for item, err := range p.st.Storage().List(ctx, object.ListOptions{Prefix: "place/", Reverse: true, Limit: limit}) {
		var place string
		if err == nil {
			err = p.st.Driver().Codec().Decode(item.Value, &place)
		}
		if err != nil {
			return nil, err
		}
		places = append(places, place)
	}
	return places, nil
})

// Expect sets the alarm: the parcel should arrive within d.
var Expect = object.Handle(Parcels, "expect", func(p *Parcel, ctx context.Context, d time.Duration) (time.Time, error) {
	at := p.st.Now().Add(d)
	return at, p.st.SetAlarm(ctx, at)
})

// Alarm runs at that time or later.
func (p *Parcel) Alarm(ctx context.Context, info object.AlarmInfo) error {
	err := complain(ctx, p.st.Name())
	switch {
	case errors.Is(err, ErrNoSuchParcel):
		return object.Permanent(err) // a dead letter at once
	case errors.Is(err, ErrBusy):
		return object.RetryAfter(time.Minute, err) // instead of after 2 s
	case err != nil:
		return err // tried again
	}
	return p.st.Emit(ctx, "late", info.Attempt) // the end of the alarm is in the same commit
}

// Errors of the carrier.
var (
	ErrNoSuchParcel = errors.New("no such parcel")
	ErrBusy         = errors.New("the carrier is busy")
)

// deadLetters has the alarms that were given up.
var deadLetters = make(chan object.DeadLetter, 16)

// givenUp is told of an alarm that is not tried any more.
func givenUp(_ context.Context, d object.DeadLetter) { deadLetters <- d }

// complain tells the carrier that a parcel is late.
func complain(_ context.Context, parcel string) error {
	if !strings.HasPrefix(parcel, "RR-") {
		return ErrNoSuchParcel
	}
	return nil
}

// parcelHost opens a host over a store in memory.
func parcelHost() *object.Host {
	host, err := object.Open(object.Options{
		Storage: storage.Options{Engine: memstore.New()},
		Logger:  slog.New(slog.DiscardHandler),
	}, Parcels)
	if err != nil {
		log.Fatal(err)
	}
	return host
}

// A list of keys, from the last to the first.
func Example_parcelPlaces() {
	ctx, host := context.Background(), parcelHost()
	for _, place := range []string{"Bern", "Olten", "Basel"} {
		if _, err := Scan.Call(ctx, host, "RR-17", place); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(Places.Call(ctx, host, "RR-17", 2))
	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: [Basel Olten] <nil>
}

// scan scans a parcel and repeats the call until it has an answer or ctx ends. All
// repeats have one key, so the parcel is scanned once.
func scan(ctx context.Context, host *object.Host, parcel, place, key string) (int, error) {
	for wait := 50 * time.Millisecond; ; wait *= 2 {
		try, cancel := context.WithTimeout(ctx, 5*time.Second)
		n, err := Scan.Call(try, host, parcel, place, object.Idempotent(key, 24*time.Hour))
		again := object.Retryable(err) || try.Err() != nil // it may have run: the key knows
		cancel()
		if err == nil || !again || ctx.Err() != nil {
			return n, err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
}

// A repeat gets the answer of the first call.
func Example_parcelIdempotent() {
	ctx, host := context.Background(), parcelHost()
	fmt.Println(scan(ctx, host, "RR-17", "Bern", "scanner 4, number 81"))
	fmt.Println(scan(ctx, host, "RR-17", "Bern", "scanner 4, number 81"))
	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// 1 <nil>
	// 1 <nil>
}

// followParcel handles each event of a parcel, from where it was left. save stores the
// number of the last event that was handled.
func followParcel(ctx context.Context, host *object.Host, parcel string, last uint64, save func(uint64) error) error {
	for e, err := range host.Watch(ctx, Parcels.ID(parcel), last) {
		if err != nil { // of ctx, or of a host that ends
			return err
		}
		fmt.Printf("%s at attempt %s\n", e.Kind, e.Data)
		if err := save(e.Seq); err != nil {
			return err
		}
	}
	return nil
}

// An event is seen when its commit is durable.
func Example_parcelEvents() {
	ctx, host := context.Background(), parcelHost()
	if _, err := Expect.Call(ctx, host, "RR-17", 10*time.Millisecond); err != nil {
		log.Fatal(err)
	}
	enough := errors.New("seen enough")
	fmt.Println(followParcel(ctx, host, "RR-17", 0, func(uint64) error { return enough }))
	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// late at attempt 1
	// seen enough
}

// lookAround prints the parcels of a host and the alarms that were given up.
func lookAround(ctx context.Context, host *object.Host) error {
	parcels, err := host.Objects(ctx, Parcels.Name(), object.ObjectsOptions{Limit: 100}) // the next page begins after the last name
	if err != nil {
		return err
	}
	for _, o := range parcels {
		in, err := host.Inspect(ctx, o.ID)
		if err != nil {
			return err
		}
		fmt.Println(o.ID, len(in.Keys), "keys, alarm set:", in.Alarm != nil)
	}
	dead, err := host.DeadLetters(ctx, object.DeadLettersOptions{Class: Parcels.Name()}) // the next page begins at dead.Next
	for _, d := range dead.Letters {
		fmt.Println(d.ID, d.Reason, d.LastError)
		err = errors.Join(err, host.DiscardDeadLetter(ctx, d.ID, d.Seq)) // or ReplayDeadLetter
	}
	return err
}

// A look from outside runs no code of the objects.
func Example_parcelInspect() {
	ctx, host := context.Background(), parcelHost()
	if _, err := Scan.Call(ctx, host, "RR-17", "Bern"); err != nil {
		log.Fatal(err)
	}
	if _, err := Expect.Call(ctx, host, "XX-18", 0); err != nil {
		log.Fatal(err)
	}
	<-deadLetters
	fmt.Println(lookAround(ctx, host))
	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// parcel/RR-17 2 keys, alarm set: false
	// parcel/XX-18 permanent error no such parcel
	// <nil>
}

// TestParcelSurvivesCrashes kills the process at each point where a crash can matter. A
// client that repeats its calls finds each place once.
func TestParcelSurvivesCrashes(t *testing.T) {
	harness.Exhaust(t, func(s *harness.Sim) {
		s.Host(Parcels)
		for _, place := range []string{"Bern", "Olten"} {
			s.OK(s.Retry(func() error {
				_, err := Scan.Call(s.Context(), s, "RR-17", place, object.Idempotent(place, time.Hour))
				return err
			}))
		}
		s.Finally("each place is there once", func() error {
			places, err := Places.Call(s.Context(), s, "RR-17", 0)
			if err == nil && !slices.Equal(places, []string{"Olten", "Bern"}) {
				err = fmt.Errorf("places are %v", places)
			}
			return err
		})
	}, harness.NoTornBatch, harness.NoLostAck)
}
