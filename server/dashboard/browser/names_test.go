package browser

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/testing/prove"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server/auth"
	"github.com/holdfast-dev/holdfast/server/dashboard"
)

// bell is an object that emits events, and whose alarm dies with an error that it is told.
type bell struct {
	st   *object.State
	text string
}

func (b *bell) Alarm(ctx context.Context, _ object.AlarmInfo) error {
	return object.Permanent(errors.New(b.text))
}

// bells makes the class of bells. died gets each dead letter.
func bells(died chan<- object.DeadLetter) *object.Class[bell] {
	class := object.Define("bell", func(ctx context.Context, st *object.State) (*bell, error) {
		b := &bell{st: st}
		_, err := st.Storage().GetInto(ctx, "text", &b.text)
		return b, err
	}, object.ClassOptions{OnDeadLetter: func(_ context.Context, d object.DeadLetter) { died <- d }})
	object.Handle(class, "ring", func(b *bell, ctx context.Context, text string) (struct{}, error) {
		if err := b.st.Storage().Put(ctx, text, text); err != nil {
			return struct{}{}, err
		}
		return struct{}{}, b.st.Emit(ctx, text, text)
	})
	object.Handle(class, "die", func(b *bell, ctx context.Context, text string) (struct{}, error) {
		b.text = text
		if err := b.st.Storage().Put(ctx, "text", text); err != nil {
			return struct{}{}, err
		}
		return struct{}{}, b.st.SetAlarm(ctx, b.st.Now())
	})
	return class
}

// hostile are names that would be markup, code or another address if a page took them for more than text. An ordinary run
// has a half of them, because the tests of package server have all.
var hostile = allHostile[:7]

func init() {
	if prove.Long() {
		hostile = allHostile
	}
}

var allHostile = []string{
	"../../jobs/pay/4711/do/terminate?", "..", `"><script>alert(1)</script>`, `<img src=x onerror=alert(2)>`, "javascript:alert(3)",
	`' hx-get="/ui/signout" hx-trigger="load" x='`, "{{.Now}}", "${alert(4)}", "a\nb\r\x1b[31m", "\u202Eabc", "a&lt;b", "%2e%2e%2f", "//example.com/", "#x",
}

// Proves V14: names, keys, kinds of events, values and errors are text on each page of a browser, the policy of the
// page has nothing to report, and a button acts on the object of its page alone.
func TestHostileNamesAreInert(t *testing.T) { inEachScheme(t, hostileNamesAreInert) }

func hostileNamesAreInert(t *testing.T, p *profile) {
	died := make(chan object.DeadLetter, len(hostile))
	s := serve(p, auth.Admin, nil, bells(died))
	for _, name := range hostile {
		for _, method := range []string{"ring", "die"} {
			s.call(name, method, name)
		}
		<-died
	}
	b := s.signIn("objects?class=bell")
	b.until(`document.querySelectorAll("tbody tr").length == ` + itoa(len(hostile)))
	b.quiet()
	for _, name := range hostile {
		query := url.Values{"class": {"bell"}, "name": {name}}
		b.visit(s.url("object?" + query.Encode()))
		b.until(`document.querySelector("#status").textContent == "Live"`)
		shown := quote(dashboard.Name(name))
		if got := is[string](b, "document.querySelector('h1').textContent"); got != "bell/"+dashboard.Name(name) {
			t.Errorf("V14: %q has the title %q", name, got)
		}
		b.until(`[...document.querySelectorAll("#keys th a")].some((a) => a.textContent == ` + shown + `)`)
		b.until(`[...document.querySelectorAll("#state td")].some((td) => td.textContent == ` + shown + `)`)
		b.quiet()
		b.visit(s.url("value?" + query.Encode() + "&key=" + url.QueryEscape(name)))
		if got, want := is[string](b, "document.querySelector('pre').textContent"), string(s.raw(name)); decoded(t, got) != name {
			t.Errorf("V14: the value of %q is %s, want %s", name, got, want)
		}
		b.quiet()
		before := len(s.posted())
		b.visit(s.url("object?" + query.Encode()))
		b.leave(`form[action^="wake?"] button`)
		if got := is[string](b, "location.pathname+location.search"); got != "/ui/object?"+query.Encode() {
			t.Errorf("V14: a click on Wake has led to %s", got)
		}
		if got, want := s.posted()[before:], []string{"/ui/wake?" + query.Encode()}; !slices.Equal(got, want) {
			t.Errorf("V14: a click on Wake has sent %q, want %q", got, want)
		}
		b.quiet()
	}
}

// Proves V14: the keys of an object are listed page by page, and each value is loaded alone when it is asked for, a
// large one only when it is asked for again. JSON is folded, and other bytes are shown as a dump.
func TestValuesAreLoadedWhenAsked(t *testing.T) { inEachScheme(t, valuesAreLoadedWhenAsked) }

func valuesAreLoadedWhenAsked(t *testing.T, p *profile) {
	class := object.Define("store", func(_ context.Context, st *object.State) (*object.State, error) { return st, nil })
	object.Handle(class, "fill", func(st *object.State, ctx context.Context, _ struct{}) (struct{}, error) {
		var err error
		for i := range 25 {
			err = cmp.Or(err, st.Storage().PutBytes(ctx, fmt.Sprintf("key %02d", i), []byte(`{"<b>": [1, {"deep": "down"}]}`)))
		}
		large := []byte(`"` + strings.Repeat("x", 2<<20-2) + `"`)
		return struct{}{}, cmp.Or(err, st.Storage().PutBytes(ctx, "binary", []byte{0, 1, 0xff}), st.Storage().PutBytes(ctx, "large", large))
	})
	s := serve(p, auth.Reader, nil, class)
	if _, err := s.host.CallBytes(t.Context(), "store", "a", "fill", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	b := s.signIn("object?class=store&name=a&limit=20")
	rows := func(n int) string { return fmt.Sprintf(`document.querySelectorAll("#keys tbody tr").length == %d`, n) }
	b.until(rows(20))
	b.leave(`#keys a[rel="next"]`)
	b.until(rows(7))
	b.leave("#keys tbody a")
	b.until(has("2 elements") + " && !" + has("down"))
	b.click("summary")
	b.click("details details summary")
	b.until(has("down"))

	b.visit(s.url("value?class=store&name=a&key=binary"))
	b.until(has("00000000  00 01 ff"))
	b.visit(s.url("value?class=store&name=a&key=large"))
	b.until(has("2.0 MiB") + ` && document.documentElement.outerHTML.length < 10000`)
	b.leave("main a.button")
	b.until(`document.querySelector("pre").textContent.length == 2 << 20`)
	b.quiet()
}
