package harness

import (
	"encoding/json"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/storage"
)

// check is a checker. Its functions may be nil.
type check struct {
	name    string
	promise string                                // in words; empty: the text of the test itself
	stored  func(s *Sim, view *storedState) error // of each state that a crash leaves, and of the last
	crashed func(s *Sim, view *storedState)       // at each crash, with the state that it leaves
	end     func(s *Sim) error                    // after the scenario has settled
}

func checker(ch check) Option { return func(c *Config) { c.checks = append(c.checks, ch) } }

// Invariant adds a check of each state that a crash leaves, and of the last. The
// store is a copy: no code of a host has run on it. Stored decodes its values.
func Invariant(name string, ok func(store *storage.Store) error) Option {
	return checker(check{name: name, stored: func(_ *Sim, view *storedState) error { return ok(view) }})
}

// StateMatches adds a check of the state at the end of a run, after the scenario has
// settled. The model compares it with the state that the test expects.
func StateMatches(model func(s *Sim) error) Option {
	return checker(check{name: "StateMatches", end: model})
}

// Stored decodes a value that an object has stored with the default codec, JSON,
// and reports whether there is one.
func Stored(store *storage.Store, id storage.ID, key string, value any) (bool, error) {
	o, err := store.Find(id)
	if err != nil || o.Number == 0 {
		return false, err
	}
	b, ok, err := store.Data(nil, o, key)
	if err != nil || !ok {
		return false, err
	}
	return true, json.Unmarshal(b, value)
}

// metaOf decodes the metadata of a job; ok is false for an object that is none.
func metaOf(view *storedState, o storage.Object) (m jobs.Meta, ok bool, err error) {
	raw, _, err := view.Data(nil, o, jobs.MetaKey)
	if err != nil {
		return m, false, err
	}
	ok = m.Read(o.ID.Class, o.ID.Name, raw)
	return m, ok, nil
}

// eachObject calls f with each object of a store, until an error.
func eachObject(view *storedState, f func(storage.Object) error) error {
	classes, err := view.Classes()
	if err != nil {
		return err
	}
	for _, class := range classes {
		var bad error
		err := view.Objects(class, "", func(o storage.Object) bool {
			bad = f(o)
			return bad == nil
		})
		if bad != nil {
			return bad
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// concerning is an error about an object; the failure shows the stored rows of that
// object.
type concerning struct {
	error
	object string
}

func (c concerning) Unwrap() error { return c.error }
