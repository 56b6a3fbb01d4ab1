package shardlogtest_test

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

type beginning = func(ctx context.Context, shard int, base shardlog.Snapshot) error

// begins is an engine with another Begin.
func begins(begin func(o *other) beginning) both {
	return changes(func(o *other) { o.begin = begin(o) })
}

type registering = func(ctx context.Context, shard int, term uint64, s shardlog.Snapshot) error

// registers is an engine with another Register.
func registers(register func(o *other) registering) both {
	return changes(func(o *other) { o.register = register(o) })
}

// listsSnapshots is an engine with changed lists of snapshots.
func listsSnapshots(change func([]shardlog.Snapshot) []shardlog.Snapshot) both {
	return changes(func(o *other) {
		o.snapshots = func(ctx context.Context, shard int) ([]shardlog.Snapshot, error) {
			s, err := o.Log.Snapshots(ctx, shard)
			return change(s), err
		}
	})
}

var snapshotLiars = []directoryLiar{
	{"begins without the base", "begin", begins(func(*other) beginning {
		return func(context.Context, int, shardlog.Snapshot) error { return nil }
	})},
	{"does not register the base", "begin durable", begins(func(o *other) beginning {
		return func(ctx context.Context, shard int, base shardlog.Snapshot) error {
			if h := headOf(o.Log, shard); h.First == 1 {
				o.Log.SetBase(shard, base.Last, base.Chain)
			}
			return nil
		}
	})},
	{"begins a term with the base", "begin", begins(func(o *other) beginning {
		return func(ctx context.Context, shard int, base shardlog.Snapshot) error {
			err := o.Log.Begin(ctx, shard, base)
			_, _ = o.Log.Claim(ctx, shard, "", 0)
			return err
		}
	})},
	{"refuses the base again", "begin", begins(func(o *other) beginning {
		return func(ctx context.Context, shard int, base shardlog.Snapshot) error {
			if headOf(o.Log, shard).First > 1 {
				return shardlog.ErrRefused
			}
			return o.Log.Begin(ctx, shard, base)
		}
	})},
	{"begins again when it is told so", "begin begin-refused", begins(func(o *other) beginning {
		return func(ctx context.Context, shard int, base shardlog.Snapshot) error {
			o.Log.SetBase(shard, base.Last, base.Chain)
			return nil
		}
	})},
	{"takes another base for a repeat", "begin-refused", begins(func(o *other) beginning {
		return func(ctx context.Context, shard int, base shardlog.Snapshot) error {
			err := o.Log.Begin(ctx, shard, base)
			if errors.Is(err, shardlog.ErrRefused) && headOf(o.Log, shard).Last == base.Last {
				return nil
			}
			return err
		}
	})},
	{"begins behind record 0", "begin-refused", begins(func(o *other) beginning {
		return func(ctx context.Context, shard int, base shardlog.Snapshot) error {
			if base.Last == 0 {
				return nil
			}
			return o.Log.Begin(ctx, shard, base)
		}
	})},
	{"begins without the blobs", "begin-refused", begins(func(o *other) beginning {
		return func(ctx context.Context, shard int, base shardlog.Snapshot) error {
			o.makeBlobs(ctx, shard, base)
			return o.Log.Begin(ctx, shard, base)
		}
	})},
	{"registers nothing", "register snapshots collect durable accept-loss", registers(func(*other) registering {
		return func(context.Context, int, uint64, shardlog.Snapshot) error { return nil }
	})},
	{"registers for any term", "register-refused", registers(func(o *other) registering {
		return func(ctx context.Context, shard int, _ uint64, s shardlog.Snapshot) error {
			return o.Log.Register(ctx, shard, headOf(o.Log, shard).Term, s)
		}
	})},
	{"registers in term 0", "register-refused", registers(func(o *other) registering {
		return func(ctx context.Context, shard int, term uint64, s shardlog.Snapshot) error {
			if term == 0 && headOf(o.Log, shard).Term == 0 {
				return nil
			}
			return o.Log.Register(ctx, shard, term, s)
		}
	})},
	{"registers in quarantine", "register-refused", registers(func(o *other) registering {
		return func(ctx context.Context, shard int, term uint64, s shardlog.Snapshot) error {
			if h := headOf(o.Log, shard); h.Lost != "" && h.Term == term {
				return nil
			}
			return o.Log.Register(ctx, shard, term, s)
		}
	})},
	{"registers without the blobs", "register-refused", registers(func(o *other) registering {
		return func(ctx context.Context, shard int, term uint64, s shardlog.Snapshot) error {
			o.makeBlobs(ctx, shard, s)
			return o.Log.Register(ctx, shard, term, s)
		}
	})},
	{"registers snapshots of another log", "register-refused", registers(func(o *other) registering {
		return func(ctx context.Context, shard int, term uint64, s shardlog.Snapshot) error {
			err := o.Log.Register(ctx, shard, term, s)
			if errors.Is(err, shardlog.ErrRefused) {
				return nil
			}
			return err
		}
	})},
	{"refuses a snapshot of the place before the first record", "register-refused", registers(func(o *other) registering {
		return func(ctx context.Context, shard int, term uint64, s shardlog.Snapshot) error {
			if s.Last+1 == headOf(o.Log, shard).First {
				return shardlog.ErrRefused
			}
			return o.Log.Register(ctx, shard, term, s)
		}
	})},
	{"refuses a snapshot older than the newest", "register", registers(func(o *other) registering {
		return func(ctx context.Context, shard int, term uint64, s shardlog.Snapshot) error {
			if has, _ := o.Log.Snapshots(ctx, shard); len(has) > 0 && has[0].Last > s.Last {
				return shardlog.ErrRefused
			}
			return o.Log.Register(ctx, shard, term, s)
		}
	})},
	{"keeps the first snapshot of a position", "register collect", registers(func(o *other) registering {
		return func(ctx context.Context, shard int, term uint64, s shardlog.Snapshot) error {
			has, _ := o.Log.Snapshots(ctx, shard)
			if slices.ContainsFunc(has, func(has shardlog.Snapshot) bool { return has.Last == s.Last }) {
				return nil
			}
			return o.Log.Register(ctx, shard, term, s)
		}
	})},
	{"lists the oldest snapshot first", "register snapshots", listsSnapshots(func(s []shardlog.Snapshot) []shardlog.Snapshot {
		slices.Reverse(s)
		return s
	})},
	{"lists the newest snapshot alone", "register snapshots", listsSnapshots(func(s []shardlog.Snapshot) []shardlog.Snapshot { return s[:min(1, len(s))] })},
	{"has manifests that end at a zero byte", "begin register", listsSnapshots(func(s []shardlog.Snapshot) []shardlog.Snapshot {
		for i := range s {
			before, _, _ := strings.Cut(string(s[i].Manifest), "\x00")
			s[i].Manifest = []byte(before)
		}
		return s
	})},
	{"sorts the names of blobs", "register", listsSnapshots(func(s []shardlog.Snapshot) []shardlog.Snapshot {
		for i := range s {
			slices.Sort(s[i].Blobs)
		}
		return s
	})},
	{"keeps snapshots behind which records are missing", "snapshots", changes(keepsOld)},
	{"removes a snapshot with its last record", "snapshots", changes(removesEarly)},
}

// makeBlobs puts empty blobs for those that a snapshot lacks.
func (o *other) makeBlobs(ctx context.Context, shard int, s shardlog.Snapshot) {
	for _, name := range s.Blobs {
		_ = o.Log.Put(ctx, shard, name, strings.NewReader(""))
	}
}

// keepsOld lists all snapshots that were registered.
func keepsOld(o *other) {
	all := make(map[int][]shardlog.Snapshot) // of each shard, the newest first
	o.register = func(ctx context.Context, shard int, term uint64, s shardlog.Snapshot) error {
		err := o.Log.Register(ctx, shard, term, s)
		if err == nil {
			all[shard] = append([]shardlog.Snapshot{s}, all[shard]...)
		}
		return err
	}
	o.snapshots = func(_ context.Context, shard int) ([]shardlog.Snapshot, error) { return all[shard], nil }
}

// removesEarly lists no snapshot after its last record was removed.
func removesEarly(o *other) {
	o.snapshots = func(ctx context.Context, shard int) ([]shardlog.Snapshot, error) {
		s, err := o.Log.Snapshots(ctx, shard)
		first := headOf(o.Log, shard).First
		return slices.DeleteFunc(s, func(s shardlog.Snapshot) bool { return s.Last < first }), err
	}
}
