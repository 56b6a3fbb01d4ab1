package server

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strings"
	"testing"
)

// A value that is nested deeply stays in one line on its page, because its indents would take the memory of the server.
func TestDeepValuesStayInOneLine(t *testing.T) {
	class := notes(nil)
	f := start(t, func(c *Config) { c.Objects = []Exposed{Class(class)} }, class)
	const depth = 5000
	deep := strings.Repeat("[", depth) + strings.Repeat("1,", 10_000) + "1" + strings.Repeat("]", depth)
	if _, err := f.host.CallBytes(t.Context(), "note", "a", "put", marshal(t, []pair{{[]byte("deep"), []byte(deep)}, {[]byte("wide"), []byte("[" + strings.Repeat("1,", 1000) + "1]")}})); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{"deep": deep, "wide": "[" + strings.Repeat("\n  1,", 1000) + "\n  1\n]"} {
		a := f.ask("reader", "GET", "/ui/value?class=note&name=a&key="+url.QueryEscape(key), "")
		if a.status != 200 || !strings.Contains(a.body, `<pre class="value">`+want+"</pre>") || len(a.body) > len(want)+64<<10 {
			t.Errorf("%s: %d, %d bytes", key, a.status, len(a.body))
		}
	}
}

// A large value is shown only if all is asked for.
func TestLargeValuesAreAskedFor(t *testing.T) {
	class := notes(nil)
	f := start(t, func(c *Config) { c.Objects = []Exposed{Class(class)} }, class)
	text := func(n int) []byte { return []byte(`"` + strings.Repeat("x", n-2) + `"`) }
	if _, err := f.host.CallBytes(t.Context(), "note", "a", "put", marshal(t, []pair{{[]byte("small"), text(largeValue - 1)}, {[]byte("large"), text(largeValue)}})); err != nil {
		t.Fatal(err)
	}
	for at, shown := range map[string]bool{"small": true, "large": false, "large&all=1": true} {
		a := f.ask("reader", "GET", "/ui/value?class=note&name=a&key="+at, "")
		if a.status != 200 || strings.Contains(a.body, "xxx") != shown {
			t.Errorf("%s: %d, %d bytes", at, a.status, len(a.body))
		}
	}
}

// The size is known before the indents are made, and its bound has both sides.
func TestIndentedSize(t *testing.T) {
	for _, raw := range []string{
		`null`, `""`, `"[{,:"`, `"\"[\\"`, `[]`, `{}`, `[{}]`, `[[],[[]],{"a":{}}]`, `{"a":[1,2,{"b":"c,d"}],"e":"\\\"{"}`,
		strings.Repeat("[", 300) + strings.Repeat("]", 300), strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100),
	} {
		var b bytes.Buffer
		if err := json.Indent(&b, []byte(raw), "", "  "); err != nil {
			t.Fatal(err)
		}
		if got := indentedSize([]byte(raw)); got != b.Len() {
			t.Errorf("%s: %d bytes, want %d", raw, got, b.Len())
		}
	}
	lines := func(depth int) bool {
		got, err := indented([]byte(strings.Repeat("[ ", depth) + "1" + strings.Repeat("]", depth)))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(got, "\n")
	}
	depth := 1
	for size := 0; size <= 8*depth+4+64<<10; depth++ {
		size = indentedSize([]byte(strings.Repeat("[", depth+1) + "1" + strings.Repeat("]", depth+1)))
	}
	if !lines(depth-1) || lines(depth) {
		t.Errorf("at a depth of %d it is in lines: %v, and at %d: %v", depth-1, lines(depth-1), depth, lines(depth))
	}
	if _, err := indented([]byte("[")); err == nil {
		t.Error("what is no JSON is indented")
	}
}
