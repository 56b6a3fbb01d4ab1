package workflow

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/jobs/internal/history"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
)

// CheckOptions are the settings of Check.
type CheckOptions struct {
	// Codec is that of the host. Default: object.JSON.
	Codec object.Codec
	// Seams are those of the host; a simulation gives its own.
	Seams seam.Seams
}

// Divergence is a run that would be stuck with the present code.
type Divergence struct {
	ID  string `json:"id"`  // of the run
	Err error  `json:"err"` // why: an ErrDiverged, or a panic, for example; its text in JSON
}

// MarshalJSON writes Err as its text.
func (d Divergence) MarshalJSON() ([]byte, error) {
	out := struct {
		ID  string `json:"id"`
		Err string `json:"err"`
	}{ID: d.ID}
	if d.Err != nil {
		out.Err = d.Err.Error()
	}
	return json.Marshal(out)
}

// Check repeats each unfinished run of a store with the present code, up to the first
// operation that is not in its history, and yields the runs that would be stuck. It runs no
// step and writes nothing, so it is a check before a deploy: open a copy of the store, with
// no host over it, in a program or a test of the new code.
//
//	for d, err := range Orders.Check(ctx, store, workflow.CheckOptions{}) {
//
// An error of the store, or the end of ctx, is yielded last.
func (w *Workflow[In, Out]) Check(ctx context.Context, s *storage.Store, o CheckOptions) iter.Seq2[Divergence, error] {
	return w.d.check(ctx, s, o)
}

// check is Workflow.Check.
func (d *definition) check(ctx context.Context, s *storage.Store, o CheckOptions) iter.Seq2[Divergence, error] {
	if o.Codec == nil {
		o.Codec = object.JSON{}
	}
	c := &checker{d: d, store: s, codec: o.Codec, seams: o.Seams.WithDefaults()}
	return func(yield func(Divergence, error) bool) {
		if err := c.all(ctx, func(d Divergence) bool { return yield(d, nil) }); err != nil {
			yield(Divergence{}, err)
		}
	}
}

// checker is one walk of Check.
type checker struct {
	d     *definition
	store *storage.Store
	codec object.Codec
	seams seam.Seams
}

// all checks the runs one after another.
func (c *checker) all(ctx context.Context, yield func(Divergence) bool) error {
	const page = 256
	for after := ""; ; {
		var objects []storage.Object
		err := c.store.Objects(c.d.name, after, func(o storage.Object) bool {
			objects = append(objects, o)
			return len(objects) < page
		})
		if err != nil || len(objects) == 0 {
			return err
		}
		for _, o := range objects {
			if ctx.Err() != nil {
				return seam.Cause(ctx)
			}
			found, err := c.one(ctx, o)
			if err != nil {
				return fmt.Errorf("%s: %w", o.ID, err)
			}
			if found != nil && !yield(Divergence{o.ID.Name, found}) {
				return nil
			}
		}
		after = objects[len(objects)-1].ID.Name
	}
}

// one repeats a run, and returns why it would be stuck.
func (c *checker) one(ctx context.Context, o storage.Object) (stuckBy, err error) {
	var meta jobs.Meta
	var row runRow
	if ok, err := c.read(o, jobs.MetaKey, &meta); !ok || err != nil || meta.Status.Ended() {
		return nil, err
	}
	if ok, err := c.read(o, rowKey, &row); !ok || err != nil {
		return nil, err
	}
	s := &stretch{
		d: c.d, dry: true, seams: &c.seams, codec: c.codec, id: o.ID,
		maxValueBytes: 1 << 40, maxMessageBytes: 1 << 40, // the size of a value is no matter of the code
	}
	s.of(row, meta)
	if s.input, _, err = c.store.Data(nil, o, inputKey); err != nil {
		return nil, err
	}
	if s.entries, s.failed, err = c.history(o, row.prefix()); err != nil {
		return nil, err
	}
	if _, err := s.run(ctx, engine.Execution{}); err != nil && s.outcome.kind != stuck {
		return nil, err
	}
	if s.outcome.kind == stuck {
		return s.outcome.err, nil
	}
	return nil, nil
}

// read decodes a row of a run.
func (c *checker) read(o storage.Object, key string, into any) (ok bool, err error) {
	raw, ok, err := c.store.Data(nil, o, key)
	if ok && err == nil {
		err = c.codec.Decode(raw, into)
	}
	return ok, err
}

// history reads the entries of a run.
func (c *checker) history(o storage.Object, prefix string) (scopes map[string][]history.Entry, failed bool, err error) {
	it, err := c.store.ListData(nil, o, prefix, storage.PrefixEnd(prefix), false)
	if err != nil {
		return nil, false, err
	}
	defer it.Close()
	var entries []history.Entry
	for it.Next() {
		e, err := history.Decode(seqOf(string(it.Key()), prefix), append([]byte(nil), it.Value()...))
		if err != nil {
			return nil, false, err
		}
		failed = failed || e.Kind == history.Fail
		entries = append(entries, e)
	}
	return history.Scopes(entries), failed, it.Err()
}
