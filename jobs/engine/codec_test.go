package engine

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/storage"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func drawExecution(t *rapid.T) Execution {
	text := func(label string) string { return rapid.String().Draw(t, label) }
	count := func(label string) int { return rapid.IntRange(0, 1000).Draw(t, label) }
	when := func(label string) time.Time {
		if rapid.Bool().Draw(t, label+" is zero") {
			return time.Time{}
		}
		return time.Unix(0, rapid.Int64Range(-1<<40, 1<<62).Draw(t, label)).UTC()
	}
	return Execution{
		Token: "t", Subject: text("subject"), Key: text("key"), Epoch: rapid.Uint64().Draw(t, "epoch"),
		Began: when("began"), Lease: when("lease"), Outside: rapid.Bool().Draw(t, "outside"), Held: rapid.Bool().Draw(t, "held"), Hook: rapid.Bool().Draw(t, "hook"),
		Run: jobs.Run{
			Number: rapid.Uint64().Draw(t, "number"), Attempt: count("attempt"), Failures: count("failures"),
			Recoveries: count("recoveries"), Scheduled: when("scheduled"), FirstAt: when("firstAt"),
			Recovering: rapid.Bool().Draw(t, "recovering"), Cause: text("cause"), LastError: text("lastError"),
			Losses: count("losses"), Cuts: count("cuts"), CutEpoch: rapid.Uint64().Draw(t, "cutEpoch"), Earlier: count("earlier"),
			OwnersLost: count("ownersLost"),
		},
	}
}

// Proves J2, J5: an open execution is read as it was written; one of an older
// writer, with fields missing at the end, is read too.
func TestExecutionCodec(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := drawExecution(t)
		raw := x.append(nil)
		got, err := DecodeExecution(executionKey("t"), raw)
		if err != nil || !reflect.DeepEqual(got, x) {
			t.Fatalf("read %+v, %v; wrote %+v", got, err, x)
		}
		short := x
		short.Run.Cause, short.Run.LastError = "", ""
		short.Run.Losses, short.Run.Cuts, short.Run.CutEpoch, short.Run.Earlier, short.Run.OwnersLost = 0, 0, 0, 0, 0
		raw = short.append(nil)
		got, err = decodeExecution("t", raw[:len(raw)-2])
		if err != nil || !reflect.DeepEqual(got, short) {
			t.Fatalf("of an older writer: read %+v, %v; wrote %+v", got, err, short)
		}
	})
}

func FuzzDecodeExecution(f *testing.F) {
	x := Execution{Subject: "s", Began: noon, Run: jobs.Run{Number: 1, Attempt: 2, LastError: "boom"}}
	f.Add(x.append(nil))
	f.Add([]byte{})
	f.Add([]byte{executionVersion, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		x, err := decodeExecution("t", b)
		if err != nil && !errors.Is(err, storage.ErrCorrupt) {
			t.Fatal(err)
		}
		again, err2 := decodeExecution("t", x.append(nil))
		if err == nil && (err2 != nil || !reflect.DeepEqual(again, x)) {
			t.Fatalf("%x: read %+v, then %+v, %v", b, x, again, err2)
		}
	})
}

// A row that is no open execution is not read as one.
func TestDecodeExecutionOfAnotherRow(t *testing.T) {
	if x, err := DecodeExecution(jobs.MetaKey, (&Execution{}).append(nil)); err == nil {
		t.Errorf("the metadata is read as %+v", x)
	}
}

// Proves S9: a row in which any one field is no number, or a text is longer than the
// row, is an error, however whole the others are.
func TestDecodeDamagedExecution(t *testing.T) {
	x := Execution{
		Subject: "s", Key: "k", Epoch: 1, Began: noon, Lease: noon,
		Run: jobs.Run{Number: 1, Attempt: 1, Scheduled: noon, FirstAt: noon, Cause: "c", LastError: "e", Losses: 1, Cuts: 1, CutEpoch: 1, Earlier: 1, OwnersLost: 1},
	}
	whole := x.append(nil)
	for n := range whole {
		for name, end := range map[string][]byte{
			"no number": bytes.Repeat([]byte{0xff}, 24),
			"zeros":     append(bytes.Repeat([]byte{0xff}, 24), 0, 0, 0),
		} {
			if got, err := decodeExecution("t", append(whole[:n:n], end...)); !errors.Is(err, storage.ErrCorrupt) {
				t.Errorf("%s after %d bytes: read %+v, %v", name, n, got, err)
			}
		}
	}
	for _, size := range []byte{2, 3, 100} { // the subject has one byte
		short := append([]byte{executionVersion, 0}, size, 's')
		if got, err := decodeExecution("t", short); !errors.Is(err, storage.ErrCorrupt) {
			t.Errorf("a subject of %d bytes in a row with one: read %+v, %v", size, got, err)
		}
	}
}
