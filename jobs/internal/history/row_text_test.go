package history

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/row"
)

func numbered(prefix string, seq uint64) string {
	return string(binary.BigEndian.AppendUint64([]byte(prefix), seq))
}

// Each row of a run has its line, with the kind, the name and the value.
func TestRowsInWords(t *testing.T) {
	since := time.Unix(1e9, 0)
	at := since.Add(time.Minute)
	entry := func(e Entry) string { e.At = at; return string(e.Append(nil)) }
	long := strings.Repeat("ä", textRunes)
	for _, c := range []struct{ key, value, want string }{
		{numbered("e/", 0), entry(Entry{Kind: Step, Name: "pay", Value: []byte("499")}), `entry 0 step "pay" = 499`},
		{numbered("e/", 258), entry(Entry{Kind: Step, Scope: "ship[3]/", Name: "pay", Flags: Failed, Attempt: 3, Err: "no"}), `entry 258 ship[3] step "pay" = attempt 3 failed: no`},
		{numbered("e/", 1), entry(Entry{Kind: Step, Name: "pay", Flags: Failed | Panicked, Attempt: 1, Err: "a\nb"}), `entry 1 step "pay" = attempt 1 panicked: "a\nb"`},
		{numbered("e/", 1), entry(Entry{Kind: Step, Name: "pay", Flags: Failed | TooLarge, Err: "2 MiB"}), `entry 1 step "pay" = too large: 2 MiB`},
		{numbered("e/", 1), entry(Entry{Kind: Try, Name: "pay", Flags: Failed | TimedOut, Until: at.Add(time.Second), Attempt: 2, Err: "slow", Value: []byte{7}}), `entry 1 try "pay" = attempt 2 timed out, next at 1m1s: slow`},
		{numbered("e/", 1), entry(Entry{Kind: Atomic, Name: "note", Value: []byte{1, 2}}), `entry 1 atomic "note" = "\x01\x02"`},
		{numbered("e/", 1), entry(Entry{Kind: Sleep, Until: at.Add(time.Hour)}), `entry 1 sleep = until 1h1m0s`},
		{numbered("e/", 1), entry(Entry{Kind: Deadline, Name: "ok", Until: at}), `entry 1 wait "ok" = until 1m0s`},
		{numbered("e/", 1), entry(Entry{Kind: Signal, Name: "ok", Flags: TimedOut}), `entry 1 signal "ok" = timed out`},
		{numbered("e/", 1), entry(Entry{Kind: Child, Name: "leg/1", Flags: Exists}), `entry 1 child "leg/1" = the id is in use`},
		{numbered("e/", 1), entry(Entry{Kind: Child, Name: "leg/1"}), `entry 1 child "leg/1" = recorded`},
		{numbered("e/", 1), entry(Entry{Kind: Answer, Name: "leg/1", Flags: Failed | Cancelled, Err: "why"}), `entry 1 answer "leg/1" = cancelled: why`},
		{numbered("e/", 1), entry(Entry{Kind: Cancel, Flags: Failed}), `entry 1 cancel = it has cut off the sleep before it`},
		{numbered("e/", 1), entry(Entry{Kind: Cancel}), `entry 1 cancel = recorded`},
		{numbered("e/", 1), entry(Entry{Kind: Fail, Err: "no"}), `entry 1 fail = no`},
		{numbered("e/", 1), entry(Entry{Kind: Step, Name: "pay", Value: []byte(long)}), `entry 1 step "pay" = ` + long},
		{numbered("e/", 1), entry(Entry{Kind: Step, Name: "pay", Value: []byte(long + "b")}), `entry 1 step "pay" = ` + long + `... (121 bytes)`},
		{numbered("s/", 2), string(row.Writer(nil).Text("ok")) + `"yes"`, `signal 2 "ok" = "yes"`},
		{"v/progress", `"going"`, `var "progress" = "going"`},
		{numbered("c/", 7), `{"class":"leg","name":"1"}`, `child of entry 7 = leg/1`},
		{numbered("c/", 7), `{"class":"leg","name":"1","answer":{"flags":1,"err":"no"}}`, `child of entry 7 = leg/1 has answered: failed: no`},
		{numbered("c/", 7), `{"class":"leg","name":"1","answer":{"value":"NDk5"}}`, `child of entry 7 = leg/1 has answered: 499`},
	} {
		name, text, ok := RowText(c.key, []byte(c.value), since)
		if got := fmt.Sprintf("%s = %s", name, text); got != c.want || !ok {
			t.Errorf("%q: %s, %v, want %s", c.key, got, ok, c.want)
		}
	}
}

// Other rows, keys of other lengths and damaged values are left to the caller.
func TestRowsWithoutWords(t *testing.T) {
	whole := (&Entry{Kind: Step, Name: "pay"}).Append(nil)
	for _, c := range []struct{ key, value string }{
		{"", ""}, {"e", ""}, {"in", "1"}, {"run", "{}"}, {"u/k", "1"},
		{"e/", string(whole)}, {"e/1234567", string(whole)}, {"e/123456789", string(whole)},
		{"e/12345678", string(whole[:3])}, {"s/12345678", "\x09ok"}, {"c/12345678", "{"}, {"k/key", "\x01"},
	} {
		if name, text, ok := RowText(c.key, []byte(c.value), time.Time{}); ok {
			t.Errorf("%q is told as %s = %s", c.key, name, text)
		}
	}
}

// Any bytes are a line or none, and a line is short.
func FuzzRowText(f *testing.F) {
	f.Add(numbered("e/", 1), (&Entry{Kind: Try, Name: "pay", Attempt: 1, Err: "no"}).Append(nil))
	f.Add(numbered("s/", 1), []byte("\x02okyes"))
	f.Add(numbered("c/", 1), []byte(`{"class":"leg","answer":{"flags":63,"value":"AA=="}}`))

	f.Add("v/x", []byte{0xff, 0})
	f.Fuzz(func(t *testing.T, key string, value []byte) {
		_, text, ok := RowText(key, value, time.Time{})
		if ok && key[0] != 'c' && key[0] != 'k' && len([]rune(text)) > 3*textRunes {
			t.Errorf("%q, %x is told in %d characters: %s", key, value, len([]rune(text)), text)
		}
	})
}
