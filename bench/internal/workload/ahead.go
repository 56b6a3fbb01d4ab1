package workload

import (
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/seam"
)

// Ahead is a wall clock that a workload moves ahead. Its timers are those of the
// real clock, so nothing rings when it moves.
type Ahead struct {
	by atomic.Int64
}

// Now is the time of the clock.
func (a *Ahead) Now() time.Time { return time.Now().Add(time.Duration(a.by.Load())) }

// AfterFunc runs f when d of real time has passed.
func (a *Ahead) AfterFunc(d time.Duration, f func()) seam.Timer { return time.AfterFunc(d, f) }

// Pass moves the clock ahead.
func (a *Ahead) Pass(d time.Duration) { a.by.Add(int64(d)) }
