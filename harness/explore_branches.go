package harness

import (
	"slices"
	"strings"
)

// candidate is a schedule that could be run.
type candidate struct {
	schedule schedule
	fault    bool   // its last event is a fault, not a crash
	at       string // where its last event is
	index    int    // hits before its last event, in the run that it branches from
	name     string // of the kind of place of its last event
}

// branches are the schedules that follow from one whose run came to out. Each has one
// more crash or fault, at any later place. After a fault there are only crashes,
// because two faults would be too many pairs.
func (e *explorer) branches(from candidate, out outcome) []candidate {
	first := from.index
	if from.at != "" && !from.fault {
		first++
	}
	var all []candidate
	for i := first; i < len(out.hits); i++ {
		h := out.hits[i]
		for _, c := range e.survivors(h) {
			p := from.schedule
			p.crashes = append(slices.Clone(p.crashes), c)
			all = append(all, candidate{p, false, h.String(), i, h.Name})
		}
	}
	if from.fault {
		return all
	}
	for _, c := range out.chances {
		if c.before < first {
			continue
		}
		for _, f := range c.variants(e.cfg.seed) {
			p := from.schedule
			p.faults = append(slices.Clone(p.faults), f)
			all = append(all, candidate{p, true, f.at, c.before, string(c.kind) + " " + c.at.Name})
		}
	}
	return all
}

// survivors are the crashes to try at h. Where durability is decided, two of them keep
// none and all of the unsynced commits; elsewhere one keeps a number that the seed
// chooses. On Pebble a torn write is tried too, there and where a sync begins.
func (e *explorer) survivors(h hit) []crash {
	none := crash{at: h.String()}
	if h.unsynced == 0 {
		return []crash{none}
	}
	all, some, torn := none, none, none
	all.keep = h.unsynced
	some.keep = int(hash(e.cfg.seed, h.String()) % uint64(h.unsynced+1))
	torn.torn = hash(e.cfg.seed, h.String()) | 1
	switch tears := e.cfg.store == storePebble; {
	case tears && h.Name == "sync/before":
		return []crash{none, all, torn}
	case strings.HasPrefix(h.Name, "commit/"), strings.HasPrefix(h.Name, "sync/"), strings.HasPrefix(h.Name, "append/"), strings.HasPrefix(h.Name, "ack/"):
		return []crash{none, all}
	case tears:
		return []crash{torn}
	}
	return []crash{some}
}

func hash(seed uint64, text string) uint64 {
	h := seed ^ 14695981039346656037
	for _, c := range []byte(text) {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return h ^ h>>32
}

// choose takes at most n of the candidates: as many of each name of a point as
// of every other, as far as there are, evenly spread over the run.
func choose(all []candidate, n int) []candidate {
	if len(all) <= n {
		return all
	}
	groups := make(map[string][]candidate)
	for _, c := range all {
		groups[c.name] = append(groups[c.name], c)
	}
	names := make([]string, 0, len(groups))
	for name := range groups {
		names = append(names, name)
	}
	// The smallest groups come first, so that the larger ones get the budget that is
	// left.
	slices.SortFunc(names, func(a, b string) int {
		if d := len(groups[a]) - len(groups[b]); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	var out []candidate
	for i, name := range names {
		group := groups[name]
		take := min(max(n-len(out), 0)/(len(names)-i), len(group))
		for j := range take {
			out = append(out, group[j*len(group)/take])
		}
	}
	return out
}
