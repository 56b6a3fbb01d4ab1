package shardlogtest

import (
	"fmt"
	"testing"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// Config is an implementation under test. Log, Restart, Base and Lose are required.
type Config struct {
	// Log is the implementation.
	Log shardlog.Log
	// FirstShard is the first of the shards that are for the suite: none of them was ever used, up to FirstShard+199. Default 0.
	FirstShard int
	// Restart ends the engine as a power loss does, at once and in the midst of calls, brings it back, and returns the log to go on with.
	Restart func() shardlog.Log
	// Base puts a base in place of the records of a shard: First is last+1, and chain is before the next record.
	Base func(shard int, last shardlog.Position, chain uint64) error
	// Lose puts a shard into quarantine: State.Lost is where, and a term without an owner begins.
	Lose func(shard int, where string) error
	// Cut has the next Append or Claim lose its connection to the engine at a moment. Default: the suite itself
	// drops that call, or the answer to it, in front of Log.
	Cut func(Moment)
	// Overlaps is how often an old and a new owner append at the same moment. Default: 1000.
	Overlaps int
}

// Moment is where a call is cut off.
type Moment int

// Moments of Config.Cut.
const (
	// Before the engine has the call, so that it does nothing.
	Before Moment = iota
	// After the engine has done the call, so that only the answer is lost.
	After
)

// TB is the part of *testing.T that the suite needs. Errorf may be called from any goroutine, Fatalf from that of the test.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Case is one case of the suite. Each run of it takes new shards.
type Case struct {
	// Name is one or two words, joined by a hyphen.
	Name string
	// Run runs the case. The cases of one Config must not run beside one another.
	Run func(TB)
}

// Run runs each case as a subtest of its name.
func Run(t *testing.T, c Config) {
	for _, k := range Cases(c) {
		t.Run(k.Name, func(t *testing.T) { k.Run(t) })
	}
}

// Cases are the cases for an implementation, in an order in which they can run. Without a required field of Config each of them fails.
func Cases(c Config) []Case {
	s := &suite{c: c, shard: c.FirstShard}
	cases := make([]Case, len(all))
	for i, k := range all {
		cases[i] = Case{k.name, func(t TB) {
			if c.Log == nil || c.Restart == nil || c.Base == nil || c.Lose == nil {
				t.Fatalf("Config needs Log, Restart, Base and Lose, because no case is left out")
			}
			k.run(t, s)
		}}
	}
	return cases
}

// all are the cases by name.
var all = []struct {
	name string
	run  func(TB, *suite)
}{
	{"order", order},
	{"unclaimed", unclaimed},
	{"shards", shards},
	{"payloads", payloads},
	{"read", read},
	{"read-beside", readBeside},
	{"repeat", repeat},
	{"holes", holes},
	{"fence", fence},
	{"pause", pause},
	{"two-terms", twoTerms},
	{"claims", claims},
	{"writers", writers},
	{"same-node", sameNode},
	{"cut-append", cutAppend},
	{"cut-claim", cutClaim},
	{"ended-context", endedContext},
	{"truncate", truncate},
	{"truncate-refused", truncateRefused},
	{"base", base},
	{"quarantine", quarantine},
	{"durable", durable},
	{"durable-states", durableStates},
	{"durable-beside", durableBeside},
}

// suite is one run over the shards of an implementation.
type suite struct {
	c      Config
	shard  int // the next one that is new
	owners int // claims so far
}

// next returns a shard that nothing has used.
func (s *suite) next() int {
	s.shard++
	return s.shard - 1
}

// owner returns a name for one claim of a node. The last digits are those that differ, as of random bits.
func (s *suite) owner(node string) string {
	s.owners++
	return fmt.Sprintf("%s/%032x", node, s.owners)
}

// claim makes a node the owner of a shard.
func (s *suite) claim(t TB, shard int, node string) *Writer {
	t.Helper()
	return Claim(t, s.c.Log, shard, s.owner(node))
}

// restart cuts the power of the engine. Owners go on with the log that comes back.
func (s *suite) restart(owners ...*Writer) {
	s.c.Log = s.c.Restart()
	for _, w := range owners {
		w.Log = s.c.Log
	}
}
