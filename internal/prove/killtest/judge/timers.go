package judge

// timed is a timer by the log. Its tokens are set one after the other, in order of
// their numbers.
type timed struct {
	maybe map[uint64]bool // tokens of calls that were not refused; true: not answered
	last  uint64          // the last one that was answered
	fires map[uint64]int  // effects by token
}

func (t *timed) begin() {
	t.maybe, t.fires = make(map[uint64]bool), make(map[uint64]int)
}

func (t *timed) acked(token uint64) {
	t.maybe[token] = false
	t.last = max(t.last, token)
}

func (b *Book) fired(l Line) {
	at(b.timers, l.On).fires[l.N]++
	if l.Key != "" {
		b.find(broken("A3", "the alarm of timer %s for token %d came %s", l.On, l.N, l.Key))
	}
}

func (c *check) timers() {
	union(c.Book.timers, c.stored.Timers, func(name string) {
		book, timer := c.Book.timers[name], c.stored.Timers[name]
		if book == nil {
			book = &timed{}
		}
		if timer.Alarm != (timer.Pending != 0) {
			c.broken("A2", "timer %s waits for token %d, and an alarm stored is %t", name, timer.Pending, timer.Alarm)
		}
		if timer.Spurious > 0 {
			c.doubled("A4", "the alarm of timer %s came %d times for no token: it fired twice", name, timer.Spurious)
		}
		for token, open := range book.maybe {
			if timer.Tokens[token] == "" && !open {
				c.lost("O7", 1, "the alarm of timer %s was set for token %d, with an answer, and is not stored", name, token)
			}
		}
		c.tokens(name, book, timer)
		if c.end && timer.Pending != 0 {
			c.broken("A3", "the alarm of timer %s for token %d has never come", name, timer.Pending)
		}
	})
}

func (c *check) tokens(name string, book *timed, timer Timer) {
	for token, state := range timer.Tokens {
		if _, ok := book.maybe[token]; !ok {
			c.broken("O6", "timer %s has token %d, but its call was refused or never made", name, token)
		}
		switch {
		case state == TokenFired && book.fires[token] == 0:
			c.broken("A4", "timer %s says that token %d has fired, and its handler has left no effect", name, token)
		case (state == TokenPending) != (token == timer.Pending):
			c.broken("O6", "token %d of timer %s is %s, and the timer waits for %d", token, name, state, timer.Pending)
		}
	}
}
