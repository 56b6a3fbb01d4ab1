package memlog_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/memlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/shardlogtest"
)

// The log in memory keeps the promises of Directory and Blobs.
func TestDirectory(t *testing.T) {
	log := memlog.New()
	shardlogtest.RunDirectory(t, shardlogtest.DirectoryConfig{
		Engine:  log,
		Restart: func() shardlogtest.Engine { log = log.Crash(); return log },
		Rewind:  func(shard int, to shardlog.Position) error { log.Rewind(shard, to); return nil },
	})
}

func TestForgetGoesByTheLastBeat(t *testing.T) {
	now := time.Unix(1e9, 0)
	l := memlog.New()
	l.SetClock(func() time.Time { return now })
	rows := func() int {
		look, err := l.Look(ctx, 1)
		if err != nil || !look.Clock.Equal(now) {
			t.Fatalf("the look at %v shows %v: %v", now, look.Clock, err)
		}
		return len(look.Nodes)
	}
	look, err := l.Beat(ctx, 1, shardlog.Node{ID: "a"})
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Hour)
	if _, err := l.Beat(ctx, 1, look.Nodes[0]); err != nil { // the same beat again
		t.Fatal(err)
	}
	now = now.Add(7*24*time.Hour - 1)
	if err := l.Forget(ctx, 7*24*time.Hour); err != nil || rows() != 1 {
		t.Errorf("just before a week there are %d rows: %v", rows(), err)
	}
	now = now.Add(1)
	if err := l.Forget(ctx, 7*24*time.Hour); err != nil || rows() != 0 {
		t.Errorf("after a week there are %d rows: %v", rows(), err)
	}
}

// A crash takes all that need not survive it, so a simulation meets that.
func TestCrashLosesRowsAndUnnamedBlobs(t *testing.T) {
	l, w := filled(t)
	l.SetClock(func() time.Time { return time.Unix(5, 0) })
	if _, err := l.Beat(ctx, 1, shardlog.Node{ID: "a"}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"named", "unnamed"} {
		if err := l.Put(ctx, 1, name, strings.NewReader(name)); err != nil {
			t.Fatal(err)
		}
	}
	s := shardlog.Snapshot{Last: w.State.Last, Chain: w.State.Chain, Blobs: []string{"named"}}
	if err := l.Register(ctx, 1, w.State.Term, s); err != nil {
		t.Fatal(err)
	}
	l = l.Crash()
	look, err := l.Look(ctx, 1)
	if err != nil || len(look.Nodes) > 0 || !look.Clock.Equal(time.Unix(5, 0)) {
		t.Errorf("after the crash the look shows %+v: %v", look, err)
	}
	if blobs, err := l.List(ctx, 1); err != nil || len(blobs) != 1 || blobs[0].Name != "named" {
		t.Errorf("after the crash there are the blobs %v: %v", blobs, err)
	}
}

// A reader of a blob that is removed meanwhile gets no half of it for a whole.
func TestGetOfABlobThatIsRemoved(t *testing.T) {
	l, w := filled(t)
	long := io.LimitReader(zeros{}, 2*shardlog.PartBytes)
	if err := l.Put(ctx, 1, "long", long); err != nil {
		t.Fatal(err)
	}
	parts := 0
	err := l.Get(ctx, 1, "long", func([]byte) error {
		parts++
		return l.Collect(ctx, 1, w.State.Term)
	})
	if !errors.Is(err, shardlog.ErrMissing) || parts != 1 {
		t.Errorf("after %d parts: %v, want ErrMissing after one", parts, err)
	}
}

// zeros is a reader of zeros without an end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// Callers own what they give and get.
func TestSnapshotsAreCopies(t *testing.T) {
	l, w := filled(t)
	if err := l.Put(ctx, 1, "x", strings.NewReader("x")); err != nil {
		t.Fatal(err)
	}
	given := shardlog.Snapshot{Last: w.State.Last, Chain: w.State.Chain, Manifest: []byte("m"), Blobs: []string{"x"}}
	if err := l.Register(ctx, 1, w.State.Term, given); err != nil {
		t.Fatal(err)
	}
	given.Manifest[0], given.Blobs[0] = 0, "scribbled"
	for range 2 {
		got, err := l.Snapshots(ctx, 1)
		if err != nil || len(got) != 1 || string(got[0].Manifest) != "m" || got[0].Blobs[0] != "x" {
			t.Fatalf("the snapshots are %+v: %v", got, err)
		}
		got[0].Manifest[0], got[0].Blobs[0] = 0, "scribbled"
	}
}
