package memstore

// iterator walks an immutable tree between two bounds. It keeps no path: each
// move searches from the root.
type iterator struct {
	root         *node
	lower, upper string
	open         bool // there is no upper bound
	at           *node
}

// put moves to n, or off the keys if n is out of bounds.
func (it *iterator) put(n *node) bool {
	if n != nil && (n.key < it.lower || !it.open && n.key >= it.upper) {
		n = nil
	}
	it.at = n
	return n != nil
}

func (it *iterator) First() bool { return it.put(it.root.atLeast(it.lower)) }

func (it *iterator) Last() bool {
	if it.open {
		return it.put(it.root.last())
	}
	return it.put(it.root.below(it.upper))
}

func (it *iterator) SeekGE(key []byte) bool {
	return it.put(it.root.atLeast(max(string(key), it.lower)))
}

func (it *iterator) SeekLT(key []byte) bool {
	if !it.open && string(key) >= it.upper {
		return it.Last()
	}
	return it.put(it.root.below(string(key)))
}

func (it *iterator) SetBounds(lower, upper []byte) {
	it.lower, it.upper, it.open, it.at = string(lower), string(upper), upper == nil, nil
}

func (it *iterator) Next() bool {
	return it.at != nil && it.put(it.root.atLeast(it.at.key+"\x00"))
}

func (it *iterator) Prev() bool { return it.at != nil && it.put(it.root.below(it.at.key)) }

func (it *iterator) Valid() bool                  { return it.at != nil }
func (it *iterator) Key() []byte                  { return []byte(it.at.key) }
func (it *iterator) ValueAndErr() ([]byte, error) { return it.at.value, nil }
func (it *iterator) Error() error                 { return nil }
func (it *iterator) Close() error                 { return nil }
