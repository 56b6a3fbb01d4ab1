package pglog

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/shardlogtest"
)

// pattern reads bytes that differ from part to part, and calls begins where a part begins.
type pattern struct {
	at, length int
	begins     func(part int) error
}

// byteAt is the byte at a place.
func byteAt(at int) byte { return byte(at ^ at>>8 ^ at>>22*37) }

func (p *pattern) Read(b []byte) (int, error) {
	if p.at%shardlog.PartBytes == 0 {
		if err := p.begins(p.at / shardlog.PartBytes); err != nil {
			return 0, err
		}
	}
	n := min(len(b), p.length-p.at, shardlog.PartBytes-p.at%shardlog.PartBytes)
	if n == 0 {
		return 0, io.EOF
	}
	for i := range n {
		b[i] = byteAt(p.at + i)
	}
	p.at += n
	return n, nil
}

// same gets a blob and compares it with the pattern of a length.
func same(t *testing.T, l *Log, name string, length int) {
	t.Helper()
	at := 0
	err := l.Get(context.Background(), 0, name, func(part []byte) error {
		if len(part) > shardlog.PartBytes {
			t.Errorf("a part has %d bytes", len(part))
		}
		for i, b := range part {
			if b != byteAt(at+i) {
				t.Fatalf("byte %d of %s is %d, want %d", at+i, name, b, byteAt(at+i))
			}
		}
		at += len(part)
		return nil
	})
	if err != nil || at != length {
		t.Errorf("blob %s has %d bytes, want %d: %v", name, at, length, err)
	}
}

// A blob of several parts is never in memory as a whole: each part is in PostgreSQL before the next is read, and is got by itself. Until the end of
// Put readers see nothing of it.
func TestBlobGoesPartByPart(t *testing.T) {
	pair := shared(t)
	l := open(t, options(t, pair))
	const length = 2*shardlog.PartBytes + 3
	begun := 0
	r := &pattern{length: length, begins: func(part int) error {
		begun++
		if n := ask(t, pair.Primary, l.o.names()("select count(*) from {part} where length(data) = $1"), shardlog.PartBytes); n != string(rune('0'+part)) {
			t.Errorf("before part %d is read PostgreSQL has %s parts", part, n)
		}
		blobsAre(t, l, 0)
		return nil
	}}
	must(t, l.Put(context.Background(), 0, "large", r))
	if begun != 3 {
		t.Errorf("%d parts were read, want 6", begun)
	}
	blobsAre(t, l, 0, "large")
	same(t, l, "large", length)
	must(t, l.Put(context.Background(), 0, "large", unread{t}))
}

// unread is a reader that must not be read.
type unread struct{ t *testing.T }

func (r unread) Read([]byte) (int, error) {
	r.t.Error("a blob that is there is read once more")
	return 0, io.EOF
}

// A crash of the primary in the midst of a Put takes parts that were stored. The Put is unknown then, the blob is not there, and the next Put stores it.
func TestCrashInTheMidstOfPut(t *testing.T) {
	pair := shared(t)
	asleep(t, pair)
	l := open(t, options(t, pair))
	const length = 2*shardlog.PartBytes + 1
	put := func(begins func(part int) error) error {
		return l.Put(context.Background(), 0, "x", &pattern{length: length, begins: begins})
	}
	err := put(func(part int) error {
		switch part {
		case 0: // the row of the upload is durable by this head, and its parts are not
			shardlogtest.Head(t, l, 0)
		case 2:
			killed(t, pair)
		}
		return nil
	})
	if !errors.Is(err, shardlog.ErrUnknown) {
		t.Errorf("put over a crash: %v, want ErrUnknown", err)
	}
	blobsAre(t, l, 0)
	for range 3 {
		if err = put(func(int) error { return nil }); err == nil {
			break
		}
	}
	must(t, err)
	same(t, l, "x", length)
}

// A collection in the midst of a Put removes what it has stored, and the Put is unknown. The parts go in portions.
func TestCollectInTheMidstOfPut(t *testing.T) {
	pair := shared(t)
	l := open(t, options(t, pair))
	ctx := context.Background()
	parts := func() string { return ask(t, pair.Primary, l.o.names()("select count(*) from {part}")) }
	w := shardlogtest.Claim(t, l, 0, "a")
	const length = shardlog.PartBytes + 1
	for _, in := range []int{0, 1} { // before its first part and after it
		err := l.Put(ctx, 0, "x", &pattern{length: length, begins: func(part int) error {
			if part == in {
				return l.Collect(ctx, 0, w.State.Term)
			}
			return nil
		}})
		if !errors.Is(err, shardlog.ErrUnknown) {
			t.Errorf("put with a collection before part %d: %v, want ErrUnknown", in, err)
		}
		blobsAre(t, l, 0)
	}
	ask(t, pair.Primary, l.o.names()("insert into {part} select 0, n, 0, '' from generate_series(1, 33) n"))
	ask(t, pair.Primary, l.o.names()("insert into {part} values (1, 1, 0, '')")) // of another shard
	must(t, l.Collect(ctx, 0, w.State.Term))
	if n := parts(); n != "1" {
		t.Errorf("after a collection there are %s parts, want the one of the other shard", n)
	}
	must(t, l.Put(ctx, 0, "x", &pattern{length: length, begins: func(int) error { return nil }}))
	same(t, l, "x", length)
}

// The error of a reader comes back as it is, also one that others take for an end.
func TestErrorOfTheReader(t *testing.T) {
	l := open(t, options(t, shared(t)))
	for _, want := range []error{io.ErrUnexpectedEOF, errors.New("of the reader")} {
		err := l.Put(context.Background(), 0, "x", &pattern{length: 2 * shardlog.PartBytes, begins: func(part int) error {
			if part == 1 {
				return want
			}
			return nil
		}})
		if err != want {
			t.Errorf("put from a reader with the error %q: %v", want, err)
		}
		blobsAre(t, l, 0)
	}
}

// A part that is gone from the tables, or has another length, is an error and no shorter blob.
func TestDamagedBlob(t *testing.T) {
	pair := shared(t)
	l := open(t, options(t, pair))
	put(t, l, 0, "x")
	for _, damage := range []string{"update {part} set data = 'xx'", "update {part} set data = ''", "delete from {part}"} {
		ask(t, pair.Primary, l.o.names()(damage))
		err := l.Get(context.Background(), 0, "x", func([]byte) error { return nil })
		if !errors.Is(err, shardlog.ErrMissing) || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("get after %q: %v, want ErrMissing", damage, err)
		}
	}
}
