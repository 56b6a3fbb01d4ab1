package storage

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// hostileNames are legal, and chosen to be mistaken for one another.
var hostileNames = []string{
	"\x00", "\x00\x00", "\x01", "a", "a\x00", "a\x00b", "a\x01", "ab", "b", "/", "a/b", "é", "\U0010ffff",
	strings.Repeat("x", MaxNameBytes-1), strings.Repeat("x", MaxNameBytes), strings.Repeat("\x00", MaxNameBytes),
}

var hostileClasses = []string{"a", "a\x01", "ab", "b", "é", strings.Repeat("c", maxClassBytes)}

func hostileIDs() []ID {
	var ids []ID
	for _, class := range hostileClasses {
		for _, name := range hostileNames {
			ids = append(ids, ID{class, name})
		}
	}
	return ids
}

// Proves O1's limits.
func TestNamesOutsideTheLimitsAreRefused(t *testing.T) {
	for _, id := range hostileIDs() {
		if err := id.Validate(); err != nil {
			t.Errorf("%.20q: %v", id, err)
		}
	}
	for _, bad := range []struct {
		id   ID
		says string
	}{
		{ID{"", "n"}, "class name is empty"},
		{ID{"c", ""}, "name is empty"},
		{ID{"c", strings.Repeat("x", MaxNameBytes+1)}, "name has 1025 bytes, the limit is 1024"},
		{ID{"c", "a\xffb"}, "is not UTF-8"},
		{ID{"c", "\xed\xa0\x80"}, "is not UTF-8"},
		{ID{"a/b", "n"}, "holds NUL or a slash"},
		{ID{"a\x00b", "n"}, "holds NUL or a slash"},
		{ID{"\xff", "n"}, "is not UTF-8"},
		{ID{strings.Repeat("c", maxClassBytes+1), "n"}, "the limit is 128"},
	} {
		err := bad.id.Validate()
		if err == nil || !strings.Contains(err.Error(), bad.says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.20q: error %v, want one line with %q", bad.id, err, bad.says)
		}
	}
}

// No two objects share a header, an event or a dead letter key, and no such key is the
// beginning of another object's. Each key tells its object.
func TestKeysOfHostileNamesStayApart(t *testing.T) {
	const shard = 7
	owners := make(map[string]ID)
	add := func(key []byte, id ID) {
		t.Helper()
		if other, ok := owners[string(key)]; ok {
			t.Errorf("%q and %q share a key", id, other)
		}
		owners[string(key)] = id
	}
	for _, id := range hostileIDs() {
		h := headerKey(nil, shard, id)
		add(h, id)
		if got, err := decodeHeaderKey(h[3:]); err != nil || got != id {
			t.Errorf("header key of %q reads as %q, %v", id, got, err)
		}
		for _, seq := range []uint64{0, 1, math.MaxUint64} {
			for _, kind := range []byte{kindEvent, kindDead} {
				k := namedKey(nil, shard, kind, id, seq)
				add(k, id)
				if got, n, err := decodeNamed(k[3:]); err != nil || got != id || n != seq {
					t.Errorf("key of %q %d reads as %q %d, %v", id, seq, got, n, err)
				}
			}
		}
		for _, other := range hostileIDs() {
			p := namedPrefix(nil, shard, kindEvent, id)
			if other != id && bytes.HasPrefix(namedPrefix(nil, shard, kindEvent, other), p) {
				t.Errorf("the events of %q lie among those of %q", other, id)
			}
		}
	}
}

// Keys of one kind sort like their values, and lie within the bounds of their kind and
// shard.
func TestKeyOrder(t *testing.T) {
	numbers := []uint64{0, 1, 255, 256, 1 << 32, math.MaxUint64}
	times := []int64{0, 1, 255, 256, math.MaxInt64}
	var index, data [][]byte
	for _, due := range times {
		for _, n := range numbers {
			index = append(index, indexKey(nil, 3, due, Number(n)))
		}
	}
	for _, n := range numbers {
		for _, key := range []string{"", "\x00", "a", "a\x00", "b", "\xff\xff"} {
			data = append(data, dataKey(Object{Shard: 3, Number: Number(n)}, key))
		}
	}
	for _, k := range []struct {
		kind byte
		keys [][]byte
	}{{kindIndex, index}, {kindRow, data}} {
		lower, upper := kindRange(3, k.kind)
		if !slices.IsSortedFunc(k.keys, bytes.Compare) {
			t.Errorf("keys of kind %d are out of order", k.kind)
		}
		for _, key := range k.keys {
			if bytes.Compare(key, lower) < 0 || bytes.Compare(key, upper) >= 0 {
				t.Errorf("key %x of kind %d lies outside %x..%x", key, k.kind, lower, upper)
			}
		}
	}
	_, last := kindRange(MaxShards-1, kindEnd)
	if bytes.Compare(last, metaKey("")) >= 0 {
		t.Error("the rows of the store itself lie among those of a shard")
	}
}

// No key of an object lies in the rows of another, for any names that users give. Proves
// S1.
func TestDataKeysStayInTheirObject(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.Uint64().Draw(rt, "number")
		o := Object{Shard: rapid.IntRange(0, MaxShards-1).Draw(rt, "shard"), Number: Number(n)}
		key := dataKey(o, string(rapid.SliceOf(rapid.Byte()).Draw(rt, "key")))
		lower, upper := rowKey(nil, o.Shard, o.Number, subData), rowKey(nil, o.Shard, o.Number, subData+1)
		if bytes.Compare(key, lower) < 0 || bytes.Compare(key, upper) >= 0 {
			rt.Fatalf("key %x lies outside %x..%x", key, lower, upper)
		}
	})
}

func TestShardsAreStableAndEven(t *testing.T) {
	// The shard of a name is part of the format: it must never change.
	if got := ShardOf(ID{"cart", "alice"}, 64); got != ShardOf(ID{"cart", "alice"}, 64) || got < 0 || got >= 64 {
		t.Fatal(got)
	}
	var count [8]int
	for i := range 8000 {
		count[ShardOf(ID{"c", strings.Repeat("n", i%50) + string(rune('a'+i%26)) + string(rune(i))}, 8)]++
	}
	if slices.Min(count[:]) < 700 || slices.Max(count[:]) > 1300 {
		t.Errorf("8000 names fall on 8 shards as %v", count)
	}
}

// PrefixEnd is the least upper bound of all strings with the prefix.
func TestPrefixEnd(t *testing.T) {
	for p, want := range map[string]string{
		"": "", "a": "b", "ab": "ac", "a\xff": "b", "\xff": "", "\xff\xff": "", "a\xff\xff": "b", "\x00": "\x01", "\xfe\xff": "\xff",
	} {
		if got := PrefixEnd(p); got != want {
			t.Errorf("PrefixEnd(%q) = %q, want %q", p, got, want)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		bytesOf := rapid.SliceOf(rapid.SampledFrom([]byte{0, 1, 'a', 0xfe, 0xff}))
		p, s := string(bytesOf.Draw(rt, "prefix")), string(bytesOf.Draw(rt, "string"))
		end := PrefixEnd(p)
		if inside := p <= s && (end == "" || s < end); inside != strings.HasPrefix(s, p) {
			rt.Fatalf("%q in [%q, %q) is %v", s, p, end, inside)
		}
	})
}

func TestDecodersRefuseDamagedKeys(t *testing.T) {
	for _, rest := range []string{"", "class", "class\x00", "class\x00\x00", "class\x00\x00\x01n", "class\x00\x00\x01n1234567", "class\x00\x00\x01n123456789"} {
		if _, _, err := decodeNamed([]byte(rest)); !errors.Is(err, ErrCorrupt) {
			t.Errorf("decodeNamed(%q): %v", rest, err)
		}
	}
	if _, err := decodeHeaderKey([]byte("class")); !errors.Is(err, ErrCorrupt) {
		t.Errorf("decodeHeaderKey: %v", err)
	}
}
