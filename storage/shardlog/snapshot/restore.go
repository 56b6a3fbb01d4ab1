package snapshot

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/pebblestore"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// Restore makes dir a view of the newest snapshot, in place of the view that it holds: it fetches each file, compares its hash, and
// writes the format file last. A snapshot that is damaged, or was removed meanwhile, is passed over for the next one, and told of. The store
// is opened then with the log, from which it reads on.
//
// It changes nothing and returns ErrNone if the log has no snapshot and begins at 1, shardlog.ErrTruncated if it has none and begins later,
// storage.ErrMovedStore or storage.ErrNotStore if dir holds something else than a view, storage.ErrNoSpace if Options.MinFreeBytes would not be
// left, and storage.ErrLocked if a store has the view open. After any other error, or a crash, dir is no store, and Restore is to be called again.
func (o Options) Restore(ctx context.Context, dir string) (restored shardlog.Snapshot, err error) {
	o, err = o.withDefaults()
	if err != nil {
		return restored, err
	}
	defer func() { err = o.wrap("restore", err) }()
	tried := make(map[shardlog.Position]bool)
	var failed error
	for {
		s, err := o.newest(ctx, tried)
		if err != nil {
			return shardlog.Snapshot{}, errors.Join(failed, err)
		}
		if s == nil {
			return shardlog.Snapshot{}, failed
		}
		tried[s.Last] = true
		err = o.restore(ctx, *s, dir)
		if err == nil {
			return *s, nil
		}
		if !errors.Is(err, ErrDamaged) && !errors.Is(err, shardlog.ErrMissing) {
			return shardlog.Snapshot{}, err
		}
		o.Logger.Error("snapshot: a snapshot cannot be restored: the one before is tried", "record", s.Last, "error", err)
		failed = errors.Join(failed, err)
	}
}

// newest returns the newest snapshot that was not tried, or nil if all were.
func (o Options) newest(ctx context.Context, tried map[shardlog.Position]bool) (*shardlog.Snapshot, error) {
	all, err := o.Directory.Snapshots(ctx, o.Shard)
	if err != nil {
		return nil, fmt.Errorf("list snapshots: %w", err)
	}
	for _, s := range all {
		if !tried[s.Last] {
			return &s, nil
		}
	}
	if len(tried) > 0 {
		return nil, nil
	}
	look, err := o.Directory.Look(ctx, o.Shard)
	switch {
	case err != nil:
		return nil, err
	case look.State.First > 1:
		return nil, fmt.Errorf("%w: it begins at record %d, and no snapshot has the records before", shardlog.ErrTruncated, look.State.First)
	}
	return nil, ErrNone
}

// restore makes dir a view of one snapshot.
func (o Options) restore(ctx context.Context, s shardlog.Snapshot, dir string) error {
	m, err := read(s)
	if err != nil {
		return err
	}
	o.Logger.Info("snapshot: the restore begins", "record", s.Last, "dir", dir, "bytes", m.bytes())
	p := o.pace("snapshot: the restore goes on", 0, m.bytes())
	err = storage.ReplaceView(o.storage(dir), uint64(m.bytes()), func(to pebblestore.Dir, lock *pebblestore.Lock) (string, error) {
		for _, f := range m.files {
			if f.name == storage.FormatFile {
				continue
			}
			if err := o.fetch(ctx, f, to, p); err != nil {
				return "", fmt.Errorf("fetch %w", err)
			}
		}
		o.Seams.At("snapshot/fetched", "")
		if err := o.place(s, m, to, lock); err != nil {
			return "", err
		}
		format, _ := m.format()
		var text strings.Builder
		err := o.get(ctx, format, p, func(part []byte) error { text.Write(part); return nil })
		return text.String(), err
	})
	if err == nil {
		o.Logger.Info("snapshot: the restore has ended", "record", s.Last, "dir", dir)
	}
	return err
}

// fetch makes a file of a view, and syncs it.
func (o Options) fetch(ctx context.Context, f file, to pebblestore.Dir, p *pacer) error {
	w, err := to.Create(f.name)
	if err != nil {
		return err
	}
	err = o.get(ctx, f, p, func(part []byte) error { _, err := w.Write(part); return err })
	if err == nil {
		err = w.Sync()
	}
	return errors.Join(err, w.Close())
}

// place compares the position row of the files with the place of the snapshot. The files of a base have none, so they get it.
func (o Options) place(s shardlog.Snapshot, m manifest, dir pebblestore.Dir, lock *pebblestore.Lock) error {
	if m.base {
		return o.placeBase(s, dir, lock)
	}
	at, chain, err := o.position(dir)
	if errors.Is(err, storage.ErrCorrupt) {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if err != nil {
		return err
	}
	if at != s.Last || chain != s.Chain {
		return fmt.Errorf("%w: its files are those of record %d and not of record %d", ErrDamaged, at, s.Last)
	}
	return nil
}
