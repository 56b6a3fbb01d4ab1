package workflow

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/jobs/internal/history"
	"github.com/holdfast-dev/holdfast/object"
)

// Proves F12. The Data of a dead letter has at most MaxDeadData bytes: where the names need one more, it
// has the first half of them.
func TestNamesOfADeadLetter(t *testing.T) {
	const bare = len(`{"steps":["",""]}`)
	for _, c := range []struct{ bytes, names int }{{object.MaxDeadData, 2}, {object.MaxDeadData + 1, 1}} {
		var d deadData
		long := strings.Repeat("x", c.bytes-bare-1)
		raw, err := d.name([]history.Entry{{Kind: history.Step, Name: "a"}, {Kind: history.Step, Name: long}})
		if err != nil || !slices.Equal(d.Steps, []string{"a", long}[:c.names]) || c.names == 2 && len(raw) != c.bytes {
			t.Errorf("of %d bytes there are %d names and %d bytes, %v", c.bytes, len(d.Steps), len(raw), err)
		}
		var back deadData
		if err := json.Unmarshal(raw, &back); err != nil || !slices.Equal(back.Steps, d.Steps) {
			t.Errorf("the data do not decode to the %d names: %v", len(d.Steps), err)
		}
	}
}

// Completed are steps and Atomics without an error, in the function and in branches, and no undos.
func TestCompletedSteps(t *testing.T) {
	var d deadData
	_, err := d.name([]history.Entry{
		{Kind: history.Step, Name: "a"}, {Kind: history.Step, Name: "b", Flags: history.Failed}, {Kind: history.Try, Name: "c"},
		{Kind: history.Atomic, Scope: "items[0]/", Name: "d"}, {Kind: history.Sleep}, {Kind: history.Step, Scope: undoPath, Name: "a"},
	})
	if want := []string{"a", "items[0]/d"}; err != nil || !slices.Equal(d.Steps, want) {
		t.Errorf("completed are %q, want %q, %v", d.Steps, want, err)
	}
}
