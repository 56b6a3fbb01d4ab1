package workload

import (
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// A node is silent at the last of the looks at one beat that fit into Silence, one LookEvery after another.
func TestSilenceIsThatOfTheLog(t *testing.T) {
	var s shardlog.Silence
	rows := []shardlog.Node{{ID: "a", Incarnation: 1, Beat: 7}}
	looks := 0
	for at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC); !s.Silent("a"); at = at.Add(shardlog.LookEvery) {
		s.Looked(at, at, rows)
		if looks++; looks > 100 {
			t.Fatal("100 looks at one beat make no silence")
		}
	}
	if got := time.Duration(looks) * shardlog.LookEvery; got != Silence {
		t.Errorf("%d looks in %v make a silence, and Silence is %v", looks, got, Silence)
	}
}

// A term more than one a fail-over is false.
func TestFalseTerms(t *testing.T) {
	for _, c := range []struct {
		began, now      uint64
		failovers, want int
	}{{1, 1, 0, 0}, {1, 21, 20, 0}, {1, 22, 20, 1}, {7, 9, 0, 2}} {
		if got := falseTerms(c.began, c.now, c.failovers); got != c.want {
			t.Errorf("from term %d to %d with %d fail-overs: %d false terms, want %d", c.began, c.now, c.failovers, got, c.want)
		}
	}
}

// The node that serves is the one that has answered lately and that the other one follows.
func TestServer(t *testing.T) {
	a, b := &nodeProcess{nodeConfig: nodeConfig{ID: "a"}}, &nodeProcess{nodeConfig: nodeConfig{ID: "b"}}
	n := &Nodes{all: [2]*nodeProcess{a, b}}
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(s int) time.Time { return begin.Add(time.Duration(s) * time.Second) }
	for step, c := range []struct {
		line nodeLine
		want string
	}{
		{nodeLine{a, "answered", at(1)}, ""},   // nothing follows it
		{nodeLine{b, "follows a", at(2)}, "a"}, // now b does
		{nodeLine{b, "answered", at(3)}, ""},   // b has taken over
		{nodeLine{a, "answered", at(4)}, ""},   // an answer of before that comes late
		{nodeLine{a, "follows b", at(5)}, "b"},
		{nodeLine{b, "follows a", at(6)}, ""}, // each waits behind the other
	} {
		c.line.take()
		got := ""
		if i, is := n.server(begin); is {
			got = n.all[i].ID
		}
		if got != c.want {
			t.Errorf("step %d, node %s says %q: %q serves, want %q", step, c.line.from.ID, c.line.text, got, c.want)
		}
	}
	nodeLine{b, "answered", at(7)}.take()
	if _, is := n.server(at(7)); is {
		t.Error("an answer serves that is as old as the time since which it is asked for")
	}
}
