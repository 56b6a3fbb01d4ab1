package object

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/internal/row"
	"github.com/holdfast-dev/holdfast/storage"
)

// subject is user code that the runtime starts by itself and that a crash can cut
// off: the handler of an alarm, or an execution.
type subject struct {
	id  storage.ID
	gen uint64 // of the alarm; 0 for an execution
	key string // of the execution; empty for an alarm
}

// inquiry is the stored state of the search for work that kills its process
// (A8, R4). It is written only while suspects exist: at Open, and before each
// trial. The next process reads it and judges the crash by it. It is a value: the methods
// that conclude return another one.
type inquiry struct {
	epoch   uint64 // of the process that wrote it
	cleared uint64 // a crash of an opening up to this one counts against no subject
	phase   phase
	strays  int       // crashes in a row that came while all suspects were held back
	began   time.Time // when the trial began
	trial   int       // the index in plan of the group on trial
	// plan lists the groups in the order of their trials.
	plan []group
	// charges has the crashes that a subject alone has caused. Charged subjects are in
	// plan too.
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

// phase is the state of the suspects of a process. It is stored as one byte.
type phase byte

const (
	noSuspects phase = iota // none is left; the row has the cleared opening
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
	// onceRest is added to the number of a set whose members were the rest in a crash. No
	// part of it is the rest again, because each such crash cuts a killer off and divides
	// nothing: among 60 killers one would be cut off 40 times.
	onceRest = 1 << 24
	// cutsOfSuspect is how many crashes in a row make a suspect.
	cutsOfSuspect = 2
	// straysMax is how many crashes in a row may come while all suspects are held
	// back, before the search is given up, because the cause is outside. The first
	// ones may come from work that was not held: it is held from then on.
	straysMax = 4
)

// judge concludes from the end of the last process, with the rows q that it may have
// written. The result has a set for each group that is still to be divided, the smallest
// first. The cases are:
//
//   - The last process ended in order, or q was written before such an end: nothing.
//   - Another node has taken the store over: nothing new, because that is no fault of the work. The suspects and the charges
//     of before stay; see keep.
//   - It crashed while there were no suspects: work that two crashes in a row have cut off
//     becomes a suspect, see suspected.
//   - It crashed while all suspects were held back: none of them was the cause. They are
//     held back again, together with all work that this crash cut off. After straysMax
//     such crashes in a row the cause is outside, and the search is given up.
//   - It crashed during a trial: the group on trial is to blame; see narrow.
func (q *inquiry) judge(crash storage.Previous, ownerLost bool) inquiry {
	next := inquiry{cleared: crash.Epoch, need: cutsOfSuspect}
	if crash.Clean || crash.Epoch == 0 {
		return next
	}
	orderly := crash.Epoch - min(crash.Crashes, crash.Epoch) // the newest opening that was closed in order
	next.cleared = max(q.cleared, orderly)
	switch {
	case q.epoch <= orderly:
	case ownerLost:
		q.keep(&next)
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

// keep takes into next what was known of the suspects, but for the groups that were tried already and have run without a crash.
func (q *inquiry) keep(next *inquiry) {
	next.strays = q.strays
	if q.phase == noSuspects {
		return
	}
	left := q.plan
	if q.phase == trying {
		left = left[min(q.trial, len(left)):]
	}
	next.plan, next.charges = merge(left), q.charges
}

// narrow returns the groups that remain to be tried after a crash during a trial, and the
// charges. The group on trial becomes a set of its own; if it is a single suspect, it is
// charged. The groups of its set that were not tried yet become the rest, or stay a set if
// they were part of the rest before. The groups that were tried before it have run without
// a crash, so they are left out.
func (q *inquiry) narrow() ([]group, map[subject]int) {
	guilty := q.plan[q.trial]
	left := slices.Clone(q.plan[q.trial+1:])
	set := guiltySet
	if guilty.set == restSet || wasRest(guilty.set) {
		set = onceRest
	}
	for i := range left {
		if left[i].set == guilty.set && set == guiltySet {
			left[i].set = restSet
		}
	}
	plan := merge(append([]group{{set, guilty.members}}, left...))
	if len(guilty.members) > 1 {
		return plan, nil
	}
	x := guilty.members[0]
	return plan, map[subject]int{x: q.charges[x] + 1}
}

// merge makes one group of each set: the rest first, then the smallest, because a small
// set needs the fewest trials. Sets other than the rest get new numbers above restSet,
// in this order.
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
		switch set := merged[i].set; {
		case wasRest(set):
			merged[i].set = onceRest + i + 1
		case set != restSet:
			merged[i].set = i + 1
		}
	}
	return merged
}

// wasRest reports whether the members of a set were the rest in a crash.
func wasRest(set int) bool { return set >= onceRest && set < freshSet }

// place is where a set is in its plan.
func place(set int) int {
	if wasRest(set) {
		return set - onceRest
	}
	return set
}

// suspected reports whether a subject is a suspect, because cuts crashes in a row have
// cut it off, the last of them the crash of opening epoch. Crashes of cleared openings do
// not count.
func (q *inquiry) suspected(cuts int, epoch uint64) bool {
	return epoch > q.cleared && cuts >= q.need
}

// The inquiry is stored in two rows of the store itself, so that a trial costs a
// short one:
//
//	suspects: version 1 | phase | uvarints: epoch, cleared, strays, trial | varint began
//	suspects/plan: version 1 | groups | charges
//
// where groups are their number and, for each, its set and its members; charges are
// their number and, for each, a subject and a count; a subject is the uvarint of its
// generation, and its class, name and key with their lengths. Numbers are uvarints.
const (
	inquiryRow     = "suspects"
	planRow        = "suspects/plan"
	inquiryVersion = 1
)

// appendHead adds the first row of q to b.
func (q *inquiry) appendHead(b []byte) []byte {
	w := row.Writer(append(b, inquiryVersion, byte(q.phase)))
	for _, n := range [...]uint64{q.epoch, q.cleared, uint64(q.strays), uint64(q.trial)} {
		w = w.Uint(n)
	}
	var began int64
	if !q.began.IsZero() {
		began = q.began.UnixNano()
	}
	w = w.Int(began)
	return w
}

// appendPlan adds the second row of q to b.
func (q *inquiry) appendPlan(b []byte) []byte {
	w := row.Writer(append(b, inquiryVersion))
	w = w.Uint(uint64(len(q.plan)))
	for _, g := range q.plan {
		w = w.Uint(uint64(g.set))
		w = w.Uint(uint64(len(g.members)))
		for _, m := range g.members {
			w = m.append(w)
		}
	}
	var charges row.Writer
	n := uint64(0)
	for _, g := range q.plan { // in the order of the plan, so that equal inquiries have equal rows
		for _, m := range g.members {
			if c := q.charges[m]; c > 0 {
				charges = m.append(charges)
				charges = charges.Uint(uint64(c))
				n++
			}
		}
	}
	w = w.Uint(n)
	return append(w, charges...)
}

// append adds the subject to a row: generation, class, name, key.
func (x subject) append(w row.Writer) row.Writer {
	w = w.Uint(x.gen)
	for _, f := range [...]string{x.id.Class, x.id.Name, x.key} {
		w = w.Text(f)
	}
	return w
}

// readInquiry reads the two rows that the process before has left; without rows it
// returns a zero inquiry. A malformed row is ErrCorrupt, which fails Open.
func readInquiry(s *storage.Store) (q inquiry, err error) {
	head, ok, err := s.Meta(inquiryRow)
	if err != nil || !ok {
		return q, err
	}
	plan, _, err := s.Meta(planRow)
	if err != nil {
		return q, err
	}
	if err := errors.Join(q.decodeHead(head), q.decodePlan(plan)); err != nil {
		return inquiry{}, err
	}
	return q, nil
}

// decodeHead reads the first row into q.
func (q *inquiry) decodeHead(b []byte) error {
	r := row.Read(b)
	version := r.Byte()
	q.phase = phase(r.Byte())
	q.epoch, q.cleared, q.strays, q.trial = r.Uint(), r.Uint(), countIn(&r), countIn(&r)
	if v := r.Int(); v != 0 {
		q.began = time.Unix(0, v)
	}
	if r.Required(); version != inquiryVersion || !r.OK() {
		return fmt.Errorf("%w: suspects row %x", storage.ErrCorrupt, b)
	}
	return nil
}

// decodePlan reads the second row, which is absent while there is no suspect.
func (q *inquiry) decodePlan(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	r := row.Read(b)
	if r.Byte() != inquiryVersion {
		r.Fail()
	}
	for n := countIn(&r); n > 0 && r.OK(); n-- {
		g := group{set: countIn(&r)}
		for m := countIn(&r); m > 0 && r.OK(); m-- {
			g.members = append(g.members, subjectIn(&r))
		}
		q.plan = append(q.plan, g)
	}
	q.charges = make(map[subject]int)
	for n := countIn(&r); n > 0 && r.OK(); n-- {
		x := subjectIn(&r)
		q.charges[x] = countIn(&r)
	}
	if !r.OK() {
		return fmt.Errorf("%w: plan of suspects %x", storage.ErrCorrupt, b)
	}
	return nil
}

// countIn reads a required number that fits an int. A larger one becomes 1<<31, so that a
// loop over that many elements ends with the row, at the first missing one.
func countIn(r *row.Reader) int {
	n := r.Uint()
	r.Required()
	return int(min(n, 1<<31))
}

// subjectIn is the reverse of subject.append.
func subjectIn(r *row.Reader) subject {
	x := subject{gen: r.Uint()}
	x.id.Class, x.id.Name, x.key = r.Text(), r.Text(), r.Text()
	r.Required()
	return x
}
