package judge

import "slices"

// batched is a debounce job by the log.
type batched struct {
	flushes map[uint64][]string // ids of the events, by generation
	keys    map[uint64]string   // outside keys of the flushes
}

func (b *batched) begin() {
	b.flushes, b.keys = make(map[uint64][]string), make(map[uint64]string)
}

func (b *Book) flushed(l Line) {
	batch := at(b.batches, l.On)
	if before, ok := batch.flushes[l.N]; ok && (!slices.Equal(before, l.IDs) || batch.keys[l.N] != l.Key) {
		b.find(broken("D3", "generation %d of %s was flushed with events %v under %q, and before with %v under %q", l.N, l.On, l.IDs, l.Key, before, batch.keys[l.N]))
	}
	batch.flushes[l.N], batch.keys[l.N] = l.IDs, l.Key
}

func (c *check) batches() {
	places := make(map[string]map[string]uint64) // generation by job and event id
	union(c.Book.batches, c.stored.Batches, func(name string) {
		book, batch := c.Book.batches[name], c.stored.Batches[name]
		if book == nil {
			book = &batched{}
		}
		places[name] = c.generations(name, book, batch)
		if batch.Dropped != 0 {
			c.broken("D2", "%s has dropped %d events", name, batch.Dropped)
		}
		if c.end && (batch.Closed != 0 || batch.Count[batch.Open] > 0) {
			c.broken("D2", "%s still holds generation %d, and %d events of generation %d", name, batch.Closed, batch.Count[batch.Open], batch.Open)
		}
	})
	c.events(places)
}

// generations checks those of one job and returns where each event is.
func (c *check) generations(name string, book *batched, batch Batch) map[string]uint64 {
	place := make(map[string]uint64)
	put := func(g uint64, ids []string) {
		for _, id := range ids {
			if before, ok := place[id]; ok {
				c.doubled("D2", "event %q of %s is in generations %d and %d", id, name, before, g)
			}
			place[id] = g
		}
	}
	flushed := int64(0)
	for g, ids := range book.flushes {
		switch rows, stored := batch.Rows[g]; {
		case stored && !slices.Equal(rows, ids):
			c.broken("D3", "generation %d of %s holds events %v, and was flushed with %v", g, name, rows, ids)
		case g > batch.Open || g == batch.Open && !stored:
			c.lost("O7", len(ids), "generation %d of %s was flushed, and the store has come to %d", g, name, batch.Open)
		case !stored:
			flushed += int64(len(ids))
			c.tallied("O7", "a flush of "+name, book.keys[g])
			put(g, ids)
		}
	}
	for g := uint64(1); g < batch.Open; g++ {
		if _, ok := book.flushes[g]; !ok && g != batch.Closed {
			c.broken("D2", "generation %d of %s is over, and was never flushed", g, name)
		}
	}
	for g, ids := range batch.Rows {
		if (g != batch.Open && g != batch.Closed) || len(ids) != batch.Count[g] {
			c.broken("D1", "%s stores %d events of generation %d; it collects %d, flushes %d, and counts %d", name, len(ids), g, batch.Open, batch.Closed, batch.Count[g])
		}
		put(g, ids)
	}
	if batch.Flushed != flushed {
		c.broken("D3", "%s counts %d events as flushed, and the flushes that are over had %d", name, batch.Flushed, flushed)
	}
	return place
}

// events checks that each one that was answered is where the answer says, and
// that there are no others.
func (c *check) events(places map[string]map[string]uint64) {
	for _, k := range c.keyed {
		if k.first.Verb != Event {
			continue
		}
		g, ok := places[k.first.On][k.first.Key]
		delete(places[k.first.On], k.first.Key)
		switch {
		case k.acked && !ok:
			c.lost("D2", 1, "event %q was added to generation %d of %s, and is in none", k.first.Key, k.answerN, k.first.On)
		case k.acked && g != k.answerN:
			c.broken("D2", "event %q was added to generation %d of %s, and is in %d", k.first.Key, k.answerN, k.first.On, g)
		case ok && k.asked == 0:
			c.broken("O6", "event %q of %s is in generation %d, and each call with it was refused", k.first.Key, k.first.On, g)
		}
	}
	for name, rest := range places {
		for id, g := range rest {
			c.broken("O6", "event %q is in generation %d of %s, but was never added", id, g, name)
		}
	}
}
