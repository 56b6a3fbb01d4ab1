package shardlog_test

import (
	"encoding/binary"
	"encoding/hex"
	"os"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/memlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/shardlogtest"
)

// The bytes of a record, of its chain and of the position row. FORMAT.md draws the same tables and shows the same bytes. With others the
// records of a log would be misread.
func TestLayout(t *testing.T) {
	document, err := os.ReadFile("../../FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	log, view := memlog.New(), memstore.New()
	e := start(t, options(log, "a"), view)
	var second storage.Batch
	second.Delete([]byte("gone"))
	apply(t, e, "k", "v")
	if err := e.Apply(second.Repr()); err != nil {
		t.Fatal(err)
	}
	if err := e.Sync(); err != nil {
		t.Fatal(err)
	}
	position, _, err := view.Get(shardlog.PositionKey)
	if err != nil {
		t.Fatal(err)
	}
	record := shardlogtest.Records(t, log, 0)[0]
	closeEngine(t, e)
	for _, golden := range []struct {
		what string
		got  []byte
		want string
	}{
		{"payload of a record", record.Payload, "09 01000000 01 01 6b 01 76 0a 01000000 00 04 676f6e65"},
		{"chain of the first record", binary.BigEndian.AppendUint64(nil, record.Chain), "baa7df7fa8204a4d"},
		{"key of the position row", shardlog.PositionKey, "ffff 00 6c6f67"},
		{"key of the cluster row", shardlog.ClusterKey, "ffff 00 636c7573746572"},
		{"key of the row of a loss", shardlog.LossKey, "ffff 00 6c6f7374"},
		{"position row", position, "0000000000000001 baa7df7fa8204a4d"},
	} {
		if got, want := hex.EncodeToString(golden.got), strings.ReplaceAll(golden.want, " ", ""); got != want {
			t.Errorf("%s is %s, want %s", golden.what, got, want)
		}
		if !strings.Contains(string(document), "`"+golden.want+"`") {
			t.Errorf("FORMAT.md does not show the %s as `%s`", golden.what, golden.want)
		}
	}
}

// The bytes of the two files of a loss, as FORMAT.md shows them.
func TestLayoutOfTheFilesOfALoss(t *testing.T) {
	document, err := os.ReadFile("../../FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	first, err := hex.DecodeString("0901000000" + "01016b0176" + "0a01000000" + "0004676f6e65")
	if err != nil {
		t.Fatal(err)
	}
	r := shardlog.Rescue{Cluster: "c", Term: 1}
	for i, payload := range [][]byte{first, []byte("x")} {
		var before uint64
		if i > 0 {
			before = r.Records[i-1].Chain
		}
		r.Records = append(r.Records, shardlog.Record{At: shardlog.Position(i + 1), Term: 1, Chain: shardlog.Next(before, payload), Payload: payload})
	}
	file, err := shardlog.RescueBytes(r)
	if err != nil {
		t.Fatal(err)
	}
	for what, got := range map[string][]byte{
		"RECEIPT":     shardlog.ProofBytes(1, r.Records[0].Chain),
		"rescue file": file,
	} {
		if !strings.Contains(string(document), "`"+hex.EncodeToString(got)+"`") {
			t.Errorf("FORMAT.md does not show the %s as `%x`", what, got)
		}
	}
}

// The chain of a record is the XXH64 of the chain before, as 8 bytes, and its payload. So it tells of both.
func TestChain(t *testing.T) {
	if a, b := shardlog.Next(0, nil), shardlog.Next(1, nil); a == b {
		t.Error("the chain does not tell of the chain before")
	}
	if a, b := shardlog.Next(1, []byte("x")), shardlog.Next(1, []byte("y")); a == b {
		t.Error("the chain does not tell of the payload")
	}
}
