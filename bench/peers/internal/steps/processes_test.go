package steps

import (
	"testing"
	"time"
)

// TestParse takes the fields by number, whatever the name of the program.
func TestParse(t *testing.T) {
	const rest = " S 7 2 3 4 5 6 7 8 9 10 250 50 30 40 20 0 9 0"
	want := stat{id: 42, parent: 7, used: 3 * time.Second, usedByEnded: 700 * time.Millisecond}
	for _, name := range []string{"(server)", "(a server)", "(a) 1 2 (b)"} {
		if got, err := parse("42 " + name + rest); err != nil || got != want {
			t.Errorf("%s is %+v, %v; want %+v", name, got, err, want)
		}
	}
	for _, text := range []string{"", "42 server S 1", ") 42 (", "42 (server) S 7 2 3 4 5 6 7 8 9 10 250 50 30", "42 (server) S 7 2 3 4 5 6 7 8 9 10 250 x 30 40"} {
		if got, err := parse(text); err == nil {
			t.Errorf("%q is %+v", text, got)
		}
	}
}

// TestSet takes the ids of a flag, and gives them back.
func TestSet(t *testing.T) {
	var p Processes
	if err := p.Set("12,345"); err != nil || p.String() != "12,345" {
		t.Errorf("12,345 is taken as %s, %v", &p, err)
	}
	if err := p.Set("12,"); err == nil {
		t.Error("an empty id is taken")
	}
}
