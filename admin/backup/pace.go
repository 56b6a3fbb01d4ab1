package backup

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast/seam"
)

// DefaultRate is how many bytes a second Create moves for an open store, see Repository.LimitRate.
const DefaultRate = 32 << 20

// burstBytes are moved before the limit holds, so that a small store is copied at once.
const burstBytes = 8 << 20

// LimitRate has Create of an open store read and write no more than so many bytes a second together, so that commits do
// not wait for the disk behind the copy. 10 GiB of new content take eleven minutes by default, because they are read and written, and half of
// that if the newest snapshot of the store has them. Zero, or less, is no limit. CreateFrom, Verify and Restore have none. Default: DefaultRate.
func (r *Repository) LimitRate(perSecondBytes int64) { r.rate.Store(max(perSecondBytes, 0)) }

// pacer bounds how fast a backup reads and writes. A nil pacer bounds nothing.
type pacer struct {
	seams *seam.Seams
	rate  int64     // bytes a second
	due   time.Time // by the steady clock: all that was moved should have taken until then
}

// pacer begins to bound a Create; nil: there is no limit.
func (r *Repository) pacer() *pacer {
	rate := r.rate.Load()
	if rate == 0 {
		return nil
	}
	return &pacer{seams: &r.o.Seams, rate: rate}
}

// takes is how long so many bytes take.
func (p *pacer) takes(bytes int) time.Duration {
	return time.Duration(float64(bytes) / float64(p.rate) * float64(time.Second))
}

// moved waits until n bytes more may have been read or written. It returns the cause of the end of ctx.
func (p *pacer) moved(ctx context.Context, n int) error {
	if p == nil {
		return nil
	}
	now := p.seams.Steady()
	if least := now.Add(-p.takes(burstBytes)); p.due.Before(least) { // a disk that was slow is no reason to hurry
		p.due = least
	}
	p.due = p.due.Add(p.takes(n))
	if wait := p.due.Sub(now); wait > 0 {
		return p.seams.Sleep(ctx, wait)
	}
	return nil
}
