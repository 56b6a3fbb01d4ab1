package workflow

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/holdfast-dev/holdfast/jobs/internal/history"
	"github.com/holdfast-dev/holdfast/object"
)

// pending are the entries and the values of variables that a stretch has made and not stored.
// stretch.mu guards them.
//
// A turn stores a quarter of a batch of them, or a single one that is larger. An entry takes
// up to half a batch. So there is room beside them for the other rows of the turn, for
// example the start of a child, which also takes up to half a batch.
type pending struct {
	entries  []*history.Entry
	bytes    int // of entries
	made     int // entries that were ever added
	stored   int // of these
	vars     map[string][]byte
	varBytes int // of vars
}

// empty reports whether all is stored.
func (p *pending) empty() bool { return len(p.entries) == 0 && len(p.vars) == 0 }

// set sets a variable.
func (p *pending) set(name string, value []byte) {
	if p.vars == nil {
		p.vars = make(map[string][]byte)
	}
	if old, ok := p.vars[name]; ok {
		p.varBytes -= len(name) + len(old)
	}
	p.vars[name] = value
	p.varBytes += len(name) + len(value)
}

// part returns the entries, and takes the variables, that a turn of so many bytes is to store:
// the oldest entries, and variables once no entry is before them (F14).
func (p *pending) part(limit int) (entries []*history.Entry, vars map[string][]byte) {
	if p.bytes+p.varBytes <= limit {
		vars, p.vars, p.varBytes = p.vars, nil, 0 // a Set meanwhile begins another map
		return p.entries, vars
	}
	n, bytes := 0, 0
	for n < len(p.entries) && (n == 0 || bytes+p.entries[n].Bytes() <= limit) {
		bytes += p.entries[n].Bytes()
		n++
	}
	if n > 0 {
		return p.entries[:n], nil
	}
	vars = make(map[string][]byte)
	for _, name := range slices.Sorted(maps.Keys(p.vars)) {
		size := len(name) + len(p.vars[name])
		if bytes += size; len(vars) > 0 && bytes > limit {
			break
		}
		vars[name] = p.vars[name]
		delete(p.vars, name)
		p.varBytes -= size
	}
	return nil, vars
}

// forget forgets the oldest entries, which are stored.
func (p *pending) forget(entries []*history.Entry) {
	for _, e := range entries {
		p.bytes -= e.Bytes()
	}
	p.stored += len(entries)
	p.entries = slices.Delete(p.entries, 0, len(entries)) // in place, so that the next entry needs no new array
}

// record adds an entry to those that are to be stored.
func (s *stretch) record(e history.Entry) *history.Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending.entries = append(s.pending.entries, &e)
	s.pending.bytes += e.Bytes()
	s.pending.made++
	return &e
}

// full returns why the history takes no further entry, or nil.
func (s *stretch) full() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &s.d.config
	n, bytes := s.in.entries.Load()+int64(len(s.pending.entries)), s.in.bytes.Load()+int64(s.pending.bytes)
	switch {
	case n >= int64(c.MaxEntries):
		return fmt.Errorf("%w: it has %d entries: raise Config.MaxEntries (%d), or use ContinueAs when NearFull", ErrHistoryFull, n, c.MaxEntries)
	case bytes >= int64(c.MaxBytes):
		return fmt.Errorf("%w: it has %d bytes: raise Config.MaxBytes (%d), or use ContinueAs when NearFull", ErrHistoryFull, bytes, c.MaxBytes)
	}
	return nil
}

// partBytes is how many bytes of pending entries a turn stores.
func (s *stretch) partBytes() int { return s.st.Driver().MaxBatchBytes() / 4 }

// large reports whether more is pending than one turn stores.
func (s *stretch) large() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.largeLocked()
}

// largeLocked is large of a caller that holds s.mu.
func (s *stretch) largeLocked() bool { return s.pending.bytes+s.pending.varBytes > s.partBytes() }

// flush stores what is pending. It returns when that is durable.
func (s *stretch) flush() {
	s.mu.Lock()
	idle := s.pending.empty() && s.turns == 0
	made := s.pending.made
	s.mu.Unlock()
	for more := !idle && !s.dry; more; {
		s.do(s.storing)
		s.mu.Lock()
		more = s.pending.stored < made || s.largeLocked()
		s.mu.Unlock()
	}
}

// flushLarge stores what is pending if it is much.
func (s *stretch) flushLarge() {
	if !s.dry && s.large() {
		s.flush()
	}
}

// storeLarge stores what is pending after the last task has ended, if that would be too much
// for the batch that ends the execution. A child's end takes up to 7/8 of a batch, because its
// output is in the answer to its parent too.
func (s *stretch) storeLarge() error {
	if s.dry || s.outcome.kind == cut {
		return nil
	}
	for p := &s.pending; !p.empty() && p.bytes+p.varBytes+len(s.outcome.value) > s.partBytes(); {
		if err := s.st.Do(s.base, s.storing); err != nil {
			return err
		}
	}
	return nil
}

// errNoRoom is the error of a turn that has written nothing, because more is pending than it
// stores.
var errNoRoom = errors.New("workflow: too many entries are pending")

// errOver is the error of a turn that has written nothing, because the stretch has ended.
var errOver = errors.New("workflow: the stretch is over")

// turn runs fn in a turn of the object that stores the entries which are pending first. The
// task ends if the turn fails, because the instance is gone then or cannot go on, and if the
// stretch has ended since the operation began, for example because another branch does not follow
// its history: then nothing new is stored (F3).
func (s *stretch) turn(fn func(ctx context.Context) error) {
	for again := true; again; {
		s.flushLarge()
		again = s.do(func(ctx context.Context) error {
			if err := s.mayStore(); err != nil {
				return err
			}
			if err := s.store(ctx); err != nil {
				return err
			}
			return fn(ctx)
		})
	}
}

// mayStore returns why a turn must write nothing, or nil.
func (s *stretch) mayStore() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.outcome.kind != running:
		return errOver
	case s.largeLocked(): // other branches have made entries since
		return errNoRoom
	}
	return nil
}

// do runs fn in a turn of the object. The task ends if the turn fails, unless it is to be
// tried again because there was no room.
func (s *stretch) do(fn func(ctx context.Context) error) (again bool) {
	s.mu.Lock()
	s.turns++
	s.mu.Unlock()
	err := s.st.Do(s.base, fn)
	s.mu.Lock()
	s.turns--
	s.mu.Unlock()
	if again = errors.Is(err, errNoRoom); err != nil && !again {
		s.lost(err)
	}
	return again
}

// lost ends the stretch because a turn has failed.
func (s *stretch) lost(err error) {
	s.mu.Lock()
	gone := s.base.Err() != nil
	s.mu.Unlock()
	kind := stuck
	if gone || errors.Is(err, object.ErrReset) || errors.Is(err, object.ErrShutdown) || errors.Is(err, object.ErrStorage) {
		kind = cut
	}
	s.end(outcome{kind: kind, err: err})
	s.exit()
}

// store writes a part of what is pending, in a turn of the object.
func (s *stretch) store(ctx context.Context) error {
	s.mu.Lock()
	entries, vars := s.pending.part(s.partBytes())
	s.mu.Unlock()
	if len(entries) == 0 && len(vars) == 0 {
		return nil
	}
	if err := s.in.append(ctx, s.token, entries); err != nil {
		return err
	}
	if err := s.in.setVars(ctx, vars); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending.forget(entries)
	return nil
}

// storeNow writes one more entry of a scope in a turn that has stored the others of the scope.
// It does not wait behind those of other branches, because their order is free, and the turn
// must store all or nothing.
func (s *stretch) storeNow(ctx context.Context, e *history.Entry) error {
	return s.in.append(ctx, s.token, []*history.Entry{e})
}
