package object

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
)

// Options say where a host keeps its objects and how it behaves. The zero value
// with a Dir is fit for production.
type Options struct {
	// Dir is the directory of the store. Required, unless Storage names one.
	Dir string
	// WaitForLock is how long Open waits while another process has the directory
	// open, as during a deploy; then it returns storage.ErrLocked. Default: that of
	// Storage, which is 0, no wait.
	WaitForLock time.Duration
	// Storage shapes the store. Its Dir, Seams and Log are taken from here.
	Storage storage.Options
	// Codec turns arguments, answers and stored values into bytes. It must not
	// change in the life of a store. Default: JSON.
	Codec Codec
	// IdleAfter is how long an object stays in memory without an event.
	// Default: 1 minute.
	IdleAfter time.Duration
	// MaxLive is how many objects may be in memory; beyond it those that were
	// used least recently leave it. Default: 100,000.
	MaxLive int
	// AlarmsInFlight is how many alarms may be under way at a time: their handlers
	// run, or what they wrote is not yet durable. While calls from outside are
	// under way they begin in portions of 16, with a sync of the log between.
	// Default: 2048.
	AlarmsInFlight int
	// EventRetention is how long events are kept. Default: 24 hours.
	EventRetention time.Duration
	// RecoveryConcurrency is how many objects are recovered at a time after
	// Open. Default: 64.
	RecoveryConcurrency int
	// MaxKeyBytes, MaxValueBytes and MaxBatchBytes bound a key, a value and all
	// that one turn writes. Default: 2 KiB, 2 MiB, 16 MiB.
	MaxKeyBytes, MaxValueBytes, MaxBatchBytes int
	// Logger receives what nobody is called back for: recoveries, dead letters,
	// storage errors. Default: slog.Default().
	Logger *slog.Logger
	// Seams are the clock, executor, random source and probe. Zero: production.
	Seams seam.Seams
}

func (o Options) withDefaults() (Options, error) {
	o.Seams = o.Seams.WithDefaults()
	o.Codec = defaultTo[Codec](o.Codec, JSON{})
	o.IdleAfter = defaultTo(o.IdleAfter, time.Minute)
	o.MaxLive = defaultTo(o.MaxLive, 100_000)
	o.AlarmsInFlight = defaultTo(o.AlarmsInFlight, 2048)
	o.EventRetention = defaultTo(o.EventRetention, 24*time.Hour)
	o.RecoveryConcurrency = defaultTo(o.RecoveryConcurrency, 64)
	o.MaxKeyBytes = defaultTo(o.MaxKeyBytes, 2<<10)
	o.MaxValueBytes = defaultTo(o.MaxValueBytes, 2<<20)
	o.MaxBatchBytes = defaultTo(o.MaxBatchBytes, 16<<20)
	o.Logger = defaultTo(o.Logger, slog.Default())
	if o.Dir != "" {
		o.Storage.Dir = o.Dir
	}
	if o.WaitForLock != 0 {
		o.Storage.WaitForLock = o.WaitForLock
	}
	o.Storage.Seams = o.Seams
	o.Storage.Log = o.Logger
	return o, o.validate()
}

func (o Options) validate() error {
	negative := cmp.Or(
		notNegative("WaitForLock", o.WaitForLock), notNegative("IdleAfter", o.IdleAfter), notNegative("EventRetention", o.EventRetention), notNegative("MaxLive", o.MaxLive),
		notNegative("AlarmsInFlight", o.AlarmsInFlight), notNegative("RecoveryConcurrency", o.RecoveryConcurrency),
		notNegative("MaxKeyBytes", o.MaxKeyBytes), notNegative("MaxValueBytes", o.MaxValueBytes), notNegative("MaxBatchBytes", o.MaxBatchBytes),
	)
	switch {
	case o.Storage.Dir == "" && o.Storage.Engine == nil:
		return errors.New("object: Options.Dir is empty: name a directory for the store")
	case negative != nil:
		return fmt.Errorf("object: Options.%w", negative)
	case o.MaxBatchBytes > 32<<20:
		return fmt.Errorf("object: Options.MaxBatchBytes is %d: the greatest is 32 MiB", o.MaxBatchBytes)
	}
	return nil
}

func defaultTo[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}
