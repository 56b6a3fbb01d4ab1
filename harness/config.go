package harness

import (
	"fmt"
	"strings"
	"time"
)

// Config holds the options of a run.
type Config struct {
	seed      uint64
	depth     int
	budget    int
	workers   int
	settle    time.Duration
	downtime  time.Duration
	watchdog  time.Duration // limit of a step that waits unseen, see machine.Crew.Watch
	shards    int
	newDisk   func() disk
	store     string // the name of the disks that newDisk makes
	host      []hostOption
	checks    []check
	gateCheck bool // NoLostAck
	sharing   bool // NoSharedMemory
	callCheck bool // NoCallBeforeCommit
	endCheck  bool // OneEnd
	shadow    bool // NoTornBatch

	faults     Faults // that may strike from the start
	reportFile string // where Config.record writes; empty: nowhere
}

const (
	storeMap    = "map"
	storePebble = "pebble"
	storeLog    = "log"
	storeTaken  = "takeover"
)

// Option changes how a scenario is run, or adds a checker.
type Option func(*Config)

func newConfig(opts []Option) *Config {
	c := &Config{
		depth:    1,
		budget:   200_000,
		workers:  1,
		settle:   2 * time.Minute,
		watchdog: 10 * time.Second,
		shards:   4,
	}
	MapStore()(c)
	for _, o := range opts {
		o(c)
	}
	return c
}

// Depth is how many crashes one schedule may have: 1, which is the default, or 2 for
// all pairs of points.
func Depth(n int) Option { return func(c *Config) { c.depth = n } }

// Seed chooses the schedule. With 0, the default, tasks run first come, first
// served; with any other they are chosen at random and switch at points.
func Seed(n uint64) Option { return func(c *Config) { c.seed = n } }

// Budget bounds the number of schedules. Beyond it schedules are chosen evenly from each
// kind of point, and the report tells the fraction covered. Default: 200,000.
func Budget(schedules int) Option { return func(c *Config) { c.budget = schedules } }

// Workers is how many runs go on at a time. With more than 1 the scenario must be
// safe for that: nothing that one run changes may be seen by another. Default: 1.
func Workers(n int) Option { return func(c *Config) { c.workers = max(n, 1) } }

// Settle is how much virtual time passes after the scenario, without crashes,
// before the final checks. Default: 2 minutes.
func Settle(d time.Duration) Option { return func(c *Config) { c.settle = d } }

// Downtime is how much virtual time passes between a planned crash and the next
// start. Default: 0.
func Downtime(d time.Duration) Option { return func(c *Config) { c.downtime = d } }

// Shards is the number of shards of the store. Default: 4, since each start
// looks at each shard.
func Shards(n int) Option { return func(c *Config) { c.shards = n } }

// MapStore keeps the store in a map. It is the default, and the fastest.
func MapStore() Option { return func(c *Config) { c.newDisk, c.store = newMapDisk, storeMap } }

// PebbleStore keeps the store in Pebble, on a file system in memory that loses unsynced
// writes at a crash.
func PebbleStore() Option { return func(c *Config) { c.newDisk, c.store = newPebbleDisk, storePebble } }

// LogStore keeps the store in a log (package shardlog). Each process is another machine that takes the log over with an empty view or
// an old one, so nothing is left of the one before but the log. An append that was under way has landed, or a part of its
// batches has, or none.
func LogStore() Option { return func(c *Config) { c.newDisk, c.store = newLogDisk, storeLog } }

// TakeoverStore is LogStore with another name for each process, so that what a crash cuts off counts as the loss of an owner (A8, R4). With
// LogStore all have the name of one node that is started again, and a crash counts as a crash.
func TakeoverStore() Option {
	return func(c *Config) { c.newDisk, c.store = newTakeoverDisk, storeTaken }
}

// words are the options that Replay needs, for people.
func (c *Config) words() string {
	words := []string{"store " + c.store}
	plain := newConfig(nil)
	if c.shards != plain.shards {
		words = append(words, count(c.shards, "shard"))
	}
	if c.settle != plain.settle {
		words = append(words, "settles for "+c.settle.String())
	}
	if c.downtime != 0 {
		words = append(words, "downtime "+c.downtime.String())
	}
	if len(c.host) > 0 {
		words = append(words, "HostOptions")
	}
	if c.faults != (Faults{}) {
		words = append(words, fmt.Sprintf("Faults %+v", c.faults))
	}
	var checks []string
	if c.gateCheck {
		checks = append(checks, "NoLostAck")
	}
	if c.sharing {
		checks = append(checks, "NoSharedMemory")
	}
	if c.callCheck {
		checks = append(checks, "NoCallBeforeCommit")
	}
	for _, ch := range c.checks {
		checks = append(checks, ch.name)
	}
	if len(checks) > 0 {
		words = append(words, "checked by "+strings.Join(checks, ", "))
	}
	return "with the options of this test: " + strings.Join(words, "; ")
}
