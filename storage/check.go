package storage

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/seam"
)

// Check reads the whole store and returns the first row that contradicts another: an object
// row or open mark without a header, two objects with one number, an alarm row without
// exactly one index entry or the reverse (A1), a mark or event that the expiry index does not
// know, a mark that it removes too early, a header with a label that has no row or the reverse
// (S11), a state without a message, a message with a time without exactly one entry in the
// index by time or the reverse (S12), a row of the feed that should be gone (S16), or a row that cannot be read. Its memory grows with the
// number of objects. It reads the store as it is while commits go on, so it is meant for a
// store at rest. Verify goes on after the first contradiction.
func (s *Store) Check() error {
	return s.CheckRows(context.Background(), func(_ ID, err error) error { return err })
}

// CheckRows is Check for each row that contradicts another: it calls found with that and with the
// object of the row, if it is known. An error of found, or the end of ctx, ends the check.
func (s *Store) CheckRows(ctx context.Context, found func(ID, error) error) error {
	unfinished, err := s.unfinished()
	if err != nil {
		return fmt.Errorf("storage: check: %w", err)
	}
	for shard := range s.shards {
		if err := s.checkShard(ctx, shard, unfinished, found); err != nil {
			return err
		}
	}
	return s.checkedFeed(found)
}

// checkShardsAtOnce is CheckRows over several shards at a time. found is called as CheckRows calls it: by the
// caller's goroutine, shard by shard. A shard with more contradictions than Verify tells of is not read to its end.
func (s *Store) checkShardsAtOnce(ctx context.Context, found func(ID, error) error) error {
	type contradiction struct {
		id  ID
		err error
	}
	type checked struct {
		told []contradiction
		err  error // that ended the check of the shard behind them
	}
	unfinished, err := s.unfinished()
	if err != nil {
		return fmt.Errorf("storage: check: %w", err)
	}
	err = seam.Ordered(s.seams, "check", s.shards, func(shard int) (c checked, _ error) {
		c.err = s.checkShard(ctx, shard, unfinished, func(id ID, err error) error {
			c.told = append(c.told, contradiction{id, err})
			if len(c.told) > MaxFindings {
				return ErrManyFindings
			}
			return nil
		})
		return c, nil
	}, func(shard int, c checked) error {
		for _, t := range c.told {
			if err := found(t.id, t.err); err != nil {
				return errShard(shard, err)
			}
		}
		return c.err
	})
	if err != nil {
		return err
	}
	return s.checkedFeed(found)
}

// checkShard checks one shard.
func (s *Store) checkShard(ctx context.Context, shard int, unfinished []Object, found func(ID, error) error) error {
	c := checker{
		ctx: ctx, store: s, shard: shard, found: found, objects: make(map[Number]ID), alarms: make(map[Number]bool),
		labels: make(map[ID]Label), laters: make(map[LaterMessage]bool),
	}
	for _, o := range unfinished {
		if o.Shard == shard {
			c.objects[o.Number] = ID{} // the next opening removes its rows
		}
	}
	if err := c.check(); err != nil {
		return errShard(shard, err)
	}
	return nil
}

func errShard(shard int, err error) error {
	return fmt.Errorf("storage: check: shard %d: %w", shard, err)
}

// checkedFeed checks the feed.
func (s *Store) checkedFeed(found func(ID, error) error) error {
	if err := s.checkFeed(found); err != nil {
		return fmt.Errorf("storage: check: feed: %w", err)
	}
	return nil
}

// checker checks one shard. It keeps the number of each object in memory, about 100
// bytes for each. The kinds are read in an order in which each finds
// the rows that it refers to.
type checker struct {
	ctx     context.Context
	store   *Store
	shard   int
	found   func(ID, error) error // is told of each contradiction
	objects map[Number]ID
	alarms  map[Number]bool // whether the alarm row's index entry was found
	labels  map[ID]Label    // of the headers whose label rows have not been found yet

	lastMessage MessageID             // of the message read last
	laters      map[LaterMessage]bool // the messages with a time whose entries have not been found yet

	expiring []byte // the entry of the expiry index that was looked up last
}

// check reads the kinds one after the other and tells of each contradiction.
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
		{kindMessage, c.message},
		{kindLater, c.later},
		{kindLabel, c.label},
	} {
		err := c.store.scanRows(c.shard, step.kind, nil, true, func(key, value []byte) error {
			if c.ctx.Err() != nil {
				return seam.Cause(c.ctx)
			}
			return c.tell(step.kind, key, step.check(key, value))
		})
		if err != nil {
			return err
		}
	}
	if err := c.lonely(); err != nil {
		return err
	}
	return c.unknown()
}

// tell tells of the contradiction of a row, if there is one. An error of the store itself ends
// the check.
func (c *checker) tell(kind byte, key []byte, err error) error {
	if err == nil || errors.Is(err, ErrStorage) {
		return err
	}
	return c.found(c.objectOf(kind, key), err)
}

// objectOf is the object that a row belongs to, as far as its key tells, or none.
func (c *checker) objectOf(kind byte, key []byte) (id ID) {
	switch kind {
	case kindHeader:
		id, _ = decodeHeaderKey(key)
	case kindRow, kindOpen:
		id = c.objects[numberAt(key, 0)]
	case kindIndex:
		id = c.objects[numberAt(key, 8)]
	case kindEvent, kindDead:
		id, _, _ = decodeNamed(key)
	case kindMessage:
		m, _, _ := decodeMessageKey(c.shard, key)
		id = m.To
	case kindLabel:
		id, _, _ = decodeLabelKey(key)
	}
	return id
}

// numberAt is the object number at a place in a key, or 0 if the key is too short.
func numberAt(key []byte, at int) Number {
	if len(key) < at+8 {
		return 0
	}
	return Number(binary.BigEndian.Uint64(key[at:]))
}

// lonely tells of the rows that need another one which was not read.
func (c *checker) lonely() error {
	for n, found := range c.alarms {
		if !found {
			if err := c.found(c.objects[n], fmt.Errorf("the alarm row of %s has no index entry", c.objects[n])); err != nil {
				return err
			}
		}
	}
	for id, label := range c.labels {
		if err := c.found(id, fmt.Errorf("the label %q of %s has no row", label, id)); err != nil {
			return err
		}
	}
	for m := range c.laters {
		if err := c.found(m.To, fmt.Errorf("message %d of %s is due at a time and is not in the index by time", m.Seq, m.To)); err != nil {
			return err
		}
	}
	return nil
}

// label checks that the label of a row is that of the object's header.
func (c *checker) label(key, _ []byte) error {
	id, label, err := decodeLabelKey(key)
	if err != nil {
		return err
	}
	if c.labels[id].String() != label {
		return fmt.Errorf("a label row %q of %s, whose header has the label %q", label, id, c.labels[id])
	}
	delete(c.labels, id)
	return nil
}

// header checks a header row: no other object has its number, and it lies in its shard.
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
	if h.label != (Label{}) {
		c.labels[id] = h.label
	}
	return nil
}

// row checks that the object of a row exists, and notes its alarm.
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

// index checks that an entry of the alarm index belongs to one alarm row (A1).
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

// open checks that the object of an open-execution mark exists.
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

// expiry checks that an entry of the expiry index can be read.
func (c *checker) expiry(key, value []byte) error {
	_, _, err := splitExpiry(c.shard, key)
	if err == nil && len(value) > 0 {
		_, err = decodeHeaderKey(value)
	}
	return err
}

// event checks that an event can be read and will expire.
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

// dead checks that the key of a dead letter can be read.
func (c *checker) dead(key, _ []byte) error {
	_, _, err := decodeNamed(key)
	return err
}

// message checks that a message lies in its receiver's shard, and that a state follows its
// message. It notes the time of the message.
func (c *checker) message(key, value []byte) error {
	id, row, err := decodeMessageKey(c.shard, key)
	switch {
	case err != nil:
		return err
	case c.store.ShardOf(id.To) != c.shard:
		return fmt.Errorf("message %d of %s lies in a shard that is not its own", id.Seq, id.To)
	case row == messageValue:
		c.lastMessage = id
		return nil
	}
	m := StoredMessage{MessageID: c.lastMessage}
	if err := m.addState(id, value); err != nil {
		return err
	}
	if m.Due != 0 {
		c.laters[LaterMessage{id, m.Due}] = true
	}
	return nil
}

// later checks that an entry of the index by time belongs to the message that is due then.
func (c *checker) later(key, value []byte) error {
	m, err := decodeLater(c.shard, key, value)
	if err != nil {
		return err
	}
	if !c.laters[m] {
		return fmt.Errorf("an entry of the index by time for message %d of %s, which is not due then", m.Seq, m.To)
	}
	delete(c.laters, m)
	return nil
}

// mark checks a mark. The expiry index must know the bucket of it.
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

// expires checks that the expiry index has the entry for the rows of a kind with keys
// that begin so. Marks of one bucket follow one another, so a look at the last entry
// spares most reads.
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

// unknown looks for rows of kinds that no version of this package writes.
func (c *checker) unknown() error {
	shard := binary.BigEndian.AppendUint16(nil, uint16(c.shard))
	for _, bounds := range [][2][]byte{
		{shard, prefix(nil, c.shard, kindHeader)},
		{prefix(nil, c.shard, kindLater+1), prefix(nil, c.shard, kindLabel)},
		{prefix(nil, c.shard, kindEnd), after(shard)},
	} {
		it, err := c.store.iter(nil, bounds[0], bounds[1], false, 0)
		if err != nil {
			return err
		}
		if it.Next() {
			err = c.tell(0, nil, errKey(it.Key()))
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
