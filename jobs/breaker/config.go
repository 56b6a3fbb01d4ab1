package breaker

import (
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object"
)

// Config is the definition of a Breaker.
type Config struct {
	// Name is the name of the class, 1 to 255 bytes.
	Name string
	// Failures is how many failures within Window open the breaker. They are counted in
	// memory, so a restart begins anew. Default: 5. At most 1,000.
	Failures int
	// Window is how long a failure counts. Default: 1 minute.
	Window time.Duration
	// OpenFor is how long the breaker stays open before it lets probes through. A probe that
	// has not ended after it counts as a failure. Default: 30 s.
	OpenFor time.Duration
	// Probes is how many calls a half open breaker lets through, and how many of them must
	// succeed to close it. Default: 1. At most 1,000.
	Probes int
	// Failure says which errors are failures of the dependency. Default: each error but those
	// of object.Permanent, because they are about the call and not about the dependency. A
	// panic is always a failure. A call that its caller gave up, with context.Canceled or the
	// cause of its context as its error, is neither a failure nor a success.
	Failure func(err error) bool
	// Class shapes the objects. IdleAfter is Window by default, because an object that leaves
	// memory forgets the failures so far.
	Class object.ClassOptions
}

func (c Config) withDefaults() Config {
	if c.Failures == 0 {
		c.Failures = 5
	}
	if c.Window == 0 {
		c.Window = time.Minute
	}
	if c.OpenFor == 0 {
		c.OpenFor = 30 * time.Second
	}
	if c.Probes == 0 {
		c.Probes = 1
	}
	c.Class.Internal = true // calls by name must not open or close it
	if c.Failure == nil {
		c.Failure = func(err error) bool { return !object.IsPermanent(err) }
	}
	if c.Class.IdleAfter == 0 {
		c.Class.IdleAfter = c.Window
	}
	return c
}

// most bounds Failures and Probes, because the times of both are in memory.
const most = 1000

// Validate reports the first mistake in c, as a jobs.ErrInvalid. object.Open does so too.
func (c Config) Validate() error {
	c = c.withDefaults()
	switch {
	case c.Failures < 0 || c.Failures > most:
		return c.mistake("Failures is %d: it must be from 1 to %d", c.Failures, most)
	case c.Probes < 0 || c.Probes > most:
		return c.mistake("Probes is %d: it must be from 1 to %d", c.Probes, most)
	case c.Window < 0:
		return c.mistake("Window is %v: it must be positive", c.Window)
	case c.OpenFor < 0:
		return c.mistake("OpenFor is %v: it must be positive", c.OpenFor)
	}
	return nil
}

func (c Config) mistake(format string, args ...any) error {
	return fmt.Errorf("breaker: %s: %w: %s", c.Name, jobs.ErrInvalid, fmt.Sprintf(format, args...))
}
