package debounce_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/debounce"
	"github.com/holdfast-dev/holdfast/object"
)

// Edit is an event: somebody has changed a page of a wiki.
type Edit struct {
	ID   string
	Page string
}

// Edits is the state that the edits of one flush are folded into.
type Edits struct {
	Count int
	Pages map[string]int
}

// mails gets the text of each mail. A program would send it, with the key of the flush,
// so that the other side can tell a repeat.
var mails = make(chan string, 10)

// Digest mails the edits of a wiki once there has been none for a minute, at the latest ten minutes
// after the first, and at once when there are three.
var Digest = debounce.New(debounce.Config[Edit, Edits]{
	Name:      "digest",
	Quiet:     time.Minute,
	MaxWait:   10 * time.Minute,
	MaxEvents: 3,
	Retry:     jobs.Retry{MaxAttempts: 5, Backoff: jobs.Exponential(time.Second, time.Minute)},
	Reduce: func(state Edits, _ bool, e Edit) (Edits, error) {
		if state.Pages == nil {
			state.Pages = make(map[string]int)
		}
		state.Count++
		state.Pages[e.Page]++
		return state, nil
	},
	Flush: func(_ context.Context, f *debounce.Flush[Edit, Edits]) error {
		mails <- fmt.Sprintf("flush %d of %s: %d edits of %d pages, %s", f.Generation, f.ID, f.State.Count, len(f.State.Pages), f.Reason)
		return nil
	},
})

// A job is defined once, at package level. The first event of an id starts it.
func ExampleNew() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "digests") // a program names a directory that stays
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	host, err := object.Open(object.Options{Dir: dir}, Digest)
	if err != nil {
		log.Fatal(err)
	}

	for _, e := range []Edit{{"e1", "home"}, {"e2", "news"}, {"e3", "home"}, {"e3", "home"}} {
		// An event is stored when Add returns. One that comes twice with the same id, as
		// after a repeated request, is there once.
		if _, err := Digest.Add(ctx, host, "wiki", e, debounce.EventID(e.ID)); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(<-mails)

	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: flush 1 of wiki: 3 edits of 2 pages, maxEvents
}
