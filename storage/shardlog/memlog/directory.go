package memlog

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// Cluster implements shardlog.Directory. Each log has the same name, because memlog draws no number, until SetCluster gives it another.
func (l *Log) Cluster(ctx context.Context) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.answers(ctx); err != nil {
		return "", err
	}
	return l.cluster, nil
}

// beaten is the row of a node.
type beaten struct {
	shardlog.Node
	at time.Time // of the last beat
}

// Beat implements shardlog.Directory.
func (l *Log) Beat(ctx context.Context, shard int, n shardlog.Node) (shardlog.Look, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.answers(ctx); err != nil {
		return shardlog.Look{}, err
	}
	has := l.nodes[n.ID].Incarnation
	switch {
	case n.ID == "":
		return shardlog.Look{}, fmt.Errorf("%w: a node has an empty id", shardlog.ErrRefused)
	case n.Incarnation == 0:
		l.incarnations++
		n.Incarnation = l.incarnations
	case n.Incarnation < has:
		return shardlog.Look{}, fmt.Errorf("%w: the id of node %s, which began incarnation %d after this one, %d", shardlog.ErrFenced, n.ID, has, n.Incarnation)
	}
	l.nodes[n.ID] = beaten{n, l.now()}
	return l.look(shard), nil
}

// Look implements shardlog.Directory.
func (l *Log) Look(ctx context.Context, shard int) (shardlog.Look, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.answers(ctx); err != nil {
		return shardlog.Look{}, err
	}
	return l.look(shard), nil
}

// look is Look. Log.mu must be held.
func (l *Log) look(shard int) shardlog.Look {
	s := l.at(shard)
	look := shardlog.Look{State: s.head, Late: s.late, Clock: l.now()}
	for _, n := range l.nodes {
		look.Nodes = append(look.Nodes, n.Node)
	}
	slices.SortFunc(look.Nodes, func(a, b shardlog.Node) int { return cmp.Compare(a.ID, b.ID) })
	return look
}

// Forget implements shardlog.Directory.
func (l *Log) Forget(ctx context.Context, age time.Duration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.answers(ctx); err != nil {
		return err
	}
	for id, n := range l.nodes {
		if l.now().Sub(n.at) >= age {
			delete(l.nodes, id)
		}
	}
	return nil
}

// Begin implements shardlog.Directory.
func (l *Log) Begin(ctx context.Context, shard int, base shardlog.Snapshot) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.answers(ctx); err != nil {
		return err
	}
	s := l.at(shard)
	switch {
	case slices.ContainsFunc(s.kept(), func(has shardlog.Snapshot) bool { return same(has, base) }):
		return nil // a repeat
	case base.Last == 0:
		return fmt.Errorf("%w: a base ends at record 1 or later", shardlog.ErrRefused)
	case s.head != (shardlog.State{First: 1}):
		return fmt.Errorf("%w: the log of shard %d is not fresh: it has term %d and ends at record %d", shardlog.ErrRefused, shard, s.head.Term, s.head.Last)
	}
	if err := s.complete(base); err != nil {
		return err
	}
	s.head.First, s.head.Last, s.head.Chain, s.base = base.Last+1, base.Last, base.Chain, base.Chain
	s.keep(base)
	return nil
}

// Register implements shardlog.Directory.
func (l *Log) Register(ctx context.Context, shard int, term uint64, snapshot shardlog.Snapshot) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.answers(ctx); err != nil {
		return err
	}
	s := l.at(shard)
	if err := s.claimed(term); err != nil {
		return err
	}
	if !s.has(snapshot) {
		return fmt.Errorf("%w: the log does not have the place of the snapshot, record %d with chain %x", shardlog.ErrRefused, snapshot.Last, snapshot.Chain)
	}
	if err := s.complete(snapshot); err != nil {
		return err
	}
	s.keep(snapshot)
	return nil
}

// Snapshots implements shardlog.Directory.
func (l *Log) Snapshots(ctx context.Context, shard int) ([]shardlog.Snapshot, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.answers(ctx); err != nil {
		return nil, err
	}
	var found []shardlog.Snapshot
	for _, s := range l.at(shard).kept() {
		found = append(found, clone(s))
	}
	return found, nil
}

// claimed is owned for a call that only an owner makes: term 0 has none.
func (s *shard) claimed(term uint64) error {
	if term == 0 {
		return fmt.Errorf("%w: the shard has no owner", shardlog.ErrFenced)
	}
	return s.owned(term)
}

// owned returns ErrFenced unless term is the newest, and not that of a quarantine.
func (s *shard) owned(term uint64) error {
	switch {
	case s.head.Lost != "":
		return fmt.Errorf("%w: the shard is in quarantine: %s", shardlog.ErrFenced, s.head.Lost)
	case s.head.Term != term:
		return fmt.Errorf("%w: the log has term %d, not %d", shardlog.ErrFenced, s.head.Term, term)
	}
	return nil
}

// has reports whether the log has the place of a snapshot. At the place before the first record no chain is compared.
func (s *shard) has(snapshot shardlog.Snapshot) bool {
	switch at := snapshot.Last; {
	case at+1 == s.head.First:
		return true
	case at < s.head.First || at > s.head.Last:
		return false
	default:
		return s.records[at-s.head.First].Chain == snapshot.Chain
	}
}

// complete returns ErrMissing unless all blobs of a snapshot are there.
func (s *shard) complete(snapshot shardlog.Snapshot) error {
	for _, name := range snapshot.Blobs {
		if _, ok := s.blobs[name]; !ok {
			return fmt.Errorf("%w: %s", shardlog.ErrMissing, name)
		}
	}
	return nil
}

// keep adds a snapshot, in the place of one with the same Last.
func (s *shard) keep(snapshot shardlog.Snapshot) {
	s.snapshots = slices.DeleteFunc(s.kept(), func(has shardlog.Snapshot) bool { return has.Last == snapshot.Last })
	s.snapshots = append(s.snapshots, clone(snapshot))
	slices.SortFunc(s.snapshots, func(a, b shardlog.Snapshot) int { return cmp.Compare(b.Last, a.Last) })
}

// kept removes the snapshots behind which records are missing, and returns the others.
func (s *shard) kept() []shardlog.Snapshot {
	s.snapshots = slices.DeleteFunc(s.snapshots, func(has shardlog.Snapshot) bool { return has.Last+1 < s.head.First })
	return s.snapshots
}

func same(a, b shardlog.Snapshot) bool {
	return a.Last == b.Last && a.Chain == b.Chain && bytes.Equal(a.Manifest, b.Manifest) && slices.Equal(a.Blobs, b.Blobs)
}

func clone(s shardlog.Snapshot) shardlog.Snapshot {
	s.Manifest, s.Blobs = bytes.Clone(s.Manifest), slices.Clone(s.Blobs)
	return s
}
