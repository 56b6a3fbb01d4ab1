package webhook

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/jobs/workerpool"
)

// FORMAT.md shows each stored value as this version writes it, and this version reads it back.
func TestStoredValues(t *testing.T) {
	document, err := os.ReadFile("../../FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, row := range []struct {
		name  string
		value any
	}{
		{"`subscription`", &record{Subscription: Subscription{URL: "https://example.com/hook", Class: "cart", Kinds: []string{"paid"}}, Created: at, Secret: []byte("sealed"), Place: 1<<32 + 1, Made: 1, Waiting: 1, Noted: 1}},
		{"`subscription` of a pool", &record{Subscription: Subscription{Pool: "thumb"}, Created: at, Secret: []byte("sealed"), Made: 1, Delivered: 1, Noted: 1}},
		{"`" + attemptKey(1) + "`", &Attempt{ID: "msg_a_4294967297", Kind: "paid", Class: "cart", Name: "alice", Attempt: 1, At: at, Took: time.Microsecond, Status: 500, Next: at.Add(5 * time.Second)}},
		{"mark", &workerpool.WebhookStatus{State: "delivered", At: at, Attempt: 1}},
		{"input of a delivery", &delivery{To: "wh_a", ID: "msg_a_4294967297", Number: 1, Kind: "paid", Class: "cart", Name: "alice", Body: json.RawMessage(`{"type":"paid"}`)}},
		{"that of an outcome", &delivery{To: "pool.thumb", ID: "msg_b", URL: "https://example.com/hook", Host: "example.com", Kind: TaskCompleted, Class: "thumb", Name: "0-1", Body: json.RawMessage(`{"type":"task.completed"}`)}},
	} {
		raw, err := json.Marshal(row.value)
		if err != nil {
			t.Fatal(err)
		}
		if line := "| " + row.name + " | `" + string(raw) + "` |"; !strings.Contains(string(document), line) {
			t.Errorf("FORMAT.md has no row %s", line)
		}
		back := reflect.New(reflect.TypeOf(row.value).Elem()).Interface()
		if err := json.Unmarshal(raw, back); err != nil || !reflect.DeepEqual(back, row.value) {
			t.Errorf("%s is read back as %+v, %v", raw, back, err)
		}
	}
	for _, key := range []string{"`" + recordKey + "`", "`attempt/`", "mark `" + outcomeMark + "`"} {
		if !strings.Contains(string(document), "\n| "+key) {
			t.Errorf("FORMAT.md has no key %s", key)
		}
	}
}
