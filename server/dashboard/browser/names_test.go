package browser

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"testing"

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

// hostile are names that would be markup, code or another address if a page took them for more than text.
var hostile = []string{
	"../../jobs/pay/4711/do/terminate?", "..", `"><script>alert(1)</script>`, `<img src=x onerror=alert(2)>`, "javascript:alert(3)",
	`' hx-get="/ui/signout" hx-trigger="load" x='`, "{{.Now}}", "${alert(4)}", "a\nb\r\x1b[31m", "\u202Eabc", "a&lt;b", "%2e%2e%2f", "//example.com/", "#x",
}

// Proves V14: names, keys, kinds of events, values and errors are text on each page of a browser, the policy of the
// page has nothing to report, and a button acts on the object of its page alone.
func TestHostileNamesAreInert(t *testing.T) {
	died := make(chan object.DeadLetter, len(hostile))
	s := serve(t, auth.Admin, nil, bells(died))
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
