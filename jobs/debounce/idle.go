package debounce

import (
	"context"
	"time"
)

// IdleEnd returns when an object ends that has nothing to flush (D6): after
// Config.Dedup without a change, since by then it has forgotten the ids of its events,
// and nothing is left that an Add could be told. A repeated Add is no change.
//
// Each flush, each call of OnExhausted and each verb that changes the status store the
// metadata, and so does the first event. An event that is not flushed is cleared, which
// buffer.idle tells of.
func (in *instance[E, S]) IdleEnd(updated time.Time) time.Time {
	if in.buffer.idle.After(updated) {
		updated = in.buffer.idle
	}
	return updated.Add(in.config.Dedup)
}

// Leaves reports whether the object has forgotten all ids. It has not if an earlier
// definition promised to remember them for longer, or if their Adds took long to commit:
// then it is taken for idle from a time that lets it end when the last id is forgotten.
func (in *instance[E, S]) Leaves(ctx context.Context) (bool, error) {
	end, err := in.st.MarksEnd(ctx)
	if err != nil || !end.After(in.life.Now()) {
		return err == nil, err
	}
	b := in.buffer
	b.idle = end.Add(-in.config.Dedup)
	return false, in.store(ctx, b)
}
