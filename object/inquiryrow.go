package object

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/storage"
)

// The inquiry is stored in two rows of the store itself, so that a trial costs a
// short one:
//
//	suspects: version 1 | phase | uvarints: epoch, cleared, strays, trial | varint began
//	suspects/plan: version 1 | groups | charges
//
// where groups are their number and, for each, its set and its members; charges are
// their number and, for each, a subject and a count; a subject is the uvarint of its
// generation, and its class, name and key with their lengths. Numbers are uvarints.
const (
	inquiryRow     = "suspects"
	planRow        = "suspects/plan"
	inquiryVersion = 1
)

// appendHead adds the first row of q to b.
func (q *inquiry) appendHead(b []byte) []byte {
	b = append(b, inquiryVersion, byte(q.phase))
	for _, n := range [...]uint64{q.epoch, q.cleared, uint64(q.strays), uint64(q.trial)} {
		b = binary.AppendUvarint(b, n)
	}
	var began int64
	if !q.began.IsZero() {
		began = q.began.UnixNano()
	}
	return binary.AppendVarint(b, began)
}

// appendPlan adds the second row of q to b.
func (q *inquiry) appendPlan(b []byte) []byte {
	b = binary.AppendUvarint(append(b, inquiryVersion), uint64(len(q.plan)))
	for _, g := range q.plan {
		b = binary.AppendUvarint(b, uint64(g.set))
		b = binary.AppendUvarint(b, uint64(len(g.members)))
		for _, m := range g.members {
			b = m.append(b)
		}
	}
	var charges []byte
	n := uint64(0)
	for _, g := range q.plan { // in the order of the plan, so that equal inquiries have equal rows
		for _, m := range g.members {
			if c := q.charges[m]; c > 0 {
				charges, n = binary.AppendUvarint(m.append(charges), uint64(c)), n+1
			}
		}
	}
	return append(binary.AppendUvarint(b, n), charges...)
}

func (x subject) append(b []byte) []byte {
	b = binary.AppendUvarint(b, x.gen)
	for _, f := range [...]string{x.id.Class, x.id.Name, x.key} {
		b = append(binary.AppendUvarint(b, uint64(len(f))), f...)
	}
	return b
}

// readInquiry reads what the process before has left; without rows it is zero.
func readInquiry(s *storage.Store) (q inquiry, err error) {
	head, ok, err := s.Meta(inquiryRow)
	if err != nil || !ok {
		return q, err
	}
	plan, _, err := s.Meta(planRow)
	if err != nil {
		return q, err
	}
	if err := errors.Join(q.decodeHead(head), q.decodePlan(plan)); err != nil {
		return inquiry{}, err
	}
	return q, nil
}

func (q *inquiry) decodeHead(b []byte) error {
	d := inquiryReader{b: b}
	d.version()
	q.phase = phase(d.byte())
	q.epoch, q.cleared, q.strays, q.trial = d.number(), d.number(), d.count(), d.count()
	if v, n := binary.Varint(d.b); n <= 0 {
		d.bad = true
	} else if v != 0 {
		q.began = time.Unix(0, v)
	}
	return d.end("suspects row", b)
}

// decodePlan reads the second row, which is absent while there is no suspect.
func (q *inquiry) decodePlan(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	d := inquiryReader{b: b}
	d.version()
	for n := d.count(); n > 0 && !d.bad; n-- {
		g := group{set: d.count()}
		for m := d.count(); m > 0 && !d.bad; m-- {
			g.members = append(g.members, d.subject())
		}
		q.plan = append(q.plan, g)
	}
	q.charges = make(map[subject]int)
	for n := d.count(); n > 0 && !d.bad; n-- {
		x := d.subject()
		q.charges[x] = d.count()
	}
	return d.end("plan of suspects", b)
}

// inquiryReader takes fields off the front of b. After a field that is not whole
// bad is set, and all further ones are zero.
type inquiryReader struct {
	b   []byte
	bad bool
}

func (d *inquiryReader) byte() (v byte) {
	if d.bad = d.bad || len(d.b) == 0; d.bad {
		return 0
	}
	v, d.b = d.b[0], d.b[1:]
	return v
}

func (d *inquiryReader) version() {
	if d.byte() != inquiryVersion {
		d.bad = true
	}
}

func (d *inquiryReader) number() uint64 {
	v, n := binary.Uvarint(d.b)
	if d.bad = d.bad || n <= 0; d.bad {
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *inquiryReader) count() int { return int(min(d.number(), 1<<31)) }

func (d *inquiryReader) text() string {
	n := d.number()
	if d.bad = d.bad || n > uint64(len(d.b)); d.bad {
		return ""
	}
	s := string(d.b[:n])
	d.b = d.b[n:]
	return s
}

func (d *inquiryReader) subject() subject {
	x := subject{gen: d.number()}
	x.id.Class, x.id.Name, x.key = d.text(), d.text(), d.text()
	return x
}

func (d *inquiryReader) end(what string, b []byte) error {
	if d.bad {
		return fmt.Errorf("%w: %s %x", storage.ErrCorrupt, what, b)
	}
	return nil
}
