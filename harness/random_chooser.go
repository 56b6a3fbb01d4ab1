package harness

import (
	"math/rand/v2"
	"time"

	"pgregory.net/rapid"
)

// chooser chooses the crashes and faults of a run as it goes, where no schedule does.
type chooser interface {
	// crash counts a point, and reports whether the process dies there.
	crash() (crash, bool)
	// allow is told which faults may strike from now on.
	allow(p Faults)
	// fault counts a chance of the kind, and reports whether one strikes there.
	fault(kind faultKind) (fault, bool)
}

// drawn is a chooser that rapid feeds. All is drawn before it is needed, as distances,
// so that the choices that do not matter shrink away.
type drawn struct {
	rt      *rapid.T
	crashes []drawnCrash
	faults  []drawnFault
}

type drawnCrash struct {
	gap int // points passed before it
	crash
}

type drawnFault struct {
	gap int // chances of its kind passed before it
	fault
}

const (
	drawnCrashes = 3   // at most in a run
	drawnPoints  = 300 // at most between two crashes
	drawnNear    = 15  // at most between half of them, so that the recovery of one crash is open when the next comes
	drawnKeeps   = 8   // commits that survive a crash, at most
	drawnTorn    = 4   // ways to tear a write
	drawnFaults  = 4   // at most in a run
	drawnParts   = 8   // of the longest delay, or the farthest jump
	drawnChances = 40  // at most before a fault
)

func newDrawn(rt *rapid.T) *drawn {
	d := &drawn{rt: rt}
	gaps := rapid.OneOf(rapid.IntRange(0, drawnNear), rapid.IntRange(0, drawnPoints))
	for range rapid.IntRange(0, drawnCrashes).Draw(rt, "crashes") {
		gap := gaps.Draw(rt, "after points")
		d.crashes = append(d.crashes, drawnCrash{gap, drawLeaves(rt)})
	}
	return d
}

// drawLeaves draws how many commits a crash leaves; a number beyond the largest stands
// for a torn write.
func drawLeaves(rt *rapid.T) crash {
	n := rapid.IntRange(0, drawnKeeps+drawnTorn).Draw(rt, "keep")
	if n > drawnKeeps {
		return crash{torn: hash(uint64(n), "torn") | 1}
	}
	return crash{keep: n}
}

func (d *drawn) crash() (crash, bool) {
	if len(d.crashes) == 0 {
		return crash{}, false
	}
	c := &d.crashes[0]
	if c.gap > 0 {
		c.gap--
		return crash{}, false
	}
	d.crashes = d.crashes[1:]
	return c.crash, true
}

func (d *drawn) allow(p Faults) {
	d.faults = nil
	var kinds []faultKind
	for _, k := range faultKinds {
		if p.most(k) > 0 {
			kinds = append(kinds, k)
		}
	}
	if len(kinds) == 0 {
		return
	}
	for range rapid.IntRange(0, drawnFaults).Draw(d.rt, "faults") {
		kind := rapid.SampledFrom(kinds).Draw(d.rt, "fault")
		f := drawnFault{rapid.IntRange(0, drawnChances).Draw(d.rt, "after chances"), fault{kind: kind}}
		switch kind {
		case slow:
			f.by = p.Slow * time.Duration(rapid.IntRange(1, drawnParts).Draw(d.rt, "late by parts")) / drawnParts
		case clockJump:
			f.by = p.ClockJump * time.Duration(rapid.IntRange(-drawnParts, drawnParts).Draw(d.rt, "jump by parts")) / drawnParts
		case zombie:
			f.by = zombieLate * time.Duration(rapid.IntRange(0, 1).Draw(d.rt, "later"))
			f.keep = rapid.IntRange(0, drawnKeeps).Draw(d.rt, "keep")
		case failCommit:
			f.keep = rapid.IntRange(0, drawnKeeps).Draw(d.rt, "keep")
		}
		d.faults = append(d.faults, f)
	}
}

func (d *drawn) fault(kind faultKind) (fault, bool) {
	for i := range d.faults {
		f := &d.faults[i]
		if f.kind != kind {
			continue
		}
		if f.gap > 0 {
			f.gap--
			return fault{}, false
		}
		struck := f.fault
		d.faults = append(d.faults[:i], d.faults[i+1:]...)
		return struck, true
	}
	return fault{}, false
}

// seeded is a chooser for a run without crashes: it takes about one chance in eight.
// Its randomness is its own, so that a schedule with the same faults makes the same
// run.
type seeded struct {
	dice   *rand.Rand
	faults Faults
}

func newSeeded(seed uint64) *seeded {
	return &seeded{dice: rand.New(rand.NewPCG(seed, 0x6a09e667f3bcc908))}
}

func (*seeded) crash() (crash, bool) { return crash{}, false }

func (c *seeded) allow(p Faults) { c.faults = p }

func (c *seeded) fault(kind faultKind) (fault, bool) {
	if c.dice.Uint64()&7 != 0 {
		return fault{}, false
	}
	f := fault{kind: kind}
	if most := int64(c.faults.longest(kind)); most > 0 {
		f.by = time.Duration(1 + c.dice.Int64N(most))
		if kind == clockJump && c.dice.Uint64()&1 == 0 {
			f.by = -f.by
		}
		return f, true
	}
	if kind == zombie {
		f.by = zombieLate * time.Duration(c.dice.Uint64()&1)
	}
	if kind.endsProcess() {
		f.keep = int(c.dice.Uint64() % (drawnKeeps + 1))
	}
	return f, true
}
