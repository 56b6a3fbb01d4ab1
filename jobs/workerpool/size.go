package workerpool

import (
	"context"

	"github.com/holdfast-dev/holdfast/alarm"
)

// mergeBytes is how many bytes of tasks a turn reads or writes before it leaves the
// rest to another turn, so that no number of tasks is more than a batch can hold.
func (p *partition) mergeBytes() int { return min(1<<20, p.st.MaxBatchBytes()/4) }

// nearlyFull reports whether the turn has written so much that it must not begin
// further tasks: they are due still, so the next wake-up begins them.
func (p *partition) nearlyFull(ctx context.Context) (bool, error) {
	written, err := p.st.WrittenBytes(ctx)
	return written >= p.st.MaxBatchBytes()/reserved*(reserved-1)+p.mergeBytes()/4, err
}

// encoded appends r as it is stored to b. A row that has become too large for one
// value loses failures, since a task that cannot be stored would never end.
func (p *partition) encoded(b []byte, r *row) ([]byte, error) {
	full, err := r.append(b)
	for err == nil && len(full) > p.st.MaxValueBytes() && r.rare.shrink() {
		full, err = r.append(b)
	}
	return full, err
}

// shrink drops some of what is known of failures, the middle ones first. It reports
// false if there is nothing left to drop.
func (x *rare) shrink() bool {
	switch n := len(x.Failures); {
	case n > 1:
		kept := append([]Failure(nil), x.Failures[:n/4]...)
		x.Failures = append(kept, x.Failures[n-max(n/4, 1):]...)
	case n == 1 && x.Failures[0].Error != "":
		f := x.Failures[0]
		f.Error = alarm.Cut(f.Error, len(f.Error)/4)
		x.Failures, x.Run.LastError = []Failure{f}, alarm.Cut(x.Run.LastError, len(f.Error))
	case n == 1:
		x.Failures = nil
	default:
		return false
	}
	return true
}
