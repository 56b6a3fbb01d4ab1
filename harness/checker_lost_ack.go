package harness

import (
	"fmt"

	"github.com/holdfast-dev/holdfast/seam"
)

// NoLostAck checks that no reply is let out before the commit of its turn is
// synced. That an acknowledged change is still there at the end is for
// StateMatches, or the scenario, to say.
func NoLostAck(c *Config) { c.gateCheck = true }

// gate watches that no reply leaves before the commit of its own turn is synced
// (O7). It knows a call's turn only if no other turn of the object ran meanwhile;
// of other calls it says nothing.
type gate struct {
	applied int // batches so far, less those that crashes took
	objects map[string]*gated
}

// gated holds the counts of a gate for one object.
type gated struct {
	turns   int // handlers entered
	acks    int // replies that were held
	commits int // commits made
	newest  int // place of the newest commit among all batches
}

func (g *gate) of(object string) *gated {
	if g.objects == nil {
		g.objects = make(map[string]*gated)
	}
	o := g.objects[object]
	if o == nil {
		o = &gated{}
		g.objects[object] = o
	}
	return o
}

func (g *gate) pass(at seam.Point, s *Sim) {
	if !s.cfg.gateCheck {
		return
	}
	switch at.Name {
	case "handler/enter":
		g.of(at.Object).turns++
	case "ack/before":
		g.of(at.Object).acks++
	case "commit/after":
		o := g.of(at.Object)
		o.commits++
		o.newest = g.applied
	}
}

// died takes back the commits that a crash has lost.
func (g *gate) died(lost int) { g.applied -= lost }

// begin is how the object stands when a call to it begins.
func (g *gate) begin(object string) gated { return *g.of(object) }

// checkGate looks at a call at the moment of its reply.
func (s *Sim) checkGate(object string, began gated) {
	if !s.cfg.gateCheck {
		return
	}
	o := s.gate.of(object)
	synced := s.gate.applied - s.disk.unsynced()
	if o.turns-began.turns == 1 && o.acks > began.acks && o.commits > began.commits && o.newest > synced {
		s.report("NoLostAck", promiseGate.String(), concerning{
			fmt.Errorf("a reply of %s was let out before the commit of its turn was synced", object), object,
		})
	}
}
