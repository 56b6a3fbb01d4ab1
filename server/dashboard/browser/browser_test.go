package browser

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// patience is how long a test waits for a page at most. It is long, because CI runs on busy machines.
const patience = time.Minute

// chromium is the one browser of all tests.
var chromium struct {
	once  sync.Once
	path  string
	ctx   context.Context
	err   error
	close []func()
}

func TestMain(m *testing.M) {
	code := m.Run()
	for _, f := range chromium.close {
		f()
	}
	os.Exit(code)
}

// launch starts the browser.
func launch() {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if chromium.path, chromium.err = exec.LookPath(name); chromium.err == nil {
			break
		}
	}
	if chromium.err != nil {
		return
	}
	dir, err := os.MkdirTemp("", "holdfast-browser-")
	if err != nil {
		chromium.err = err
		return
	}
	allocator, stop := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(chromium.path), chromedp.UserDataDir(dir), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true))...)
	ctx, cancel := chromedp.NewContext(allocator)
	chromium.ctx = ctx
	chromium.close = []func(){func() { _ = chromedp.Cancel(ctx) }, cancel, stop, func() { _ = os.RemoveAll(dir) }}
	chromium.err = chromedp.Do(ctx)
}

// tab is one tab of the browser.
type tab struct {
	t   *testing.T
	ctx context.Context
}

// watching collects what the policy of the page refuses, and code of users that runs.
const watching = `
window.refused = [];
document.addEventListener("securitypolicyviolation", (e) => refused.push(e.violatedDirective + " " + e.blockedURI + " " + e.sample));
window.alert = (text) => refused.push("alert " + text);
window.addEventListener("error", (e) => refused.push("error " + e.message));
window.setInterval = () => 0; // a page that is live by the stream needs no clock`

// open opens a tab, or skips the test if there is no browser.
func open(t *testing.T) *tab {
	t.Helper()
	chromium.once.Do(launch)
	if chromium.path == "" {
		const reason = "BROWSER TESTS ARE NOT RUN: there is no Chromium; apt-get install --no-install-recommends chromium"
		if os.Getenv("HOLDFAST_BROWSER") == "required" {
			t.Fatal(reason)
		}
		t.Skip(reason)
	}
	if chromium.err != nil {
		t.Fatalf("%s: %v", chromium.path, chromium.err)
	}
	ctx, cancel := chromedp.NewContext(chromium.ctx)
	t.Cleanup(cancel)
	b := &tab{t, ctx}
	b.do(chromedp.Func(func(ctx context.Context, to *chromedp.Target) error {
		_, err := chromedp.Call(ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: watching})
		return err
	}))
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
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if chromedp.FromContext(b.ctx).Target == nil {
		ctx = b.ctx // the first use makes the tab, which lives as long as this context
	}
	return chromedp.Do(ctx, steps...)
}

// seen is the text of the page, for messages.
func (b *tab) seen() string {
	ctx, cancel := context.WithTimeout(b.ctx, 5*time.Second)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](`location.href + "\n" + document.body.innerText`))
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
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatalf("%s: %v\n%s", expression, err, b.seen())
	}
	return v
}

// until waits until an expression is true. It looks after each change of the document, also after the browser has
// gone to another page.
func (b *tab) until(expression string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	wait := `new Promise((done) => {
		const look = () => { try { return (` + expression + `) && (observer.disconnect(), done(true), true); } catch { return false; } };
		const observer = new MutationObserver(look);
		if (!look()) observer.observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
	})`
	for {
		_, err := chromedp.Run(ctx, chromedp.Evaluate[bool](wait, chromedp.EvalAwaitPromise))
		if err == nil {
			return
		}
		if ctx.Err() != nil || !moved(err) {
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
