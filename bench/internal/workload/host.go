// Package workload holds the measured operations, on hosts with objects, alarms and
// jobs. The Go benchmarks, the rows of holdfast-bench and the scale scenarios run the
// same ones.
package workload

import (
	"context"
	"errors"
	"log/slog"
	"strconv"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/object"
)

// Host is a host on a directory, with counts of writes and syncs.
type Host struct {
	*object.Host
	Disk *measure.Disk
}

// OpenHost opens a host as a program does, with real syncs.
func OpenHost(dir string, o object.Options, defs ...object.Definition) (*Host, error) {
	disk := measure.NewDisk()
	o.Dir = dir
	o.Storage.Pebble.FS = disk
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	h, err := object.Open(o, defs...)
	if err != nil {
		return nil, err
	}
	return &Host{h, disk}, nil
}

// Meters count the costs of the host's commits.
func (h *Host) Meters() measure.Meters {
	m := h.Disk.Meters()
	m["commits"] = func() uint64 { return uint64(h.Store().Applied()) }
	return m
}

// Close shuts the host down.
func (h *Host) Close() error { return h.Shutdown(context.Background()) }

// Durable waits until all that was committed is on disk.
func (h *Host) Durable() error { return h.Store().WaitDurable(h.Store().Applied()) }

// Names are those of the first n objects of a workload.
func Names(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = Name(i)
	}
	return out
}

// Name is the name of object i, so that names sort as their numbers do.
func Name(i int) string {
	const width = 8
	s := strconv.Itoa(i)
	if len(s) >= width {
		return s
	}
	return "00000000"[:width-len(s)] + s
}

// join closes the parts that a failed constructor had opened and returns its error.
func join(err error, close func() error) error { return errors.Join(err, close()) }
