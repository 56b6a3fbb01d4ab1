// Package machine is a machine with a log in memory, for tests of the ways between a directory and a log. It is switched off at any of its
// steps, and started again with the bytes that a power loss leaves.
package machine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-dev/holdfast/internal/crashfs"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/engine"
	"github.com/holdfast-dev/holdfast/storage/memstore"
	"github.com/holdfast-dev/holdfast/storage/pebblestore"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/memlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/snapshot"
)

// World is a log and the disk of one machine. Each change of a file, and each call of the log twice, before and after, is a step.
type World struct {
	t    testing.TB
	Log  *memlog.Log
	Disk *crashfs.FS

	mu      sync.Mutex
	few     bool // only each fifth step of the engine counts
	engine  int  // steps of the engine
	steps   int
	crashAt int // the machine is off from this step on; -1: never
	last    string
	records map[shardlog.Position]shardlog.Record // all that the log has acknowledged, also those that it has truncated
}

var errOff = errors.New("the machine is off")

func New(t testing.TB, crashAt int) *World {
	w := &World{t: t, Log: memlog.New(), crashAt: crashAt, records: make(map[shardlog.Position]shardlog.Record)}
	w.Disk = crashfs.New(vfs.NewCrashableMem(), func(op crashfs.Op) error { return w.step(op.String()) })
	return w
}

// step counts a step, and returns an error if the machine is off.
func (w *World) step(what string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.crashAt >= 0 && w.steps > w.crashAt {
		return errOff
	}
	if w.few && ofEngine.MatchString(what) {
		if w.engine++; w.engine%5 != 0 {
			return nil
		}
	}
	w.steps++
	if w.crashAt < 0 || w.steps <= w.crashAt {
		return nil
	}
	w.last = what
	return errOff
}

// ofEngine matches the steps that are most of a life: operations on the engine's files, and their uploads.
var ofEngine = regexp.MustCompile(`^put |\.(sst|log|dbtmp)\b|\.sums|MANIFEST|OPTIONS`)

// Off reports whether the machine is off, and the step at which that was.
func (w *World) Off() (at string, off bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last, w.crashAt >= 0 && w.steps > w.crashAt
}

// Crash is the world after the machine was started again.
func (w *World) Crash(keep crashfs.Keep) *World {
	w.t.Helper()
	mem, err := w.Disk.Crash(keep)
	if err != nil {
		w.t.Fatal(err)
	}
	back := New(w.t, -1)
	back.Log, back.records = w.Log, w.records
	back.Disk = crashfs.New(mem, nil)
	return back
}

// remote is the log as the machine calls it. Once the machine is off its calls are refused, because nobody waits for them.
type remote struct {
	*memlog.Log
	w *World
}

func (r remote) call(what string, do func() error) error {
	if err := r.w.step(what + " before"); err != nil {
		return fmt.Errorf("%w: %w", shardlog.ErrRefused, err)
	}
	err := do()
	if off := r.w.step(what + " after"); off != nil {
		return fmt.Errorf("%w: %w", shardlog.ErrRefused, off)
	}
	return err
}

func (r remote) Head(ctx context.Context, shard int) (s shardlog.State, err error) {
	err = r.call("head", func() (err error) { s, err = r.Log.Head(ctx, shard); return err })
	return s, err
}

func (r remote) Claim(ctx context.Context, shard int, owner string, seen uint64) (s shardlog.State, err error) {
	err = r.call("claim", func() (err error) { s, err = r.Log.Claim(ctx, shard, owner, seen); return err })
	return s, err
}

func (r remote) Append(ctx context.Context, shard int, before uint64, rec shardlog.Record) error {
	return r.call("append", func() error {
		r.w.mu.Lock()
		defer r.w.mu.Unlock()
		err := r.Log.Append(ctx, shard, before, rec)
		if err == nil {
			rec.Payload = bytes.Clone(rec.Payload)
			r.w.records[rec.At] = rec
		}
		return err
	})
}

func (r remote) Truncate(ctx context.Context, shard int, term uint64, upTo shardlog.Position) error {
	return r.call("truncate", func() error { return r.Log.Truncate(ctx, shard, term, upTo) })
}

func (r remote) Begin(ctx context.Context, shard int, base shardlog.Snapshot) error {
	return r.call("begin", func() error { return r.Log.Begin(ctx, shard, base) })
}

func (r remote) Register(ctx context.Context, shard int, term uint64, s shardlog.Snapshot) error {
	return r.call("register", func() error { return r.Log.Register(ctx, shard, term, s) })
}

func (r remote) Put(ctx context.Context, shard int, name string, in io.Reader) error {
	return r.call("put", func() error { return r.Log.Put(ctx, shard, name, in) })
}

func (r remote) Collect(ctx context.Context, shard int, term uint64) error {
	return r.call("collect", func() error { return r.Log.Collect(ctx, shard, term) })
}

// Snapshots are the options of the snapshots of the world.
func (w *World) Snapshots() snapshot.Options {
	r := remote{w.Log, w}
	return snapshot.Options{Directory: r, Blobs: r, Log: r, FS: w.Disk, BytesPerSecond: -1}
}

// Plain are the options of a small store of one machine.
func (w *World) Plain(dir string) storage.Options {
	return storage.Options{Dir: dir, Shards: 4, Pebble: pebblestore.Options{FS: w.Disk, CacheBytes: 1 << 20, MemTableBytes: 64 << 10}}
}

// Open opens a store over the log.
func (w *World) Open(dir string) (*storage.Store, error) {
	return storage.Open(shardlog.Options{Log: remote{w.Log, w}, Owner: dir}.Storage(w.Plain(dir)))
}

// Term is the newest.
func (w *World) Term() uint64 { return w.Head().Term }

// Head is the head of the log.
func (w *World) Head() shardlog.State {
	w.t.Helper()
	h, err := w.Log.Head(context.Background(), 0)
	if err != nil {
		w.t.Fatal(err)
	}
	return h
}

// Set commits a row, durably.
func Set(s *storage.Store, key, value string) error {
	var b storage.Batch
	b.SetMeta(key, []byte(value))
	ticket, err := s.Commit(&b)
	if err != nil {
		return err
	}
	return s.WaitDurable(ticket)
}

// Rows are all rows of a view but those that are its own.
func Rows(t testing.TB, e engine.Engine) map[string]string {
	t.Helper()
	it, err := e.NewIter(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]string)
	for ok := it.First(); ok; ok = it.Next() {
		v, err := it.ValueAndErr()
		if err != nil {
			t.Fatal(err)
		}
		found[string(it.Key())] = string(v)
	}
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		t.Fatal(err)
	}
	delete(found, Meta(shardlog.PositionRow))
	return found
}

// Meta is the key of a row of the store itself.
func Meta(name string) string { return "\xff\xff\x00" + name }

// All are the rows that the records say, from the first to the last.
func (w *World) All(base map[string]string) map[string]string {
	w.t.Helper()
	view := memstore.New()
	var b storage.Batch
	for key, value := range base {
		b.Set([]byte(key), []byte(value))
	}
	if err := view.Apply(b.Repr()); err != nil {
		w.t.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	h := w.Head()
	at := h.Last + 1
	for len(w.records) > 0 && w.records[at-1].At != 0 {
		at--
	}
	for ; at <= h.Last; at++ {
		if err := shardlog.Batches(w.records[at].Payload, view.Apply); err != nil {
			w.t.Fatal(err)
		}
	}
	return Rows(w.t, view)
}

// CaughtUp reads the rest of the log into the view in dir, and returns its rows.
func (w *World) CaughtUp(dir string) (found map[string]string, err error) {
	err = storage.FillView(w.Plain(dir), func(view engine.Engine) error {
		at, chain, err := shardlog.ViewPosition(view)
		if err != nil {
			return err
		}
		last := shardlog.Record{At: at, Chain: chain}
		h := w.Head()
		for last.At < h.Last {
			err := w.Log.Read(context.Background(), 0, last.At+1, func(r shardlog.Record) error {
				if err := r.Follows(last, h.Term); err != nil {
					return err
				}
				last = r
				return shardlog.Batches(r.Payload, view.Apply)
			})
			if err != nil {
				return err
			}
		}
		if last.Chain != h.Chain {
			return fmt.Errorf("the view ends with chain %x, the log with %x", last.Chain, h.Chain)
		}
		found = Rows(w.t, view)
		return errors.Join(shardlog.SetViewPosition(view, last.At, last.Chain), view.Sync())
	})
	return found, err
}

// Equal restores the newest snapshot to a new directory and compares it, with the rest of the log, to all of the log.
func (w *World) Equal(about string, base map[string]string) {
	w.t.Helper()
	w.mu.Lock()
	w.steps++
	dir := fmt.Sprint("equal/", w.steps)
	w.mu.Unlock()
	if _, err := w.Snapshots().Restore(context.Background(), dir); err != nil && !errors.Is(err, snapshot.ErrNone) {
		w.t.Fatalf("%s: restore: %v", about, err)
	}
	got, err := w.CaughtUp(dir)
	if err != nil {
		w.t.Fatalf("%s: catch up: %v", about, err)
	}
	if want := w.All(base); !maps.Equal(got, want) {
		w.t.Fatalf("%s: the snapshot and the rest of the log differ from the log:\n%s", about, Differences(got, want))
	}
}

// Stored are all rows of the database in dir, which no store has open, but those that are its own.
func (w *World) Stored(dir string) map[string]string {
	w.t.Helper()
	db, err := pebblestore.OpenReadOnly(dir, pebblestore.Options{FS: w.Disk, CacheBytes: 1 << 20})
	Must(w.t, "open "+dir, err)
	found := Rows(w.t, db)
	Must(w.t, "close "+dir, db.Close())
	return found
}

// Differences says which rows differ.
func Differences(got, want map[string]string) string {
	var b strings.Builder
	for key := range want {
		if got[key] != want[key] {
			fmt.Fprintf(&b, "%q is %.40q, want %.40q\n", key, got[key], want[key])
		}
	}
	for key := range got {
		if _, ok := want[key]; !ok {
			fmt.Fprintf(&b, "%q is %.40q, want no row\n", key, got[key])
		}
	}
	return b.String()
}

// Must ends the test at an error.
func Must(t testing.TB, about string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", about, err)
	}
}
