package pglog

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfast-dev/holdfast/internal/testing/loglines"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/shardlogtest"
)

// wanting is a request of a number of bytes.
func wanting(shard int32, size int) *request {
	return &request{shard: shard, size: size, done: make(chan struct{}), r: shardlog.Record{Payload: make([]byte, size)}}
}

// shardsOf are the shards of requests.
func shardsOf(batch []*request) (found []int32) {
	for _, q := range batch {
		found = append(found, q.shard)
	}
	return found
}

// A lane takes one record of each shard, in their order, and none of a shard that another lane works on.
func TestLaneTakesOneRecordOfAShard(t *testing.T) {
	s := newLanes(unconnected(t))
	a, b := s.idle[0], s.idle[1]
	s.idle = nil
	s.waiting = []*request{wanting(1, 0), wanting(1, 0), wanting(2, 0), wanting(1, 0)}
	first := s.take(a)
	if got := fmt.Sprint(shardsOf(first)); got != "[1 2]" {
		t.Fatalf("the first lane takes %s", got)
	}
	if got := s.take(b); len(got) != 0 || len(s.idle) != 1 {
		t.Fatalf("the second lane takes %v of busy shards, and %d lanes are idle", shardsOf(got), len(s.idle))
	}
	s.release(first)
	for range 2 {
		next := s.take(a)
		if got := fmt.Sprint(shardsOf(next)); got != "[1]" {
			t.Fatalf("then it takes %s", got)
		}
		s.release(next)
	}
	if len(s.waiting) != 0 || len(s.busy) != 0 {
		t.Errorf("%d requests wait, %d shards are busy", len(s.waiting), len(s.busy))
	}
}

// A statement has 256 records or 4 MiB at most, but for a larger record, which is alone.
func TestBoundsOfAStatement(t *testing.T) {
	for _, c := range []struct {
		about string
		sizes []int
		want  int
	}{
		{"257 records", make([]int, groupRecords+1), groupRecords},
		{"256 records", make([]int, groupRecords), groupRecords},
		{"4 MiB", []int{groupBytes - 1, 1}, 2},
		{"4 MiB and a byte", []int{groupBytes - 1, 2}, 1},
		{"a larger one first", []int{groupBytes + 1, 0}, 1},
		{"a larger one second", []int{1, groupBytes + 1}, 1},
	} {
		s := newLanes(unconnected(t))
		n := s.idle[0]
		s.idle = nil
		for shard, size := range c.sizes {
			s.waiting = append(s.waiting, wanting(int32(shard), size))
		}
		total := 0
		for batch := s.take(n); len(batch) > 0; batch = s.take(n) {
			if total == 0 && len(batch) != c.want {
				t.Errorf("%s: the first statement has %d records, want %d", c.about, len(batch), c.want)
			}
			total += len(batch)
			s.release(batch)
		}
		if total != len(c.sizes) {
			t.Errorf("%s: %d records are taken, want %d", c.about, total, len(c.sizes))
		}
	}
}

// Even if two owners of one shard meet in a statement, which lanes prevent, each record is answered by its own term: that of the old one is
// neither stored nor acknowledged, in either order.
func TestStatementAnswersByTerm(t *testing.T) {
	pair := shared(t)
	l := open(t, options(t, pair))
	for shard := range int32(2) {
		old := shardlogtest.Claim(t, l, int(shard), "a")
		owner := shardlogtest.Claim(t, l, int(shard), "b")
		batch := []*request{{shard: shard, r: old.Record("old")}, {shard: shard, r: owner.Record("new")}}
		if shard == 1 {
			slices.Reverse(batch)
		}
		must(t, l.appendOnce(&lane{link: l.newLink("append")}, batch))
		for _, q := range batch {
			if want := q.r.Term == owner.State.Term; q.stored != want {
				t.Errorf("the record of term %d is stored: %t, want %t", q.r.Term, q.stored, want)
			}
		}
		if all := shardlogtest.Records(t, l, int(shard)); len(all) != 1 || string(all[0].Payload) != "new" {
			t.Errorf("the log has %d records", len(all))
		}
	}
}

// A record that an owner before has written is no repeat for the new owner, though position and chain are the same. A truncation of it
// changes nothing.
func TestRepeatIsOfOneTerm(t *testing.T) {
	pair := shared(t)
	l := open(t, options(t, pair))
	old := shardlogtest.Claim(t, l, 0, "a")
	record, before := old.Record("1"), old.State.Chain
	must(t, old.Append("1"))
	must(t, l.Append(context.Background(), 0, before, record))
	must(t, l.Truncate(context.Background(), 0, old.State.Term, 1))
	must(t, l.Append(context.Background(), 0, before, record))
	record.Term = shardlogtest.Claim(t, l, 0, "b").State.Term
	if err := l.Append(context.Background(), 0, before, record); !errors.Is(err, shardlog.ErrFenced) {
		t.Errorf("the new owner sends the record of the old one: %v, want ErrFenced", err)
	}
}

// A request that was left is in no statement, and its payload is not read any more. One that is in a statement goes on with its own copy.
func TestLeftRequest(t *testing.T) {
	gone, stays, later := wanting(1, 3), wanting(2, 4), wanting(3, 5)
	copy(later.r.Payload, "later")
	gone.leave()
	var g group
	g.fill([]*request{gone, stays, later})
	copy(later.r.Payload, "xxxxx")
	later.leave()
	if g.id.n != 2 || g.payload.n != 2 {
		t.Errorf("the statement has %d shards and %d payloads, want 2", g.id.n, g.payload.n)
	}
	if !strings.HasSuffix(string(g.payload.value()), "later") {
		t.Errorf("the statement has the payload %q", g.payload.value())
	}
	for i, want := range []uint32{1, 0, oidInt4, 2, 1, 4, 2, 4, 3} {
		if got := binary.BigEndian.Uint32(g.values[0][4*i:]); got != want {
			t.Errorf("word %d of the shards is %d, want %d", i, got, want)
		}
	}
}

// A buffer is used again, unless a large record has made it larger than 8 MiB.
func TestBuffersAreKeptWhileSmall(t *testing.T) {
	for _, c := range []struct {
		size int
		kept bool
	}{{groupBytes, true}, {keptBytes + 1, false}} {
		var g group
		g.fill([]*request{wanting(1, c.size)})
		before := cap(g.payload.buf)
		g.fill(nil)
		if kept := cap(g.payload.buf) == before; kept != c.kept {
			t.Errorf("after a payload of %d bytes a buffer of %d bytes is kept: %t, want %t", c.size, before, kept, c.kept)
		}
	}
}

// The error of a statement says the outcome: nothing stored for what PostgreSQL refuses, unknown for all else.
func TestOutcomes(t *testing.T) {
	for code, want := range map[string]error{
		"53100": shardlog.ErrNoSpace,
		"22P02": shardlog.ErrRefused, "23505": shardlog.ErrRefused, "42P01": shardlog.ErrRefused, "42501": shardlog.ErrRefused,
		"53200": shardlog.ErrUnknown, "40P01": shardlog.ErrUnknown, "57014": shardlog.ErrUnknown, "57P01": shardlog.ErrUnknown,
		"25006": shardlog.ErrUnknown, "26000": shardlog.ErrUnknown, "XX000": shardlog.ErrUnknown,
	} {
		err := outcome(fmt.Errorf("statement: %w", &pgconn.PgError{Code: code}))
		for _, o := range []error{shardlog.ErrNoSpace, shardlog.ErrRefused, shardlog.ErrUnknown, shardlog.ErrFenced} {
			if errors.Is(err, o) != (o == want) {
				t.Errorf("SQLSTATE %s is %v, want %v", code, err, want)
			}
		}
	}
	for _, err := range []error{errors.New("connection reset"), context.DeadlineExceeded} {
		if got := outcome(err); !errors.Is(got, shardlog.ErrUnknown) || !errors.Is(got, err) {
			t.Errorf("%v is %v, want ErrUnknown", err, got)
		}
	}
	if got := outcome(shardlog.ErrFenced); got != shardlog.ErrFenced {
		t.Errorf("ErrFenced is %v", got)
	}
}

// The hosts of a DSN keep their order, and each has all its ways to encrypt. After a time-out the next host comes first, once for all connections
// that met it; a caller that has left changes nothing.
func TestHosts(t *testing.T) {
	config, err := pgx.ParseConfig("host=a,b,c port=1,2,3 user=x sslmode=prefer")
	must(t, err)
	var found []string
	for _, h := range hosts(config) {
		found = append(found, fmt.Sprint(h, " ", len(h.ways)))
	}
	if got := strings.Join(found, ", "); got != "a:1 2, b:2 2, c:3 2" {
		t.Errorf("the hosts are %s", got)
	}
	l, err := prepare(Options{DSN: "host=a,b,c user=x"})
	must(t, err)
	defer l.Close()
	slow, left := context.WithCancelCause(context.Background())
	left(errSlow)
	gone, leave := context.WithCancel(context.Background())
	leave()
	order := []int32{l.first.Load()}
	for _, at := range []int{0, 0, 1, 2, 1} {
		l.late(slow, at)
		l.late(gone, at)
		l.late(context.Background(), at)
		order = append(order, l.first.Load())
	}
	if want := []int32{0, 1, 1, 2, 0, 0}; !slices.Equal(order, want) {
		t.Errorf("the first hosts are %v, want %v", order, want)
	}
}

// The same problem is told once a minute, and another one at once.
func TestWarningsAreRare(t *testing.T) {
	said, clock := &loglines.Recorder{}, newHand()
	l, err := prepare(Options{DSN: "host=a user=x", Log: said.Logger(), Seams: seam.Seams{Clock: clock}})
	must(t, err)
	defer l.Close()
	for _, c := range []struct {
		pass time.Duration
		want int
	}{{0, 1}, {time.Minute - 1, 1}, {1, 2}, {time.Minute, 3}} {
		clock.pass(c.pass)
		l.warn("k", "one")
		l.warn("k", "two")
		for _, detail := range []string{"one", "two"} {
			if n := strings.Count(said.Text(-8), "detail="+detail); n != c.want {
				t.Errorf("%v later %s was told %d times, want %d", c.pass, detail, n, c.want)
			}
		}
	}
}
