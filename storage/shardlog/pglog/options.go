package pglog

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/holdfast-dev/holdfast/seam"
)

// Options say where the logs are and what keeps them safe. The zero value of each field but DSN is fit for a primary with a
// synchronous standby.
type Options struct {
	// DSN is the connection string of PostgreSQL 15 or newer, as a URL or as words such as host=a,b dbname=x. With several hosts
	// the log goes to the one that takes writes, and after a time-out asks the next host first. It must lead to PostgreSQL
	// itself, because a pooler mixes sessions. Required.
	DSN string
	// Schema is the schema of the tables, one for each cluster. Default "holdfast".
	Schema string
	// Node names this process in application_name, at most 40 bytes. Default "node".
	Node string
	// Lanes is how many appends of different shards run at a time, each on a connection of its own. Default 2, at most 64.
	Lanes int
	// Timeout bounds each statement and each attempt to connect to a host. A call that needs longer has an unknown
	// outcome. Default 5 s.
	Timeout time.Duration
	// SingleMachine says that the loss of PostgreSQL's machine may lose acknowledged records: no standby is asked for.
	// It is for development. Default false.
	SingleMachine bool
	// ReplicatedStorage promises in the operator's name that the storage below PostgreSQL keeps each acknowledged write,
	// as managed services do. Then the standbys, fsync and full_page_writes are not looked at. Default false.
	ReplicatedStorage bool
	// AnyStandby allows * in synchronous_standby_names. Then any client with a replication connection may be the standby,
	// also one that keeps no copy, such as a logical subscriber. Default false.
	AnyStandby bool
	// Log gets settings that are wrong, at most once a minute each, statements that hold up a claim, and a connection that leads to
	// another server than the one before. Default slog.Default().
	Log *slog.Logger
	// Seams are the clock, the goroutines and the random numbers. The zero value means those of production.
	Seams seam.Seams
}

const (
	maxLanes     = 64
	maxNodeBytes = 40 // because application_name has 63, and the purpose of the connection stands there too
)

// withDefaults returns o with its defaults, or the mistake in it.
func (o Options) withDefaults() (Options, error) {
	switch {
	case o.DSN == "":
		return o, errors.New("pglog: Options.DSN is missing")
	case o.Lanes < 0 || o.Lanes > maxLanes:
		return o, fmt.Errorf("pglog: Options.Lanes is %d: give 1 to %d, or 0 for the default", o.Lanes, maxLanes)
	case o.Timeout < 0:
		return o, fmt.Errorf("pglog: Options.Timeout is %v: it must not be negative", o.Timeout)
	case len(o.Node) > maxNodeBytes:
		return o, fmt.Errorf("pglog: Options.Node has %d bytes: give at most %d", len(o.Node), maxNodeBytes)
	}
	o.Schema, o.Node = cmp.Or(o.Schema, "holdfast"), cmp.Or(o.Node, "node")
	o.Lanes, o.Timeout = cmp.Or(o.Lanes, 2), cmp.Or(o.Timeout, 5*time.Second)
	if o.Log == nil {
		o.Log = slog.Default()
	}
	o.Seams = o.Seams.WithDefaults()
	return o, nil
}
