package storagetest

import (
	"errors"
	"fmt"
	"maps"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-dev/holdfast/storage"
)

// subject is a store under test and the commits it has been given. Its lives follow one
// another; issued and acked may be read meanwhile.
type subject struct {
	open     Opener
	dir      string
	work     *workload
	ackEvery int          // how many commits go by between two waits
	issued   atomic.Int64 // the last commit that was begun
	acked    atomic.Int64 // the last commit that was reported durable

	// told, if set, is called with each commit that is begun or durable.
	told func(what string, n int)
	// onError is called with the error of a use, and returns it or a worse one.
	onError func(*storage.Store, error) error
}

// after is a subject for a check of the files that s left: with counters of its own, which
// begin where a crash found them.
func (s *subject) after(acked, issued int64) *subject {
	next := &subject{open: s.open, dir: s.dir, work: s.work, ackEvery: s.ackEvery}
	next.acked.Store(acked)
	next.issued.Store(issued)
	return next
}

// again is a subject with the counters of s.
func (s *subject) again() *subject { return s.after(s.acked.Load(), s.issued.Load()) }

func newSubject(open Opener, seed uint64, commits int) *subject {
	return &subject{open: open, dir: dir, work: newWorkload(seed, commits, false), ackEvery: 1 + int(seed%4)}
}

// live opens the store, makes the commits up to number to, and ends with end, or
// with Abandon after an error.
func (s *subject) live(fsys vfs.FS, to int, end func(*storage.Store) error) error {
	st, err := s.open(fsys, s.dir)
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	if err := s.commits(st, to); err != nil {
		if s.onError != nil {
			err = s.onError(st, err)
		}
		_ = st.Abandon() // err says more
		return err
	}
	return end(st)
}

// commits makes the commits from where the store is up to number to.
func (s *subject) commits(st *storage.Store, to int) error {
	held, err := readAll(st)
	if err != nil {
		return fmt.Errorf("read: %w", err)
	}
	n, err := held.number()
	if err != nil {
		return err
	}
	for n++; n <= to; n++ {
		s.tell(&s.issued, "begun", n)
		ticket, err := s.commit(st, n)
		if err != nil {
			return fmt.Errorf("commit %d: %w", n, err)
		}
		if n%s.ackEvery != 0 && n != to {
			continue
		}
		if err := st.WaitDurable(ticket); err != nil {
			return fmt.Errorf("wait for %d: %w", n, err)
		}
		s.tell(&s.acked, "durable", n)
	}
	return nil
}

func (s *subject) tell(last *atomic.Int64, what string, n int) {
	last.Store(max(last.Load(), int64(n)))
	if s.told != nil {
		s.told(what, n)
	}
}

// commit makes commit n upon the state n-1.
func (s *subject) commit(st *storage.Store, n int) (storage.Ticket, error) {
	made := map[storage.ID]storage.Object{}
	var findErr error
	d := draft{rows: maps.Clone(s.work.states[n-1])}
	d.objects = func(id storage.ID) storage.Object {
		o, ok := made[id]
		if _, exists := d.rows["object "+id.Name]; exists && !ok {
			var err error
			o, err = st.Find(id)
			findErr = errors.Join(findErr, err)
		} else if !exists {
			o = storage.Object{ID: id, Shard: st.ShardOf(id), Number: st.NewNumber(), Epoch: st.Epoch()}
		}
		made[id] = o
		return o
	}
	d.first = func(to storage.ID, queue byte) storage.StoredMessage {
		m, err := firstOf(st, to, queue)
		findErr = errors.Join(findErr, err)
		return m
	}
	s.work.fill(&d, n)
	if findErr != nil {
		return 0, findErr
	}
	ticket, err := st.Commit(&d.batch)
	if err == nil {
		st.HandedOver(d.batch.MessageSeq(0))
	}
	return ticket, err
}

// secondLife is how many commits verify makes.
const secondLife = 3

// verify opens the store as it was left in fsys, and checks that it holds the
// state of one commit, not older than acked and not newer than issued, and returns its
// number; that it passes its own check; and that it works on and can
// be opened again.
func (s *subject) verify(fsys vfs.FS) (found int, err error) {
	to := 0
	work := func(st *storage.Store) (err error) {
		if found, err = s.prefix(st); err != nil {
			return err
		}
		to = min(found+secondLife, len(s.work.states)-1)
		return s.commits(st, to)
	}
	again := func(st *storage.Store) error {
		n, err := s.prefix(st)
		switch {
		case err != nil:
			return fmt.Errorf("opened again: %w", err)
		case n != to:
			return fmt.Errorf("%w: opened again, the store ends with %d, want %d", errWrong, n, to)
		case !st.Previous().Clean:
			return fmt.Errorf("%w: the clean close counts as a crash", errWrong)
		}
		return nil
	}
	for _, use := range []func(*storage.Store) error{work, again} {
		st, err := s.open(fsys, s.dir)
		if err != nil {
			return found, fmt.Errorf("open: %w", err)
		}
		err = use(st)
		if closeErr := st.Close(); err == nil && closeErr != nil {
			err = fmt.Errorf("close: %w", closeErr)
		}
		if err != nil {
			return found, err
		}
	}
	return found, nil
}

// prefix checks the rows of the store and returns the number of its last commit.
func (s *subject) prefix(st *storage.Store) (int, error) {
	acked, issued := s.acked.Load(), s.issued.Load()
	held, err := readAll(st)
	if err != nil {
		return 0, fmt.Errorf("read: %w", err)
	}
	n, err := held.number()
	if err != nil {
		return 0, err
	}
	if int64(n) < acked {
		return 0, fmt.Errorf("%w: commit %d was acknowledged, and the store ends with %d", errWrong, acked, n)
	}
	if int64(n) > issued {
		return 0, fmt.Errorf("%w: commit %d was the last to begin, and the store ends with %d", errWrong, issued, n)
	}
	if err := held.compare(s.work.states[n]); err != nil {
		return 0, fmt.Errorf("the store says that commit %d is its last: %w", n, err)
	}
	return n, st.Check()
}
