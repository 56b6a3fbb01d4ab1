package memlog

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// Quarantine implements shardlog.Directory.
func (l *Log) Quarantine(ctx context.Context, n int, where string) error {
	return l.note(ctx, n, where, func(s *shard) {
		if s.head.Lost == "" {
			if !s.head.Exported() { // an export is for good
				s.head.Owner = ""
			}
			s.head.Term, s.head.Lost = s.head.Term+1, where
		}
	})
}

// NoteLate implements shardlog.Directory.
func (l *Log) NoteLate(ctx context.Context, n int, where string) error {
	return l.note(ctx, n, where, func(s *shard) {
		if s.late == "" {
			s.late = where
		}
	})
}

// note calls set with a shard, if where says something.
func (l *Log) note(ctx context.Context, n int, where string, set func(*shard)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.answers(ctx); err != nil {
		return err
	}
	if where == "" {
		return fmt.Errorf("%w: a loss without a place", shardlog.ErrRefused)
	}
	set(l.at(n))
	return nil
}

// Recover implements shardlog.Directory.
func (l *Log) Recover(ctx context.Context, shard int, term, before uint64, records []shardlog.Record) (shardlog.State, error) {
	records, err := follow(before, term, records)
	if err != nil {
		return shardlog.State{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.answers(ctx); err != nil {
		return shardlog.State{}, err
	}
	s := l.at(shard)
	if s.head.Term != term {
		return shardlog.State{}, fmt.Errorf("%w: shard %d has term %d, not %d", shardlog.ErrFenced, shard, s.head.Term, term)
	}
	if err := s.putBack(before, records); err != nil {
		return shardlog.State{}, err
	}
	s.head.Lost, s.late = "", ""
	s.snapshots = slices.DeleteFunc(s.kept(), func(has shardlog.Snapshot) bool { return !s.has(has) })
	return s.head, nil
}

// follow returns records of its own, which follow one another.
func follow(before, newest uint64, records []shardlog.Record) ([]shardlog.Record, error) {
	records = slices.Clone(records)
	for i := range records {
		r := &records[i]
		r.Payload = bytes.Clone(r.Payload)
		last := shardlog.Record{At: r.At - 1, Chain: before}
		if i > 0 {
			last = records[i-1]
		}
		if err := r.Follows(last, newest); err != nil {
			return nil, err
		}
	}
	return records, nil
}

// putBack puts records behind the last one, unless they are there.
func (s *shard) putBack(before uint64, records []shardlog.Record) error {
	if len(records) == 0 {
		return nil
	}
	h, first, last := &s.head, records[0], records[len(records)-1]
	switch {
	case h.Lost == "" && h.Last == last.At && h.Chain == last.Chain && s.written == last.Term:
		return nil // a repeat
	case h.Lost == "":
		return fmt.Errorf("%w: the shard is not in quarantine", shardlog.ErrFenced)
	case first.At != h.Last+1 || before != h.Chain || first.Term < s.written:
		return fmt.Errorf("%w: record %d does not follow from record %d, the last", shardlog.ErrFenced, first.At, h.Last)
	}
	s.records = append(s.records, records...)
	h.Last, h.Chain, s.written = last.At, last.Chain, last.Term
	return nil
}
