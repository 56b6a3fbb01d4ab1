package object

import (
	"encoding/hex"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/storage"
)

// The values of messages are those that FORMAT.md shows; a difference is a new format
// version. Each cut of a value is damage, but for the argument, which goes to the end.
func TestLayoutOfMessages(t *testing.T) {
	document, err := os.ReadFile("../FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	letters := []letter{
		{from: storage.ID{Class: "cart", Name: "bob"}, method: "add", arg: []byte("499")},
		{from: storage.ID{Class: "cart", Name: "bob"}, method: "add", key: "k", ttl: time.Second, arg: []byte("499")},
	}
	var found []string
	for _, l := range letters {
		b := l.append(nil)
		found = append(found, hex.EncodeToString(b))
		if got, err := decodeLetter(b); err != nil || !reflect.DeepEqual(got, l) {
			t.Errorf("%x is read as %+v, %v", b, got, err)
		}
		for n := range len(b) - len(l.arg) {
			if got, err := decodeLetter(b[:n]); !errors.Is(err, storage.ErrCorrupt) {
				t.Errorf("%x is read as %+v, %v", b[:n], got, err)
			}
		}
	}
	s := tries{attempts: 2, crashes: 1, cutEpoch: 3, firstAt: time.Unix(0, 1000).UTC(), lastError: "no"}
	b := s.append(nil)
	found = append(found, hex.EncodeToString(b))
	if got, err := decodeTries(b); err != nil || got != s {
		t.Errorf("%x is read as %+v, %v", b, got, err)
	}
	if got, err := decodeTries((&tries{}).append(nil)); err != nil || got != (tries{}) {
		t.Errorf("no tries are read as %+v, %v", got, err)
	}
	lost := s
	lost.ownersLost = 4
	if got, err := decodeTries(lost.append(nil)); err != nil || got != lost {
		t.Errorf("tries with owners lost are read as %+v, %v", got, err)
	}
	for n := range len(b) {
		if got, err := decodeTries(b[:n]); !errors.Is(err, storage.ErrCorrupt) {
			t.Errorf("%x is read as %+v, %v", b[:n], got, err)
		}
	}
	m := message{}
	m.To, m.Shard, m.Queue, m.Seq = storage.ID{Class: "cart", Name: "bob"}, 7, 1, 9
	flight := encodeFlight([]alarm.Entry{m.flightEntry()})
	found = append(found, hex.EncodeToString(flight))
	if got, err := decodeFlight(flight); err != nil || len(got) != 1 || got[0].Object != 1 || got[0].Gen != 9 {
		t.Errorf("%x is read as %+v, %v", flight, got, err)
	}
	for _, text := range found {
		if !strings.Contains(string(document), "`"+text+"`") {
			t.Errorf("FORMAT.md does not have %s", text)
		}
	}
	for _, bad := range []string{"02", "010463617274" + "03626f62" + "03616464" + "02"} { // another version, an unknown flag
		b, err := hex.DecodeString(bad)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := decodeLetter(b); !errors.Is(err, storage.ErrCorrupt) {
			t.Errorf("%s is read as %+v, %v", bad, got, err)
		}
	}
}
