package alarm

// place says where a node is.
type place uint8

const (
	nowhere  place = iota // given as the next of a flying node, or free
	waiting               // in the timeline, until it is due
	queued                // in the queue of its class, until there is a slot
	inFlight              // handed to Fire, until Done
)

// node is an entry in memory. Nodes are reused.
type node struct {
	Entry
	pos  pos // of Entry
	in   place
	slot int // index in the timeline while waiting

	prev, succ *node // neighbours in a queue while queued; succ links free nodes
	next       *node // while in flight: the entry that was set meanwhile, or nil
	changed    bool  // while in flight: a Set or Clear has been reported
}

// before orders nodes by (due, object, shard), so that no two are equal.
func (n *node) before(m *node) bool {
	if c := n.pos.compare(m.pos); c != 0 {
		return c < 0
	}
	return n.Shard < m.Shard
}

// timeline is a min-heap of the waiting nodes in which each knows its slot.
//
//	timeline[(i-1)/2] before timeline[i], timeline[i].slot == i
type timeline []*node

func (t *timeline) push(n *node) {
	n.in, n.slot = waiting, len(*t)
	*t = append(*t, n)
	t.up(n.slot)
}

// remove takes out a node of the timeline.
func (t *timeline) remove(n *node) {
	h, i, last := *t, n.slot, len(*t)-1
	h[i] = h[last]
	h[i].slot = i
	*t = h[:last] // the node stays in memory anyway, because nodes are reused
	if i < last {
		t.fix(i)
	}
	n.in = nowhere
}

// fix restores the order after the node in slot i has got another position.
func (t *timeline) fix(i int) {
	if !t.down(i) {
		t.up(i)
	}
}

func (t timeline) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !t[i].before(t[parent]) {
			return
		}
		t.swap(i, parent)
		i = parent
	}
}

func (t timeline) down(i int) (moved bool) {
	for {
		child := 2*i + 1
		if child >= len(t) {
			return moved
		}
		if r := child + 1; r < len(t) && t[r].before(t[child]) {
			child = r
		}
		if !t[child].before(t[i]) {
			return moved
		}
		t.swap(i, child)
		i, moved = child, true
	}
}

func (t timeline) swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].slot, t[j].slot = i, j
}
