package shardlog_test

import (
	"testing"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// The name of a process may have any form, and a log may know an owner that wrote no random bits.
func TestNode(t *testing.T) {
	for owner, want := range map[string]string{"a 00ff": "a", "a": "a", "": "", "x y 00ff": "x y"} {
		if got := (shardlog.State{Owner: owner}).Node(); got != want {
			t.Errorf("the node of %q is %q, want %q", owner, got, want)
		}
	}
}
