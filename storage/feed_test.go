package storage

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// feedOptions are those of a small store that keeps the feed.
func feedOptions(fsys vfs.FS) Options {
	o := memOptions(fsys)
	o.Feed = true
	return o
}

// feedBatch is a batch with n events of an object in the feed, which expire at a time.
func feedBatch(s *Store, name string, n int, expires int64) *Batch {
	b, id := new(Batch), ID{"c", name}
	for i := range n {
		seq := s.NextSeq()
		b.AddEvent(s.ShardOf(id), id, seq, math.MaxInt64, fmt.Append(nil, i))
		b.AddToFeed(FeedEntry{ID: id, Seq: seq, Kind: fmt.Sprint(i), Expires: expires})
	}
	return b
}

// fed commits such a batch, and returns its positions.
func fed(t testing.TB, s *Store, name string, n int, expires int64) []uint64 {
	t.Helper()
	b := feedBatch(s, name, n, expires)
	if _, err := s.Commit(b); err != nil {
		t.Fatal(err)
	}
	return positions(b)
}

// positions are those that Commit has drawn for a batch.
func positions(b *Batch) (out []uint64) {
	for _, at := range b.feed {
		out = append(out, binary.BigEndian.Uint64(b.data[at:]))
	}
	return out
}

// feedOf reads the feed between two positions, as name/kind.
func feedOf(t testing.TB, s *Store, after, below uint64) (out []string) {
	t.Helper()
	last := after
	err := s.Feed(after, below, func(e FeedEntry) bool {
		if e.Position <= last {
			t.Errorf("S16: position %#x comes after %#x", e.Position, last)
		}
		last = e.Position
		if value, ok, err := s.Event(e.ID, e.Seq); !ok || err != nil || string(value) != e.Kind {
			t.Errorf("S16: the event of %+v is %q, %v, %v", e, value, ok, err)
		}
		out = append(out, e.ID.Name+"/"+e.Kind)
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func wantFeed(t testing.TB, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("S16: the feed has %q, want %q", got, want)
	}
}

// Each event of a batch has a position, in the order of the calls and greater than all before. A
// part of a batch that is rolled back has none. Proves S16.
func TestFeedPositionsGrow(t *testing.T) {
	s := open(t, feedOptions(vfs.NewMem()))
	defer checkAndClose(t, s)
	begin := s.FeedFloor()
	if begin != s.Epoch()<<blockBits || s.FeedBelow() != begin+1 {
		t.Errorf("S16: a new feed begins at %#x and is read up to %#x", begin, s.FeedBelow())
	}
	first := fed(t, s, "a", 2, math.MaxInt64)
	b := feedBatch(s, "b", 1, 7)
	sp := b.Savepoint()
	b.AddToFeed(FeedEntry{ID: ID{"c", "undone"}, Kind: "undone", Expires: 5})
	b.Rollback(sp)
	if _, err := s.Commit(b); err != nil {
		t.Fatal(err)
	}
	if want := []uint64{begin + 1, begin + 2}; !slices.Equal(first, want) || !slices.Equal(positions(b), []uint64{begin + 3}) {
		t.Errorf("S16: the positions are %#x and %#x", first, positions(b))
	}
	wantFeed(t, feedOf(t, s, 0, s.FeedBelow()), "a/0", "a/1", "b/0")
	wantFeed(t, feedOf(t, s, first[0], first[1]+1), "a/1")
	wantFeed(t, feedOf(t, s, first[0], first[1]))
	if b.Reset(); b.FeedExpires() != 0 || len(b.feed) != 0 {
		t.Errorf("after Reset a batch has %d rows of the feed", len(b.feed))
	}
}

// A position is drawn only once the batch is about to be applied, and is given back when that fails
// or panics. Readers stop at it meanwhile, and not afterwards. Proves S16.
func TestPositionsAreGivenBack(t *testing.T) {
	broken := errors.New("broken")
	for name, end := range map[string]func() error{
		"error": func() error { return broken },
		"panic": func() error { panic(broken) },
	} {
		t.Run(name, func(t *testing.T) {
			gate := &gateEngine{Engine: memstore.New()}
			s, err := Open(Options{Engine: gate, Feed: true})
			if err != nil {
				t.Fatal(err)
			}
			before := s.FeedBelow()
			b := feedBatch(s, "a", 3, 1)
			gate.before = func([]byte) error {
				if got := s.FeedBelow(); got != before || positions(b)[0] != before {
					t.Errorf("S16: while the commit is applied readers stop at %#x, want %#x", got, before)
				}
				return end()
			}
			func() {
				defer func() { _ = recover() }()
				if _, err := s.Commit(b); !errors.Is(err, broken) {
					t.Errorf("Commit: %v", err)
				}
			}()
			if got := s.FeedBelow(); got != before+3 {
				t.Errorf("S16: after the commit readers stop at %#x, want %#x", got, before+3)
			}
			gate.before = nil
			_ = s.Close()
		})
	}
}

// A commit that is refused for lack of space draws no position. Its batch is accepted when there is
// space. Proves S16.
func TestNoSpaceDrawsNoPosition(t *testing.T) {
	disk, clock := newDisk(100<<20), &manualClock{now: time.Unix(1000, 0)}
	o := feedOptions(disk)
	o.MinFreeBytes, o.Seams.Clock = 50<<20, clock
	s := open(t, o)
	defer checkAndClose(t, s)
	b, before := feedBatch(s, "a", 2, math.MaxInt64), s.FeedBelow()
	disk.freeBytes.Store(0)
	clock.now = clock.now.Add(checkEvery)
	if _, err := s.Commit(b); !errors.Is(err, ErrNoSpace) || s.FeedBelow() != before {
		t.Errorf("S16: without space: %v, readers stop at %#x, want %#x", err, s.FeedBelow(), before)
	}
	disk.freeBytes.Store(100 << 20)
	if _, err := s.Commit(b); err != nil || positions(b)[0] != before {
		t.Errorf("S16: with space: %v, the first position is %#x, want %#x", err, positions(b)[0], before)
	}
	wantFeed(t, feedOf(t, s, 0, s.FeedBelow()), "a/0", "a/1")
}

// A reader stops before a commit that is drawn first and applied last, while a later one is
// visible, and so does the removal of rows that have expired. Proves S16.
func TestFeedWaitsForAnOlderCommit(t *testing.T) {
	gate := &gateEngine{Engine: memstore.New()}
	s, err := Open(Options{Engine: gate, Feed: true})
	if err != nil {
		t.Fatal(err)
	}
	defer checkAndClose(t, s)
	reached, applied, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	slow := feedBatch(s, "slow", 1, 1)
	gate.before = func(repr []byte) error {
		if &repr[0] == &slow.Repr()[0] {
			close(reached)
			<-applied
		}
		return nil
	}
	go func() {
		defer close(done)
		if _, err := s.Commit(slow); err != nil {
			t.Error(err)
		}
	}()
	<-reached
	fed(t, s, "fast", 1, 1)
	below := s.FeedBelow()
	wantFeed(t, feedOf(t, s, 0, below))
	if _, ok, err := s.ExpireFeed(2, 10); ok || err != nil || s.FeedFloor() >= below {
		t.Errorf("S16: beside a commit rows expire up to %#x, %v; readers stop at %#x", s.FeedFloor(), err, below)
	}
	close(applied)
	<-done
	wantFeed(t, feedOf(t, s, below-1, s.FeedBelow()), "slow/0", "fast/0")
}

// Many turns commit beside a reader that goes on from where it stopped. It meets each event
// once, and those of one object in order. Proves S16.
func TestFeedReaderBesideManyCommits(t *testing.T) {
	const objects, commits = 8, 60
	s := open(t, feedOptions(vfs.NewMem()))
	defer checkAndClose(t, s)
	news, done := make(chan struct{}, 1), make(chan struct{})
	var writing sync.WaitGroup
	for object := range objects {
		writing.Go(func() {
			for n := range commits {
				if _, err := s.Commit(feedBatch(s, fmt.Sprint(object), 1+n%3, math.MaxInt64)); err != nil {
					t.Error(err)
				}
				select {
				case news <- struct{}{}:
				default:
				}
			}
		})
	}
	go func() { writing.Wait(); close(done) }()
	got, after := map[string][]string{}, uint64(0)
	for open := true; open; {
		select {
		case <-news:
		case <-done:
			open = false
		}
		below := s.FeedBelow()
		for _, text := range feedOf(t, s, after, below) {
			name, kind, _ := strings.Cut(text, "/")
			got[name] = append(got[name], kind)
		}
		after = below - 1
	}
	var want []string
	for n := range commits {
		want = append(want, []string{"0", "1", "2"}[:1+n%3]...)
	}
	for object := range objects {
		if all := got[fmt.Sprint(object)]; !slices.Equal(all, want) {
			t.Errorf("S16: of object %d the reader has %d events, want %d, in order", object, len(all), len(want))
		}
	}
}

// Rows go from the oldest on, at their time and not before, up to the limit, and never before an
// older one. The store knows after another Open up to which position rows have gone. Proves S16.
func TestFeedExpires(t *testing.T) {
	o := feedOptions(vfs.NewMem())
	s := open(t, o)
	begin := s.FeedFloor()
	fed(t, s, "a", 3, 100)
	fed(t, s, "b", 1, 200)
	fed(t, s, "c", 1, 150) // an opening with a shorter time has come, or the clock was put back
	for _, step := range []struct {
		now, next int64
		limit     int
		gone      uint64 // rows
		ok        bool
	}{
		{99, 100, 10, 0, true}, {100, 100, 2, 2, true}, {100, 200, 2, 3, true}, {199, 200, 10, 3, true}, {200, 0, 2, 5, false}, {300, 0, 1, 5, false},
	} {
		next, ok, err := s.ExpireFeed(step.now, step.limit)
		if err != nil || next != step.next || ok != step.ok || s.FeedFloor() != begin+step.gone {
			t.Errorf("S16: at %d: next %d, %v, %v, gone up to %#x; want %+v", step.now, next, ok, err, s.FeedFloor(), step)
		}
		if rows := feedOf(t, s, 0, s.FeedBelow()); len(rows) != 5-int(step.gone) {
			t.Errorf("S16: at %d the feed has %q", step.now, rows)
		}
	}
	checkAndClose(t, s)
	s = open(t, o)
	defer checkAndClose(t, s)
	if s.FeedFloor() != begin+5 {
		t.Errorf("S16: after another Open rows have gone up to %#x, want %#x", s.FeedFloor(), begin+5)
	}
}

// The feed goes on from opening to opening. One without it removes its rows, and after one that
// knows of no feed the rows are not believed: the next feed begins above all positions. Proves S16.
func TestFeedOverOpenings(t *testing.T) {
	for name, between := range map[string]struct {
		open func(t *testing.T, o Options)
		kept bool
	}{
		"the next":         {func(*testing.T, Options) {}, true},
		"another with it":  {func(t *testing.T, o Options) { checkAndClose(t, open(t, o)) }, true},
		"a look":           {func(t *testing.T, o Options) { checkAndClose(t, openReader(t, o)) }, true},
		"another, crashed": {func(t *testing.T, o Options) { _ = open(t, o).Abandon() }, true},
		"one without it": {func(t *testing.T, o Options) {
			o.Feed = false
			s := open(t, o)
			defer checkAndClose(t, s)
			for _, key := range [][]byte{metaKey(feedRow), feedKey(nil, 1<<blockBits+1)} {
				if _, ok, err := s.get(key); ok || err != nil {
					t.Errorf("S16: an opening without the feed keeps the row %x, %v", key, err)
				}
			}
			s.feed.on = true // else Feed shows nothing
			wantFeed(t, feedOf(t, s, 0, math.MaxUint64))
		}, false},
		"an old program": {func(t *testing.T, o Options) {
			o.Feed = false
			row, rows := []byte(nil), [][2][]byte{}
			s := openReader(t, o)
			row, _, _ = s.Meta(feedRow)
			_ = s.scan(metaShard, kindFeed, nil, func(key, value []byte) error {
				rows = append(rows, [2][]byte{append(prefix(nil, metaShard, kindFeed), key...), slices.Clone(value)})
				return nil
			})
			checkAndClose(t, s)
			s = open(t, o)
			commit(t, s, func(b *Batch) { // it has left them as they were
				b.SetMeta(feedRow, row)
				for _, r := range rows {
					b.Set(r[0], r[1])
				}
			})
			checkAndClose(t, s)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := feedOptions(vfs.NewMem())
			s := open(t, o)
			old := fed(t, s, "a", 2, math.MaxInt64)
			commit(t, s, func(b *Batch) { b.SetMeta("sync", nil) })
			checkAndClose(t, s)
			between.open(t, o)
			s = open(t, o)
			defer checkAndClose(t, s)
			fresh := fed(t, s, "b", 1, math.MaxInt64)
			want := []string{"b/0"}
			if between.kept {
				want = []string{"a/0", "a/1", "b/0"}
			}
			wantFeed(t, feedOf(t, s, 0, s.FeedBelow()), want...)
			if told := s.FeedFloor() >= old[1]; told == between.kept || fresh[0]>>blockBits != s.Epoch() {
				t.Errorf("S16: the feed is whole after %#x; the old rows are at %#x, the new one at %#x", s.FeedFloor(), old, fresh)
			}
		})
	}
}

// A copy that Adopt makes a store goes on with the feed of its source, and gives out no position that the
// source has given out after the copy was made. A cursor of that time is not led over a gap: its reader has
// had all that the copy has from before. Proves S16, S17.
func TestFeedOfAnAdoptedCopy(t *testing.T) {
	o := feedOptions(vfs.NewMem())
	s := open(t, o)
	old := fed(t, s, "a", 2, math.MaxInt64)
	if err := s.Checkpoint(context.Background(), "copy"); err != nil {
		t.Fatal(err)
	}
	lost := fed(t, s, "lost", 2, math.MaxInt64)
	checkAndClose(t, s)
	s = open(t, o) // the next opening of the source has positions of its own
	lost = append(lost, fed(t, s, "lost", 1, math.MaxInt64)...)
	source := s.ID()
	checkAndClose(t, s)

	o.Dir = "copy"
	d := o.Pebble.Dir(o.Dir)
	text, err := d.Read(FormatFile)
	if err == nil {
		err = d.FS.Remove(d.Join(FormatFile))
	}
	if err = errors.Join(err, Adopt(o, text)); err != nil {
		t.Fatal(err)
	}
	for epochs := range uint64(2) {
		s = open(t, o)
		if s.ID() == source || !s.Dormant() || s.FeedFloor() >= old[0] {
			t.Errorf("S17: the copy %s of %s is dormant %v, and its feed whole after %#x", s.ID(), source, s.Dormant(), s.FeedFloor())
		}
		fresh := fed(t, s, "b", 1, math.MaxInt64)
		if want := (lost[0]>>blockBits + raisedEpochs) << blockBits; fresh[0] <= want || slices.Contains(lost, fresh[0]) {
			t.Errorf("S17: opening %d gives out %#x, and the source has given out %#x", epochs, fresh, lost)
		}
		wantFeed(t, feedOf(t, s, old[0], old[1]+1), "a/1")
		wantFeed(t, feedOf(t, s, lost[2], fresh[0]+1), []string{"b/0", "b/0"}[:epochs+1]...)
		checkAndClose(t, s)
	}
}

// Without the feed nothing of it is stored.
func TestNoFeedNoRow(t *testing.T) {
	s := memStore(t)
	if _, ok, err := s.Meta(feedRow); ok || err != nil {
		t.Errorf("a store without the feed has its row, %v", err)
	}
	if err := s.Feed(0, math.MaxUint64, nil); err != nil {
		t.Error(err)
	}
}

// A damaged row `feed` is an error of Open and a finding of Check. Proves S9.
func TestFeedRowIsChecked(t *testing.T) {
	for _, bad := range []string{"", "\x01", "\x01\x01", "\x02\x01\x01", "\x01\xff\xff"} {
		o := feedOptions(vfs.NewMem())
		s := open(t, o)
		commit(t, s, func(b *Batch) { b.SetMeta(feedRow, []byte(bad)) })
		if err := s.Check(); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%q: Check says %v", bad, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		wantOpenError(t, o, ErrCorrupt, "store")
	}
}
