package cluster

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// looks gives a watch of node a looks at b, each half a second after the one before, and returns the time of the last.
func looks(w *watch, steady time.Time, times int, state shardlog.State, rows ...shardlog.Node) time.Time {
	for range times {
		steady = steady.Add(shardlog.LookEvery)
		w.looked(steady, steady, steady, steady, shardlog.Look{Nodes: rows, State: state, Clock: steady})
	}
	return steady
}

// A node claims the term that it has observed: one without an owner, its own, that of a node which has let go, and that of a silent one.
func TestClaimableTerms(t *testing.T) {
	owned := shardlog.State{Term: 7, Owner: "b 00ff"}
	row := shardlog.Node{ID: "b", Incarnation: 1, Addr: "b:1", Beat: 3}
	drains, away, none := row, row, shardlog.Node{}
	drains.Draining = true
	away.Draining, away.Addr = true, ""
	for about, c := range map[string]struct {
		looks int
		state shardlog.State
		row   shardlog.Node
		wait  string // a part of the reason; empty: it claims
	}{
		"never owned":                  {1, shardlog.State{}, row, ""},
		"an owner":                     {1, owned, row, "node b owns"},
		"four looks at one beat":       {4, owned, row, "node b owns"},
		"five looks at one beat":       {5, owned, row, ""},
		"five looks without a row":     {5, owned, none, ""},
		"four looks without a row":     {4, owned, none, "node b owns"},
		"it drains":                    {1, owned, drains, "node b owns"},
		"it has let go":                {1, owned, away, ""},
		"this node owned it":           {1, shardlog.State{Term: 7, Owner: "a 00ff"}, row, ""},
		"no owner":                     {1, shardlog.State{Term: 7}, row, ""},
		"quarantine":                   {5, shardlog.State{Term: 7, Lost: "record 9"}, row, "quarantine: record 9"},
		"an id that this one prefixes": {1, shardlog.State{Term: 7, Owner: "ab 00ff"}, row, "node ab owns"},
	} {
		w := watch{id: "a"}
		now := looks(&w, time.Unix(0, 0), c.looks, c.state, c.row)
		seen, wait := w.claimable(now, time.Time{})
		if (wait == "") != (c.wait == "") || !strings.Contains(wait, c.wait) || wait == "" && seen != c.state.Term {
			t.Errorf("%s: seen %d, waits because %q, want %q", about, seen, wait, c.wait)
		}
	}
}

// A look counts for a claim if it began after the others could know that this node is ready, if it is fresh, and if the clock is right.
func TestClaimableLooks(t *testing.T) {
	for about, c := range map[string]struct {
		ready, later, skew time.Duration
		wait               string
	}{
		"a fresh look":         {0, 0, 0, ""},
		"ready as it began":    {2500 * time.Millisecond, 0, 0, ""},
		"ready after it began": {2500*time.Millisecond + 1, 0, 0, "ready"},
		"an old look":          {0, lookFresh, 0, ""},
		"a look that is older": {0, lookFresh + 1, 0, "does not answer"},
		"a clock at the limit": {0, 0, skewMost, ""},
		"a clock beyond":       {0, 0, skewMost + 1, "clock"},
		"a clock behind":       {0, 0, -skewMost, ""},
		"a clock far behind":   {0, 0, -skewMost - 1, "clock"},
	} {
		w := watch{id: "a"}
		start := time.Unix(0, 0)
		looks(&w, start, 4, shardlog.State{Term: 7, Owner: "b 00ff"}, shardlog.Node{ID: "b", Incarnation: 1})
		now := start.Add(5 * shardlog.LookEvery)
		wall := now.Add(c.skew)
		w.looked(now, now, wall, wall, shardlog.Look{Nodes: []shardlog.Node{{ID: "b", Incarnation: 1}}, State: shardlog.State{Term: 7, Owner: "b 00ff"}, Clock: now})
		_, wait := w.claimable(now.Add(c.later), start.Add(c.ready))
		if (wait == "") != (c.wait == "") || !strings.Contains(wait, c.wait) {
			t.Errorf("%s: waits because %q, want %q", about, wait, c.wait)
		}
	}
	if _, wait := (&watch{id: "a"}).claimable(time.Unix(0, 0), time.Time{}); wait == "" {
		t.Error("a node without a look claims")
	}
}

// A clock is compared with an interval, so a call that takes long is no skew.
func TestSkewOfAnInterval(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	for clock, want := range map[int]time.Duration{10: 0, 15: 0, 20: 0, 9: time.Second, 21: time.Second, 0: 10 * time.Second} {
		if got := skew(at(10), at(20), at(clock)); got != want {
			t.Errorf("a clock that shows %d between 10 and 20: %v, want %v", clock, got, want)
		}
	}
}
