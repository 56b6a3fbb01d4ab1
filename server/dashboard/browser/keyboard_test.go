package browser

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/chromedp"
)

// controls is an expression: all that a keyboard must reach, in the order of the document.
const controls = `[...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary")].filter((e) => e.checkVisibility())`

// focus is the element with the focus.
type focus struct {
	Place   int    // among the controls; -1: it is none
	Text    string // for messages
	Ring    bool   // a ring around it is drawn
	Covered bool   // a part of it is out of sight, or behind another element
}

// focused is an expression for a focus. A point a pixel within each corner must be the element's own.
const focused = `(() => {
	const e = document.activeElement, box = e.getClientRects()[0], style = getComputedStyle(e);
	const own = (x, y) => { const at = document.elementFromPoint(x, y); return !!at && (e.contains(at) || at.contains(e)); };
	return {
		Place: ` + controls + `.indexOf(e), Text: e.tagName + " " + (e.textContent || e.name),
		Ring: style.outlineStyle == "solid" && parseFloat(style.outlineWidth) >= 3 && e.matches(":focus-visible"),
		Covered: !box || ![[box.left, box.top], [box.right, box.bottom]].every(([x, y], i) => own(i ? x - 2 : x + 2, i ? y - 2 : y + 2)),
	};
})()`

// Proves V18: on each page the tab key reaches each control once, in the order of the page, and the control can be
// seen to have the focus.
func TestEachControlIsReachedByTheKeyboard(t *testing.T) { inEachScheme(t, eachControlIsReached) }

func eachControlIsReached(t *testing.T, p *profile) {
	s := furnish(p)
	b := s.signIn("overview")
	b.do(chromedp.EmulateViewport(1000, 300)) // most pages are higher than that
	s.tourOf(b, func(at string) {
		n := is[int](b, controls+".length")
		for i := range n {
			b.do(chromedp.KeyEvent("\t"))
			f := is[focus](b, focused)
			if f.Place != i || !f.Ring || f.Covered {
				t.Errorf("%s: at the tab key %d of %d the focus is %+v", at, i+1, n, f)
				return
			}
		}
		b.named(at)
	})
}

// named wants landmarks, a heading, and a name of each control in the accessibility tree of the page.
func (b *tab) named(at string) {
	b.t.Helper()
	tree, err := chromedp.Run(b.ctx, func(ctx context.Context, _ *chromedp.Target) (accessibility.GetFullAXTreeResult, error) {
		return chromedp.Call(ctx, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	})
	if err != nil {
		b.t.Fatal(err)
	}
	count := map[string]int{}
	for _, n := range tree.Nodes {
		if n.Ignored {
			continue
		}
		role, name := spoken(n.Role), strings.TrimSpace(spoken(n.Name))
		count[role]++
		if slices.Contains(nameless, role) && name == "" {
			b.t.Errorf("%s: a %s has no name", at, role)
		}
	}
	for _, role := range []string{"banner", "navigation", "search", "main", "contentinfo", "status"} {
		if count[role] != 1 {
			b.t.Errorf("%s: there are %d of %s", at, count[role], role)
		}
	}
	if h1 := is[int](b, `document.querySelectorAll("h1").length`); h1 != 1 || count["heading"] == 0 {
		b.t.Errorf("%s: there are %d main headings", at, h1)
	}
	if bare := is[int](b, `document.querySelectorAll("th:not([scope])").length`); bare > 0 || count["table"] > 0 && (count["columnheader"] == 0 || count["rowheader"]+count["gridcell"] == 0 && count["cell"] == 0) {
		b.t.Errorf("%s: %d headers of a table say not what they are of", at, bare)
	}
}

// nameless are the roles of which each needs a name.
var nameless = []string{"navigation", "search", "region", "link", "button", "textbox", "combobox", "searchbox", "heading", "image", "columnheader", "rowheader", "progressbar", "DisclosureTriangle"}

// spoken is the text of a value of the tree.
func spoken(v *accessibility.Value) string {
	var s string
	if v != nil {
		_ = json.Unmarshal(v.Value, &s) // a value that is no text has none
	}
	return s
}

// tabTo presses the tab key until an element that matches has the focus.
func (b *tab) tabTo(selector string) {
	b.t.Helper()
	for range is[int](b, controls+".length") + 1 {
		if is[bool](b, "document.activeElement.matches("+quote(selector)+")") {
			return
		}
		b.do(chromedp.KeyEvent("\t"))
	}
	b.t.Fatalf("the tab key does not lead to %s\n%s", selector, b.seen())
}

// enter goes to an element by the tab key, presses a key, and waits for the page that the browser goes to.
func (b *tab) enter(selector, key string) {
	b.t.Helper()
	is[bool](b, "window.isOld = true")
	b.tabTo(selector)
	b.do(chromedp.KeyEvent(key))
	b.until(`!window.isOld && document.querySelector("footer")`)
}

// Proves V18: sign-in, filters, verbs and the questions before them are used by keyboard alone.
func TestVerbsAreUsedByTheKeyboard(t *testing.T) { inEachScheme(t, verbsAreUsedByTheKeyboard) }

func verbsAreUsedByTheKeyboard(t *testing.T, p *profile) {
	s := furnish(p)
	b := s.open()
	b.visit(s.url("overview"))
	b.until(`document.querySelector("[name=token]")`)
	b.tabTo("[name=token]")
	b.do(chromedp.KeyEvent(s.text))
	b.enter("main button", "\r")
	b.tabTo(".skip")
	b.do(chromedp.KeyEvent("\r"))
	b.until(`document.activeElement.id == "main"`)
	b.do(chromedp.KeyEvent("\t"))
	b.until(`document.querySelector("main").contains(document.activeElement.parentElement)`)
	b.tabTo("#pause")
	b.do(chromedp.KeyEvent(" "))
	b.until(`document.querySelector("#pause").textContent == "Resume live"`)
	b.do(chromedp.KeyEvent(" "))
	b.until(live)

	b.visit(s.url("overview"))
	b.enter(`nav a[href=pools]`, "\r")
	b.enter(`tbody a`, "\r")
	b.enter(`form[action*="verb=pause"] button`, " ")
	b.until(has("Mode: paused"))
	b.enter(`form[action*="verb=resume"] button`, "\r")
	b.until(has("Mode: open"))

	b.enter(`nav a[href=dead]`, "\r")
	b.tabTo("select[name=kind]")
	b.do(chromedp.KeyEvent("a")) // alarm
	b.enter("form.filter button", " ")
	b.until(`document.querySelectorAll("#list tbody tr").length == 1`)
	b.enter(`a.button[href*="do=discard"]`, "\r")
	b.until(has("This cannot be undone."))
	b.enter("main form button", " ")
	b.until(has("It has ended.") + " && " + has("1 of 1"))

	b.tabTo("input[name=q]")
	b.do(chromedp.KeyEvent("bell/door"))
	b.enter("header .jump button", "\r")
	b.enter(`a.button[href^="delete?"]`, "\r")
	b.until(has("This cannot be undone."))
	b.enter("main button", " ")
	b.until(has("Stored") + " && " + has("no: it has no keys"))

	b.visit(s.url("job?class=order&name=4711"))
	b.enter(`a.button[href*="verb=signal"]`, "\r")
	b.tabTo("main form input")
	b.do(chromedp.KeyEvent("approve"))
	b.tabTo("textarea")
	b.do(chromedp.KeyEvent("true"))
	b.enter("main form button", "\r")
	b.until(has("completed"))
	b.quiet()
}
