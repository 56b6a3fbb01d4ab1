package browser

import (
	"context"
	"fmt"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server/auth"
)

const live = `document.querySelector("#status").textContent == "Live"`

// rung is an expression: the page of a bell shows so many events.
func rung(n int) string {
	return fmt.Sprintf(`document.querySelectorAll("#state tbody tr").length == %d`, n)
}

// Proves V15: the first page shows a change after its commit, by the stream alone, and keeps what the user has
// begun: the focus and the text of a field.
func TestOverviewIsLive(t *testing.T) {
	died := make(chan object.DeadLetter, 9)
	s := serve(t, auth.Reader, nil, bells(died))
	b := s.signIn("overview")
	b.until(live)
	b.do(chromedp.SendKeys("header input[name=q]", "bell/one"))
	for i := 1; i <= 3; i++ {
		s.call(fmt.Sprint("b", i), "die", fmt.Sprint("error ", i))
		<-died
		s.call(fmt.Sprint("b", i), "ring", "an event that tells of it")
		b.until(fmt.Sprintf(`document.querySelector("#overview").textContent.includes("error %d")`, i))
	}
	b.until(`document.activeElement.name == "q" && document.activeElement.value == "bell/one"`)
	b.quiet()
	b.do(chromedp.KeyEvent("\r"))
	b.until(`document.querySelector("h1").textContent == "bell/one"`)
}

// Proves V15: a page says that it has lost the server, comes back to it after a restart, and shows each event once.
func TestPageComesBackAfterARestart(t *testing.T) {
	s := serve(t, auth.Reader, nil, bells(nil))
	s.call("a", "ring", "one")
	b := s.signIn("object?class=bell&name=a")
	b.until(live)
	at := s.web.Listener.Addr().String()
	s.stop()
	b.until(`document.querySelector("#status").textContent == "Reconnecting"`)
	s.call("a", "ring", "two")
	s.listen(at)
	b.until(live)
	b.until(rung(2))
	s.call("a", "ring", "three")
	b.until(rung(3))
	b.quiet()
}

// Proves V15: eight tabs are live over HTTP/1.1, of which a browser opens six connections, because they share a
// stream; they stay so when the tab with the stream closes, and come back when a proxy has no server for a while.
func TestEightTabsAreLive(t *testing.T) {
	s := serve(t, auth.Reader, nil, bells(nil))
	s.call("a", "ring", "one")
	tabs := []*tab{s.signIn("object?class=bell&name=a")}
	for range 7 {
		b := open(t)
		b.visit(s.url("object?class=bell&name=a"))
		tabs = append(tabs, b)
	}
	all := func(expression string) {
		t.Helper()
		for _, b := range tabs {
			b.until(expression)
		}
	}
	all(live)
	s.call("a", "ring", "two")
	all(rung(2))
	tabs[0].visit("about:blank")
	tabs = tabs[1:]
	s.call("a", "ring", "three")
	all(rung(3))
	s.broken.Store(true)
	s.web.CloseClientConnections()
	all(`document.querySelector("#status").textContent == "Reconnecting"`)
	s.call("a", "ring", "four")
	s.broken.Store(false)
	all(live)
	all(rung(4))
	s.call("a", "ring", "five")
	all(rung(5))
}

// Proves V15: Pause live holds the page still, also after a reload, until the user goes on.
func TestPauseHoldsThePageStill(t *testing.T) {
	s := serve(t, auth.Reader, nil, bells(nil))
	s.call("a", "ring", "one")
	b := s.signIn("object?class=bell&name=a")
	b.until(live)
	b.click("#pause")
	b.until(`document.querySelector("#status").textContent.startsWith("Paused") && document.querySelector("#pause").textContent == "Resume live"`)
	b.visit(s.url("object?class=bell&name=a"))
	b.until(`document.querySelector("#status").textContent.startsWith("Paused")`)
	before := s.asked()
	is[bool](b, `window.changes = 0, new MutationObserver(() => changes++).observe(document.querySelector("main"), { subtree: true, childList: true, attributes: true, characterData: true }), true`)
	other := open(t) // a page of another address than the one that was paused is paused too
	other.visit(s.url("overview"))
	other.until(`document.querySelector("#status").textContent.startsWith("Paused")`)
	told := s.follow()
	for _, text := range []string{"two", "three"} { // the first frame of all streams has gone when there is a second
		s.call("a", "ring", text)
		told.stale()
	}
	b.until(rung(1))
	if changes, asked := is[int](b, "changes"), s.asked(); changes != 0 || asked != before {
		t.Errorf("while the page was paused it has changed %d times, and asked %d times", changes, asked-before)
	}
	b.click("#pause")
	b.until(live)
	b.until(rung(3))
	other.until(live)
}

// Proves V13: a session ends by Sign out, and a revoked token leads each page to the form.
func TestSession(t *testing.T) {
	s := serve(t, auth.Reader, nil, bells(nil))
	s.call("a", "ring", "one")
	const page = "object?class=bell&name=a"
	b := open(t)
	b.visit(s.url(page))
	b.until(`document.querySelector("[name=token]")`)
	b.do(chromedp.SendKeys("[name=token]", "holdfast_wrong"))
	b.leave("main button")
	b.until(`document.querySelector("[role=alert]").textContent.includes("wrong")`)
	b.do(chromedp.SendKeys("[name=token]", s.text))
	b.leave("main button")
	b.until(`document.querySelector("h1").textContent == "bell/a"`)
	b.leave("form[action=signout] button")
	b.until(`document.querySelector("h1").textContent == "Sign in"`)
	b.visit(s.url(page))
	b.until(`document.querySelector("[name=token]")`)
	s.signInOn(b, page)
	b.until(live)
	b.visit(s.url("value?class=bell&name=a&key=text")) // it has no part to keep live
	b.until(`document.readyState == "complete" && document.querySelector("#pause").hidden && document.querySelector("#status").textContent.startsWith("As of")`)
	b.visit(s.url(page))
	b.until(live)
	if err := s.tokens.Revoke(s.token.ID); err != nil {
		t.Fatal(err)
	}
	b.until(`document.querySelector("h1").textContent == "Sign in"`)
	b.quiet()
}

// Proves V15: at 320 pixels, and without script, each page can be read and nothing is cut off.
func TestPagesAreReadWithoutScriptAtAnyWidth(t *testing.T) {
	died := make(chan object.DeadLetter, 1)
	s := serve(t, auth.Admin, nil, bells(died))
	long := "a-name-without-a-place-to-break-it-that-is-longer-than-the-screen-is-wide/and-goes-on"
	s.call(long, "ring", long)
	s.call(long, "die", long)
	<-died
	b := s.signIn("overview")
	b.do(chromedp.EmulateViewport(320, 640), func(ctx context.Context, _ *chromedp.Target) (v chromedp.Void, err error) {
		_, err = chromedp.Call(ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		return v, err
	})
	for page, want := range map[string]string{
		"overview": long, "classes": "bell", "recoveries": "0 executions", "objects?class=bell": long,
		"object?class=bell&name=" + long: "alarm, died", "value?class=bell&key=text&name=" + long: long, "delete?class=bell&name=" + long: "cannot be undone", "nothing": "404",
	} {
		b.visit(s.url(page))
		if !is[bool](b, "document.querySelector('main').innerText.includes("+quote(want)+")") {
			t.Errorf("%s has no %q: %s", page, want, b.seen())
		}
		if wide := is[int](b, "document.documentElement.scrollWidth"); wide > 320 {
			t.Errorf("%s is %d pixels wide", page, wide)
		}
		if is[bool](b, "!document.querySelector('#pause').hidden") {
			t.Errorf("%s offers to pause without script", page)
		}
	}
}
