package workflow

import (
	"time"

	"github.com/holdfast-dev/holdfast/jobs/internal/history"
)

// Sleep waits for d, without a goroutine and without memory if that is longer than a
// second (F4): the end is stored, the run is suspended, and its alarm wakes it then, also
// years and many deploys later. It returns ErrCancelled if the run is cancelled meanwhile,
// or ErrMisuse.
func Sleep(ctx *Context, d time.Duration) error {
	if err := ctx.enter("Sleep", ""); err != nil {
		return err
	}
	defer ctx.leave()
	e, err := ctx.next("", history.Sleep)
	if err != nil {
		return err
	}
	if e == nil {
		if err := ctx.ready(); err != nil {
			return err
		}
		until := storable(ctx.s.now().Add(max(d, 0)))
		e = ctx.made(history.Entry{Kind: history.Sleep, Until: until})
	}
	next := ctx.sc.reader.Peek()
	if next != nil && next.Kind == history.Cancel && next.Flags&history.Failed != 0 { // seen in this sleep, not after it
		_, err := ctx.next("", history.Cancel)
		return err
	}
	if next == nil && !ctx.sc.leaves && !ctx.sc.over { // else it was over when the next entry was made
		until := e.Until
		ctx.sc.asleep = true
		err := ctx.wait(&until, Wait{Kind: waitSleep, Until: until})
		if ctx.sc.asleep = false; err != nil {
			return err
		}
	}
	ctx.sc.now = e.Until
	return nil
}
