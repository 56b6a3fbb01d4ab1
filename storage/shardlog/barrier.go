package shardlog

import "sync"

// barrier keeps batches that the log has not acknowledged off the local disk, and holds the round. It counts batches.
type barrier struct {
	lead func() error // appends the round; set before the first batch

	mu    sync.Mutex
	began uint64   // batches given to the view
	acked uint64   // of them, those that the log has acknowledged
	err   error    // why no more will be
	round *round   // batches since the last append
	spans []*round // acknowledged rounds, the oldest first, of which the view may lack a batch yet
	told  func(error)

	newest place  // the newest record that the log has acknowledged and that the view may have a part of
	proof  *proof // the file that says so; nil: there is none
}

// join adds a batch to the round, and returns the round. The caller gives the batch to the view next.
func (b *barrier) join(repr []byte) (*round, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return nil, b.err
	}
	b.began++
	b.round.add(repr)
	return b.round, nil
}

// take takes the round for the goroutine that appends it, and how many batches had begun by then. It returns a nil round
// if that is empty: batches go on to join it, so only take may look.
func (b *barrier) take() (r *round, upTo uint64, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return nil, 0, b.err
	}
	if len(b.round.frames) == 0 {
		return nil, b.began, nil
	}
	r = b.round
	b.round = newRound(len(r.frames))
	return r, b.began, nil
}

// acknowledge opens the barrier for the first upTo batches, the last of which are those of r.
func (b *barrier) acknowledge(r *round, upTo uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.acked = upTo
	b.newest = place{r.last, r.chain}
	b.spans = append(b.spans, r)
}

// whole returns the newest of the acknowledged rounds that the view has as a whole, with all before it. It returns each round once;
// nil if there is none.
func (b *barrier) whole() (newest *round) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for n < len(b.spans) && b.spans[n].left.Load() == 0 {
		newest = b.spans[n]
		n++
	}
	rest := copy(b.spans, b.spans[n:])
	clear(b.spans[rest:])
	b.spans = b.spans[:rest]
	return newest
}

// wait returns nil when all batches that had begun are acknowledged, and an error when they never will be. Pebble calls it
// before it makes a table. A commit may wait for that table while no goroutine is about to sync, so
// the call appends the round by itself.
func (b *barrier) wait() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for n := b.began; b.err == nil && b.acked < n; {
		b.mu.Unlock()
		_ = b.lead() // its error is in b.err
		b.mu.Lock()
	}
	return b.err
}

// fail closes the barrier for good, unless it is closed, and tells of it. It returns the error that closed it.
func (b *barrier) fail(err error) error {
	b.mu.Lock()
	if b.err == nil {
		b.err = err
	}
	err, told := b.err, b.told
	b.mu.Unlock()
	if told != nil {
		told(err)
	}
	return err
}

// onDeath calls f when the barrier is closed for good, or now if it is.
func (b *barrier) onDeath(f func(error)) {
	b.mu.Lock()
	b.told = f
	err := b.err
	b.mu.Unlock()
	if err != nil {
		f(err)
	}
}

// failed returns the error that closed the barrier, or nil.
func (b *barrier) failed() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// reached notes that the view gets a record from the log, unless it has had a later one.
func (b *barrier) reached(p place) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p.at > b.newest.at {
		b.newest = p
	}
}

// proven is the newest record that the tables of the view may have a part of, when the view is opened.
func (b *barrier) proven() place {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.newest
}

// table returns nil when a table may be made: the log has all that the view has, and the proof says so.
func (b *barrier) table() error {
	if err := b.wait(); err != nil || b.proof == nil {
		return err
	}
	return b.proof.write(b.proven())
}
