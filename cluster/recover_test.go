package cluster_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-dev/holdfast/cluster"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/pebblestore"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/memlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/snapshot"
)

// lossy is a log that has lost its newest records, and the records as their owner has kept them.
type lossy struct {
	t      *testing.T
	log    *memlog.Log
	disk   *vfs.MemFS
	epoch  uint64 // of the owner
	rescue shardlog.Rescue
	left   shardlog.Position // the last record that the log has
}

// newLossy makes a log with a commit in each record, takes a snapshot of it if that is wanted, and loses the last three records.
func newLossy(t *testing.T, snapshots bool) *lossy {
	t.Helper()
	l := &lossy{t: t, log: memlog.New(), disk: vfs.NewMem()}
	s := l.open("/owner")
	for i := range 8 {
		l.set(s, fmt.Sprint("row", i), "x")
		if i < 2 && snapshots {
			l.must(l.snapshots().Take(t.Context(), s, l.head().Term, fmt.Sprint("/scratch", i)))
		}
	}
	l.epoch = s.Epoch()
	if snapshots {
		l.must(nil, l.snapshots().Trim(t.Context(), l.head().Term))
	}
	head := l.head()
	l.left = head.Last - 3
	l.must(nil, l.log.Read(t.Context(), 0, l.left, func(r shardlog.Record) error {
		if r.At == l.left {
			l.rescue.Before = r.Chain
			return nil
		}
		r.Payload = bytes.Clone(r.Payload)
		l.rescue.Records = append(l.rescue.Records, r)
		return nil
	}))
	l.must(nil, s.Abandon())
	name, err := l.log.Cluster(t.Context())
	l.rescue.Cluster, l.rescue.Term = l.must(name, err).(string), head.Term
	l.log.Rewind(0, l.left)
	l.must(nil, l.log.Quarantine(t.Context(), 0, "record 9 is missing"))
	return l
}

func (l *lossy) must(v any, err error) any {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
	return v
}

func (l *lossy) head() shardlog.State { return l.must(l.log.Head(l.t.Context(), 0)).(shardlog.State) }

func (l *lossy) snapshots() snapshot.Options {
	return snapshot.Options{Directory: l.log, Blobs: l.log, Log: l.log, FS: l.disk, BytesPerSecond: -1, MinFreeBytes: -1}
}

func (l *lossy) open(dir string) *storage.Store {
	l.t.Helper()
	if _, err := l.snapshots().Restore(l.t.Context(), dir); err != nil && !errors.Is(err, snapshot.ErrNone) {
		l.t.Fatal(err)
	}
	o := storage.Options{Dir: dir, MinFreeBytes: -1, Pebble: pebblestore.Options{FS: l.disk, CacheBytes: 1 << 20, MemTableBytes: 256 << 10}}
	return l.must(storage.Open(shardlog.Options{Log: l.log, Owner: dir}.Storage(o))).(*storage.Store)
}

func (l *lossy) set(s *storage.Store, key, value string) {
	l.t.Helper()
	var b storage.Batch
	b.SetMeta(key, []byte(value))
	ticket := l.must(s.Commit(&b)).(storage.Ticket)
	l.must(nil, s.WaitDurable(ticket))
}

func (l *lossy) recovery(log cluster.Log) cluster.Recovery {
	return cluster.Recovery{Log: log, Dir: "/recovery", FS: l.disk, MinFreeBytes: -1}
}

// has checks which of the rows the log has, and that the store opens with epochs from a number on.
func (l *lossy) has(about string, rows int, epoch uint64) {
	l.t.Helper()
	if h := l.head(); h.Lost != "" {
		l.t.Fatalf("%s: the log is in quarantine: %s", about, h.Lost)
	}
	s := l.open("/next")
	defer func() { l.must(nil, s.Abandon()) }()
	for i := range 8 {
		if _, ok, err := s.Meta(fmt.Sprint("row", i)); err != nil || ok != (i < rows) {
			l.t.Errorf("%s: row %d is there: %v, %v", about, i, ok, err)
		}
	}
	if s.Epoch() < epoch || s.Epoch() > epoch+1 {
		l.t.Errorf("%s: epoch %d, want %d", about, s.Epoch(), epoch)
	}
}

// stepped is a log of which each call fails from one step on: before it has done anything, or before its answer comes.
type stepped struct {
	*memlog.Log
	left int
	met  []string
}

var errDied = errors.New("the process has died")

func (s *stepped) step(what string) error {
	s.met = append(s.met, what)
	if s.left--; s.left < 0 {
		return fmt.Errorf("%w: %w", shardlog.ErrRefused, errDied)
	}
	return nil
}

func (s *stepped) call(what string, do func() error) error {
	if err := s.step(what + " before"); err != nil {
		return err
	}
	err := do()
	return errors.Join(s.step(what+" after"), err)
}

func (s *stepped) Look(ctx context.Context, shard int) (l shardlog.Look, err error) {
	err = s.call("look", func() (err error) { l, err = s.Log.Look(ctx, shard); return err })
	return l, err
}

func (s *stepped) Head(ctx context.Context, shard int) (h shardlog.State, err error) {
	err = s.call("head", func() (err error) { h, err = s.Log.Head(ctx, shard); return err })
	return h, err
}

func (s *stepped) Read(ctx context.Context, shard int, from shardlog.Position, f func(shardlog.Record) error) error {
	return s.call("read", func() error {
		return s.Log.Read(ctx, shard, from, func(r shardlog.Record) error {
			if err := s.step("record"); err != nil {
				return err
			}
			return f(r)
		})
	})
}

func (s *stepped) Snapshots(ctx context.Context, shard int) (all []shardlog.Snapshot, err error) {
	err = s.call("snapshots", func() (err error) { all, err = s.Log.Snapshots(ctx, shard); return err })
	return all, err
}

func (s *stepped) Get(ctx context.Context, shard int, name string, f func([]byte) error) error {
	return s.call("get", func() error { return s.Log.Get(ctx, shard, name, f) })
}

func (s *stepped) Recover(ctx context.Context, shard int, term, before uint64, records []shardlog.Record) (h shardlog.State, err error) {
	err = s.call("recover", func() (err error) { h, err = s.Log.Recover(ctx, shard, term, before, records); return err })
	return h, err
}

// A recovery that is cut off at any step is finished by the same call, which may find that all is done. Proves N7.
func TestCrashRecovery(t *testing.T) {
	for _, c := range []struct {
		name      string
		snapshots bool
		recover   func(context.Context, *lossy, cluster.Log) error
		rows      int
		ahead     uint64
	}{
		{"accept-loss", false, acceptLoss, 5, 1 << 20}, {"accept-loss-behind-a-snapshot", true, acceptLoss, 5, 1 << 20},
		{"put-back", false, putBack, 8, 0}, {"put-back-behind-a-snapshot", true, putBack, 8, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			for step, whole := 0, false; !whole; step++ {
				l := newLossy(t, c.snapshots)
				log := &stepped{Log: l.log, left: step}
				err := c.recover(t.Context(), l, log)
				whole = err == nil
				at := fmt.Sprintf("cut off at step %d, %s", step, log.met[len(log.met)-1])
				if !whole {
					if !errors.Is(err, errDied) {
						t.Fatalf("%s: %v", at, err)
					}
					if err := c.recover(t.Context(), l, l.log); err != nil && !errors.Is(err, cluster.ErrNothingLost) {
						t.Fatalf("%s: the second call: %v", at, err)
					}
				}
				l.has(at, c.rows, l.epoch+1+c.ahead)
				if h := l.head(); c.ahead == 0 && h.Last < l.rescue.Records[2].At {
					t.Errorf("%s: the log ends at %d", at, h.Last)
				}
			}
		})
	}
}

func acceptLoss(ctx context.Context, l *lossy, log cluster.Log) error {
	_, err := cluster.AcceptLoss(ctx, l.recovery(log))
	return err
}

func putBack(ctx context.Context, l *lossy, log cluster.Log) error {
	_, err := cluster.PutBack(ctx, l.recovery(log), l.rescue)
	return err
}

// The directory of a recovery is removed, and one that a crash has left is no obstacle.
func TestRecoveryLeavesNoFiles(t *testing.T) {
	l := newLossy(t, true)
	if err := l.disk.MkdirAll("/recovery/recovery/old", 0o755); err != nil {
		t.Fatal(err)
	}
	done, err := cluster.AcceptLoss(t.Context(), l.recovery(l.log))
	if err != nil || done.From != l.left+1 || done.To != l.left+1 || done.Quarantine != "record 9 is missing" {
		t.Errorf("recovered %+v, %v", done, err)
	}
	if names, err := l.disk.List("/recovery"); err != nil || len(names) > 0 {
		t.Errorf("left %v, %v", names, err)
	}
}

// A loss that was found too late is cleared alone: no record is put into the log, which has an owner.
func TestRecoveryOfALateLoss(t *testing.T) {
	l := newLossy(t, false)
	l.must(cluster.AcceptLoss(t.Context(), l.recovery(l.log)))
	l.must(nil, l.log.NoteLate(t.Context(), 0, "record 3"))
	before := l.head()
	done, err := cluster.AcceptLoss(t.Context(), l.recovery(l.log))
	if err != nil || done != (cluster.Recovered{Late: "record 3"}) || l.head() != before {
		t.Errorf("recovered %+v, %v; the head was %+v and is %+v", done, err, before, l.head())
	}
	if err := acceptLoss(t.Context(), l, l.log); !errors.Is(err, cluster.ErrNothingLost) {
		t.Errorf("a second time: %v", err)
	}
	if err := putBack(t.Context(), l, l.log); !errors.Is(err, cluster.ErrNothingLost) {
		t.Errorf("records put back into a whole log: %v", err)
	}
}

// A snapshot of a place that the log has lost is not restored, because it has the lost commits.
//
// Proves N7.
func TestRecoveryPassesLostSnapshots(t *testing.T) {
	l := newLossy(t, false)
	l.must(cluster.AcceptLoss(t.Context(), l.recovery(l.log)))
	s := l.open("/owner2")
	l.set(s, "lost", "x")
	l.must(l.snapshots().Take(t.Context(), s, l.head().Term, "/scratch"))
	at := l.head().Last - 1
	l.must(nil, s.Abandon())
	l.log.Rewind(0, at)
	l.must(nil, l.log.Quarantine(t.Context(), 0, "again"))
	l.must(cluster.AcceptLoss(t.Context(), l.recovery(l.log)))
	s = l.open("/owner3")
	if _, ok, err := s.Meta("lost"); ok || err != nil {
		t.Errorf("the lost row is there: %v, %v", ok, err)
	}
	l.must(nil, s.Abandon())
}

// Records that cannot go back change nothing, and the error says why.
//
// Proves N7.
func TestPutBackRefuses(t *testing.T) {
	for _, c := range []struct {
		name, want string
		edit       func(l *lossy)
	}{
		{"another cluster", "of cluster", func(l *lossy) { l.rescue.Cluster = strings.Repeat("0", 32) }},
		{"another shard", "of shard 1", func(l *lossy) { l.rescue.Shard = 1 }},
		{"no records", "there are none", func(l *lossy) { l.rescue.Records = nil }},
		{"a gap", "put those between back first", func(l *lossy) {
			l.rescue.Before, l.rescue.Records = l.rescue.Records[0].Chain, l.rescue.Records[1:]
		}},
		{"another chain", "is another than the one before them", func(l *lossy) { l.rescue.Before++ }},
		{"all there", "the log has them all", func(l *lossy) {
			r := l.rescue.Records
			l.must(l.log.Recover(l.t.Context(), 0, l.head().Term, l.rescue.Before, r))
			l.must(nil, l.log.Quarantine(l.t.Context(), 0, "others"))
		}},
		{"appended since", "an owner has appended since", func(l *lossy) {
			l.must(cluster.AcceptLoss(l.t.Context(), l.recovery(l.log)))
			s := l.open("/since")
			for i := range 4 {
				l.set(s, fmt.Sprint("since", i), "x")
			}
			l.must(nil, s.Abandon())
			l.must(nil, l.log.Quarantine(l.t.Context(), 0, "again"))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLossy(t, false)
			c.edit(l)
			before := l.head()
			_, err := cluster.PutBack(t.Context(), l.recovery(l.log), l.rescue)
			if !errors.Is(err, cluster.ErrNotPutBack) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if after := l.head(); after != before {
				t.Errorf("the head was %+v and is %+v", before, after)
			}
		})
	}
}

// Records of a file that overlaps with the log go back from the first that it lacks.
//
// Proves N7.
func TestPutBackTheRest(t *testing.T) {
	l := newLossy(t, false)
	l.must(l.log.Recover(t.Context(), 0, l.head().Term, l.rescue.Before, l.rescue.Records[:1]))
	l.must(nil, l.log.Quarantine(t.Context(), 0, "the rest"))
	done, err := cluster.PutBack(t.Context(), l.recovery(l.log), l.rescue)
	if err != nil || done.From != l.rescue.Records[1].At || done.To != l.rescue.Records[2].At {
		t.Errorf("%+v, %v", done, err)
	}
	l.has("after it", 8, l.epoch+1)
}

// A log that does not answer is asked again, within bounds, and a call that has landed without an answer is found to be done.
//
// Proves N7.
func TestRecoveryAsksAgain(t *testing.T) {
	for _, c := range []struct {
		fails int
		want  error
	}{{4, nil}, {5, io.ErrUnexpectedEOF}} {
		synctest.Test(t, func(t *testing.T) {
			l := newLossy(t, false)
			err := acceptLoss(t.Context(), l, &mute{l.log, c.fails})
			if !errors.Is(err, c.want) {
				t.Errorf("%d answers that were lost: %v", c.fails, err)
			}
			l.has("afterwards", 5, l.epoch+1+1<<20)
		})
	}
}

// mute is a log that loses the answers to some recoveries.
type mute struct {
	*memlog.Log
	fails int
}

func (m *mute) Recover(ctx context.Context, shard int, term, before uint64, records []shardlog.Record) (shardlog.State, error) {
	s, err := m.Log.Recover(ctx, shard, term, before, records)
	if m.fails--; m.fails >= 0 {
		return s, errors.Join(io.ErrUnexpectedEOF, err)
	}
	return s, err
}

// Recoveries with options that are wrong are refused.
func TestRecoveryOptions(t *testing.T) {
	l := newLossy(t, false)
	for want, o := range map[string]cluster.Recovery{
		"Recovery.Log": {}, "Recovery.Shard": {Log: l.log, Shard: -1}, "Recovery.Dir": {Log: l.log},
	} {
		if _, err := cluster.AcceptLoss(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// The contents of lost records are the rows that they change, and the objects that these name.
func TestContents(t *testing.T) {
	b := new(storage.Batch)
	b.SetHeader(storage.Object{ID: storage.ID{Class: "cart", Name: "anna\n"}, Number: 7})
	b.DeleteMeta("row")
	payload := shardlog.AppendBatch(shardlog.AppendBatch(nil, b.Repr()), b.Repr())
	r := shardlog.Rescue{Records: []shardlog.Record{{At: 4, Term: 2, Payload: payload}}}
	all, err := cluster.Contents(r)
	if err != nil || len(all) != 1 || all[0].Commits != 2 || all[0].Sets != 2 || all[0].Deletes != 2 || len(all[0].Objects) != 1 || all[0].Objects[0].Name != "anna\n" {
		t.Errorf("%+v, %v", all, err)
	}
	r.Records[0].Payload = payload[:len(payload)-1]
	if _, err := cluster.Contents(r); !errors.Is(err, shardlog.ErrHole) {
		t.Errorf("a record that is cut off: %v", err)
	}
}
