package workerpool

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/storage"
)

// stored is what a partition has stored, as no code of its own has read it.
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
	versions jobs.Versions
}

// Audit checks what is stored of each partition of a pool against W1, W3 and the
// rules of key.go. limit is the pool's concurrency.
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
	case callPrefix, emptyKey:
		return nil
	case versionsKey:
		var err error
		s.versions, err = jobs.ParseVersions(value)
		return err
	case uniqueKeys:
		num, err := decodeNumber(value)
		s.holds[num] = key[len(uniqueKeys):]
		return err
	case "x/":
		i := strings.Index(string(value), taskSubject) // with its length before it
		if i < 0 {
			return nil
		}
		subject := string(value[i : i+int(value[i-1])])
		n, err := strconv.ParseUint(subject[len(taskSubject):], 10, 64)
		if s.running[n] {
			return fmt.Errorf("task %d has two executions", n)
		}
		s.running[n] = true
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
	case !s.has && len(s.tasks)+len(s.dead) > 0:
		return fmt.Errorf("W1: tasks without counters")
	}
	for num, r := range s.tasks {
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

// checkChains checks that of each key the first tasks have entered, and no more
// than may.
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
