package shardlog

import (
	"sync"
	"time"
)

// progress is the state of an engine that any goroutine may ask for.
type progress struct {
	mu       sync.Mutex
	term     uint64
	last     Position
	chain    uint64
	appended uint64    // bytes
	answered time.Time // steady; zero: the log has not answered yet
	began    time.Time // steady; of the opening
}

// owns notes that the engine owns the log, from a record on.
func (p *progress) owns(term uint64, last Position, chain uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.term, p.last, p.chain = term, last, chain
}

// acked notes that the log has acknowledged a record.
func (p *progress) acked(r Record) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last, p.chain = r.At, r.Chain
	p.appended += uint64(len(r.Payload))
}

// heard notes that a call of the log that began at a time has succeeded.
func (p *progress) heard(began time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if began.After(p.answered) {
		p.answered = began
	}
}

// spoke is the last call of the log that succeeded, or the begin of the opening.
func (p *progress) spoke() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.answered.IsZero() {
		return p.began
	}
	return p.answered
}

// Term returns the term in which the engine owns the log, or owned it until another process began a newer one. Any goroutine may call it.
func (e *Engine) Term() uint64 {
	e.progress.mu.Lock()
	defer e.progress.mu.Unlock()
	return e.progress.term
}

// Place returns the position and the chain of the last record that the log has acknowledged, or of the last one that Open has
// read. Both are 0 in a log without a record. Any goroutine may call it.
func (e *Engine) Place() (Position, uint64) {
	e.progress.mu.Lock()
	defer e.progress.mu.Unlock()
	return e.progress.last, e.progress.chain
}

// Answered returns the moment at which the last call of the log that succeeded had begun: a time of Seams.Steady, which no jump of
// the wall clock changes. Calls of an Append, a Head, a Claim and a Read count. Any goroutine may call it.
func (e *Engine) Answered() time.Time {
	e.progress.mu.Lock()
	defer e.progress.mu.Unlock()
	return e.progress.answered
}

// AppendedBytes returns how many bytes of payload the log has acknowledged to this engine since Open. Any goroutine may call it.
func (e *Engine) AppendedBytes() uint64 {
	e.progress.mu.Lock()
	defer e.progress.mu.Unlock()
	return e.progress.appended
}
