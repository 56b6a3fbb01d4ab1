package shardlog_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	_ "github.com/holdfast-dev/holdfast/internal/testing/seeds" // the tests draw the same inputs in each run
	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// looker makes the looks of one process. Each takes no time, unless a test says so.
type looker struct {
	shardlog.Silence
	now time.Time
}

func newLooker() *looker { return &looker{now: time.Unix(100, 0)} }

// node is the row of node a.
func node(incarnation, beat uint64) []shardlog.Node {
	return []shardlog.Node{{ID: "a", Incarnation: incarnation, Beat: beat}}
}

// looks makes n looks, each LookEvery after the one before.
func (l *looker) looks(n int, nodes []shardlog.Node) {
	for range n {
		l.after(shardlog.LookEvery, nodes)
	}
}

// after makes a look after a time.
func (l *looker) after(d time.Duration, nodes []shardlog.Node) {
	l.now = l.now.Add(d)
	l.Looked(l.now, l.now, nodes)
}

// fails makes a look after a time that fails at once.
func (l *looker) fails(d time.Duration) {
	l.now = l.now.Add(d)
	l.Failed(l.now, l.now)
}

// is compares whether node a is silent.
func (l *looker) is(t *testing.T, about string, want bool) {
	t.Helper()
	if l.Silent("a") != want {
		t.Errorf("%s the node is silent: %v, want %v", about, !want, want)
	}
}

// twoSides checks that the n-th look makes the node silent, and the one before does not.
func (l *looker) twoSides(t *testing.T, about string, n int, nodes []shardlog.Node) {
	t.Helper()
	l.looks(n-1, nodes)
	l.is(t, fmt.Sprintf("%s, after %d looks", about, n-1), false)
	l.looks(1, nodes)
	l.is(t, fmt.Sprintf("%s, after %d looks", about, n), true)
}

func TestSilenceTakesFiveLooks(t *testing.T) {
	l := newLooker()
	l.is(t, "before the first look", false)
	l.twoSides(t, "from the first look on", 5, node(1, 7))
	l.looks(1, node(1, 8))
	l.is(t, "with a beat", false)
	l.twoSides(t, "after a beat", 4, node(1, 8)) // its look was the first of five
	l.looks(1, node(1, 7))
	l.is(t, "with a lower beat", false)
	l.looks(1, node(2, 7))
	l.twoSides(t, "after a restart with the same beat", 4, node(2, 7))
	l.looks(4, node(2, 8))
	l.looks(1, node(3, 8))
	l.is(t, "with a restart in the last look", false)
}

// The time between the answer to a look and the next one counts, however long each takes.
func TestLooksThatComeEarlyDoNotCount(t *testing.T) {
	for _, k := range []struct {
		apart time.Duration
		want  bool
	}{{shardlog.LookEvery - 1, false}, {shardlog.LookEvery, true}} {
		l := newLooker()
		for range 5 {
			began := l.now.Add(k.apart)
			l.now = began.Add(300 * time.Millisecond)
			l.Looked(began, l.now, node(1, 7))
		}
		l.is(t, fmt.Sprintf("after looks %v apart", k.apart), k.want)
	}
	l := newLooker()
	l.looks(4, node(1, 7))
	for range 20 { // the first that counts is that after 500 ms
		l.after(shardlog.LookEvery/20, node(1, 7))
	}
	l.is(t, "after many looks within 500 ms", true)

	l = newLooker()
	l.looks(4, node(1, 7))
	l.after(1, node(1, 8))
	l.looks(3, node(1, 8))
	l.is(t, "after an early look with another beat and three more", false)
	l.looks(1, node(1, 8))
	l.is(t, "after an early look with another beat and four more", true)
}

func TestObservationsBeginAnewAfterASecond(t *testing.T) {
	const ms = time.Millisecond
	for _, k := range []struct {
		about string
		fails func(l *looker)
		takes int // looks, or 0 if the node is silent still
	}{
		{"nothing", func(*looker) {}, 0},
		{"a failure for less than a second", func(l *looker) { l.fails(1000*ms - 1) }, 0},
		{"a failure for a second", func(l *looker) { l.fails(1000 * ms) }, 10},
		{"several failures for a second", func(l *looker) { l.fails(400 * ms); l.fails(400 * ms); l.fails(200 * ms) }, 10},
		{"a failure that took a second", func(l *looker) {
			l.Failed(l.now.Add(100*ms), l.now.Add(1000*ms))
			l.now = l.now.Add(1000 * ms)
		}, 10},
		{"two failures with a look between them", func(l *looker) { l.fails(999 * ms); l.after(0, node(1, 7)); l.fails(999 * ms) }, 0},
	} {
		l := newLooker()
		l.looks(5, node(1, 7))
		k.fails(l)
		l.is(t, "after "+k.about, k.takes == 0)
		if k.takes > 0 {
			l.twoSides(t, "after "+k.about, k.takes, node(1, 7))
		}
	}

	// The look that succeeds may be the one that shows that a second is over.
	for _, k := range []struct {
		answer time.Duration
		want   bool
	}{{1000*ms - 1, true}, {1000 * ms, false}} {
		l := newLooker()
		l.looks(5, node(1, 7))
		l.fails(100 * ms)
		l.Looked(l.now, l.now.Add(k.answer-100*ms), node(1, 7))
		l.is(t, fmt.Sprintf("after a failure and an answer %v after the last", k.answer), k.want)
	}

	// A slow answer is no failure.
	l := newLooker()
	for range 5 {
		l.after(3*time.Second, node(1, 7))
	}
	l.is(t, "after five looks that are 3 s apart", true)
}

func TestFailuresBeforeTheFirstLook(t *testing.T) {
	for _, k := range []struct {
		second time.Duration
		takes  int
	}{{time.Second - 1, 5}, {time.Second, 10}} {
		l := newLooker()
		l.fails(0)
		l.fails(k.second)
		l.Looked(l.now, l.now, node(1, 7))
		l.is(t, "at the first look", false)
		l.twoSides(t, fmt.Sprintf("after failures for %v", k.second), k.takes-1, node(1, 7))
	}
}

// A node that has beaten since an outage, or has come since, takes five looks.
func TestNodesThatAreBackTakeFiveLooks(t *testing.T) {
	outage := func() *looker {
		l := newLooker()
		l.looks(5, node(1, 7))
		l.fails(time.Second)
		return l
	}
	l := outage()
	l.looks(1, node(1, 8)) // may be a beat of before
	l.twoSides(t, "with a beat in the first look", 9, node(1, 8))
	l = outage()
	l.looks(9, node(1, 8))
	l.looks(1, node(1, 9))
	l.twoSides(t, "with a beat since", 4, node(1, 9))
	l = outage()
	l.looks(1, nil)
	l.twoSides(t, "with a row since", 5, node(1, 7))
	l = outage()
	l.twoSides(t, "without a row since", 10, nil)
}

func TestNodesWithoutARow(t *testing.T) {
	l := newLooker()
	l.twoSides(t, "without a row", 5, nil)
	l.looks(1, node(1, 1))
	l.is(t, "with its first row", false)
	l.twoSides(t, "with its first row", 4, node(1, 1))
	l.looks(1, nil)
	l.is(t, "at the first look without its row", false)
	l.twoSides(t, "without its row any more", 4, nil)

	l = newLooker()
	l.looks(5, node(1, 1))
	if l.Silent("other") != true || l.Silent("a") != true {
		t.Errorf("two silent nodes, one of them without a row, are silent: %v, %v", l.Silent("a"), l.Silent("other"))
	}
	l.looks(1, node(1, 2))
	if l.Silent("other") != true || l.Silent("a") != false {
		t.Errorf("the beat of one node has changed another")
	}
}

func TestHintMakesANodeSilent(t *testing.T) {
	l := newLooker()
	l.Hint("a") // before the first look
	l.looks(1, node(1, 7))
	l.is(t, "after a hint before the first look", false)
	l.Hint("b")
	l.Hint("")
	l.is(t, "after a hint about others", false)
	if l.Silent("b") {
		t.Errorf("a hint has made a node without a row silent")
	}
	l.Hint("a")
	l.is(t, "after a hint", true)
	l.after(1, node(1, 7))
	l.is(t, "after a hint and the same beat", true)
	l.after(1, node(1, 8))
	l.is(t, "after a hint and a beat", false)
	l.twoSides(t, "after a hint and a beat", 4, node(1, 8))
	l.looks(1, node(1, 9))
	l.Hint("a")
	l.looks(1, node(2, 9))
	l.is(t, "after a hint and a restart", false)
	l.Hint("a")
	l.fails(time.Second)
	l.is(t, "after a hint and an outage", false)
	l.Hint("a")
	l.looks(9, node(2, 9))
	l.is(t, "after an outage with a hint in it", false)
	l.looks(1, nil)
	l.Hint("a")
	l.is(t, "after a hint about a node whose row is gone", false)
}

// event is one entry of the history that the model of Silence keeps.
type event struct {
	kind         string // look, fail or hint
	began, ended time.Time
	nodes        map[string]shardlog.Node
	id           string // of a hint
}

// modelSilent decides by the whole history, from the beginning, whether a node is silent.
func modelSilent(history []event, id string) bool {
	anew := false
	history, anew = sinceOutage(history)
	var shown shardlog.Node // in the last look
	var counted time.Time
	looks, enough, first := 0, 5, true
	for _, e := range history {
		row := e.nodes[id]
		switch {
		case e.kind == "hint" && e.id == id && !first && shown.ID != "":
			looks = max(looks, enough)
		case e.kind != "look":
		case first:
			shown, counted, looks, first = row, e.ended, 1, false
			if anew {
				enough = 10
			}
		case row.Incarnation != shown.Incarnation || row.Beat != shown.Beat:
			shown, counted, looks, enough = row, e.ended, 1, 5
		case e.began.Sub(counted) >= 500*time.Millisecond:
			counted, looks = e.ended, looks+1
		}
	}
	return !first && looks >= enough
}

// sinceOutage returns the events after the last outage of the process's own looks, and whether there was one.
func sinceOutage(history []event) (since []event, outage bool) {
	since = history
	var heard time.Time
	begun, failing := false, false
	for i, e := range history {
		if e.kind == "hint" {
			continue
		}
		if !begun {
			begun, heard = true, e.began
		}
		failing = failing || e.kind == "fail"
		if failing && e.ended.Sub(heard) >= time.Second {
			since, outage = history[i:], true
		}
		if e.kind == "look" {
			heard, failing = e.ended, false
		}
	}
	return since, outage
}

// Silence, which keeps a few counts, agrees with a model that reads the whole history each time.
func TestSilenceModel(t *testing.T) {
	ids := []string{"a", "b", "c"}
	rapid.Check(t, func(t *rapid.T) {
		var s shardlog.Silence
		var history []event
		now := time.Unix(0, 0)
		rows := map[string]shardlog.Node{}
		wait := rapid.SampledFrom([]time.Duration{0, 1, 250e6, 500e6 - 1, 500e6, 500e6, 500e6, 500e6, 700e6, 1000e6 - 1, 1000e6, 2000e6})
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			e := event{kind: rapid.SampledFrom([]string{"look", "look", "look", "look", "look", "look", "fail", "hint"}).Draw(t, "kind")}
			e.id = rapid.SampledFrom(ids).Draw(t, "id")
			if e.kind != "hint" {
				e.began = now.Add(wait.Draw(t, "wait"))
				e.ended = e.began.Add(rapid.SampledFrom([]time.Duration{0, 0, 0, 1, 400e6, 1000e6}).Draw(t, "takes"))
				now = e.ended
			}
			switch rapid.SampledFrom([]string{"", "", "", "", "", "beat", "restart", "removed"}).Draw(t, "change") {
			case "beat":
				if n := rows[e.id]; n.ID != "" {
					n.Beat++
					rows[e.id] = n
				}
			case "restart":
				rows[e.id] = shardlog.Node{ID: e.id, Incarnation: rows[e.id].Incarnation + 1, Beat: rows[e.id].Beat}
			case "removed":
				delete(rows, e.id)
			}
			e.nodes = map[string]shardlog.Node{}
			var nodes []shardlog.Node
			for _, id := range ids {
				if n, ok := rows[id]; ok {
					e.nodes[id] = n
					nodes = append(nodes, n)
				}
			}
			history = append(history, e)
			switch e.kind {
			case "look":
				s.Looked(e.began, e.ended, nodes)
			case "fail":
				s.Failed(e.began, e.ended)
			default:
				s.Hint(e.id)
			}
			for _, id := range ids {
				if got, want := s.Silent(id), modelSilent(history, id); got != want {
					t.Fatalf("after %d events node %s is silent: %v, the model says %v", len(history), id, got, want)
				}
			}
		}
	})
}
