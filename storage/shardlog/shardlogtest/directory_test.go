package shardlogtest_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/memlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/shardlogtest"
)

// both is the log in memory with its directory and its blobs, with changes in front of it. Its zero value changes nothing.
type both struct {
	front func(*memlog.Log) shardlogtest.Engine // of the log, and again of the log that comes back
	crash func(*memlog.Log) *memlog.Log         // in place of Crash
}

// config is a new engine as the suite sees it.
func (b both) config() shardlogtest.DirectoryConfig {
	log := memlog.New()
	if b.front == nil {
		b.front = func(l *memlog.Log) shardlogtest.Engine { return l }
	}
	if b.crash == nil {
		b.crash = (*memlog.Log).Crash
	}
	return shardlogtest.DirectoryConfig{
		Engine: b.front(log),
		Restart: func() shardlogtest.Engine {
			log = b.crash(log)
			return b.front(log)
		},
		Rewind: func(shard int, to shardlog.Position) error {
			log.Rewind(shard, to)
			return nil
		},
	}
}

// The log in memory keeps all promises, and so does each that is allowed to behave as these.
func TestHonestDirectories(t *testing.T) {
	for name, b := range map[string]both{
		"memory":                  {},
		"many outcomes unknown":   changes(unsureDirectory),
		"a crash that loses less": {crash: losesLess},
	} {
		t.Run(name, func(t *testing.T) { shardlogtest.RunDirectory(t, b.config()) })
	}
}

// A DirectoryConfig without a field that the suite needs fails each case.
func TestDirectoryConfigNeedsItsFields(t *testing.T) {
	whole := both{}.config()
	for name, c := range map[string]shardlogtest.DirectoryConfig{
		"Engine":  {Restart: whole.Restart, Rewind: whole.Rewind},
		"Restart": {Engine: whole.Engine, Rewind: whole.Rewind},
		"Rewind":  {Engine: whole.Engine, Restart: whole.Restart},
	} {
		for _, k := range shardlogtest.DirectoryCases(c) {
			if found := shardlogtest.Failures(k); len(found) != 1 {
				t.Errorf("without %s case %s has the failures %q", name, k.Name, found)
			}
		}
	}
}

// directoryLiar is a directory that breaks one promise.
type directoryLiar struct {
	lie    string
	caught string // the cases that must fail
	engine both
}

var directoryLiars = slices.Concat(nodeLiars, blobLiars, snapshotLiars, lossLiars, outageLiars)

// Each liar fails the cases that are for its lie.
func TestDirectoryLiars(t *testing.T) {
	for _, l := range directoryLiars {
		t.Run(l.lie, func(t *testing.T) {
			for _, name := range strings.Fields(l.caught) {
				cases := shardlogtest.DirectoryCases(l.engine.config())
				i := slices.IndexFunc(cases, func(k shardlogtest.Case) bool { return k.Name == name })
				if i < 0 {
					t.Fatalf("no case has the name %s", name)
				}
				if found := shardlogtest.Failures(cases[i]); len(found) == 0 {
					t.Errorf("case %s passed", name)
				} else {
					t.Logf("case %s: %.200s", name, found[0])
				}
			}
		})
	}
}

// Each case has a liar that fails it.
func TestEachDirectoryCaseCanFail(t *testing.T) {
	for _, k := range shardlogtest.DirectoryCases(both{}.config()) {
		if !slices.ContainsFunc(directoryLiars, func(l directoryLiar) bool { return slices.Contains(strings.Fields(l.caught), k.Name) }) {
			t.Errorf("no liar is for case %s", k.Name)
		}
	}
}

// unsureDirectory leaves the outcome of two in five calls unknown: one was done, one was not.
func unsureDirectory(o *other) {
	var calls atomic.Uint64
	o.all = func(ctx context.Context, call func(context.Context) error) error {
		switch calls.Add(1) % 5 {
		case 0:
			return errCut
		case 1:
			_ = call(ctx)
			return errCut
		}
		return call(ctx)
	}
}

// losesLess has rows and blobs survive that need not.
func losesLess(l *memlog.Log) *memlog.Log {
	ctx := context.Background()
	look, _ := l.Look(ctx, 0)
	blobs := make(map[int][]string)
	for shard := range used {
		blobs[shard] = listed(l, shard)
	}
	back := l.Crash()
	for _, n := range look.Nodes {
		_, _ = back.Beat(ctx, 0, n)
	}
	for shard, names := range blobs {
		for _, name := range names {
			_ = back.Put(ctx, shard, name, strings.NewReader(name)) // the cases with a crash have such contents
		}
	}
	return back
}

// listed returns the names of the blobs of a shard.
func listed(l *memlog.Log, shard int) (names []string) {
	blobs, _ := l.List(context.Background(), shard)
	for _, b := range blobs {
		names = append(names, b.Name)
	}
	return names
}
