package workflow

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object"
)

// With Config.KeepGenerations the entries of a generation stand under its number from the first
// one on, and not under historyPrefix. So ContinueAs moves nothing: a history of 16 MiB would
// not fit into the batch. It removes those that are too old, each by one range.

// keptPrefix begins the keys of the entries of a generation that is kept, or will be.
func keptPrefix(generation uint64) string { return seqKey(generationPrefix, generation) }

// prefix begins the keys of the entries of the present generation.
func (r *runRow) prefix() string {
	if r.Keep {
		return keptPrefix(r.Generation)
	}
	return historyPrefix
}

// maxForgotten is how many old generations one ContinueAs removes, so that its batch is small
// also after a deploy with a lower KeepGenerations.
const maxForgotten = 16

// nextGeneration returns r as the row of the next generation, and the prefixes of the rows that
// go with the begin of it.
func (in *instance) nextGeneration(r runRow) (next runRow, gone []string) {
	most := uint64(in.d.config.KeepGenerations)
	next = r
	next.Generation++
	next.Keep = most > 0
	if r.Keep {
		next.Kept++
	} else {
		gone = append(gone, historyPrefix)
	}
	if most == 0 {
		if next.Kept > 0 {
			gone = append(gone, generationPrefix)
		}
		next.Kept = 0
		return next, gone
	}
	for n := 0; next.Kept > most && n < maxForgotten; n++ {
		gone = append(gone, keptPrefix(next.Generation-next.Kept))
		next.Kept--
	}
	return next, gone
}

// beginAnew stores the begin of the next generation, in the end batch of a stretch. The rows
// that go are removed last, because only a removal may become a range where the batch is full.
func (in *instance) beginAnew(ctx context.Context, input []byte) error {
	if err := in.st.Storage().PutBytes(ctx, inputKey, input); err != nil {
		return err
	}
	now := in.job.Now()
	r, gone := in.nextGeneration(in.row)
	r.Began, r.Wake, r.Waits = now, now, nil
	if err := in.put(ctx, r); err != nil {
		return err
	}
	in.next = 0
	in.entries.Store(0)
	in.bytes.Store(0)
	if err := in.st.Emit(ctx, EventContinued, jobs.Event{Run: r.Generation}); err != nil {
		return err
	}
	var errs []error
	for _, prefix := range gone {
		errs = append(errs, in.st.Storage().DeletePrefix(ctx, prefix))
	}
	return errors.Join(errs...)
}

// HistoryOf is History of one generation of the run: of the present one, or of an earlier one
// that Config.KeepGenerations has kept (see Status.Kept). It returns jobs.ErrNotFound for another.
//
//go:noinline
func (w *control) HistoryOf(ctx context.Context, from object.Caller, id string, generation, first uint64, limit int) ([]Entry, error) {
	return w.d.calls.entries(ctx, from, id, page{After: first, Limit: limit, Generation: &generation})
}

// prefixOf begins the keys of the entries of a generation; nil: of the present one.
func (in *instance) prefixOf(generation *uint64) (string, error) {
	r := &in.row
	switch {
	case generation == nil || *generation == r.Generation:
		return r.prefix(), nil
	case *generation < r.Generation && *generation >= r.Generation-r.Kept:
		return keptPrefix(*generation), nil
	}
	return "", fmt.Errorf("%w: %s: the history of generation %d", jobs.ErrNotFound, in.st.ID(), *generation)
}
