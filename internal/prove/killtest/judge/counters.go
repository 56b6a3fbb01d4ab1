package judge

// counted is a counter by the log.
type counted struct {
	acked, maybe int               // calls without a key: answered, and not refused in all
	answers      map[uint64]uint64 // the calls that were told each count
	seen         uint64            // the greatest count told
}

func (c *counted) begin() { c.answers = make(map[uint64]uint64) }

func (b *Book) ackedCount(c, l Line) {
	counter := at(b.counters, c.On)
	counter.seen = max(counter.seen, l.N)
	if c.Verb == Read {
		return
	}
	if c.Verb == Add {
		counter.acked++
	}
	if other, ok := counter.answers[l.N]; ok {
		b.find(broken("O7", "two calls, %d and %d, were told that counter %s has reached %d: one of them was lost", other, c.Op, c.On, l.N))
	}
	counter.answers[l.N] = c.Op
}

func (c *check) counters() {
	union(c.Book.counters, c.stored.Counters, func(name string) {
		book, counter := c.Book.counters[name], c.stored.Counters[name]
		if book == nil {
			book = &counted{}
		}
		keyed := uint64(0)
		for _, n := range counter.Keys {
			keyed += n
		}
		if counter.N != counter.Adds+keyed {
			c.broken("O6", "counter %s holds %d, and its parts %d and %d", name, counter.N, counter.Adds, keyed)
		}
		if counter.Events != counter.N {
			c.broken("J11", "counter %s holds %d and has %d events", name, counter.N, counter.Events)
		}
		if adds := int(counter.Adds); adds < book.acked {
			c.lost("O7", book.acked-adds, "counter %s holds %d calls without a key; %d were answered", name, adds, book.acked)
		} else if adds > book.maybe {
			c.doubled("O6", "counter %s holds %d calls without a key; only %d were made and not refused", name, adds, book.maybe)
		}
		if counter.N < book.seen {
			c.lost("O7", int(book.seen-counter.N), "counter %s holds %d; a caller was told of %d", name, counter.N, book.seen)
		}
	})
	c.keys()
}

// keys checks that each call with a key is counted once.
func (c *check) keys() {
	asked := make(map[string]bool)
	for _, k := range c.keyed {
		if k.first.Verb != Once && k.first.Verb != Tally {
			continue
		}
		if k.asked > 0 {
			asked[k.first.On+" "+k.first.Key] = true
		}
		if n := c.stored.Counters[k.first.On].Keys[k.first.Key]; k.acked && n == 0 {
			c.lost("O7", 1, "%s of %q on counter %s was answered with %d, and is not stored", k.first.Verb, k.first.Key, k.first.On, k.answerN)
		}
	}
	for name, counter := range c.stored.Counters {
		for key, n := range counter.Keys {
			if n != 1 {
				c.doubled("O16", "key %q on counter %s is counted %d times", key, name, n)
			}
			if !asked[name+" "+key] {
				c.broken("O6", "key %q on counter %s is counted, and each call with it was refused, or there was none", key, name)
			}
		}
	}
}
