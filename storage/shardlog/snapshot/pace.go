package snapshot

import (
	"context"
	"log/slog"
	"time"

	"github.com/holdfast-dev/holdfast/seam"
)

// pacer bounds how fast bytes are moved, and tells how far that is.
type pacer struct {
	seams *seam.Seams
	rate  int64     // bytes a second; not above 0: no limit
	due   time.Time // by the steady clock: all that was moved should have taken until then

	log         *slog.Logger
	work        string
	total, done int64
	told        time.Time
}

// tellEvery is how often long work tells how far it is.
const tellEvery = 10 * time.Second

// pace begins the move of so many bytes.
func (o *Options) pace(work string, rate, totalBytes int64) *pacer {
	now := o.Seams.Steady()
	return &pacer{seams: &o.Seams, rate: rate, due: now, log: o.Logger, work: work, total: totalBytes, told: now}
}

// moved waits until n bytes more may have been moved. It returns the cause of the end of ctx.
func (p *pacer) moved(ctx context.Context, n int) error {
	if err := seam.Cause(ctx); err != nil {
		return err
	}
	p.done += int64(n)
	now := p.seams.Steady()
	if now.Sub(p.told) >= tellEvery {
		p.told = now
		p.log.Info(p.work, "doneBytes", p.done, "totalBytes", p.total)
	}
	if p.rate <= 0 {
		return nil
	}
	if p.due.Before(now) { // the move was slow by itself, and that is no reason to hurry
		p.due = now
	}
	p.due = p.due.Add(time.Duration(float64(n) / float64(p.rate) * float64(time.Second)))
	return p.seams.Sleep(ctx, p.due.Sub(now))
}
