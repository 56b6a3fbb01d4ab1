package shardlogtest

import (
	"fmt"
	"testing"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// Engine is a log with its directory and its blobs.
type Engine interface {
	shardlog.Log
	shardlog.Directory
	shardlog.Blobs
}

// DirectoryConfig is an implementation of Directory and Blobs under test. Engine, Restart and Rewind are required.
type DirectoryConfig struct {
	// Engine is the implementation.
	Engine Engine
	// FirstShard is the first of the shards that are for the suite: none of them was ever used, up to FirstShard+199. Default 0.
	FirstShard int
	// Restart ends the engine as a power loss does, at once, brings it back, and returns the engine to go on with, opened anew as by another
	// process.
	Restart func() Engine
	// Rewind loses the records of a shard after a position, as a fail-over to a replica does that lags behind.
	Rewind func(shard int, to shardlog.Position) error
}

// RunDirectory runs each case for Directory and Blobs as a subtest of its name. The suite removes the rows of all nodes.
func RunDirectory(t *testing.T, c DirectoryConfig) {
	for _, k := range DirectoryCases(c) {
		t.Run(k.Name, func(t *testing.T) { k.Run(t) })
	}
}

// DirectoryCases are the cases for Directory and Blobs, in an order in which they can run. Without a required field of
// DirectoryConfig each of them fails.
func DirectoryCases(c DirectoryConfig) []Case {
	d := &directory{suite: &suite{c: Config{Log: c.Engine}, shard: c.FirstShard}, c: c}
	cases := make([]Case, len(allOfDirectory))
	for i, k := range allOfDirectory {
		cases[i] = Case{k.name, func(t TB) {
			if c.Engine == nil || c.Restart == nil || c.Rewind == nil {
				t.Fatalf("DirectoryConfig needs Engine, Restart and Rewind, because no case is left out")
			}
			k.run(t, d)
		}}
	}
	return cases
}

// allOfDirectory are the cases by name.
var allOfDirectory = []struct {
	name string
	run  func(TB, *directory)
}{
	{"cluster", cluster},
	{"rows", rows},
	{"incarnations", incarnations},
	{"forget", forget},
	{"look", look},
	{"blobs", blobs},
	{"blob-errors", blobErrors},
	{"begin", begin},
	{"begin-refused", beginRefused},
	{"register", register},
	{"register-refused", registerRefused},
	{"snapshots", snapshots},
	{"collect", collect},
	{"collect-refused", collectRefused},
	{"collect-beside", collectBeside},
	{"lost", lost},
	{"late", late},
	{"put-back", putBack},
	{"put-back-refused", putBackRefused},
	{"accept-loss", acceptLoss},
	{"ended", endedDirectory},
	{"durable", durableDirectory},
}

// directory is one run over an implementation of Directory and Blobs.
type directory struct {
	*suite
	c DirectoryConfig
}

// restart cuts the power of the engine. Owners go on with the engine that comes back.
func (d *directory) restart(owners ...*Writer) {
	d.c.Engine = d.c.Restart()
	d.suite.c.Log = d.c.Engine
	for _, w := range owners {
		w.Log = d.c.Engine
	}
}

// again makes a call until its outcome is known.
func again(call func() error) (err error) {
	for range tries {
		if err = call(); !unknown(err) {
			break
		}
	}
	return err
}

// must fails the test unless a call succeeds.
func must(t TB, about string, call func() error) {
	t.Helper()
	if err := again(call); err != nil {
		t.Fatalf("%s: %v", about, err)
	}
}

// node returns a name for a node.
func (d *directory) node(name string) string {
	d.owners++
	return fmt.Sprintf("%s/%d", name, d.owners)
}
