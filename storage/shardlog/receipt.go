package shardlog

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/storage"
)

// place is a record: its position and its chain. The zero place is that before the first record.
type place struct {
	at    Position
	chain uint64
}

// loss is the error of a record that the log has acknowledged and lacks. It is an ErrAckedDataLost.
type loss struct {
	place
	log string // says what the log has
}

// otherRecord is what a log has that has gone on without the record.
const otherRecord = "has another in its place"

func (l *loss) Error() string {
	return fmt.Sprintf("%v: the log acknowledged record %d and %s: put the lost records back, or accept the loss (Directory.Recover); once it is accepted, remove this directory, because it has records that the log has lost",
		storage.ErrAckedDataLost, l.at, l.log)
}

func (l *loss) Unwrap() error { return storage.ErrAckedDataLost }

// where says for people which record is missing, and which process found that.
func (l *loss) where(finder string) string {
	return fmt.Sprintf("record %d with chain %016x was acknowledged, and the log %s: found by %s", l.at, l.chain, l.log, finder)
}

// lossOf is the loss that an error tells of, or nil.
func lossOf(err error) *loss {
	var l *loss
	errors.As(err, &l)
	return l
}

// missing returns a loss if the log that has a head lacks an acknowledged record, or has another in its place. It returns nil if that
// record is truncated by now. chainAt returns the chain of a record that the log has.
func missing(head State, acked place, chainAt func(Position) (uint64, error)) error {
	switch {
	case acked.at == 0 || acked.at+1 < head.First:
		return nil
	case acked.at > head.Last:
		return &loss{acked, fmt.Sprintf("ends at %d", head.Last)}
	}
	chain := head.Chain
	if acked.at < head.Last {
		if acked.at < head.First {
			return nil // the base that replaced the record is compared by the record after it
		}
		var err error
		if chain, err = chainAt(acked.at); err != nil {
			return err
		}
	}
	if chain != acked.chain {
		return &loss{acked, otherRecord}
	}
	return nil
}

// look asks the log once for its head, and whether it has an acknowledged record. Lost is a loss, or nil.
func (a *asker) look(ctx context.Context, acked place) (head State, lost, err error) {
	if head, err = a.o.Log.Head(ctx, a.o.Shard); err != nil {
		return State{}, nil, err
	}
	err = missing(head, acked, func(at Position) (uint64, error) { return a.chainAt(ctx, at) })
	if lossOf(err) != nil {
		return head, err, nil
	}
	return head, nil, err
}

// chainAt reads the chain of a record that the log has, once.
func (a *asker) chainAt(ctx context.Context, at Position) (chain uint64, err error) {
	found := false
	err = a.o.Log.Read(ctx, a.o.Shard, at, func(r Record) error {
		if found = r.At == at; found {
			chain = r.Chain
		}
		return errEnough
	})
	switch {
	case err != nil && !errors.Is(err, errEnough):
		return 0, err
	case !found:
		return 0, fmt.Errorf("%w: record %d is missing", ErrHole, at)
	}
	return chain, nil
}
