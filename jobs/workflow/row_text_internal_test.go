package workflow

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/row"
	"github.com/holdfast-dev/holdfast/jobs/internal/history"
)

// The rows that this package stores are those that history.RowText tells in words.
func TestRowsInWords(t *testing.T) {
	open, err := json.Marshal(child{Class: "leg", Name: "7", Answer: &answer{Flags: history.Failed, Err: "no"}})
	if err != nil {
		t.Fatal(err)
	}
	for key, c := range map[string]struct {
		value      []byte
		name, text string
	}{
		seqKey(historyPrefix, 3): {(&history.Entry{Kind: history.Step, Name: "pay", Value: []byte("499")}).Append(nil), `entry 3 step "pay"`, "499"},
		seqKey(signalPrefix, 4):  {append([]byte(row.Writer(nil).Text("ok")), "true"...), `signal 4 "ok"`, "true"},
		varPrefix + "progress":   {[]byte(`"going"`), `var "progress"`, `"going"`},
		seqKey(childPrefix, 5):   {open, "child of entry 5", "leg/7 has answered: failed: no"},
	} {
		name, text, ok := history.RowText(key, c.value, time.Time{})
		if name != c.name || text != c.text || !ok {
			t.Errorf("%q is told as %s = %s, %v, want %s = %s", key, name, text, ok, c.name, c.text)
		}
	}
	for _, key := range []string{inputKey, outputKey, rowKey, dataPrefix + "k"} {
		if name, _, ok := history.RowText(key, []byte("1"), time.Time{}); ok {
			t.Errorf("%q is told as %s", key, name)
		}
	}
}
