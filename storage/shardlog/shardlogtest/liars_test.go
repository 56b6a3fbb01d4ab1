package shardlogtest_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/storage/shardlog/shardlogtest"
)

// liar is a log that breaks one promise.
type liar struct {
	lie    string
	caught string // the cases that must fail
	engine engine
}

var liars = slices.Concat(appendLiars, claimLiars, readLiars, headLiars, crashLiars)

// Each liar fails the cases that are for its lie.
func TestLiars(t *testing.T) {
	for _, l := range liars {
		t.Run(l.lie, func(t *testing.T) {
			for _, name := range strings.Fields(l.caught) {
				found := shardlogtest.Failures(caseOf(t, l.engine, name))
				if len(found) == 0 {
					t.Errorf("case %s passed", name)
				} else {
					t.Logf("case %s: %.200s", name, found[0])
				}
			}
		})
	}
}

// Each case has a liar that fails it, because a case that cannot fail is worth nothing.
func TestEachCaseCanFail(t *testing.T) {
	for _, k := range shardlogtest.Cases(engine{}.config()) {
		if !slices.ContainsFunc(liars, func(l liar) bool { return slices.Contains(strings.Fields(l.caught), k.Name) }) {
			t.Errorf("no liar is for case %s", k.Name)
		}
	}
}

// caseOf is a case for a new engine.
func caseOf(t *testing.T, e engine, name string) shardlogtest.Case {
	t.Helper()
	cases := shardlogtest.Cases(e.config())
	i := slices.IndexFunc(cases, func(k shardlogtest.Case) bool { return k.Name == name })
	if i < 0 {
		t.Fatalf("no case has the name %s", name)
	}
	return cases[i]
}
