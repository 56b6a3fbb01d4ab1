package judge

// looped is a continuous job by the log. One caller at a time pauses and resumes it.
type looped struct {
	is, was Verb   // the last Pause or Resume, and the one before; empty: not known
	seen    uint64 // the greatest state told
	runs    map[uint64]int
	keys    map[uint64]string
}

func (l *looped) begin() {
	l.runs, l.keys = make(map[uint64]int), make(map[uint64]string)
}

func (b *Book) ran(l Line) {
	loop := at(b.loops, l.On)
	loop.runs[l.N]++
	key, ok := loop.keys[l.N]
	switch {
	case !ok:
		loop.keys[l.N] = l.Key
	case key != l.Key:
		b.find(broken("J8", "run %d of %s has the keys %q and %q", l.N, l.On, key, l.Key))
	}
}

func (c *check) loops() {
	union(c.Book.loops, c.stored.Loops, func(name string) {
		book, loop := c.Book.loops[name], c.stored.Loops[name]
		if book == nil {
			book = &looped{}
		}
		if loop.Runs != loop.State {
			c.broken("C3", "%s has committed %d runs, and its state is that after %d", name, loop.Runs, loop.State)
		}
		if loop.Runs < book.seen {
			c.lost("O7", int(book.seen-loop.Runs), "%s has committed %d runs, and a caller was told of %d", name, loop.Runs, book.seen)
		}
		for n := range book.runs {
			if n > loop.Runs+1 {
				c.lost("O7", 1, "%s has begun run %d, and has committed %d", name, n, loop.Runs)
			}
		}
		for n := uint64(1); n <= loop.Runs; n++ {
			if book.runs[n] == 0 {
				c.broken("C3", "run %d of %s is committed, and has left no effect", n, name)
				break
			}
			c.tallied("O7", "a run of "+name, book.keys[n])
		}
		c.status(name, book, loop)
	})
}

// status checks that a pause or a resume that was answered is stored. A run that
// executes ends before the pause begins.
func (c *check) status(name string, book *looped, loop Loop) {
	paused := loop.Status == "paused"
	switch {
	case c.Several: // the order of the answers is not known
	case book.is == Pause && !paused && loop.Status != "executing",
		book.is == Resume && paused:
		c.lost("O7", 1, "%s of %s was answered, and the status stored is %s", book.is, name, loop.Status)
	}
	if loop.Status == "failed" {
		c.broken("R4", "%s has failed", name)
	}
}
