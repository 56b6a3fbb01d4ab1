package browser

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/holdfast-dev/holdfast/internal/testing/prove"
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
func TestOverviewIsLive(t *testing.T) { inEachScheme(t, overviewIsLive) }

func overviewIsLive(t *testing.T, p *profile) {
	died := make(chan object.DeadLetter, 9)
	s := serve(p, auth.Reader, nil, bells(died))
	b := s.signIn("overview")
	b.until(live)
	b.do(chromedp.SendKeys("header input[name=q]", "bell/one"))
	fastest := time.Hour
	for i := 1; i <= 3; i++ {
		s.call(fmt.Sprint("b", i), "die", fmt.Sprint("error ", i))
		<-died
		s.call(fmt.Sprint("b", i), "ring", "an event that tells of it")
		committed := time.Now()
		b.until(fmt.Sprintf(`document.querySelector("#overview").textContent.includes("error %d")`, i))
		fastest = min(fastest, time.Since(committed))
	}
	prove.Timed(t, fastest, 2*time.Second)
	b.until(`document.activeElement.name == "q" && document.activeElement.value == "bell/one"`)
	b.quiet()
	b.do(chromedp.KeyEvent("\r"))
	b.until(`document.querySelector("h1").textContent == "bell/one"`)
}

// Proves V15: a page says that it has lost the server, comes back to it after a restart, and shows each event once.
func TestPageComesBackAfterARestart(t *testing.T) { inEachScheme(t, pageComesBackAfterARestart) }

func pageComesBackAfterARestart(t *testing.T, p *profile) {
	s := serve(p, auth.Reader, nil, bells(nil))
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
func TestEightTabsAreLive(t *testing.T) { inEachScheme(t, eightTabsAreLive) }

func eightTabsAreLive(t *testing.T, p *profile) {
	s := serve(p, auth.Reader, nil, bells(nil))
	s.call("a", "ring", "one")
	tabs := []*tab{s.signIn("object?class=bell&name=a")}
	for range 7 {
		b := s.open()
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

// Times are in UTC until the user asks for local time, which all tabs then show, also after a change and a reload.
func TestLocalTime(t *testing.T) { inEachScheme(t, localTime) }

func localTime(t *testing.T, p *profile) {
	s := serve(p, auth.Reader, nil, bells(nil))
	s.call("a", "ring", "one")
	b := s.signIn("object?class=bell&name=a")
	b.in("Asia/Kolkata")
	b.until(live)
	first := is[string](b, `document.querySelector("#state time").title`)
	at, err := time.Parse("2006-01-02 15:04:05.000 UTC", first)
	if err != nil {
		t.Fatal(err)
	}
	const ends = `[...document.querySelectorAll("time")].every((e) => e.title.endsWith(" %s"))`
	b.click("#zone")
	b.until(`document.querySelector("#zone").textContent == "Show UTC"`)
	b.until(`document.querySelector("#state time").title == ` + quote(at.Add(5*time.Hour+30*time.Minute).Format("2006-01-02 15:04:05.000")+" +05:30"))
	s.call("a", "ring", "two")
	b.until(rung(2) + " && " + fmt.Sprintf(ends, "+05:30"))
	b.click("#pause")
	b.until(`document.querySelector("#status").textContent.endsWith(" +05:30")`)
	other := s.open()
	other.in("America/St_Johns")
	other.visit(s.url("object?class=bell&name=a"))
	other.until(`/ -0[23]:30$/.test(document.querySelector("#state time").title)`)
	b.click("#zone")
	for _, b := range []*tab{b, other} {
		b.until(`document.querySelector("#zone").textContent == "Show local time" && ` + fmt.Sprintf(ends, "UTC"))
		b.until(`document.querySelector("#status").textContent.endsWith(" UTC")`)
	}
	b.quiet()
}

// Proves V15: Pause live holds the page still, also after a reload, until the user goes on.
func TestPauseHoldsThePageStill(t *testing.T) { inEachScheme(t, pauseHoldsThePageStill) }

func pauseHoldsThePageStill(t *testing.T, p *profile) {
	s := serve(p, auth.Reader, nil, bells(nil))
	s.call("a", "ring", "one")
	b := s.signIn("object?class=bell&name=a")
	b.until(live)
	b.click("#pause")
	b.until(`document.querySelector("#status").textContent.startsWith("Paused") && document.querySelector("#pause").textContent == "Resume live"`)
	b.visit(s.url("object?class=bell&name=a"))
	b.until(`document.querySelector("#status").textContent.startsWith("Paused")`)
	before := s.asked()
	is[bool](b, `window.changes = 0, new MutationObserver(() => changes++).observe(document.querySelector("main"), { subtree: true, childList: true, attributes: true, characterData: true }), true`)
	other := s.open() // a page of another address than the one that was paused is paused too
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
func TestSession(t *testing.T) { inEachScheme(t, session) }

func session(t *testing.T, p *profile) {
	s := serve(p, auth.Reader, nil, bells(nil))
	s.call("a", "ring", "one")
	const page = "object?class=bell&name=a"
	b := s.open()
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

// Proves V15: at 320 pixels, with a zoom of 200 % and without script, each page can be read and nothing is cut off.
func TestPagesAreReadWithoutScriptAtAnyWidth(t *testing.T) {
	inEachScheme(t, pagesAreReadWithoutScriptAtAnyWidth)
}

// narrow has a tab show pages in 320 pixels, each made of four of the screen, without script.
func (b *tab) narrow() {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(320, 640, chromedp.EmulateScale(2)), func(ctx context.Context, _ *chromedp.Target) (v chromedp.Void, err error) {
		_, err = chromedp.Call(ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		return v, err
	})
}

// readable wants that the page has a text and is as wide as the window, without script.
func (b *tab) readable(page, want string) {
	b.t.Helper()
	if !is[bool](b, "document.querySelector('main').innerText.includes("+quote(want)+")") {
		b.t.Errorf("%s has no %q: %s", page, want, b.seen())
	}
	if wide := is[int](b, "document.documentElement.scrollWidth"); wide > 320 {
		b.t.Errorf("%s is %d pixels wide", page, wide)
	}
	if is[bool](b, "!document.querySelector('#pause').hidden") {
		b.t.Errorf("%s offers to pause without script", page)
	}
}

func pagesAreReadWithoutScriptAtAnyWidth(t *testing.T, p *profile) {
	s := furnish(p)
	long := "tower-without-a-place-to-break-it-that-is-longer-than-the-screen-is-wide/and-goes-on"
	s.call(long, "ring", long)
	b := s.signIn("overview")
	b.narrow()
	for page, want := range map[string]string{
		"objects?class=bell": long, "object?class=bell&name=" + long: "Newest events", "value?class=bell&key=" + long + "&name=" + long: long, "delete?class=bell&name=" + long: "cannot be undone", "nothing": "404",
	} {
		b.visit(s.url(page))
		b.readable(page, want)
	}
	for _, stop := range s.tour() {
		b.visit(s.url(stop.at))
		title := is[string](b, `document.querySelector("h1").innerText`)
		if title == "" {
			t.Errorf("%s has no title", stop.at)
		}
		b.readable(stop.at, title)
	}
}
