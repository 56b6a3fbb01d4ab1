package shardlogtest_test

import (
	"context"
	"errors"
	"io"
	"slices"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/memlog"
)

type recovering = func(ctx context.Context, shard int, term, before uint64, records []shardlog.Record) (shardlog.State, error)

// recovers is an engine with another Recover.
func recovers(recover func(o *other) recovering) both {
	return changes(func(o *other) { o.recover = recover(o) })
}

type noting = func(ctx context.Context, shard int, where string) error

// quarantines is an engine with another Quarantine, and notes one with another NoteLate.
func quarantines(quarantine func(o *other) noting) both {
	return changes(func(o *other) { o.quarantine = quarantine(o) })
}

func notes(note func(o *other) noting) both { return changes(func(o *other) { o.noteLate = note(o) }) }

var lossLiars = []directoryLiar{
	{"does not stop a shard that has lost records", "lost begin-refused collect-refused register-refused put-back durable", quarantines(func(*other) noting {
		return func(context.Context, int, string) error { return nil }
	})},
	{"begins a term with each quarantine, and keeps the newest text", "lost", quarantines(func(o *other) noting {
		return func(ctx context.Context, shard int, where string) error {
			if h := headOf(o.Log, shard); h.Lost != "" {
				_, _ = o.Log.Recover(ctx, shard, h.Term, 0, nil)
			}
			return o.Log.Quarantine(ctx, shard, where)
		}
	})},
	{"takes a quarantine without a place", "lost", quarantines(func(o *other) noting {
		return func(ctx context.Context, shard int, where string) error {
			if where == "" {
				return nil
			}
			return o.Log.Quarantine(ctx, shard, where)
		}
	})},
	{"takes back an export when it stops a shard", "lost", quarantines(func(o *other) noting {
		return func(ctx context.Context, shard int, where string) error {
			if h := headOf(o.Log, shard); h.Exported() {
				_, _ = o.Log.Claim(ctx, shard, "", h.Term)
			}
			return o.Log.Quarantine(ctx, shard, where)
		}
	})},
	{"cannot stop a shard without an owner", "lost", quarantines(func(o *other) noting {
		return func(ctx context.Context, shard int, where string) error {
			if headOf(o.Log, shard).Term == 0 {
				return nil
			}
			return o.Log.Quarantine(ctx, shard, where)
		}
	})},
	{"claims what has lost records", "lost", changes(func(o *other) {
		o.claim = func(ctx context.Context, shard int, owner string, seen uint64) (shardlog.State, error) {
			h := headOf(o.Log, shard)
			if h.Lost != "" && h.Term == seen {
				return h, nil
			}
			return o.Log.Claim(ctx, shard, owner, seen)
		}
	})},
	{"notes nothing", "late durable", notes(func(*other) noting {
		return func(context.Context, int, string) error { return nil }
	})},
	{"stops a shard for a late loss", "late", notes(func(o *other) noting {
		return func(ctx context.Context, shard int, where string) error {
			_ = o.Log.Quarantine(ctx, shard, "late: "+where)
			return o.Log.NoteLate(ctx, shard, where)
		}
	})},
	{"begins a term for a late loss", "late", notes(func(o *other) noting {
		return func(ctx context.Context, shard int, where string) error {
			h := headOf(o.Log, shard)
			_, _ = o.Log.Claim(ctx, shard, h.Owner, h.Term)
			return o.Log.NoteLate(ctx, shard, where)
		}
	})},
	{"keeps the newest note", "late", notes(func(o *other) noting {
		return func(ctx context.Context, shard int, where string) error {
			_, _ = o.Log.Recover(ctx, shard, headOf(o.Log, shard).Term, 0, nil)
			return o.Log.NoteLate(ctx, shard, where)
		}
	})},
	{"takes a note without a place", "late", notes(func(o *other) noting {
		return func(ctx context.Context, shard int, where string) error {
			if where == "" {
				return nil
			}
			return o.Log.NoteLate(ctx, shard, where)
		}
	})},
	{"forgets the note at a claim", "late", changes(func(o *other) {
		o.claim = func(ctx context.Context, shard int, owner string, seen uint64) (shardlog.State, error) {
			_, _ = o.Log.Recover(ctx, shard, seen, 0, nil)
			return o.Log.Claim(ctx, shard, owner, seen)
		}
	})},
	{"leaves the note when it recovers", "late put-back durable", recovers(func(o *other) recovering {
		return func(ctx context.Context, shard int, term, before uint64, records []shardlog.Record) (shardlog.State, error) {
			look, _ := o.Log.Look(ctx, shard)
			h, err := o.Log.Recover(ctx, shard, term, before, records)
			if look.Late != "" {
				_ = o.Log.NoteLate(ctx, shard, look.Late)
			}
			return h, err
		}
	})},
	{"puts nothing back", "put-back durable", recovers(func(o *other) recovering {
		return func(ctx context.Context, shard int, term, before uint64, _ []shardlog.Record) (shardlog.State, error) {
			return o.Log.Recover(ctx, shard, term, before, nil)
		}
	})},
	{"puts records back in the newest term", "put-back", recovers(func(o *other) recovering {
		return func(ctx context.Context, shard int, term, before uint64, records []shardlog.Record) (shardlog.State, error) {
			records = slices.Clone(records)
			for i := range records {
				records[i].Term = term
			}
			return o.Log.Recover(ctx, shard, term, before, records)
		}
	})},
	{"begins a term when it recovers", "put-back accept-loss late", recovers(func(o *other) recovering {
		return func(ctx context.Context, shard int, term, before uint64, records []shardlog.Record) (shardlog.State, error) {
			if _, err := o.Log.Recover(ctx, shard, term, before, records); err != nil {
				return shardlog.State{}, err
			}
			return o.Log.Claim(ctx, shard, "", term)
		}
	})},
	{"refuses to recover again", "put-back accept-loss", recovers(func(o *other) recovering {
		return func(ctx context.Context, shard int, term, before uint64, records []shardlog.Record) (shardlog.State, error) {
			if headOf(o.Log, shard).Lost == "" {
				return shardlog.State{}, shardlog.ErrFenced
			}
			return o.Log.Recover(ctx, shard, term, before, records)
		}
	})},
	{"stays in quarantine", "put-back accept-loss", recovers(func(o *other) recovering {
		return func(ctx context.Context, shard int, term, before uint64, records []shardlog.Record) (shardlog.State, error) {
			h, err := o.Log.Recover(ctx, shard, term, before, records)
			_ = o.Log.Quarantine(ctx, shard, "still")
			return h, err
		}
	})},
	{"recovers for any term", "put-back-refused", recovers(func(o *other) recovering {
		return func(ctx context.Context, shard int, _, before uint64, records []shardlog.Record) (shardlog.State, error) {
			return o.Log.Recover(ctx, shard, headOf(o.Log, shard).Term, before, records)
		}
	})},
	{"recovers without records that do not follow", "put-back-refused", recovers(func(o *other) recovering {
		return func(ctx context.Context, shard int, term, before uint64, records []shardlog.Record) (shardlog.State, error) {
			h, err := o.Log.Recover(ctx, shard, term, before, records)
			if errors.Is(err, shardlog.ErrHole) {
				return o.Log.Recover(ctx, shard, term, before, nil)
			}
			return h, err
		}
	})},
	{"puts records in the place of others", "put-back-refused", recovers(func(o *other) recovering {
		return func(ctx context.Context, shard int, term, before uint64, records []shardlog.Record) (shardlog.State, error) {
			if h := headOf(o.Log, shard); h.Term == term && h.Lost != "" && len(records) > 0 && h.Last >= records[0].At {
				o.Log.Rewind(shard, records[0].At-1)
			}
			return o.Log.Recover(ctx, shard, term, before, records)
		}
	})},
	{"puts records back without a quarantine", "put-back-refused", recovers(func(o *other) recovering {
		return func(ctx context.Context, shard int, term, before uint64, records []shardlog.Record) (shardlog.State, error) {
			h := headOf(o.Log, shard)
			if h.Term == term && h.Lost == "" {
				return h, nil
			}
			return o.Log.Recover(ctx, shard, term, before, records)
		}
	})},
	{"keeps snapshots of the loss", "accept-loss", changes(keepsOld)},
	{"removes all snapshots with the loss", "accept-loss", changes(removesAll)},
}

// removesAll lists no snapshot of a shard that was recovered.
func removesAll(o *other) {
	recovered := make(map[int]bool)
	o.recover = func(ctx context.Context, shard int, term, before uint64, records []shardlog.Record) (shardlog.State, error) {
		recovered[shard] = true
		return o.Log.Recover(ctx, shard, term, before, records)
	}
	o.snapshots = func(ctx context.Context, shard int) ([]shardlog.Snapshot, error) {
		if recovered[shard] {
			return nil, nil
		}
		return o.Log.Snapshots(ctx, shard)
	}
}

var outageLiars = []directoryLiar{
	{"calls with a context that never ends", "ended", changes(func(o *other) {
		o.all = func(_ context.Context, call func(context.Context) error) error { return call(context.Background()) }
	})},
	{"calls a call fenced that was not made", "ended", changes(func(o *other) {
		o.all = func(ctx context.Context, call func(context.Context) error) error {
			if ctx.Err() != nil {
				return shardlog.ErrFenced
			}
			return call(ctx)
		}
	})},
	{"forgets snapshots at a restart", "durable", changes(forgetsSnapshots)},
	{"forgets blobs of a snapshot at a restart", "durable", changes(forgetsBlobs)},
	{"forgets a quarantine at a restart", "durable", both{crash: func(l *memlog.Log) *memlog.Log {
		for shard := range used {
			_, _ = l.Recover(context.Background(), shard, headOf(l, shard).Term, 0, nil)
		}
		return l.Crash()
	}}},
}

// forgetsSnapshots lists the snapshots that were registered since the engine is up.
func forgetsSnapshots(o *other) {
	since := make(map[shardlog.Position]bool)
	o.register = func(ctx context.Context, shard int, term uint64, s shardlog.Snapshot) error {
		since[s.Last] = true
		return o.Log.Register(ctx, shard, term, s)
	}
	o.snapshots = func(ctx context.Context, shard int) ([]shardlog.Snapshot, error) {
		s, err := o.Log.Snapshots(ctx, shard)
		return slices.DeleteFunc(s, func(s shardlog.Snapshot) bool { return !since[s.Last] }), err
	}
}

// forgetsBlobs lists the blobs that were put since the engine is up.
func forgetsBlobs(o *other) {
	since := make(map[string]bool)
	o.put = func(ctx context.Context, shard int, name string, r io.Reader) error {
		since[name] = true
		return o.Log.Put(ctx, shard, name, r)
	}
	o.list = func(ctx context.Context, shard int) ([]shardlog.Blob, error) {
		b, err := o.Log.List(ctx, shard)
		return slices.DeleteFunc(b, func(b shardlog.Blob) bool { return !since[b.Name] }), err
	}
}
