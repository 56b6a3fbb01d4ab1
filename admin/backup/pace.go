package backup

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast/seam"
)

// DefaultRate is how many bytes a second Create reads of an open store, see Repository.LimitRate.
const DefaultRate = 32 << 20

// burstBytes are read before the limit holds, so that a small store is copied at once.
const burstBytes = 8 << 20

// LimitRate has Create read an open store at no more than so many bytes a second, so that commits do not wait for
// the disk behind the copy. 10 GiB take five and a half minutes by default. A file is read once, and again only if its content is
// new under a name and a length that a snapshot has. Zero, or less, is no limit. CreateFrom, Verify and Restore have none. Default: DefaultRate.
func (r *Repository) LimitRate(perSecondBytes int64) { r.rate.Store(max(perSecondBytes, 0)) }

// pacer bounds how fast a backup reads. A nil pacer bounds nothing.
type pacer struct {
	seams *seam.Seams
	rate  int64     // bytes a second
	due   time.Time // by the steady clock: all that was read should have taken until then
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

// read waits until n bytes more may have been read. It returns the cause of the end of ctx.
func (p *pacer) read(ctx context.Context, n int) error {
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
