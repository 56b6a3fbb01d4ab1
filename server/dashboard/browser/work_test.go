package browser

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/holdfast-dev/holdfast/internal/testing/prove"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/jobs/verbs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/server/auth"
)

// thumbs is a pool whose tasks die while broken is open, with an error that would be markup.
func thumbs(broken <-chan struct{}) *workerpool.Pool[int, int] {
	return workerpool.New(workerpool.Config[int, int]{
		Name: "thumb", Partitions: 1, Concurrency: 8,
		Work: func(context.Context, *workerpool.Task[int]) (int, error) {
			select {
			case <-broken:
				return 0, nil
			default:
				return 0, object.Permanent(errors.New("<b>torn"))
			}
		},
	})
}

// has is an expression: the main part of the page shows a text.
func has(text string) string {
	return `document.querySelector("main").innerText.includes(` + quote(text) + `)`
}

// press clicks on the button or the link of a verb, and waits for the next page.
func (b *tab) press(verb string) {
	b.t.Helper()
	b.leave(`main form[action*="` + verb + `"] button, main a.button[href*="` + verb + `"]`)
}

// Proves V11, V13, V21: all dead letters that match are counted, replayed after a question, and the page tells how far it
// is by itself until all are done. The page Bulk has the run.
func TestReplayAllDeadLetters(t *testing.T) { inEachScheme(t, replayAllDeadLetters) }

func replayAllDeadLetters(t *testing.T, p *profile) {
	n := 40
	if prove.Long() {
		n = 10_000 // which take 20 s, at 500 in a second
	}
	mended := make(chan struct{})
	pool := thumbs(mended)
	half := &holding{object: "thumb/0", goOn: make(chan struct{})}
	s := serveOn(p, half, auth.Operator, []verbs.Described{pool})
	items := make([]workerpool.Item[int], n)
	refs, err := pool.EnqueueBatch(t.Context(), s.host, items)
	if err != nil {
		t.Fatal(err)
	}
	for _, ref := range refs {
		if _, err := pool.Wait(t.Context(), s.host, ref.ID); !errors.Is(err, workerpool.ErrFailed) {
			t.Fatal(err)
		}
	}
	close(mended)
	b := s.signIn("dead?limit=20")
	b.until(has("<b>torn") + ` && document.querySelectorAll("tbody tr").length === 20`)
	b.do(chromedp.SendKeys("[name=error]", "<b>to"))
	b.leave("main form.filter button")
	b.press("do=replay")
	b.until(has(itoa(n) + " dead letters match"))
	half.turns.Store(int64(n / 2))
	b.leave("main form button")
	b.until(has("It runs.") + ` && document.querySelector("progress").value > 0`)
	close(half.goOn)
	b.until(has("It has ended.") + ` && ` + has(fmt.Sprintf("%d of %d", n, n)))
	b.quiet()
	for _, ref := range refs {
		if _, err := pool.Wait(t.Context(), s.host, ref.ID); err != nil {
			t.Fatal(err)
		}
	}
	b.leave(`nav a[href=bulkruns]`)
	b.until(has("replay dead letters") + ` && ` + has(fmt.Sprintf("%d of %d", n, n)))
	b.leave(`nav a[href="dead"]`)
	b.until(has("There is none here"))
}

// holding is a probe that holds an object before one of its turns, so that a page can be seen that is true only for a while.
type holding struct {
	object string
	turns  atomic.Int64 // until then; 0: it holds none
	goOn   chan struct{}
}

func (h *holding) At(p seam.Point) {
	if p.Name == "handler/enter" && p.Object == h.object && h.turns.Load() > 0 && h.turns.Add(-1) == 0 {
		<-h.goOn
	}
}

// Proves V13: an operator pauses a pool on its page, sees that it is paused and its task queued, and resumes it.
func TestPauseAPool(t *testing.T) { inEachScheme(t, pauseAPool) }

func pauseAPool(t *testing.T, p *profile) {
	mended := make(chan struct{})
	close(mended)
	pool := thumbs(mended)
	s := serve(p, auth.Operator, []verbs.Described{pool})
	b := s.signIn("pool?pool=thumb")
	b.until(has("Mode: open"))
	b.press("verb=pause")
	b.until(has("Mode: paused") + ` && location.pathname.endsWith("/ui/pool")`)
	ref, err := pool.Enqueue(t.Context(), s.host, 1)
	if err != nil {
		t.Fatal(err)
	}
	b.visit(s.url("task?pool=thumb&task=" + ref.ID.String()))
	b.until(has("queued") + ` && ` + has("paused")) // the reason is on the page
	b.visit(s.url("pool?pool=thumb"))
	b.press("verb=resume")
	b.until(has("Mode: open"))
	if _, err := pool.Wait(t.Context(), s.host, ref.ID); err != nil {
		t.Fatal(err)
	}
	b.visit(s.url("task?pool=thumb&task=" + ref.ID.String()))
	b.until(has("done"))
	b.quiet()
	if got := s.posted(); len(got) != 3 || !strings.HasSuffix(got[1], "verb=pause") || !strings.HasSuffix(got[2], "verb=resume") {
		t.Errorf("the browser has sent %q", got)
	}
}

// Proves V22: an admin presses Back up now, and the page tells by itself that the backup is verified.
func TestBackUpNow(t *testing.T) { inEachScheme(t, backUpNow) }

func backUpNow(t *testing.T, p *profile) {
	s := serveStored(p, auth.Admin, nil, bells(nil))
	s.call("tower", "ring", "one o'clock")
	b := s.signIn("overview")
	b.until(has("No backup of the store is verified."))
	b.leave(`nav a[href=backups]`)
	b.until(has("There is none here."))
	b.press("backup")
	b.until(`document.querySelectorAll("#list tbody tr").length == 1 && document.querySelector("#list td .completed") && ` + has("and is verified."))
	b.until(`document.querySelector("main form button").textContent == "Back up now"`)
	b.quiet()
	b.leave(`nav a[href=overview]`)
	b.until(has("What needs attention") + ` && !` + has("No backup"))
	if got := s.posted(); len(got) != 2 || !strings.HasSuffix(got[1], "/ui/backup") {
		t.Errorf("the browser has sent %q", got)
	}
}

// Proves V13, V14: the page of a job with a hostile name has no button for a viewer, and a form that the viewer forges
// is refused.
func TestViewerHasNoButtons(t *testing.T) { inEachScheme(t, viewerHasNoButtons) }

func viewerHasNoButtons(t *testing.T, p *profile) {
	reports := continuous.New(continuous.Config[int]{
		Name: "report", StartLater: true, Run: func(context.Context, *continuous.Run[int]) error { return nil },
	})
	pool := thumbs(nil)
	s := serve(p, auth.Viewer, []verbs.Described{reports, pool})
	b := s.signIn("jobs")
	for _, name := range hostile {
		if _, err := reports.Start(t.Context(), s.host, name, 0); err != nil {
			t.Fatal(err)
		}
		at := "job?class=report&name=" + url.QueryEscape(name)
		b.visit(s.url(at))
		b.until(has("Executions of this run"))
		if n := is[int](b, `document.querySelectorAll("main form, main button, main .button").length`); n != 0 {
			t.Errorf("V13: %q has %d buttons", name, n)
		}
		forged := `fetch("do?class=report&verb=terminate&name=" + encodeURIComponent(` + quote(name) + `), { method: "POST", body: new URLSearchParams() }).then((a) => a.status)`
		if status := awaited[int](b, forged); status != 403 {
			t.Errorf("V13: a forged form of %q: %d", name, status)
		}
		b.quiet()
		if m, err := reports.Status(t.Context(), s.host, name); err != nil || m.Meta.Status != jobs.Running {
			t.Errorf("%q: %v, %v", name, m.Meta.Status, err)
		}
	}
	b.visit(s.url("pool?pool=thumb"))
	if n := is[int](b, `document.querySelectorAll("main .verbs").length`); n != 0 {
		t.Errorf("V13: the pool has %d lists of verbs", n)
	}
}

// awaited is the value of a promise.
func awaited[T any](b *tab, promise string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](promise, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%s: %v\n%s", promise, err, b.seen())
	}
	return v
}
