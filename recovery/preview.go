package recovery

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// Preview is what the next open of a store finds to do, as LookAhead reads it. Its JSON is for
// tools, and fields may be added to it.
type Preview struct {
	// Epoch is the number of the next opening, and Previous tells how the last one ended.
	Epoch    uint64           `json:"epoch"`
	Previous storage.Previous `json:"previous"`
	// Executions are open: the next open activates their objects, and each job type recovers
	// them (R1). They are sorted by their objects, the first 1,000 of Open.
	Executions []object.ExecutionInfo `json:"executions,omitempty"`
	Open       int                    `json:"open"`
	// Due counts the alarms that are due at the time of the look, up to 100,000; DueMore says
	// that there are more.
	Due     int  `json:"due"`
	DueMore bool `json:"dueMore,omitempty"`
	// Scrubbed has the jobs with rows that contradict one another.
	Scrubbed
}

// Bounds of a Preview.
const (
	mostExecutions = 1000
	mostDue        = 100_000
)

// Clean reports whether the next open has nothing to repair: the last program ended in order,
// no execution is open, and no rows contradict one another. Suspects and due alarms are no
// damage.
func (p Preview) Clean() bool {
	if p.Previous.Epoch > 0 && !p.Previous.Clean || p.Open > 0 {
		return false
	}
	for _, f := range p.Findings {
		if !f.Suspect {
			return false
		}
	}
	return true
}

// LookAhead tells what the next open of a store will find to do: executions that were cut off,
// alarms that are due at a time, and jobs that nothing wakes. It changes nothing, so it takes a
// store that was opened to be read, and it also makes the checks of ScrubStore. It reads all
// headers and jobs of the store. A row that cannot be decoded is a finding, and so is one that
// contradicts another; the look goes on. It returns the cause of ctx if that ends first, and
// storage.ErrManyFindings as ScrubStore does.
func LookAhead(ctx context.Context, store *storage.Store, now time.Time) (Preview, error) {
	p := Preview{Epoch: store.Epoch(), Previous: store.Previous()}
	var err error
	if p.Scrubbed, err = scrubStore(ctx, store); err != nil {
		return p, err
	}
	err = p.lookAtOpen(ctx, store, now)
	if errors.Is(err, storage.ErrCorrupt) && len(p.Findings) > 0 {
		return p, nil // the look ends at a row that is a finding already
	}
	return p, err
}

// lookAtOpen lists the open executions and counts the alarms that are due.
func (p *Preview) lookAtOpen(ctx context.Context, store *storage.Store, now time.Time) (err error) {
	p.Executions, p.Open, err = object.NewReader(store).Executions(ctx, mostExecutions)
	if errors.Is(err, storage.ErrCorrupt) && !errors.Is(err, storage.ErrStorage) {
		p.Findings = append(p.Findings, Finding{Promise: "R1", Problem: err.Error()})
		err = nil
	}
	if err != nil {
		return err
	}
	return p.countDue(store, now)
}

// countDue counts the alarms that are due.
func (p *Preview) countDue(store *storage.Store, now time.Time) error {
	const page = 1000
	for shard := range store.Shards() {
		due, number := int64(0), storage.Number(0)
		for {
			entries, err := store.ScanAlarms(shard, due, number, page)
			if err != nil {
				return err
			}
			for _, e := range entries {
				if e.Due > now.UnixNano() {
					entries = nil
					break
				}
				if p.Due == mostDue {
					p.DueMore = true
					return nil
				}
				p.Due++
				due, number = e.Due, e.Number
			}
			if len(entries) < page {
				break
			}
		}
	}
	return nil
}
