package alarm

import (
	"errors"
	"time"

	"github.com/holdfast-dev/holdfast/seam"
)

// Config holds the source and the consumer of a Scheduler's alarms. Shards, Source and
// Fire are required.
type Config struct {
	// Seams are the clock and the executor. The zero value is production.
	Seams seam.Seams

	// Shards is how many shards the index has.
	Shards int

	// Source reads the index.
	Source Source

	// Fire is given entries that are due, as tasks for the host. The slice is
	// valid during the call only. It is called from one task at a time, without
	// any lock of the Scheduler's; it must not block for long, because other
	// alarms wait for it, and must not call Stop. Each entry is the host's
	// until Done.
	Fire func([]Entry)

	// OnError is told of an error of Source, which has stopped the Scheduler.
	// It is called at most once. Nil means no call.
	OnError func(error)

	// InFlight is how many entries may be fired and not yet done. Zero means 1024.
	InFlight int

	// LookAhead is how many entries of a shard one read brings into memory; up
	// to twice as many are held. Zero means 256.
	LookAhead int

	// Batch is the most entries that one Fire is given. Zero means 128.
	Batch int

	// Recheck is the longest time the Scheduler sleeps while an alarm is held,
	// and so the longest by which an alarm can be late because the wall clock
	// jumped ahead of the timers, as after the suspension of a machine. Zero
	// means one minute.
	Recheck time.Duration
}

func (c Config) withDefaults() Config {
	c.Seams = c.Seams.WithDefaults()
	if c.InFlight == 0 {
		c.InFlight = 1024
	}
	if c.LookAhead == 0 {
		c.LookAhead = 256
	}
	if c.Batch == 0 {
		c.Batch = 128
	}
	if c.Recheck == 0 {
		c.Recheck = time.Minute
	}
	return c
}

func (c Config) validate() error {
	switch {
	case c.Shards <= 0:
		return errors.New("alarm: config: shards is not positive")
	case c.Source == nil:
		return errors.New("alarm: config: source is missing")
	case c.Fire == nil:
		return errors.New("alarm: config: fire is missing")
	case c.InFlight < 0 || c.LookAhead < 0 || c.Batch < 0 || c.Recheck < 0:
		return errors.New("alarm: config: a limit is negative")
	}
	return nil
}
