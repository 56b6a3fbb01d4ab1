package storage

// NamedBy returns the object that the key of a row names, as far as the key alone tells: that of a header, an event, a dead letter, a
// message or a label. ok is false for the other keys, which have the number of an object or none, and for those of ranges that no row has. For
// example, an operator sees with it which objects the records of a log are about.
func NamedBy(key []byte) (id ID, ok bool) {
	if len(key) < 3 || key[0] == metaShard>>8 && key[1] == metaShard&0xff {
		return id, false
	}
	var c checker
	switch kind := key[2]; kind {
	case kindHeader, kindEvent, kindDead, kindMessage, kindLabel:
		id = c.objectOf(kind, key[3:])
	}
	return id, id.Validate() == nil
}
