package shardlog

import "time"

// LookEvery is how far apart two looks of Silence are at least: from the answer to one until the next begins.
const LookEvery = 500 * time.Millisecond

const (
	looksSilent = 5           // in a row that show the same beat: the node is silent
	looksAnew   = 10          // instead of looksSilent, because a node needs time to come back to an engine that was down
	deafAfter   = time.Second // without a look that succeeded: the observations begin anew
)

// Silence counts the looks of one process at the beats of nodes, and tells which nodes are silent. Its zero value is ready
// for use. It is for one goroutine.
//
//   - A node is silent when five successful looks in a row, each LookEvery after the one before, have shown the same beat of the same
//     incarnation. A look that comes earlier does not count, but a beat that it shows does. A node without a row is
//     silent when five looks have shown none.
//   - After looks have failed for a second the process has observed nothing: no node is silent, and the nodes of the next
//     successful look take ten looks. A node that has beaten since then takes five again.
//   - No step compares the clocks of two nodes. Times are those of the process's own steady clock, so a silence says
//     nothing of the moment at which it began.
//
// A silence is a reason to try a claim and proves nothing: the claim decides.
type Silence struct {
	begun   bool
	heard   time.Time // the answer to the last successful look; before the first one, the begin of the first that failed
	failing bool      // a look has failed since heard
	anew    bool      // nodes that the next look shows take looksAnew
	nodes   map[string]*observed
}

// observed is the looks at one node. That of the empty id, which no node has, stands for each node that never had a row.
type observed struct {
	incarnation, beat uint64    // both 0: the look showed no row
	looks, enough     int       // looks in a row that showed them, and how many make a silence
	last              time.Time // the answer to the last look that counted
}

// Looked takes a look that has succeeded: when it began, when its answer came, and Look.Nodes.
func (s *Silence) Looked(began, ended time.Time, nodes []Node) {
	s.ends(began, ended)
	s.heard, s.failing = ended, false
	if s.nodes == nil {
		s.nodes = map[string]*observed{"": s.unseen()}
	}
	rows := make(map[string]Node, len(nodes))
	for _, n := range nodes {
		rows[n.ID] = n
		if s.nodes[n.ID] == nil {
			s.nodes[n.ID] = s.unseen()
		}
	}
	for id, o := range s.nodes {
		o.look(began, ended, rows[id])
	}
	s.anew = false
}

// Failed takes a look that has failed: when it began and when that was known.
func (s *Silence) Failed(began, ended time.Time) {
	s.failing = true
	s.ends(began, ended)
}

// ends has the observations begin anew, if looks have failed for deafAfter when one ends.
func (s *Silence) ends(began, ended time.Time) {
	if !s.begun {
		s.begun, s.heard = true, began
	}
	if s.failing && ended.Sub(s.heard) >= deafAfter {
		s.nodes, s.anew = nil, true
	}
}

// Hint makes a node silent at once, until a look shows another beat. It is for a node that refuses connections (a connection that
// times out is no hint) and fails a probe. A node that the last look did not show stays as it is.
func (s *Silence) Hint(id string) {
	if o := s.nodes[id]; o != nil && o.incarnation != 0 {
		o.looks = o.enough
	}
}

// Silent reports whether a node is silent.
func (s *Silence) Silent(id string) bool {
	o := s.nodes[id]
	if o == nil {
		o = s.nodes[""]
	}
	return o != nil && o.looks >= o.enough
}

// unseen is the looks at a node before the first.
func (s *Silence) unseen() *observed {
	if s.anew {
		return &observed{enough: looksAnew}
	}
	return &observed{enough: looksSilent}
}

// look counts a look that shows a row, or the zero Node if there is none.
func (o *observed) look(began, ended time.Time, row Node) {
	same := o.incarnation == row.Incarnation && o.beat == row.Beat
	switch {
	case o.looks == 0:
		o.incarnation, o.beat, o.looks, o.last = row.Incarnation, row.Beat, 1, ended
	case !same:
		*o = observed{row.Incarnation, row.Beat, 1, looksSilent, ended}
	case began.Sub(o.last) >= LookEvery:
		o.looks, o.last = o.looks+1, ended
	}
}
