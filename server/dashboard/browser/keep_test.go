package browser

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/holdfast-dev/holdfast/server/auth"
)

// Proves V22: a backup that an admin begins on the page is shown with its verified mark when it counts.
func TestBackupOnThePage(t *testing.T) { inEachScheme(t, backupOnThePage) }

func backupOnThePage(t *testing.T, p *profile) {
	s := serveStored(p, auth.Admin, nil, bells(nil))
	s.call("a", "ring", "one")
	b := s.signIn("backups")
	b.until(`document.querySelector("main").textContent.includes("No backup of this store is verified")`)
	b.click(`form[action=backup] button`)
	b.until(`document.querySelector("#list tbody .label.completed")?.textContent == "verified" && document.querySelector("main").textContent.includes("newest verified backup")`)
	b.quiet()
}

// Proves U10: an admin adds a webhook on the page and sees its secret once, sees the failed attempt of an endpoint, and sends the event
// again once the endpoint is mended.
func TestWebhookOnThePage(t *testing.T) { inEachScheme(t, webhookOnThePage) }

func webhookOnThePage(t *testing.T, p *profile) {
	var mended atomic.Bool
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if !mended.Load() {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	defer endpoint.Close()
	s := serve(p, auth.Admin, nil, bells(nil))
	b := s.signIn("webhooks")
	b.click("summary")
	b.do(chromedp.SendKeys("[name=url]", endpoint.URL))
	b.do(chromedp.SendKeys("[name=class]", "bell"))
	b.leave(`form[action=webhookadd] button`)
	b.until(`document.querySelector("#secret").textContent.startsWith("whsec_")`)
	b.leave("main a.button")
	b.until(live)
	b.until(`document.querySelector("#attempts-title").parentElement.textContent.includes("There are none.")`)
	if is[bool](b, `document.body.textContent.includes("whsec_")`) {
		t.Error("the page shows the secret")
	}
	s.call("a", "ring", "one")
	for is[int](b, `document.querySelectorAll("#state tbody tr").length`) == 0 { // a failed attempt has no event, so the page is asked for again
		b.visit(is[string](b, "location.href"))
	}
	b.until(`document.querySelector("#state tbody .label.failed").textContent == "500"`)
	mended.Store(true)
	b.leave(`#state tbody form button`)
	b.until(`document.querySelector("#state tbody .label.completed")?.textContent == "200"`) // by the stream
	b.quiet()
}
