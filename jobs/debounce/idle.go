package debounce

import (
	"context"
	"time"
)

// IdleEnd returns when an object ends that has nothing to flush (D6):
// Config.Dedup after its last change. By then it has forgotten the ids of its
// events, so a repeated Add could not be recognised anyway. A repeated Add is
// no change.
//
// updated is the time of the metadata. The first event, each flush, each call
// of OnExhausted and each change of the status store the metadata. An event
// that is neither flushed nor dropped was cleared, and Clear sets buffer.idle.
func (in *instance) IdleEnd(updated time.Time) time.Time {
	if in.buffer.idle.After(updated) {
		updated = in.buffer.idle
	}
	return updated.Add(in.d.Dedup)
}

// PurgesIdle reports whether the object has forgotten all ids. Some ids last longer
// if an earlier definition had a longer Dedup, or if their commits were slow.
// Then PurgesIdle stores a time in buffer.idle by which the object ends together
// with its last id.
func (in *instance) PurgesIdle(ctx context.Context) (bool, error) {
	end, err := in.st.Driver().MarksEnd(ctx)
	if err != nil || !end.After(in.job.Now()) {
		return err == nil, err
	}
	b := in.buffer
	b.idle = end.Add(-in.d.Dedup)
	return false, in.store(ctx, b)
}
