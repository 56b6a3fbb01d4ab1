package workflow

import (
	"context"
	"errors"
	"iter"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/internal/history"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// ListOptions say which runs List yields. The zero value means all.
type ListOptions struct {
	// Label yields the runs with this status alone. Runs that are failed, stuck, paused,
	// completed or cancelled are found by their label, without a look at the others.
	Label jobs.Status
	// WithoutPatch yields the unfinished runs alone that do not have this change in their history;
	// see Patched. A run that has yet to come to the line is one of them.
	WithoutPatch string
}

// List yields the status of runs, with the id as Meta.ID, in the order of their ids. It loads each run that it yields. A run that begins or ends meanwhile may be left
// out. An error of the host, or the end of ctx, is yielded last.
//
//go:noinline
func (w *control) List(ctx context.Context, h *object.Host, o ListOptions) iter.Seq2[Status, error] {
	return func(yield func(Status, error) bool) {
		const page = 256
		for after := ""; ; {
			objects, err := h.Objects(ctx, w.d.name, object.ObjectsOptions{Label: o.Label.Label(), After: after, Limit: page})
			if err != nil {
				yield(Status{}, err)
				return
			}
			for _, info := range objects {
				st, listed, err := w.d.listed(ctx, h, o, info.ID)
				if err != nil || listed {
					if !yield(st, err) || err != nil {
						return
					}
				}
			}
			if len(objects) < page {
				return
			}
			after = objects[len(objects)-1].ID.Name
		}
	}
}

// listed returns the status of a run, and whether the options mean it.
func (d *definition) listed(ctx context.Context, h *object.Host, o ListOptions, id storage.ID) (Status, bool, error) {
	st, err := d.calls.status(ctx, h, id.Name, none{})
	if errors.Is(err, jobs.ErrNotFound) {
		return st, false, nil
	}
	switch {
	case err != nil:
		return st, false, err
	case o.Label != jobs.None && st.Meta.Status != o.Label:
		return st, false, nil
	case o.WithoutPatch == "":
		return st, true, nil
	case st.Meta.Status.Ended():
		return st, false, nil
	}
	has, err := d.hasPatch(ctx, h, id.Name, o.WithoutPatch)
	return st, !has && err == nil, err
}

// hasPatch reports whether the history of a run has a change.
func (d *definition) hasPatch(ctx context.Context, h *object.Host, id, change string) (bool, error) {
	for first := uint64(0); ; {
		entries, err := d.calls.entries(ctx, h, id, page{After: first, Limit: maxPage})
		if err != nil {
			return false, err
		}
		for _, e := range entries {
			if e.Kind == history.Patch.String() && e.Name == change {
				return true, nil
			}
		}
		if len(entries) < maxPage {
			return false, nil
		}
		first = entries[len(entries)-1].Seq + 1
	}
}
