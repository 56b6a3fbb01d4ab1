package alarm

// fair holds the due nodes: a queue per class, served in turn.
type fair struct {
	byClass map[string]*queue
	ring    []*queue // the queues that are not empty
	turn    int      // the index in ring of the class that is next
	len     int
}

// queue holds the due nodes of one class, the first to become due first.
type queue struct {
	class      string
	head, tail *node
}

func (f *fair) push(n *node) {
	q := f.byClass[n.Class]
	if q == nil {
		q = &queue{class: n.Class}
		if f.byClass == nil {
			f.byClass = make(map[string]*queue)
		}
		f.byClass[n.Class] = q
	}
	n.in, n.prev, n.succ = queued, q.tail, nil
	if q.tail == nil {
		q.head = n
		f.ring = append(f.ring, q)
	} else {
		q.tail.succ = n
	}
	q.tail = n
	f.len++
}

// pop takes the first node of the class that is next. There must be one.
func (f *fair) pop() *node {
	q := f.ring[f.turn]
	n := q.head
	served := len(f.ring)
	f.remove(n)
	if len(f.ring) == served { // otherwise the next queue has moved into the turn
		f.turn++
	}
	if f.turn >= len(f.ring) {
		f.turn = 0
	}
	return n
}

// remove takes a queued node out of its queue.
func (f *fair) remove(n *node) {
	q := f.byClass[n.Class]
	if n.prev == nil {
		q.head = n.succ
	} else {
		n.prev.succ = n.succ
	}
	if n.succ == nil {
		q.tail = n.prev
	} else {
		n.succ.prev = n.prev
	}
	n.in, n.prev, n.succ = nowhere, nil, nil
	f.len--
	if q.head == nil {
		f.drop(q)
	}
}

// drop takes an empty queue out of the ring; the turn stays with the same queue,
// or goes to the one after it.
func (f *fair) drop(q *queue) {
	for i := range f.ring {
		if f.ring[i] != q {
			continue
		}
		f.ring = append(f.ring[:i], f.ring[i+1:]...)
		if i < f.turn {
			f.turn--
		}
		if f.turn >= len(f.ring) {
			f.turn = 0
		}
		return
	}
}

// oldest is the earliest time at the head of a queue, if there is one.
func (f *fair) oldest() (at int64, ok bool) {
	for _, q := range f.ring {
		if !ok || q.head.pos.at < at {
			at, ok = q.head.pos.at, true
		}
	}
	return at, ok
}
