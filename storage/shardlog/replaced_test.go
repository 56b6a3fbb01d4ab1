package shardlog_test

import (
	"testing"

	"github.com/holdfast-dev/holdfast/storage/memstore"
	"github.com/holdfast-dev/holdfast/storage/shardlog/memlog"
)

// An engine tells a take-over from another node by the name of the owner before, without the random bits of its claim. The
// first claim is none.
//
// Proves A8 over a log: it tells the loss of an owner from a crash.
func TestReplaced(t *testing.T) {
	log := memlog.New()
	for _, c := range []struct {
		owner string
		want  bool
	}{
		{"a", false}, {"a", false}, {"b", true}, {"b", false}, {"b 1", true}, {"b", true}, {"a", true}, {"a", false},
	} {
		e := start(t, options(log, c.owner), memstore.New())
		if got := e.Replaced(); got != c.want {
			t.Errorf("owner %q: Replaced is %t", c.owner, got)
		}
		closeEngine(t, e)
	}
}
