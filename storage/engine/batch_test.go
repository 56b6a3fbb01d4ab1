package engine_test

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"

	_ "github.com/holdfast-dev/holdfast/internal/testing/seeds" // the tests draw the same inputs in each run
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/engine"
)

// The same calls give the same bytes, and ReadBatch reads them back.
func TestReadBatchReadsWhatBatchWrites(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		raw := rapid.SliceOfN(rapid.Byte(), 0, 300)
		var b, again storage.Batch
		var want []engine.Record
		for range rapid.IntRange(0, 8).Draw(rt, "records") {
			key, second := raw.Draw(rt, "key"), raw.Draw(rt, "second")
			switch rapid.IntRange(0, 2).Draw(rt, "kind") {
			case 0:
				b.Set(key, second)
				again.Set(key, second)
				want = append(want, engine.Record{Key: key, Value: second})
			case 1:
				b.Delete(key)
				again.Delete(key)
				want = append(want, engine.Record{Key: key, Deleted: true})
			case 2:
				b.DeleteRange(key, second)
				again.DeleteRange(key, second)
				want = append(want, engine.Record{Key: key, Upper: second, Deleted: true})
			}
		}
		if !bytes.Equal(b.Repr(), again.Repr()) {
			rt.Fatal("the same calls gave different bytes")
		}
		var got []engine.Record
		if err := engine.ReadBatch(b.Repr(), func(r engine.Record) { got = append(got, r) }); err != nil {
			rt.Fatal(err)
		}
		if !slices.EqualFunc(got, want, sameRecord) {
			rt.Fatalf("read %v, wrote %v", got, want)
		}
	})
}

func sameRecord(x, y engine.Record) bool {
	return bytes.Equal(x.Key, y.Key) && bytes.Equal(x.Value, y.Value) && bytes.Equal(x.Upper, y.Upper) && x.Deleted == y.Deleted
}

// ReadBatch refuses or reads any bytes. It reads only bytes that Batch would write.
func FuzzReadBatch(f *testing.F) {
	var b storage.Batch
	f.Add(slices.Clone(b.Repr()))
	b.Set([]byte("key"), []byte("value"))
	b.Delete([]byte("key"))
	b.DeleteRange([]byte("a"), []byte("b"))
	f.Add(slices.Clone(b.Repr()))
	f.Add(b.Repr()[:b.Len()-1])
	f.Add(append(slices.Clone(b.Repr()), 0))
	f.Add([]byte("\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff"))
	f.Add([]byte("\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Fuzz(func(t *testing.T, repr []byte) {
		var b storage.Batch
		records := 0
		err := engine.ReadBatch(repr, func(r engine.Record) {
			records++
			switch {
			case !r.Deleted:
				b.Set(r.Key, r.Value)
			case r.Upper != nil:
				b.DeleteRange(r.Key, r.Upper)
			default:
				b.Delete(r.Key)
			}
		})
		if records > len(repr) {
			t.Fatalf("%d records in %d bytes", records, len(repr))
		}
		if err != nil {
			return
		}
		again := 0
		if err := engine.ReadBatch(b.Repr(), func(engine.Record) { again++ }); err != nil || again != records {
			t.Fatalf("written again: %d records of %d, %v", again, records, err)
		}
	})
}
