package browser

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/holdfast-dev/holdfast/internal/testing/outside"
	"github.com/holdfast-dev/holdfast/internal/testing/prove"
	"github.com/holdfast-dev/holdfast/server/internal/patience"
)

// chromium is the one browser of all tests.
var chromium struct {
	once  sync.Once
	ctx   context.Context
	err   error
	close []func()
}

func TestMain(m *testing.M) {
	patience.Have()
	code := m.Run()
	for _, f := range chromium.close {
		f()
	}
	os.Exit(code)
}

// launch starts the browser.
func launch(path string) {
	dir, err := os.MkdirTemp("", "holdfast-browser-")
	if err != nil {
		chromium.err = err
		return
	}
	allocator, stop := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.UserDataDir(dir), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true))...)
	ctx, cancel := chromedp.NewContext(allocator)
	chromium.ctx = ctx
	chromium.close = []func(){func() { _ = chromedp.Cancel(ctx) }, cancel, stop, func() { _ = os.RemoveAll(dir) }}
	chromium.err = chromedp.Do(ctx)
}

// profile is a browser of its own within the one of all tests: it shares no cookies and no storage with others, and
// prefers a scheme of colours.
type profile struct {
	t      *testing.T
	scheme string
	first  context.Context // of the first tab, which has the cookies; nil before it
}

// inEachScheme runs a test in light, and for scripts/prove in dark at the same time. TestAxeFindsNothing looks at the
// colours of both in any run.
func inEachScheme(t *testing.T, test func(*testing.T, *profile)) {
	t.Parallel()
	schemes := []string{"light"}
	if prove.Long() {
		schemes = append(schemes, "dark")
	}
	for _, scheme := range schemes {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			test(t, newProfile(t, scheme))
		})
	}
}

// newProfile starts the browser of all tests if it does not run yet, or skips the test if there is none.
func newProfile(t *testing.T, scheme string) *profile {
	t.Helper()
	path := outside.Chromium(t)
	chromium.once.Do(func() { launch(path) })
	if chromium.err != nil {
		t.Fatalf("%s: %v", path, chromium.err)
	}
	return &profile{t: t, scheme: scheme}
}

// tab is one tab of the browser.
type tab struct {
	t   *testing.T
	ctx context.Context
}

// watching collects the refusals of the policy of the page, and signs that code of users has run.
const watching = `
window.refused = [];
document.addEventListener("securitypolicyviolation", (e) => refused.push(e.violatedDirective + " " + e.blockedURI + " " + e.sample));
window.alert = (text) => refused.push("alert " + text);
window.addEventListener("error", (e) => refused.push("error " + e.message));
window.setInterval = () => 0; // a page that is live by the stream needs no clock`

// open opens a tab.
func (p *profile) open() *tab {
	p.t.Helper()
	var ctx context.Context
	var cancel context.CancelFunc
	if p.first == nil {
		ctx, cancel = chromedp.NewContext(chromium.ctx, chromedp.WithNewBrowserContext())
		p.first = ctx
	} else {
		ctx, cancel = chromedp.NewContext(p.first)
	}
	p.t.Cleanup(cancel)
	b := &tab{p.t, ctx}
	b.do(chromedp.Func(func(ctx context.Context, to *chromedp.Target) error {
		_, err := chromedp.Call(ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: watching})
		return err
	}))
	b.media(p.scheme)
	return b
}

// do runs steps in the tab.
func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := b.try(steps...); err != nil {
		b.t.Fatalf("%v\n%s", err, b.seen())
	}
}

func (b *tab) try(steps ...chromedp.Action[chromedp.Void]) error {
	return chromedp.Do(b.ctx, steps...)
}

// seen is the text of the page, for messages.
func (b *tab) seen() string {
	text, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](`location.href + "\n" + document.body.innerText`))
	return fmt.Sprint(text, err)
}

// visit goes to an address.
func (b *tab) visit(address string) {
	b.t.Helper()
	b.do(chromedp.Navigate(address))
}

// is evaluates an expression.
func is[T any](b *tab, expression string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatalf("%s: %v\n%s", expression, err, b.seen())
	}
	return v
}

// until waits until an expression is true, without a limit. It looks after each change of the document, also after the
// browser has gone to another page.
func (b *tab) until(expression string) {
	b.t.Helper()
	wait := `new Promise((done) => {
		const look = () => { try { return (` + expression + `) && (observer.disconnect(), done(true), true); } catch { return false; } };
		const observer = new MutationObserver(look);
		if (!look()) observer.observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
	})`
	for {
		_, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](wait, chromedp.EvalAwaitPromise))
		if err == nil {
			return
		}
		if b.ctx.Err() != nil || !moved(err) {
			b.t.Fatalf("%s: %v\n%s", expression, err, b.seen())
		}
	}
}

// moved reports whether an error says that the browser has gone to another page meanwhile.
func moved(err error) bool {
	for _, text := range []string{"navigated", "context was destroyed", "Cannot find context", "Promise was collected", "context with specified id"} {
		if strings.Contains(err.Error(), text) {
			return true
		}
	}
	return false
}

// click clicks on the first element that matches.
func (b *tab) click(selector string) {
	b.t.Helper()
	b.do(chromedp.Click(selector))
}

// leave clicks on the first element that matches, and waits for the page that the browser goes to.
func (b *tab) leave(selector string) {
	b.t.Helper()
	is[bool](b, "window.isOld = true")
	b.click(selector)
	b.until(`!window.isOld && document.querySelector("footer")`)
}

// quiet wants that the policy of the page has refused nothing, and that no code of a user has run.
func (b *tab) quiet() {
	b.t.Helper()
	if got := is[[]string](b, "refused"); len(got) > 0 {
		b.t.Errorf("V14: the page has %q", got)
	}
}

// in sets the zone of the clock.
func (b *tab) in(zone string) {
	b.t.Helper()
	b.do(func(ctx context.Context, _ *chromedp.Target) (v chromedp.Void, err error) {
		_, err = chromedp.Call(ctx, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: zone})
		return v, err
	})
}

// media has the browser prefer a scheme of colours.
func (b *tab) media(scheme string) {
	b.t.Helper()
	b.do(func(ctx context.Context, _ *chromedp.Target) (v chromedp.Void, err error) {
		_, err = chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		})
		return v, err
	})
}
