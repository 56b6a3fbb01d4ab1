package storage

import (
	"runtime"
	"time"
)

// # Why a leader yields
//
// A sync has woken callers, which soon commit again. If the next leader synced at once, their commits would have to wait for
// that sync and for one more: two groups would take turns, and each sync would serve half of the callers. So a leader lets
// the goroutines run first that can, and its sync serves their commits too. While none can, as with one caller, a yield
// takes less than a microsecond.
//
// Where goroutines compute for long, a processor comes back after some time slices of 10 ms. So a yield that took long for few
// commits is the last one for a while, and at most a twentieth of the time is lost.

const (
	yieldPerCommit = 200 * time.Microsecond // a yield may take so long for each commit that is applied meanwhile, and for one more
	yieldPause     = 20                     // times what a yield took that took longer: so long none follows
)

// yielding tells leaders whether to yield. Only the leader uses it.
type yielding struct {
	yield  func()    // runtime.Gosched, but for a test
	resume time.Time // by the steady clock; no leader yields before
}

// yield lets other goroutines run, if that does not take long.
func (p *pipeline) yield() {
	now, applied := p.store.seams.Steady(), p.last.Load()
	if now.Before(p.yielding.resume) {
		return
	}
	p.yielding.yield()
	back := p.store.seams.Steady()
	if took := back.Sub(now); took > yieldPerCommit*time.Duration(1+p.last.Load()-applied) {
		p.yielding.resume = back.Add(yieldPause * took)
	}
}

func newYielding() yielding { return yielding{yield: runtime.Gosched} }
