package browser

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/jobs/verbs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server/auth"
)

// approve is a signal that a run waits for.
var approve = workflow.NewSignal[bool]("approve")

// pictured are the pages that the documents show, by the names of their files.
var pictured = map[string]string{
	"overview": "overview", "classes": "classes", "objects": "objects?class=bell", "object": "object?class=bell&name=tower", "recoveries": "recoveries",
	"jobs": "jobs", "run": "job?class=order&name=4711", "pool": "pool?pool=thumb", "task": "task?pool=thumb&task=0-1", "dead": "dead",
}

// HOLDFAST_SCREENSHOTS=DIR writes pictures of the pages, light and dark, for the documents:
//
//	HOLDFAST_SCREENSHOTS=$PWD/docs/pages go test -run Screenshots ./server/dashboard/browser
func TestScreenshots(t *testing.T) {
	dir := os.Getenv("HOLDFAST_SCREENSHOTS")
	if dir == "" {
		t.Skip("HOLDFAST_SCREENSHOTS names no directory for the pictures")
	}
	died := make(chan object.DeadLetter, 1)
	reports := continuous.New(continuous.Config[string]{
		Name: "report", Exhausted: jobs.Fail, Retry: jobs.Retry{MaxAttempts: 1},
		Run: func(context.Context, *continuous.Run[string]) error { return errors.New("the printer has no paper") },
	})
	orders := workflow.New[string, string]("order", workflow.Config{Signals: workflow.Signals{approve}})
	orders.Func(func(ctx *workflow.Context, _ string) (string, error) {
		for _, step := range []string{"reserve", "pay"} {
			if _, err := workflow.Step(ctx, step, func(context.Context) (string, error) { return step + " 42", nil }); err != nil {
				return "", err
			}
		}
		_, err := approve.Wait(ctx, 72*time.Hour)
		return "", err
	})
	pool := thumbs(nil)
	s := serve(t, auth.Admin, []verbs.Described{reports, orders, pool}, bells(died))
	if _, err := orders.Start(t.Context(), s.host, "4711", ""); err != nil {
		t.Fatal(err)
	}
	for e, err := range s.host.Watch(t.Context(), orders.ID("4711"), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == workflow.EventSuspended {
			break
		}
	}
	for i := range 3 {
		ref, err := pool.Enqueue(t.Context(), s.host, i)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := pool.Wait(t.Context(), s.host, ref.ID); !errors.Is(err, workerpool.ErrFailed) {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"church", "door", "tower"} {
		for i := range 4 {
			s.call(name, "ring", fmt.Sprintf("%d o'clock", i+1))
		}
	}
	s.call("tower", "die", "the rope is torn")
	<-died
	for _, name := range []string{"daily", "weekly"} {
		if _, err := reports.Start(t.Context(), s.host, name, ""); err != nil {
			t.Fatal(err)
		}
		for e, err := range s.host.Watch(t.Context(), reports.ID(name), 0) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Kind == jobs.EventFailed {
				break
			}
		}
	}
	b := s.signIn("overview")
	for _, scheme := range []string{"light", "dark"} {
		b.media(scheme)
		b.do(chromedp.EmulateViewport(1000, 760))
		for name, page := range pictured {
			b.visit(s.url(page))
			b.until(live)
			picture, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, name+"-"+scheme+".png"), picture, 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(picture) > 100<<10 || strings.Contains(b.seen(), "undefined") {
				t.Errorf("%s has %d bytes", name, len(picture))
			}
		}
	}
}
