package shardlogtest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing/iotest"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// content returns random bytes, the same for the same length.
func content(length int) []byte {
	draw := rand.New(rand.NewPCG(uint64(length), 1))
	b := make([]byte, 0, length+8)
	for len(b) < length {
		b = binary.BigEndian.AppendUint64(b, draw.Uint64())
	}
	return b[:length]
}

// put stores blobs by their names.
func (d *directory) put(t TB, shard int, names ...string) {
	t.Helper()
	for _, name := range names {
		must(t, "put "+name, func() error {
			return d.putting(context.Background(), shard, name)
		})
	}
}

// putting stores a blob with its name as its content, by one call.
func (d *directory) putting(ctx context.Context, shard int, name string) error {
	return d.c.Engine.Put(ctx, shard, name, strings.NewReader(name))
}

// get returns a blob, which must come in parts of the right length.
func (d *directory) get(t TB, shard int, name string) ([]byte, error) {
	var got []byte
	err := again(func() error {
		got = nil
		return d.c.Engine.Get(context.Background(), shard, name, func(part []byte) error {
			if len(got)%shardlog.PartBytes != 0 || len(part) > shardlog.PartBytes {
				t.Errorf("a part of %d bytes comes after %d bytes of the blob", len(part), len(got))
			}
			got = append(got, part...)
			return nil
		})
	})
	return got, err
}

// list compares the blobs of a shard with the names that it must have.
func (d *directory) list(t TB, shard int, want ...string) {
	t.Helper()
	var names []string
	for _, b := range d.blobsOf(t, shard) {
		names = append(names, b.Name)
	}
	if !slices.Equal(names, want) {
		t.Errorf("shard %d has the blobs %q, want %q", shard, names, want)
	}
	for _, name := range want {
		if got, err := d.get(t, shard, name); err != nil || string(got) != name {
			t.Errorf("get %s: %.50q, %v", name, got, err)
		}
	}
}

// blobsOf lists the blobs of a shard.
func (d *directory) blobsOf(t TB, shard int) (found []shardlog.Blob) {
	t.Helper()
	must(t, "list the blobs", func() (err error) {
		found, err = d.c.Engine.List(context.Background(), shard)
		return err
	})
	return found
}

// blobs: a blob of any length comes back as it is, from its own shard, in parts of PartBytes.
func blobs(t TB, d *directory) {
	shard, other := d.next(), d.next()
	d.list(t, shard)
	lengths := map[string]int{"0": 0, "1": 1, "a": shardlog.PartBytes - 1, "b": shardlog.PartBytes, "c": shardlog.PartBytes + 1, "d": 2*shardlog.PartBytes + 5}
	var want []shardlog.Blob
	for _, name := range []string{"0", "1", "a", "b", "c", "d"} {
		for range 2 { // the second is a repeat
			must(t, "put "+name, func() error {
				return d.c.Engine.Put(context.Background(), shard, name, iotest.HalfReader(bytes.NewReader(content(lengths[name]))))
			})
		}
		want = append(want, shardlog.Blob{Name: name, Bytes: int64(lengths[name])})
	}
	if got := d.blobsOf(t, shard); !slices.Equal(got, want) {
		t.Errorf("the blobs are %+v, want %+v", got, want)
	}
	d.list(t, other)
	d.put(t, other, "a")
	d.list(t, other, "a")
	for name, length := range lengths {
		if got, err := d.get(t, shard, name); err != nil || !bytes.Equal(got, content(length)) {
			t.Errorf("blob %s of %d bytes came back with %d bytes that differ: %v", name, length, len(got), err)
		}
	}
}

// errStop is the error of a test's own function.
var errStop = errors.New("the test wants no more")

// blobErrors: errors of the caller come back as they are, a blob is not there if its reader fails, and one that is not there is missing.
func blobErrors(t TB, d *directory) {
	shard := d.next()
	d.missing(t, shard, "absent")
	half := func() error {
		r := io.MultiReader(bytes.NewReader(content(shardlog.PartBytes+1)), iotest.ErrReader(errStop))
		return d.c.Engine.Put(context.Background(), shard, "half", r)
	}
	if err := until(errStop, half); !errors.Is(err, errStop) {
		t.Errorf("put from a reader that fails: %v, want its error", err)
	}
	d.missing(t, shard, "half")
	d.list(t, shard)
	d.put(t, shard, "half") // a later one is whole
	d.list(t, shard, "half")

	calls := 0
	stop := func() error {
		calls = 0
		return d.c.Engine.Get(context.Background(), shard, "half", func([]byte) error { calls++; return errStop })
	}
	if err := until(errStop, stop); !errors.Is(err, errStop) || calls != 1 {
		t.Errorf("get with a function that fails: %v after %d parts, want its error after one", err, calls)
	}
	if err := again(func() error { return d.c.Engine.Put(context.Background(), shard, "", bytes.NewReader(nil)) }); !errors.Is(err, shardlog.ErrRefused) {
		t.Errorf("put without a name: %v, want ErrRefused", err)
	}
	d.list(t, shard, "half")
}

// missing gets a blob that must not be there.
func (d *directory) missing(t TB, shard int, name string) {
	t.Helper()
	if got, err := d.get(t, shard, name); !errors.Is(err, shardlog.ErrMissing) || len(got) > 0 {
		t.Errorf("get %s, which is not there: %d bytes, %v, want ErrMissing", name, len(got), err)
	}
}

// until makes a call until it returns nil, an error that says its outcome, or one of its own.
func until(own error, call func() error) (err error) {
	for range tries {
		if err = call(); !unknown(err) || errors.Is(err, own) {
			break
		}
	}
	return err
}
