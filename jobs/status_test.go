package jobs

import (
	"errors"
	"strings"
	"testing"
)

// Proves J3: the whole table, and that an illegal move names both ends.
func TestStatusTable(t *testing.T) {
	all := []Status{None, Initializing, Running, Executing, Paused, Stopped, Terminated, Failed, Completed, Cancelled, Stuck}
	legal := map[Status]string{
		None:         "initializing",
		Initializing: "running",
		Running:      "executing paused stopped terminated cancelled",
		Executing:    "running paused stopped terminated failed completed cancelled stuck",
		Paused:       "running stopped terminated cancelled",
		Stopped:      "running terminated",
		Failed:       "running stopped terminated",
		Terminated:   "",
		Completed:    "running terminated",
		Cancelled:    "running terminated",
		Stuck:        "running executing paused terminated cancelled",
	}
	for _, from := range all {
		for _, to := range all {
			want := to != None && strings.Contains(" "+legal[from]+" ", " "+string(to)+" ")
			err := from.Move(to)
			if (err == nil) != want {
				t.Errorf("%s to %s: legal %v, want %v", from, to, err == nil, want)
			}
			var move *MoveError
			if err != nil && (!errors.Is(err, ErrIllegalMove) || !errors.As(err, &move) || move.From != from || move.To != to) {
				t.Errorf("%s to %s: got %v", from, to, err)
			}
			if err != nil && (!strings.Contains(err.Error(), from.String()) || !strings.Contains(err.Error(), to.String())) {
				t.Errorf("%q does not name both ends", err)
			}
		}
	}
	if Status("asleep").Valid() || !Failed.Valid() {
		t.Error("Valid is wrong")
	}
}
