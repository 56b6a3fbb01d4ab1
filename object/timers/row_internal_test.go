package timers

import (
	"encoding/hex"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/storage"
)

// Proves T4. The bytes of timers are those that FORMAT.md shows.
func TestLayout(t *testing.T) {
	text, err := os.ReadFile("../../FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	once := row{name: "a", due: 2000, gen: 9, scheduled: 1000, payload: []byte("499")}
	retried := once
	retried.taken, retried.failures, retried.crashes, retried.first, retried.lastError = true, 2, 1, 1500, "no"
	hourly := row{
		name: "b", due: 3000, gen: 10, text: "rate 1h0m0s 0s", schedule: jobs.Rate(time.Hour),
		cursor: jobs.Cursor{Anchor: time.Unix(0, 1000), Last: time.Unix(0, 2000)},
	}
	for _, c := range []struct {
		name, row string
		bytes     []byte
	}{
		{"key of the timer", "", []byte(dueKey(0x1122334455667788, "bob"))},
		{"key of its name", "", []byte(nameKey("bob"))},
		{"key of a dead one", "", []byte(deadKey(0x100000009))},
		{"once", "a", once.encode()},
		{"retried", "a", retried.encode()},
		{"hourly", "b", hourly.encode()},
		{"dead", "a", append(dueKeyRest(once), once.encode()...)},
	} {
		if want := "`" + hex.EncodeToString(c.bytes) + "`"; !strings.Contains(string(text), want) {
			t.Errorf("FORMAT.md does not show %s: %s", c.name, want)
		}
	}
	for _, r := range []row{once, retried, hourly} {
		back, err := decodeRow(dueKey(r.due, r.name), r.encode())
		if err != nil || string(back.encode()) != string(r.encode()) || back.name != r.name || back.due != r.due || back.broken != nil {
			t.Errorf("%+v is read as %+v, %v", r, back, err)
		}
		for n := range len(r.encode()) - len(r.payload) {
			if _, err := decodeRow(dueKey(r.due, r.name), r.encode()[:n]); !errors.Is(err, storage.ErrCorrupt) {
				t.Errorf("the first %d bytes of %x are read: %v", n, r.encode(), err)
			}
		}
	}
	for name, value := range map[string][]byte{"version": {2}, "flags": {1, 2, 9, 0, 0, 0, 0, 0, 0}} {
		if _, err := decodeRow(dueKey(1, "a"), value); !errors.Is(err, storage.ErrCorrupt) {
			t.Errorf("another %s: %v", name, err)
		}
	}
	for _, key := range []string{"\x00t/d/", dueKey(1, ""), "other"} {
		if _, err := decodeRow(key, once.encode()); !errors.Is(err, storage.ErrCorrupt) {
			t.Errorf("key %q: %v", key, err)
		}
	}
}

// Each row that can be read is written as it was read.
func FuzzTimerRow(f *testing.F) {
	once := row{name: "a", due: 2000, gen: 9, scheduled: 1000, payload: []byte("499")}
	f.Add(once.encode())
	f.Fuzz(func(t *testing.T, value []byte) {
		r, err := decodeRow(dueKey(1, "a"), value)
		if err != nil {
			return
		}
		again, err := decodeRow(dueKey(1, "a"), r.encode())
		if err != nil || string(again.encode()) != string(r.encode()) {
			t.Errorf("%x is read as %x, %v", r.encode(), again.encode(), err)
		}
	})
}
