package object

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/storage"
)

// subject is user code that the runtime starts by itself and that a crash can cut
// off: the handler of an alarm, or an execution.
type subject struct {
	id  storage.ID
	gen uint64 // of the alarm; 0 for an execution
	key string // of the execution; empty for an alarm
}

// inquiry is what the store says about the search for work that kills its process
// (A8, R4). It is written only while suspects exist: at Open, and before each
// trial. The next process reads it and judges the crash by it.
type inquiry struct {
	epoch   uint64 // of the process that wrote it
	cleared uint64 // a crash of an opening up to this one counts against no subject
	phase   phase
	strays  int       // crashes in a row that came while all suspects were held back
	began   time.Time // of the trial
	trial   int       // which group of plan is on trial
	plan    []group
	charges map[subject]int
	// need is how many crashes after cleared make a subject a suspect that plan
	// does not list. It is not stored.
	need int
}

// group is suspects that are tried together.
type group struct {
	set     int // the groups of one set: the process died when all of it ran
	members []subject
}

// phase is what the suspects of a process do.
type phase byte

const (
	noSuspects phase = iota // none is left; the row tells what is cleared
	holding                 // all are held back
	trying                  // one group runs
)

const (
	// restSet is the suspects that have run in two crashes, but not in the trial
	// that ended with the last one. They are tried all together, and first.
	restSet = 0
	// guiltySet is the group that was on trial when the process died, and freshSet
	// the suspects that no earlier process has listed, until sets are numbered.
	guiltySet, freshSet = math.MaxInt32, math.MaxInt32 - 1
	// cutsOfSuspect is how many crashes in a row make a suspect.
	cutsOfSuspect = 2
	// straysMax is how many crashes in a row may come while all suspects are held
	// back, before the search is given up, because the cause is outside. The first
	// ones may come from work that was not held: it is held from then on.
	straysMax = 4
)

// judge says what follows from the end of the process that wrote q. The result has
// a set for each group that is still to be divided, the smallest first.
func (q *inquiry) judge(crash storage.Previous) inquiry {
	next := inquiry{cleared: crash.Epoch, need: cutsOfSuspect}
	if crash.Clean || crash.Epoch == 0 {
		return next
	}
	orderly := crash.Epoch - min(crash.Crashes, crash.Epoch) // the newest opening that was closed in order
	next.cleared = max(q.cleared, orderly)
	switch {
	case q.epoch <= orderly:
	case q.phase == holding && q.strays+1 >= straysMax:
		next.cleared = q.epoch
	case q.phase == holding:
		next.cleared, next.strays, next.need = q.cleared, q.strays+1, 1
		next.plan = merge(q.plan)
	case q.phase == trying && q.trial < len(q.plan):
		next.cleared = q.epoch - 1
		next.plan, next.charges = q.narrow()
	}
	return next
}

// narrow is what remains to be tried after a crash during a trial. The group on
// trial becomes a set of its own; if it is a single suspect, it is charged. The
// groups of its set that were not tried yet are the rest.
func (q *inquiry) narrow() ([]group, map[subject]int) {
	guilty := q.plan[q.trial]
	left := slices.Clone(q.plan[q.trial+1:])
	for i := range left {
		if left[i].set == guilty.set {
			left[i].set = restSet
		}
	}
	plan := merge(append([]group{{guiltySet, guilty.members}}, left...))
	if len(guilty.members) > 1 {
		return plan, nil
	}
	x := guilty.members[0]
	return plan, map[subject]int{x: q.charges[x] + 1}
}

// merge makes one group of each set: the rest first, then the smallest.
func merge(groups []group) []group {
	sets := make(map[int]int) // index in merged
	var merged []group
	for _, g := range groups {
		i, ok := sets[g.set]
		if !ok {
			i = len(merged)
			sets[g.set] = i
			merged = append(merged, group{set: g.set})
		}
		merged[i].members = append(merged[i].members, g.members...)
	}
	slices.SortStableFunc(merged, func(a, b group) int {
		return cmp.Or(cmp.Compare(min(a.set, 1), min(b.set, 1)), cmp.Compare(len(a.members), len(b.members)))
	})
	for i := range merged {
		if merged[i].set != restSet {
			merged[i].set = i + 1
		}
	}
	return merged
}

// suspected reports whether the crash of opening epoch, which cut a subject off as
// the last of cuts in a row, makes it a suspect.
func (q *inquiry) suspected(cuts int, epoch uint64) bool {
	return epoch > q.cleared && cuts >= q.need
}
