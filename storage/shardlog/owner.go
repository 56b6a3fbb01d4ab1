package shardlog

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/storage"
)

// own brings the view up to date and claims the log, at once or when it has its turn. The claim comes after the view has caught up, so that a
// process with a view that cannot be used takes the log from no other. It returns the state that the claim found.
func (e *Engine) own() (before State, err error) {
	if err := joinCluster(e.view, e.o.Cluster); err != nil {
		return State{}, err
	}
	if e.last, e.chain, err = readPosition(e.view); err != nil {
		return State{}, err
	}
	e.tables = e.proven()
	if e.o.Turn != nil {
		return e.await()
	}
	head, err := e.ready()
	if err != nil {
		return State{}, err
	}
	return e.ownAfter(head.Term, head)
}

// ready brings the view up to the head of the log and has it checked.
func (e *Engine) ready() (head State, err error) {
	if head, err = e.head(); err != nil {
		return State{}, err
	}
	if err := e.catchUp(head); err != nil {
		return State{}, err
	}
	if e.o.Check != nil {
		err = e.o.Check(e.view)
	}
	return head, err
}

// ownAfter claims the term after seen, and reads the few records that the owner before has appended since head. It returns the state that
// the claim found.
func (e *Engine) ownAfter(seen uint64, head State) (before State, err error) {
	claimed, err := e.claim(seen)
	if err != nil {
		return State{}, err
	}
	if err := e.catchUp(claimed); err != nil {
		return State{}, err
	}
	e.term = claimed.Term
	e.progress.owns(e.term, e.last, e.chain)
	e.kept.before = e.chain
	if err := forgetLoss(e.view); err != nil {
		return State{}, err
	}
	before = claimed
	before.Term, before.Owner = seen, ""
	if head.Term == seen {
		before.Owner = head.Owner
	}
	e.tookOver = before.Owner != "" && before.Node() != e.o.Owner
	return before, nil
}

// head asks the log for its head.
func (e *Engine) head() (head State, err error) {
	err = e.repeat("head", func(ctx context.Context) (err error) {
		head, err = e.o.Log.Head(ctx, e.o.Shard)
		return err
	})
	return head, err
}

// claim begins the term after seen. Random bits in the name of the owner tell a claim of unknown outcome from that of another
// process with the same name.
func (e *Engine) claim(seen uint64) (head State, err error) {
	random := e.o.Seams.Rand
	owner := fmt.Sprintf("%s %016x%016x", e.o.Owner, random.Uint64(), random.Uint64())
	unknown := false
	e.o.Seams.At("claim/before", "")
	err = e.repeat("claim", func(ctx context.Context) (err error) {
		head, err = e.o.Log.Claim(ctx, e.o.Shard, owner, seen)
		if err == nil || errors.Is(err, ErrFenced) && !unknown || errors.Is(err, ErrRefused) {
			return err
		}
		// An earlier call may have made the claim, or this one.
		unknown = true
		found, lookErr := e.o.Log.Head(ctx, e.o.Shard)
		switch {
		case lookErr != nil:
			return lookErr
		case found.Owner == owner:
			head = found
			return nil
		case found.Term > seen:
			return fmt.Errorf("%w: %s, term %d", ErrFenced, found.Owner, found.Term)
		}
		return err
	})
	if err == nil {
		e.o.Seams.At("claim/after", "")
	}
	return head, err
}

// catchUp reads the log into the view, up to a head that the log has told of as durable. Records after it may not be, so
// they are left.
func (e *Engine) catchUp(head State) error {
	if err := e.fits(head); err != nil {
		return err
	}
	for e.last < head.Last {
		at := e.last
		if err := e.readOn(head); err != nil {
			return err
		}
		if e.last == at {
			break // the log gives no more
		}
		if err := writePosition(e.view, e.last, e.chain); err != nil {
			return err
		}
	}
	if e.last != head.Last || e.chain != head.Chain {
		return fmt.Errorf("%w: it could be read up to record %d of %d", ErrHole, e.last, head.Last)
	}
	return nil
}

// fits returns an error if the log that has a head does not go on from the view.
func (e *Engine) fits(head State) error {
	err := e.receipt(head)
	switch {
	case lossOf(err) != nil:
		return err
	case head.Lost != "":
		return fmt.Errorf("%w: the log says: %s", storage.ErrAckedDataLost, head.Lost)
	case head.Exported() && !isExport(e.o.Owner):
		return fmt.Errorf("%w: %s, term %d", ErrExported, head.Owner, head.Term)
	case e.last+1 < head.First:
		return fmt.Errorf("%w: it begins at %d, after a base, and the view ends at %d", ErrTruncated, head.First, e.last)
	case err != nil:
		return err
	case e.term > head.Term:
		return fmt.Errorf("%w: record %d has term %d, after term %d", ErrHole, e.last, e.term, head.Term)
	case e.tables.at > head.Last:
		return &loss{e.tables, fmt.Sprintf("ends at %d", head.Last)}
	}
	return nil
}

// readOn reads records into the view, up to a head. One call of the log may give a part of them, because it gives a page or takes
// longer than Options.Timeout. Each record is an answer, so the next call has all of Options.Patience again.
func (e *Engine) readOn(head State) error {
	at := e.last
	return e.repeat("read", func(ctx context.Context) error {
		err := e.o.Log.Read(ctx, e.o.Shard, at+1, func(r Record) error {
			if r.At > head.Last {
				return errEnough
			}
			return e.replay(r, head.Term)
		})
		if errors.Is(err, errEnough) || e.last > at && !settles(err) {
			return nil
		}
		return err
	})
}

// replay gives the next record to the view.
func (e *Engine) replay(r Record, newest uint64) error {
	if err := r.Follows(Record{At: e.last, Term: e.term, Chain: e.chain}, newest); err != nil {
		return err
	}
	if r.At == e.tables.at && r.Chain != e.tables.chain {
		return final{&loss{e.tables, otherRecord}}
	}
	e.reached(place{r.At, r.Chain}) // before the view has a part of it
	if err := Batches(r.Payload, e.view.Apply); err != nil {
		return final{err}
	}
	e.last, e.chain, e.term = r.At, r.Chain, r.Term
	return nil
}

// errEnough ends a Read at the head.
var errEnough = errors.New("shardlog: no more is wanted")

// confirm asks the log whether this owner is the newest. The caller has the token.
func (e *Engine) confirm() error {
	head, err := e.head()
	if err != nil {
		return err
	}
	if head.Term == e.term && head.Last == e.last && head.Chain == e.chain && head.Lost == "" {
		return nil
	}
	lost := e.receipt(head)
	e.compared = lost == nil
	return e.replaced(head, lost)
}

// fenced is the error of an append that the log refused. It looks once whether the log still has the last record that it
// acknowledged, because the log may have lost it, and the next owner may hide that soon. The caller has the token.
func (e *Engine) fenced(cause error) error {
	var head State
	var lost error
	err := e.once(func(ctx context.Context) (err error) {
		head, lost, err = e.look(ctx, place{e.last, e.chain})
		return err
	})
	if err != nil {
		return fmt.Errorf("%w; whether the log has all that it acknowledged is not known: %w", cause, err)
	}
	e.compared = lost == nil
	return errors.Join(cause, e.replaced(head, lost))
}

// replaced is the error of an owner that finds a head that it did not leave. Lost is the error of its receipt.
func (e *Engine) replaced(head State, lost error) error {
	switch {
	case lost != nil:
		return lost
	case head.Lost != "":
		return fmt.Errorf("%w: the log says: %s", storage.ErrAckedDataLost, head.Lost)
	case head.Term == e.term && head.Last != e.last:
		return fmt.Errorf("%w: record %d of term %d is not ours", ErrHole, head.Last, head.Term)
	}
	return fmt.Errorf("%w: %s, term %d", ErrFenced, head.Owner, head.Term)
}

// receipt returns a loss if the log lacks the last record of the view, which it has acknowledged.
func (e *Engine) receipt(head State) error {
	return missing(head, place{e.last, e.chain}, func(at Position) (chain uint64, err error) {
		err = e.repeat("read", func(ctx context.Context) (err error) {
			chain, err = e.chainAt(ctx, at)
			return err
		})
		return chain, err
	})
}
