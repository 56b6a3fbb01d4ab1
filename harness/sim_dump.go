package harness

import (
	"github.com/holdfast-dev/holdfast/storage"
)

// Dump tells the stored state of an object: its alarm, its job and open executions in
// words, and its keys.
func (s *Sim) Dump(id storage.ID) string {
	view := s.Store()
	o, err := view.Find(id)
	if err != nil {
		return err.Error()
	}
	now := scene{id.String(): factsOf(view, o)}
	return factTable(id.String(), []moment{{"", now}})
}

// dump tells the stored state of all objects.
func (s *Sim) dump() string {
	mem, err := s.disk.view()
	if err != nil {
		return err.Error()
	}
	now := readScene(mem, s.cfg.shards)
	text := ""
	for _, name := range sortedKeys(now) {
		text += factTable(name, []moment{{"", now}})
	}
	return text
}
