package workerpool

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	codec "github.com/holdfast-dev/holdfast/internal/row"
	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// stored is the stored rows of a partition, read without code of the partition.
type stored struct {
	counters counters
	has      bool
	tasks    map[uint64]*row
	dead     map[uint64]*row
	running  map[uint64]bool
	ready    map[uint64]int // rows in r/ and w/
	entered  map[uint64]bool
	chained  map[string][]uint64 // by key, in order
	holds    map[uint64]string   // unique keys
	versions engine.Versions
	calls    uint64             // of OnDead that are owed
	owed     map[callID]bool    // calls for letters that have a row
	under    map[callID]bool    // those with an execution
	filed    map[uint64]filedAt // the index of the Retention
	again    bool               // a call of OnEmpty is to be made again
	phases   map[uint64]*phaseRow
	results  map[uint64][]donePhase // the phases with a row of their result, by index
	buried   map[uint64]string      // letters of tasks in the list of all dead work, by their number: Data
}

// Audit checks the stored rows of each partition of a pool against W1, W3 and the rules
// of key.go. limit is the pool's concurrency.
func Audit(store *storage.Store, class string, partitions, limit, perKey int) error {
	total := 0
	for i := range partitions {
		id := storage.ID{Class: class, Name: strconv.Itoa(i)}
		s, err := readStored(store, id)
		if err != nil {
			return err
		}
		if err := s.check(perKey); err != nil {
			return fmt.Errorf("%s: %w", id, err)
		}
		total += len(s.running)
	}
	if total > limit {
		return fmt.Errorf("W3: %d tasks run, the limit is %d", total, limit)
	}
	return nil
}

// AuditInputs gives the input of each task and dead letter of a partition to check,
// with the version that it is stored as of.
func AuditInputs(store *storage.Store, id storage.ID, check func(version string, input []byte) error) error {
	s, err := readStored(store, id)
	if err != nil {
		return err
	}
	for _, rows := range []map[uint64]*row{s.tasks, s.dead} {
		for num, r := range rows {
			if err := check(s.versions.At(num), r.input); err != nil {
				return fmt.Errorf("%s: task %d: %w", id, num, err)
			}
		}
	}
	return nil
}

func readStored(store *storage.Store, id storage.ID) (*stored, error) {
	s := &stored{
		tasks: make(map[uint64]*row), dead: make(map[uint64]*row), running: make(map[uint64]bool),
		ready: make(map[uint64]int), entered: make(map[uint64]bool), chained: make(map[string][]uint64), holds: make(map[uint64]string),
	}
	s.buried = make(map[uint64]string)
	s.owed, s.under, s.filed = make(map[callID]bool), make(map[callID]bool), make(map[uint64]filedAt)
	s.phases, s.results = make(map[uint64]*phaseRow), make(map[uint64][]donePhase)
	if err := store.DeadLetters(id, func(seq uint64, value []byte) error {
		var d object.DeadLetter
		err := json.Unmarshal(value, &d)
		if d.Kind == DeadTask {
			s.buried[seq] = string(d.Data)
		}
		return err
	}); err != nil {
		return nil, err
	}
	o, err := store.Find(id)
	if err != nil || o.Number == 0 {
		return s, err
	}
	it, err := store.ListData(nil, o, "", "", false)
	if err != nil {
		return nil, err
	}
	defer it.Close()
	for it.Next() {
		if err := s.read(string(it.Key()), it.Value()); err != nil {
			return nil, fmt.Errorf("%s: %w", id, err)
		}
	}
	return s, it.Err()
}

func (s *stored) read(key string, value []byte) error {
	switch prefix := key[:min(2, len(key))]; prefix {
	case countersKey:
		s.has = true
		return s.counters.decode(value, &lines{})
	case taskPrefix, deadPrefix:
		num, err := numberOf(key)
		if err != nil {
			return err
		}
		r, err := decodeRow(num, value)
		if prefix == taskPrefix {
			s.tasks[num] = r
		} else {
			s.dead[num] = r
		}
		return err
	case readyPrefix, waitPrefix:
		num, err := decodeNumber(value)
		s.ready[num]++
		return err
	case chainPrefix:
		num, err := decodeNumber(value[1:])
		chain := key[:len(key)-8]
		s.chained[chain] = append(s.chained[chain], num)
		s.entered[num] = value[0] == 1
		return err
	case phasePrefix:
		return s.readPhase(key[len(phasePrefix):], value)
	case callPrefix:
		id, err := callIn(key)
		s.calls++
		s.owed[id] = true
		return err
	case emptyKey:
		s.again = true
		return nil
	case versionsKey:
		var err error
		s.versions, err = engine.ParseVersions(value)
		return err
	case uniquePrefix:
		num, err := decodeNumber(value)
		s.holds[num] = key[len(uniquePrefix):]
		return err
	case "x/":
		x, err := engine.DecodeExecution(key, value)
		if err != nil {
			return err
		}
		kind, n := subjectOf(x.Subject)
		if kind != taskSubject {
			s.under[callOf(n, hookOf(kind))] = kind != emptySubject
			return nil
		}
		if s.running[n] {
			return fmt.Errorf("task %d has two executions", n)
		}
		s.running[n] = true
		return nil
	case agingPrefix:
		at, err := placeOf(key)
		if step, double := s.filed[at.order]; double {
			return fmt.Errorf("dead task %d is at the steps %d and %d", at.order, step.aging, key[2])
		}
		s.filed[at.order] = filedAt{aging(key[2]), at}
		return err
	}
	return fmt.Errorf("unknown key %q", key)
}

func (s *stored) check(perKey int) error {
	c := &s.counters
	sum := c.pending + c.running + c.done + c.dead + c.cancelled
	switch pending := len(s.tasks) - len(s.running); {
	case sum != c.submitted:
		return fmt.Errorf("W1: %d submitted, %d counted: %+v", c.submitted, sum, *c)
	case uint64(pending) != c.pending || uint64(len(s.running)) != c.running || uint64(len(s.dead)) != c.dead:
		return fmt.Errorf("W1: %d pending, %d running, %d dead are stored, and the counters are %+v", pending, len(s.running), len(s.dead), *c)
	case s.calls != c.calls || s.again && !c.emptyDue:
		return fmt.Errorf("W6: %d calls of OnDead are owed, one of OnEmpty is to be made again: %t, and the counters are %+v", s.calls, s.again, *c)
	case !s.has && len(s.tasks)+len(s.dead) > 0:
		return fmt.Errorf("W1: tasks without counters")
	}
	if err := s.checkPhases(); err != nil {
		return err
	}
	if bare, err := s.checkLetters(); bare > 0 || err != nil {
		return fmt.Errorf("W10: %d dead tasks have no letter: %w", bare, err)
	}
	if err := s.checkFiled(); err != nil {
		return err
	}
	for num, r := range s.tasks {
		if r.letter != 0 {
			return fmt.Errorf("W10: task %d is not dead and has the letter %d", num, r.letter)
		}
		if s.holds[num] != r.rare.Unique {
			return fmt.Errorf("W9: task %d holds the key %q, want %q", num, s.holds[num], r.rare.Unique)
		}
		delete(s.holds, num)
		places := s.ready[num]
		if s.running[num] {
			places++
		}
		want := 1
		if r.key != "" && !s.entered[num] {
			want = 0
		}
		if places != want {
			return fmt.Errorf("task %d has %d places, want %d: %+v", num, places, want, *r)
		}
		delete(s.ready, num)
	}
	if len(s.holds) > 0 {
		return fmt.Errorf("W9: keys held by no task: %v", s.holds)
	}
	if len(s.ready) > 0 {
		return fmt.Errorf("places without a task: %v", s.ready)
	}
	return s.checkChains(perKey)
}

// checkLetters checks that the dead tasks and their letters agree, and counts the dead tasks
// that have none.
func (s *stored) checkLetters() (bare int, err error) {
	left := len(s.buried)
	for num, r := range s.dead {
		if r.letter == 0 {
			bare++
			continue
		}
		if data := s.buried[r.letter]; !strings.Contains(data, fmt.Sprintf(`-%d"`, num)) {
			return bare, fmt.Errorf("W10: dead task %d has the letter %d: %q", num, r.letter, data)
		}
		left--
	}
	if left > 0 || s.counters.buried+uint64(bare) != s.counters.dead {
		return bare, fmt.Errorf("W10: %d letters are of no dead task; the counters are %+v", left, s.counters)
	}
	return bare, nil
}

// filedAt is the step of a letter in the index of the Retention.
type filedAt struct {
	aging aging
	at    place
}

// checkFiled checks that each row of the index is that of a dead task at its step, that each dead task has one if the
// index is whole, and that a call is owed or under way for each whose time is over.
func (s *stored) checkFiled() error {
	for num, f := range s.filed {
		r := s.dead[num]
		if r == nil || deathPlace(r) != f.at || f.aging < agingLeft && r.step() != f.aging {
			return fmt.Errorf("W12: step %d has the task %d, which is %+v", f.aging, num, r)
		}
		called := false
		for h := onDead; h < hooks; h++ {
			called = called || s.owed[callOf(num, h)] || s.under[callOf(num, h)]
		}
		if f.aging == agingLeft && !called {
			return fmt.Errorf("W12: the time of dead task %d is over, and no call is owed", num)
		}
	}
	if s.counters.whole > 1 || s.counters.whole == 1 && len(s.filed) != len(s.dead) {
		return fmt.Errorf("W12: %d of %d dead tasks are in the index, and the counters are %+v", len(s.filed), len(s.dead), s.counters)
	}
	return nil
}

// AuditLetters checks that the dead tasks of partition 0 and their letters agree, and
// returns how many dead tasks have none.
func AuditLetters(store *storage.Store, class string) (bare int, err error) {
	s, err := readStored(store, storage.ID{Class: class, Name: "0"})
	if err != nil {
		return 0, err
	}
	return s.checkLetters()
}

// checkChains checks the tasks of each key: the first perKey of them have entered the
// queue, and no later one.
func (s *stored) checkChains(perKey int) error {
	keyed := 0
	for chain, nums := range s.chained {
		for i, num := range nums {
			if s.tasks[num] == nil {
				return fmt.Errorf("W3: key %q has task %d, which is not there", chain, num)
			}
			if s.entered[num] != (i < perKey) {
				return fmt.Errorf("W3: key %q: task %d is at place %d: entered: %v", chain, num, i, s.entered[num])
			}
			keyed++
		}
	}
	for num, r := range s.tasks {
		if r.key != "" {
			keyed--
		}
		if s.running[num] && r.key != "" && !s.entered[num] {
			return fmt.Errorf("W3: task %d runs out of its turn", num)
		}
	}
	if keyed != 0 {
		return fmt.Errorf("a task with a key is not among those of its key")
	}
	return nil
}

// AuditSubmitted counts the tasks that were submitted to the partitions of a pool.
func AuditSubmitted(store *storage.Store, class string, partitions int) (n int, err error) {
	for i := range partitions {
		s, err := readStored(store, storage.ID{Class: class, Name: strconv.Itoa(i)})
		if err != nil {
			return 0, err
		}
		n += int(s.counters.submitted)
	}
	return n, nil
}

// readPhase reads the row of the phases of a task, or of one result.
func (s *stored) readPhase(rest string, value []byte) error {
	num := binary.BigEndian.Uint64([]byte(rest))
	if len(rest) == 8 {
		s.phases[num] = &phaseRow{}
		return json.Unmarshal(value, s.phases[num])
	}
	d := codec.Read(value)
	version, name := d.Byte(), d.Text()
	if version != rowVersion || !d.OK() || len(rest) != 10 {
		return fmt.Errorf("result of a phase: key %q, value %q", rest, value)
	}
	s.results[num] = append(s.results[num], donePhase{int(binary.BigEndian.Uint16([]byte(rest[8:]))), name})
	return nil
}

// checkPhases checks that the rows of phases agree with one another and with the tasks, and
// that a task that has ended has none.
func (s *stored) checkPhases() error {
	if n := len(s.phases); uint64(n) != s.counters.phased {
		return fmt.Errorf("H3: %d tasks have phases, and the counters are %+v", n, s.counters)
	}
	for num, r := range s.phases {
		if s.tasks[num] == nil && s.dead[num] == nil {
			return fmt.Errorf("H3: task %d has ended and has phases: %+v", num, *r)
		}
		if !slices.Equal(r.Done, s.results[num]) {
			return fmt.Errorf("H1: task %d has results %v, and its row says %+v", num, s.results[num], *r)
		}
		delete(s.results, num)
		if _, done := r.result(r.Index); done && r.Running || r.Percent < 0 || r.Percent > 100 || r.Overall < 0 || r.Overall > 100 {
			return fmt.Errorf("H2: the phases of task %d are %+v", num, *r)
		}
	}
	if len(s.results) > 0 {
		return fmt.Errorf("H3: results without a row of their phases: %v", s.results)
	}
	return nil
}
