package shardlogtest_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/memlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/shardlogtest"
)

// config describes the log in memory to the suite.
func config() shardlogtest.Config {
	log := memlog.New()
	return shardlogtest.Config{
		Log: log,
		Restart: func() shardlog.Log {
			log = log.Crash()
			return log
		},
		Base: func(shard int, last shardlog.Position, chain uint64) error {
			log.SetBase(shard, last, chain)
			return nil
		},
		Lose: func(shard int, where string) error {
			log.SetLost(shard, where)
			return nil
		},
	}
}

// Proves N1: one test runs the suite over the log in memory.
func TestLog(t *testing.T) { shardlogtest.Run(t, config()) }

// Outside of a test, Cases are run one after another.
func ExampleCases() {
	failed := 0
	for _, k := range shardlogtest.Cases(config()) {
		for _, message := range shardlogtest.Failures(k) {
			fmt.Println(k.Name, message)
			failed++
		}
	}
	fmt.Println(failed)
	// Output:
	// 0
}

// Failures of a case tell that an engine breaks its promise, here one that forgets all at a power loss.
func ExampleFailures() {
	c := config()
	c.Restart = func() shardlog.Log { return memlog.New() }
	cases := shardlogtest.Cases(c)
	durable := cases[slices.IndexFunc(cases, func(k shardlogtest.Case) bool { return k.Name == "durable" })]
	fmt.Println(len(shardlogtest.Failures(durable)) > 0)
	// Output:
	// true
}

// noted prints the failures of a test.
type noted struct{}

func (noted) Helper()                           {}
func (noted) Errorf(format string, args ...any) { fmt.Printf(format+"\n", args...) }
func (noted) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// Tests of an engine own a shard by Claim, and see by Records that its log is whole.
func ExampleClaim() {
	log := memlog.New()
	w := shardlogtest.Claim(noted{}, log, 7, "node/1")
	fmt.Println(w.Append("one"), w.Append("two"))
	for _, r := range shardlogtest.Records(noted{}, log, 7) {
		fmt.Println(r.At, r.Term, string(r.Payload))
	}
	fmt.Println(shardlogtest.Head(noted{}, log, 7).Last)
	// Output:
	// <nil> <nil>
	// 1 1 one
	// 2 1 two
	// 2
}
