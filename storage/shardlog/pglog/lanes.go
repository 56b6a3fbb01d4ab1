package pglog

import (
	"sync"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// request is an append that waits for its answer.
type request struct {
	shard  int32
	before uint64
	size   int           // of the payload, in bytes
	done   chan struct{} // closed once stored and err are final

	mu   sync.Mutex // guards left and the payload
	left bool       // the caller has gone, and its payload with it
	r    shardlog.Record

	stored bool
	err    error // nil: stored tells the answer
}

// leave takes the payload away. A lane that has copied it before goes on.
func (q *request) leave() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.left, q.r.Payload = true, nil
}

// Bounds of one statement. A record of more than groupBytes is alone in one.
const (
	groupRecords = 256
	groupBytes   = 4 << 20
)

// lanes share out appends to a few connections. A lane takes all appends that wait, but of each shard one: so a statement never has two
// records of a shard, and no lane waits for the row that another one has locked.
type lanes struct {
	l *Log

	mu      sync.Mutex
	waiting []*request
	busy    map[int32]bool // shards with a statement under way
	idle    []*lane
}

// lane is one connection for appends.
type lane struct {
	*link
	group group
}

func newLanes(l *Log) *lanes {
	s := &lanes{l: l, busy: make(map[int32]bool)}
	for range l.o.Lanes {
		s.idle = append(s.idle, &lane{link: l.newLink("append")})
	}
	return s
}

// add hands an append to the lanes, and starts one if one is idle.
func (s *lanes) add(q *request) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = append(s.waiting, q)
	if len(s.idle) == 0 {
		return nil
	}
	n := s.idle[len(s.idle)-1]
	if !s.l.tasks.start("pglog append", func() { s.run(n) }) {
		s.waiting = nil
		return errClosed
	}
	s.idle = s.idle[:len(s.idle)-1]
	return nil
}

// run appends until no append waits that could be made.
func (s *lanes) run(n *lane) {
	for {
		batch := s.take(n)
		if len(batch) == 0 {
			return
		}
		s.l.append(n, batch)
		s.release(batch)
		for _, q := range batch {
			close(q.done)
		}
	}
}

// take returns the next appends for a lane, and marks their shards as busy. If there are none, the lane is idle.
func (s *lanes) take(n *lane) (batch []*request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	bytes, rest := 0, s.waiting[:0]
	for i, q := range s.waiting {
		if len(batch) == groupRecords || len(batch) > 0 && bytes+q.size > groupBytes {
			rest = append(rest, s.waiting[i:]...)
			break
		}
		if s.busy[q.shard] {
			rest = append(rest, q)
			continue
		}
		s.busy[q.shard] = true
		bytes += q.size
		batch = append(batch, q)
	}
	clear(s.waiting[len(rest):])
	s.waiting = rest
	if len(batch) == 0 {
		s.idle = append(s.idle, n)
	}
	return batch
}

// release ends the statement of some appends. The lane that calls it looks for more, so none is forgotten.
func (s *lanes) release(batch []*request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range batch {
		delete(s.busy, q.shard)
	}
}
