package recovery

import (
	"encoding/binary"
	"fmt"

	"github.com/holdfast-dev/holdfast/storage"
)

// A partition of a worker pool has no metadata: its counters tell what it has to do.
// FORMAT.md has them byte by byte; see package workerpool.
const (
	countersKey     = "c"
	countersVersion = 1
	countersLeast   = 11 // numbers that each writer has stored
	pausedMode      = 1
	draining        = 2
	taskOf          = "task/" // begins the subject of a task's execution

	executionsFrom, executionsTo = "x/", "x0"
)

// partition is what is stored of a partition, as far as it can contradict itself.
type partition struct {
	is         bool
	raw        string // of the counters; a partition in motion changes it
	paused     bool
	due        bool // OnDead or OnEmpty has yet to be called
	pending    uint64
	running    uint64
	executions uint64 // of tasks that are stored
}

// lookAtPool reads what is stored of a partition, if the object is one: if the row
// under the key of the counters is whole and its sums are right (W1).
func (f *facts) lookAtPool(s *storage.Store, o storage.Object) error {
	raw, _, err := s.Data(nil, o, countersKey)
	if err != nil || !f.pool.decode(raw) {
		return err
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
	return it.Err()
}

// decode reads the counters and reports whether that is what they are.
func (p *partition) decode(raw []byte) bool {
	if len(raw) < 4 || raw[0] != countersVersion || raw[1] > draining || raw[2] > 1 {
		return false
	}
	rest, whole := raw[3:], true
	number := func() uint64 {
		v, n := binary.Uvarint(rest)
		if whole = whole && n > 0; whole {
			rest = rest[n:]
		}
		return v
	}
	count := number()
	if count < countersLeast || count > uint64(len(rest)) {
		return false
	}
	var n [countersLeast]uint64 // submitted, pending, running, done, dead, cancelled, …, calls
	for i := range n {
		n[i] = number()
	}
	*p = partition{
		is: whole && n[0] == n[1]+n[2]+n[3]+n[4]+n[5], raw: string(raw), paused: raw[1] == pausedMode,
		pending: n[1], running: n[2], due: raw[2] == 1 || n[10] > 0,
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
	case p.executions < p.running:
		return "J5", fmt.Sprintf("%d tasks are running and %d have an execution", p.running, p.executions), false
	case armed:
		return "", "", false
	case p.running > 0:
		return "J5", "tasks are running and no alarm is set", false
	case p.pending > 0 && !p.paused:
		return "R3", "tasks are pending and no alarm is set", true
	case p.due:
		return "R3", "a call of a hook is due and no alarm is set", true
	}
	return "", "", false
}
