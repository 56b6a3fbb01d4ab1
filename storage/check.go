package storage

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// Check reads the whole store and returns the first row that contradicts
// another: an object row or open mark without a header, two objects with one
// number, an alarm row without exactly one index entry or the reverse (A1), a
// mark or event that the expiry index does not know, a mark that it removes too
// early, or a row that cannot be
// read. It reads the store as it is while commits go on, so it is meant for a
// store at rest.
func (s *Store) Check() error {
	for shard := range s.shards {
		c := checker{store: s, shard: shard, objects: make(map[Number]ID), alarms: make(map[Number]bool)}
		if err := c.check(); err != nil {
			return fmt.Errorf("storage: check: shard %d: %w", shard, err)
		}
	}
	return nil
}

// checker checks one shard. The kinds are read in an order in which each finds
// what it refers to.
type checker struct {
	store   *Store
	shard   int
	objects map[Number]ID
	alarms  map[Number]bool // whether the alarm row's index entry was found

	expiring []byte // the entry of the expiry index that was looked up last
}

func (c *checker) check() error {
	for _, step := range []struct {
		kind  byte
		check func(key, value []byte) error
	}{
		{kindHeader, c.header},
		{kindRow, c.row},
		{kindIndex, c.index},
		{kindOpen, c.open},
		{kindExpiry, c.expiry},
		{kindEvent, c.event},
		{kindDead, c.dead},
	} {
		if err := c.store.scan(c.shard, step.kind, nil, step.check); err != nil {
			return err
		}
	}
	for n, found := range c.alarms {
		if !found {
			return fmt.Errorf("the alarm row of %s has no index entry", c.objects[n])
		}
	}
	return c.unknown()
}

func (c *checker) header(key, value []byte) error {
	id, err := decodeHeaderKey(key)
	if err != nil {
		return err
	}
	h, err := decodeHeader(value)
	if err != nil {
		return err
	}
	if other, ok := c.objects[h.number]; ok {
		return fmt.Errorf("%s and %s share number %d", id, other, h.number)
	}
	if c.store.ShardOf(id) != c.shard {
		return fmt.Errorf("%s lies in a shard that is not its own", id)
	}
	c.objects[h.number] = id
	return nil
}

func (c *checker) row(key, value []byte) error {
	if len(key) < 9 {
		return errKey(key)
	}
	n := Number(binary.BigEndian.Uint64(key))
	if _, ok := c.objects[n]; !ok {
		return fmt.Errorf("a row of object number %d, which has no header", n)
	}
	switch key[8] {
	case subAlarm:
		c.alarms[n] = false
	case subMark:
		return c.mark(key, value)
	}
	return nil
}

func (c *checker) index(key, _ []byte) error {
	if len(key) != 16 {
		return errKey(key)
	}
	n := Number(binary.BigEndian.Uint64(key[8:]))
	switch found, ok := c.alarms[n]; {
	case !ok:
		return fmt.Errorf("an alarm index entry of %s (object number %d) without an alarm row", c.objects[n], n)
	case found:
		return fmt.Errorf("a second alarm index entry of %s", c.objects[n])
	}
	c.alarms[n] = true
	return nil
}

func (c *checker) open(key, _ []byte) error {
	if len(key) != 8 {
		return errKey(key)
	}
	n := Number(binary.BigEndian.Uint64(key))
	if _, ok := c.objects[n]; !ok {
		return fmt.Errorf("an open-execution mark of object number %d, which has no header", n)
	}
	return nil
}

func (c *checker) expiry(key, value []byte) error {
	_, _, err := splitExpiry(c.shard, key)
	if err == nil && len(value) > 0 {
		_, err = decodeHeaderKey(value)
	}
	return err
}

func (c *checker) event(key, value []byte) error {
	if _, _, err := decodeNamed(key); err != nil {
		return err
	}
	at, _, err := splitExpiring(value)
	if err != nil {
		return err
	}
	return c.expires(at, kindEvent, key)
}

func (c *checker) dead(key, _ []byte) error {
	_, _, err := decodeNamed(key)
	return err
}

// mark checks a mark, whose bucket the expiry index must know.
func (c *checker) mark(key, value []byte) error {
	if len(key) < 9+8 {
		return errKey(key)
	}
	removal := int64(binary.BigEndian.Uint64(key[9:]))
	expires, _, err := splitExpiring(value)
	switch {
	case err != nil:
		return err
	case expires > removal:
		return fmt.Errorf("the mark %x is removed before it expires", key)
	}
	return c.expires(removal, kindRow, key[:9+8])
}

// expires checks that the expiry index knows the rows of the kind whose keys begin
// with begins.
func (c *checker) expires(at int64, kind byte, begins []byte) error {
	entry := expiryKey(nil, c.shard, at, append([]byte{kind}, begins...))
	if bytes.Equal(entry, c.expiring) { // the next mark of a bucket
		return nil
	}
	_, ok, err := c.store.get(entry)
	if err == nil && !ok {
		err = fmt.Errorf("the row %x of kind %d never expires", begins, kind)
	}
	c.expiring = entry
	return err
}

// unknown looks for rows before the first kind and after the last.
func (c *checker) unknown() error {
	shard := binary.BigEndian.AppendUint16(nil, uint16(c.shard))
	for _, bounds := range [][2][]byte{
		{shard, prefix(nil, c.shard, kindHeader)},
		{prefix(nil, c.shard, kindEnd), after(shard)},
	} {
		it, err := c.store.iter(nil, bounds[0], bounds[1], false, 0)
		if err != nil {
			return err
		}
		if it.Next() {
			err = errKey(it.Key())
		}
		if closeErr := it.Close(); err == nil {
			err = closeErr
		}
		if err != nil {
			return err
		}
	}
	return nil
}
