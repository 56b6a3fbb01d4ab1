package shardlog_test

import (
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"errors"

	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/memlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/shardlogtest"
)

// Each mistake in the options is named, and no log is asked.
func TestWrongOptions(t *testing.T) {
	for about, c := range map[string]struct {
		change func(*shardlog.Options)
		want   string
	}{
		"no log":              {func(o *shardlog.Options) { o.Log = nil }, "Options.Log is nil"},
		"a negative shard":    {func(o *shardlog.Options) { o.Shard = -1 }, "Options.Shard is -1"},
		"a negative patience": {func(o *shardlog.Options) { o.Patience = -1 }, "Options.Patience is -1ns"},
		"a negative time-out": {func(o *shardlog.Options) { o.Timeout = -1 }, "Options.Timeout is -1ns"},
		"negative bytes":      {func(o *shardlog.Options) { o.MaxRecordBytes = -1 }, "Options.MaxRecordBytes is -1"},
	} {
		log := &scripted{Log: memlog.New()}
		o := options(log, "a")
		c.change(&o)
		if _, err := shardlog.Open(o, memstore.New()); !contains(err, c.want) {
			t.Errorf("%s: %v, want an error with %q", about, err, c.want)
		}
		if n := log.heads.Load(); n != 0 {
			t.Errorf("%s: the log was asked %d times", about, n)
		}
	}
}

// The number of the shard chooses the log, and the default owner has a name.
func TestShardChoosesTheLog(t *testing.T) {
	log := memlog.New()
	o := shardlog.Options{Log: log, Shard: 7}
	e := start(t, o, memstore.New())
	store(t, e, "1", "x")
	closeEngine(t, e)
	if h := shardlogtest.Head(t, log, 7); h.Last != 1 || !strings.HasPrefix(h.Owner, "node ") {
		t.Errorf("the head of shard 7 is %+v", h)
	}
	if h := shardlogtest.Head(t, log, 0); h.Last != 0 || h.Term != 0 {
		t.Errorf("the head of shard 0 is %+v", h)
	}
}

// value is the value of a key in a store.
func value(t testing.TB, s *storage.Store, key string) string {
	t.Helper()
	v, _, err := s.Meta(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(v)
}

// set sets a row of the store itself, and waits until that is durable.
func set(t testing.TB, s *storage.Store, key, value string) {
	t.Helper()
	ticket, err := beginWith(s, func(b *storage.Batch) { b.SetMeta(key, []byte(value)) })
	if err == nil {
		err = s.WaitDurable(ticket)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// checkAndClose ends a store in order.
func checkAndClose(t testing.TB, s *storage.Store) {
	t.Helper()
	if err := errors.Join(s.Check(), s.Close()); err != nil {
		t.Error(err)
	}
}

// One value of options serves one opening after another, in a new directory, in the one that is left, and in another one of the same log.
func TestStoreInADirectory(t *testing.T) {
	log, mem := memlog.New(), vfs.NewCrashableMem()
	so := onDisk(mem, log, "a")
	s := openDir(t, so)
	set(t, s, "x", "1")
	checkAndClose(t, s)
	s = openDir(t, so)
	if got := value(t, s, "x"); got != "1" || !s.Previous().Clean {
		t.Errorf("the store that is opened again has %q, clean %v", got, s.Previous().Clean)
	}
	set(t, s, "x", "2")
	checkAndClose(t, s)
	so.Dir = "other"
	s = openDir(t, so)
	if got := value(t, s, "x"); got != "2" {
		t.Errorf("a new view has %q", got)
	}
	checkAndClose(t, s)
}

// An opening that fails leaves the directory free for the next, whether the log or a claim was the reason.
func TestFailedOpeningLeavesTheDirectoryFree(t *testing.T) {
	log := &scripted{Log: memlog.New()}
	so := onDisk(vfs.NewMem(), log, "a")
	refused := func(about string, want error) {
		t.Helper()
		_, err := storage.Open(so)
		is(t, about, err, want)
		log.onHead, log.onClaim = nil, nil
		s := openDir(t, so)
		set(t, s, "x", about)
		checkAndClose(t, s)
	}
	no := func(err error) func(func() (shardlog.State, error)) (shardlog.State, error) {
		return func(func() (shardlog.State, error)) (shardlog.State, error) { return shardlog.State{}, err }
	}
	log.onHead = no(shardlog.ErrRefused)
	refused("a log that refuses", shardlog.ErrRefused)
	log.onClaim = no(shardlog.ErrFenced)
	refused("a claim that is lost", shardlog.ErrFenced)
}

// A view is no store: without its log it is refused by all that open a directory, because it may lack what the log has. Nothing is
// changed by that.
func TestViewWithoutItsLogIsRefused(t *testing.T) {
	log, mem := memlog.New(), vfs.NewMem()
	so := onDisk(mem, log, "a")
	s := openDir(t, so)
	set(t, s, "x", "1")
	checkAndClose(t, s)
	plain := so
	plain.Over, plain.Pebble.NoLog, plain.Pebble.BeforeTable = nil, false, nil
	refused := func(about string, err error) {
		t.Helper()
		if !errors.Is(err, storage.ErrMovedStore) || !contains(err, "view is a view of a log") {
			t.Errorf("%s: %v", about, err)
		}
	}
	_, err := storage.Open(plain)
	refused("Open", err)
	_, err = storage.OpenReadOnly(plain)
	refused("OpenReadOnly", err)
	n, err := storage.Verify(t.Context(), plain, storage.Verification{})
	refused("Verify", err)
	if n != 0 {
		t.Errorf("Verify tells of %d findings", n)
	}
	s = openDir(t, so)
	if got := value(t, s, "x"); got != "1" {
		t.Errorf("the view has %q", got)
	}
	checkAndClose(t, s)
}

// Proves S15 and N9: a checkpoint of a store over a log has each commit that was acknowledged before it, and is a store of its own.
func TestCheckpointOfAStoreOverALog(t *testing.T) {
	log, mem := memlog.New(), vfs.NewMem()
	so := onDisk(mem, log, "a")
	s := openDir(t, so)
	set(t, s, "x", "1")
	if err := s.Checkpoint(t.Context(), "copy"); err != nil {
		t.Fatal(err)
	}
	set(t, s, "x", "2")
	checkAndClose(t, s)
	plain := so
	plain.Dir, plain.Over, plain.Pebble.NoLog, plain.Pebble.BeforeTable = "copy", nil, false, nil
	if n, err := storage.Verify(t.Context(), plain, storage.Verification{}); n != 0 || err != nil {
		t.Errorf("the copy has %d findings: %v", n, err)
	}
	c := openDir(t, plain)
	if got := value(t, c, "x"); got != "1" {
		t.Errorf("the copy has %q, want the value before it", got)
	}
	checkAndClose(t, c)
}

// Proves S7 and N2: a batch of 16 MiB, the limit of a turn, is one record.
func TestLargestTurn(t *testing.T) {
	log, mem := memlog.New(), vfs.NewMem()
	so := onDisk(mem, log, "a")
	s := openDir(t, so)
	big := strings.Repeat("v", 16<<20)
	set(t, s, "x", big)
	checkAndClose(t, s)
	so.Dir = "new"
	s = openDir(t, so)
	if got := value(t, s, "x"); got != big {
		t.Errorf("the next machine reads %d bytes, want %d", len(got), len(big))
	}
	checkAndClose(t, s)
}
