package recovery

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/holdfast-dev/holdfast/internal/row"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// A partition of a worker pool has no metadata: its counters tell whether it has work.
// FORMAT.md has them byte by byte; see package workerpool.
const (
	countersKey     = "c"
	countersVersion = 1
	countersLeast   = 11 // numbers that each writer has stored
	pausedMode      = 1
	draining        = 2
	taskOf          = "task/" // begins the subject of a task's execution

	taskVersion                  = 1 // of the row of a task
	tasksFrom, tasksTo           = "t/", "t0"
	executionsFrom, executionsTo = "x/", "x0"
	deadFrom, deadTo             = "z/", "z0"
	agingFrom, agingTo           = "d/", "d/\x02" // letters that wait to be stale, or to be removed
	deadTask                     = "task"         // the kind of their letters
)

// partition is the rows of a partition that can contradict one another.
type partition struct {
	is         bool
	raw        string // of the counters; a partition in motion changes it
	paused     bool
	due        bool // a hook has yet to be called
	aging      bool // letters wait for a step of the Retention
	pending    uint64
	running    uint64
	executions uint64 // of tasks that are stored
	letters    string // how the dead tasks and their letters differ; empty if they agree
	damage     string // why the counters are not those of the partition that the object is; empty: they are
}

// lookAtPool reads the rows of a partition, if the object is one: if the row
// under the key of the counters is whole and its sums are right (W1), or if its
// other rows are those of a partition, whose counters are damaged then.
func (f *facts) lookAtPool(s *storage.Store, o storage.Object) error {
	raw, stored, err := s.Data(nil, o, countersKey)
	if err != nil {
		return err
	}
	if !f.pool.decode(raw) {
		return f.pool.lookForDamage(s, o, raw, stored)
	}
	it, err := s.ListData(nil, o, executionsFrom, executionsTo, false)
	if err != nil {
		return err
	}
	defer it.Close()
	for it.Next() {
		if subject(it.Value()) == taskOf {
			f.pool.executions++
		}
	}
	if it.Err() != nil {
		return it.Err()
	}
	if f.pool.aging, err = hasRow(s, o, agingFrom, agingTo); err != nil {
		return err
	}
	return f.pool.lookAtLetters(s, o)
}

// hasRow reports whether an object has a row in a range of keys.
func hasRow(s *storage.Store, o storage.Object, from, to string) (bool, error) {
	it, err := s.ListData(nil, o, from, to, false)
	if err != nil {
		return false, err
	}
	found := it.Next()
	return found, errors.Join(it.Err(), it.Close())
}

// lookForDamage looks whether an object without right counters is a partition all the same:
// it has the name of one, and a task, or an execution of one. An object of a user may have
// any row under the key of the counters.
func (p *partition) lookForDamage(s *storage.Store, o storage.Object, raw []byte, stored bool) error {
	*p = partition{}
	if n, err := strconv.ParseUint(o.ID.Name, 10, 64); err != nil || strconv.FormatUint(n, 10) != o.ID.Name {
		return nil
	}
	is, err := hasTask(s, o)
	switch {
	case err != nil || !is:
		return err
	case !stored:
		p.damage = "the partition has tasks and no counters"
	default:
		p.damage = fmt.Sprintf("the counters of the partition cannot be decoded, or their sum is wrong: %x", raw)
	}
	return nil
}

// hasTask reports whether an object has the row of a task, alive or dead, or the execution of one.
func hasTask(s *storage.Store, o storage.Object) (bool, error) {
	for _, rows := range []struct {
		from, to string
		is       func(key, value []byte) bool
	}{{tasksFrom, tasksTo, isTask}, {deadFrom, deadTo, isTask}, {executionsFrom, executionsTo, isExecution}} {
		it, err := s.ListData(nil, o, rows.from, rows.to, false)
		if err != nil {
			return false, err
		}
		found := it.Next() && rows.is(it.Key(), it.Value())
		if err := errors.Join(it.Err(), it.Close()); found || err != nil {
			return found, err
		}
	}
	return false, nil
}

// isTask reports whether a row has the form of a task: two bytes and a number as its key,
// and a version and a state first.
func isTask(key, value []byte) bool {
	return len(key) == len(tasksFrom)+8 && len(value) > 2 && value[0] == taskVersion
}

// isExecution reports whether a row is the execution of a task.
func isExecution(_, value []byte) bool { return subject(value) == taskOf }

// lookAtLetters compares the dead tasks of a partition with its letters in the list of all
// dead work (W10).
func (p *partition) lookAtLetters(s *storage.Store, o storage.Object) error {
	letters := make(map[uint64]bool)
	err := s.DeadLetters(o.ID, func(seq uint64, value []byte) error {
		var letter object.DeadLetter
		if err := json.Unmarshal(value, &letter); err != nil {
			p.letters = fmt.Sprintf("dead letter %d cannot be decoded: %v", seq, err)
		} else if letter.Kind == deadTask {
			letters[seq] = true
		}
		return nil
	})
	if err != nil {
		return err
	}
	it, err := s.ListData(nil, o, deadFrom, deadTo, false)
	if err != nil {
		return err
	}
	defer it.Close()
	for it.Next() {
		seq := letterOf(it.Value())
		if !letters[seq] && p.letters == "" {
			p.letters = fmt.Sprintf("dead task %s-%d has no dead letter", o.ID.Name, numberIn(it.Key()))
		}
		delete(letters, seq)
	}
	if len(letters) > 0 && p.letters == "" {
		p.letters = fmt.Sprintf("dead letter %d is of no dead task", slices.Min(slices.Collect(maps.Keys(letters))))
	}
	return it.Err()
}

// numberIn is the number of a task at the end of a key.
func numberIn(key []byte) uint64 {
	var n [8]byte
	copy(n[:], bytes.TrimPrefix(key, []byte(deadFrom)))
	return binary.BigEndian.Uint64(n[:])
}

// letterOf is the number of its letter in the row of a dead task; 0 if it has none.
func letterOf(task []byte) uint64 {
	r := row.Read(task)
	r.Byte() // version
	r.Byte() // state
	r.Uint() // order
	for range 5 {
		r.Int() // priority and times
	}
	for range 5 {
		r.Bytes() // key, queue, input, output, and the JSON of what is rare
	}
	return r.Uint()
}

// decode reads the counters and reports whether raw has their form. The row may be of
// another kind, because an object of a user may have the same key.
func (p *partition) decode(raw []byte) bool {
	r := row.Read(raw)
	version, mode, due, count := r.Byte(), r.Byte(), r.Byte(), r.Uint()
	if version != countersVersion || mode > draining || due > 1 || count < countersLeast || count > uint64(r.Len()) {
		return false
	}
	var n [countersLeast]uint64 // submitted, pending, running, done, dead, cancelled, …, calls
	for i := range n {
		n[i] = r.Uint()
	}
	r.Required()
	*p = partition{
		is: r.OK() && n[0] == n[1]+n[2]+n[3]+n[4]+n[5], raw: string(raw), paused: mode == pausedMode,
		pending: n[1], running: n[2], due: due == 1 || n[10] > 0,
	}
	return p.is
}

// subject is the first bytes of the subject of a stored execution, as many as the
// subject of a task begins with: it follows the version and the flags.
func subject(execution []byte) string {
	const head = 3 // version, flags, length of the subject
	if len(execution) < head+len(taskOf) {
		return ""
	}
	return string(execution[head : head+len(taskOf)])
}

// contradiction is that of facts, for a partition.
func (p partition) contradiction(armed bool) (promise, problem string, orphan bool) {
	switch {
	case p.damage != "":
		return "W1", p.damage, false
	case p.executions < p.running:
		return "J5", fmt.Sprintf("%d tasks are running and %d have an execution", p.running, p.executions), false
	case p.letters != "":
		return "W10", p.letters, false
	case armed:
		return "", "", false
	case p.running > 0:
		return "J5", "tasks are running and no alarm is set", false
	case p.pending > 0 && !p.paused:
		return "R3", "tasks are pending and no alarm is set", true
	case p.due:
		return "R3", "a call of a hook is due and no alarm is set", true
	case p.aging:
		return "R3", "dead tasks wait for a step of the Retention and no alarm is set", true
	}
	return "", "", false
}
