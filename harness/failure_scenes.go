package harness

import (
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// scenes are copies of the store around the last crash of a run, for the case that it
// fails.
type scenes struct {
	before *memstore.Store // as the process saw it when it died; nil: no crash
	after  *memstore.Store // as the next process found it; nil: there was none
}

// died keeps the store as the dying process sees it.
func (c *scenes) died(d disk) {
	c.before, _ = d.view()
	c.after = nil
}

// opened keeps the store as the next process opens it.
func (c *scenes) opened(d disk) {
	if c.before != nil && c.after == nil {
		c.after, _ = d.view()
	}
}

// scene is the facts of each object at one moment.
type scene map[string]facts

// readScene reads a copy. A store that cannot be read has none.
func readScene(mem *memstore.Store, shards int) scene {
	all := make(scene)
	if mem == nil {
		return all
	}
	view, err := storage.Open(storage.Options{Engine: mem.Crash(keepAll), Shards: shards})
	if err != nil {
		return all
	}
	_ = eachObject(view, func(o storage.Object) error {
		all[o.ID.String()] = factsOf(view, o)
		return nil
	})
	return all
}
