package harness

import (
	"context"
	"errors"
	"io"
	"log/slog"

	"github.com/holdfast-dev/holdfast/object"
)

var errNoHost = errors.New("harness: the process runs no host: start it with Sim.Host")

// hostOption adjusts the options of a simulated host.
type hostOption = func(*object.Options)

// HostOptions adjusts the options that each host is opened with. It must leave the
// store and the seams alone, because the simulation provides them.
func HostOptions(adjust func(*object.Options)) Option {
	return func(c *Config) { c.host = append(c.host, adjust) }
}

// Host opens a host with the definitions. After each crash the next process
// opens it again with the same, or with those of WithCode.
func (s *Sim) Host(defs ...object.Definition) {
	s.defs = defs
	s.Boot(func(_ context.Context, p *Process) error {
		o := object.Options{
			Storage: p.Store,
			Seams:   p.Seams,
			Logger:  slog.New(slog.NewTextHandler(io.Discard, nil)),
		}
		for _, adjust := range s.cfg.host {
			adjust(&o)
		}
		host, err := object.Open(o, s.defs...)
		if err == nil {
			s.host = host
		}
		return err
	})
}

// WithHost runs fn with the host of the living process, as a call from outside:
// for listing, inspecting, deleting. Clients may call it.
func (s *Sim) WithHost(fn func(ctx context.Context, h *object.Host) error) error {
	return s.Call("host", func(ctx context.Context) error {
		if s.host == nil {
			return errNoHost
		}
		return fn(ctx, s.host)
	})
}

// Invoke implements object.Caller: it is how a scenario, or a client, calls an
// object. Time moves only while nothing else is left to do. A call without a reply for ten
// minutes of virtual time fails the scenario: use Advance before a call that waits longer.
// From the third crash on, the limit is three hours, because work that was cut off by
// crashes in a row is held back (A8).
func (s *Sim) Invoke(ctx context.Context, r *object.Request) error {
	return s.Call(r.ID().String(), func(context.Context) error {
		if s.host == nil {
			return errNoHost
		}
		return s.host.Invoke(ctx, r)
	})
}
