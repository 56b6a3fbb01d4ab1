package storage

import (
	"encoding/hex"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-dev/holdfast/storage/engine"
	"github.com/holdfast-dev/holdfast/storage/pebblestore"
)

// The bytes of each layout that this package owns. FORMAT.md draws the same
// tables and shows the same bytes; a difference is a new format version.
func TestLayout(t *testing.T) {
	document, err := os.ReadFile("../FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	id := ID{"cart", "bob"}
	o := Object{ID: id, Shard: 7, Number: 1<<32 | 5, Epoch: 1}
	const at = 0x1122334455667788
	event := namedKey(nil, 7, kindEvent, id, 1<<32|9)
	message := MessageID{To: id, Shard: 7, Queue: 1, Seq: 1<<32 | 9}
	var stated, fed, batch Batch
	stated.SetMessageState(message, 0, at, []byte("tried"))
	fed.AddToFeed(FeedEntry{ID: id, Seq: 1<<32 | 9, Kind: "sold", Expires: 1000})
	batch.Set([]byte("k"), []byte("v"))
	batch.Delete([]byte("gone"))
	batch.DeleteRange([]byte("a"), []byte("b"))

	for _, golden := range []struct {
		what string
		got  []byte
		want string
	}{
		{"header key", headerKey(nil, 7, id), "0007 01 63617274 00 626f62"},
		{"header value", appendHeader(nil, header{o.Number, 1, Label{}}), "01 8580808010 01"},
		{"header value of a labelled object", appendHeader(nil, header{o.Number, 1, label(t, "failed")}), "01 8580808010 01 06 6661696c6564"},
		{"alarm row key", rowKey(nil, 7, o.Number, subAlarm), "0007 02 0000000100000005 01"},
		{"user's key", dataKey(o, "total"), "0007 02 0000000100000005 02 746f74616c"},
		{"mark key", markKey(o, at, "u/seen"), "0007 02 0000000100000005 03 1122334455667788 752f7365656e"},
		{"mark value", appendExpiring(nil, at, []byte("yes")), "1122334455667788 796573"},
		{"alarm index key", indexKey(nil, 7, at, o.Number), "0007 03 1122334455667788 0000000100000005"},
		{"open mark key", openKey(nil, 7, o.Number), "0007 04 0000000100000005"},
		{"expiry key of a bucket of marks", expiryKey(nil, 7, at, bucketKey(nil, o, at)[2:]),
			"0007 05 1122334455667788 02 0000000100000005 03 1122334455667788"},
		{"expiry key of an event", expiryKey(nil, 7, at, event[2:]),
			"0007 05 1122334455667788 06 63617274 00 0003 626f62 0000000100000009"},
		{"event key", event, "0007 06 63617274 00 0003 626f62 0000000100000009"},
		{"dead letter key", namedKey(nil, 7, kindDead, id, 1<<32|9), "0007 07 63617274 00 0003 626f62 0000000100000009"},
		{"message key", messageKey(nil, message, messageValue), "0007 08 63617274 00 0003 626f62 01 0000000100000009 00"},
		{"key of a message's state", messageKey(nil, message, messageState), "0007 08 63617274 00 0003 626f62 01 0000000100000009 01"},
		{"value of a message's state", valuesOf(t, &stated)[0], "1122334455667788 7472696564"},
		{"key of a message in the index by time", laterKey(nil, 7, at, message.Seq), "0007 09 1122334455667788 0000000100000009"},
		{"value of a message in the index by time", valuesOf(t, &stated)[1], "01 63617274 00 626f62"},
		{"label key", labelKey(nil, 7, id, label(t, "failed")), "0007 0b 63617274 00 6661696c6564 00 626f62"},
		{"feed key", feedKey(nil, 1<<32|9), "ffff 0a 0000000100000009"},
		{"feed value", valuesOf(t, &fed)[0], "01 d00f 8980808010 04 63617274 03 626f62 04 736f6c64"},
		{"key of the row of the feed", metaKey(feedRow), "ffff 00 66656564"},
		{"epoch key", metaKey("epoch"), "ffff 00 65706f6368"},
		{"flight key", metaKey("flight/1/2"), "ffff 00 666c696768742f312f32"},
		{"witness key", metaKey(witnessRow), "ffff 00 7769746e657373"},
		{"batch", batch.Repr(), "0000000000000000 03000000 01 01 6b 01 76 00 04 676f6e65 0f 01 61 01 62"},
	} {
		if got, want := hex.EncodeToString(golden.got), strings.ReplaceAll(golden.want, " ", ""); got != want {
			t.Errorf("%s is %s, want %s: an old store would be misread", golden.what, got, want)
		}
		if !strings.Contains(string(document), "`"+golden.want+"`") {
			t.Errorf("FORMAT.md does not show the %s as `%s`", golden.what, golden.want)
		}
	}
	for what, text := range map[string]string{
		formatFile: strings.TrimSuffix(formatText(FormatVersion, 64), "\n"), formatFileNew: "`" + formatFileNew + "`", witnessFile: "`" + witnessFile + "`", pebblestore.SumsFile: "`" + pebblestore.SumsFile + "`",
	} {
		if !strings.Contains(string(document), text) {
			t.Errorf("FORMAT.md does not show %s, which has\n%s", what, text)
		}
	}
	if FormatVersion != 4 || !strings.Contains(string(document), "The format version is 4.") {
		t.Errorf("FORMAT.md does not say that the format version is %d", FormatVersion)
	}
}

// valuesOf is the values that a batch sets.
func valuesOf(t testing.TB, b *Batch) (values [][]byte) {
	t.Helper()
	if err := engine.ReadBatch(b.Repr(), func(r engine.Record) { values = append(values, r.Value) }); err != nil {
		t.Fatal(err)
	}
	return values
}

// The epoch row as an open store leaves it.
func TestEpochLayout(t *testing.T) {
	o := memOptions(vfs.NewMem())
	o.Seams.Clock = &manualClock{now: time.Unix(0, 1000)}
	s := open(t, o)
	defer s.Close()
	value, _, err := s.Meta("epoch")
	if want := "01000101d00f00"; err != nil || hex.EncodeToString(value) != want {
		t.Errorf("epoch row is %x, %v, want %s", value, err, want)
	}
}
