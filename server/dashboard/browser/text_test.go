package browser

import (
	"encoding/json"
	"strconv"
	"testing"
)

func itoa(n int) string { return strconv.Itoa(n) }

// quote is a text as JavaScript has it.
func quote(s string) string {
	b, _ := json.Marshal(s) // text always encodes
	return string(b)
}

// decoded is the text of a value in JSON.
func decoded(t *testing.T, raw string) (s string) {
	t.Helper()
	if err := json.Unmarshal([]byte(raw), &s); err != nil {
		t.Fatalf("%q: %v", raw, err)
	}
	return s
}
