package memstore

// node is the root of an immutable treap: a search tree by key that is a heap by
// priority. The priority is a hash of the key, so that the shape of a tree, like
// its content, does not depend on its history.
type node struct {
	key         string
	value       []byte
	priority    uint64
	left, right *node
}

func priority(key string) uint64 {
	h := uint64(14695981039346656037) // FNV-1a, then mixed: cheap, and the same in each run
	for i := range len(key) {
		h = (h ^ uint64(key[i])) * 1099511628211
	}
	h ^= h >> 32
	h *= 0xd6e8feb86659fd93
	return h ^ h>>32
}

func (n *node) find(key string) *node {
	for n != nil && n.key != key {
		if key < n.key {
			n = n.left
		} else {
			n = n.right
		}
	}
	return n
}

func (n *node) with(left, right *node) *node {
	c := *n
	c.left, c.right = left, right
	return &c
}

// split parts the tree into the keys below key and the others.
func (n *node) split(key string) (below, others *node) {
	if n == nil {
		return nil, nil
	}
	if n.key < key {
		l, r := n.right.split(key)
		return n.with(n.left, l), r
	}
	l, r := n.left.split(key)
	return l, n.with(r, n.right)
}

// join is the tree of all keys of a and b; those of a are the smaller ones.
func join(a, b *node) *node {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	case a.priority >= b.priority:
		return a.with(a.left, join(a.right, b))
	default:
		return b.with(join(a, b.left), b.right)
	}
}

func (n *node) set(key string, value []byte) *node {
	return n.insert(&node{key: key, value: value, priority: priority(key)})
}

func (n *node) insert(x *node) *node {
	switch {
	case n == nil:
		return x
	case n.key == x.key:
		x.left, x.right = n.left, n.right
		return x
	case n.priority < x.priority:
		x.left, x.right = n.split(x.key)
		return x
	case x.key < n.key:
		return n.with(n.left.insert(x), n.right)
	default:
		return n.with(n.left, n.right.insert(x))
	}
}

func (n *node) delete(key string) *node {
	switch {
	case n == nil:
		return nil
	case n.key == key:
		return join(n.left, n.right)
	case key < n.key:
		return n.with(n.left.delete(key), n.right)
	default:
		return n.with(n.left, n.right.delete(key))
	}
}

func (n *node) deleteRange(lower, upper string) *node {
	if lower >= upper {
		return n
	}
	below, rest := n.split(lower)
	_, above := rest.split(upper)
	return join(below, above)
}

// atLeast is the node with the smallest key that is not below key.
func (n *node) atLeast(key string) (best *node) {
	for n != nil {
		if n.key >= key {
			best, n = n, n.left
		} else {
			n = n.right
		}
	}
	return best
}

// below is the node with the greatest key below key.
func (n *node) below(key string) (best *node) {
	for n != nil {
		if n.key < key {
			best, n = n, n.right
		} else {
			n = n.left
		}
	}
	return best
}

func (n *node) last() *node {
	for n != nil && n.right != nil {
		n = n.right
	}
	return n
}
