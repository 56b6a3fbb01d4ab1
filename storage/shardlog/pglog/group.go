package pglog

import "encoding/binary"

// group is the parameters of one append statement, in PostgreSQL's binary form of arrays: the payloads are copied into it once. Its
// buffers are used again.
type group struct {
	id, term, at, before, chain, payload array
	values                               [][]byte
}

// array is one array of the statement.
type array struct {
	buf []byte
	n   uint32
}

// OIDs of the types of elements, which never change.
const (
	oidBytea = 17
	oidInt8  = 20
	oidInt4  = 23
)

// arrayHeader is the bytes before the first element: number of dimensions, whether there are nulls, type, length and first index.
const arrayHeader = 20

// keptBytes is the largest buffer that is used again, so that one large record does not take its room for ever.
const keptBytes = 2 * groupBytes

func (a *array) begin(oid uint32) {
	if cap(a.buf) > keptBytes {
		a.buf = nil
	}
	a.buf, a.n = a.buf[:0], 0
	for _, word := range [arrayHeader / 4]uint32{1, 0, oid, 0, 1} {
		a.buf = binary.BigEndian.AppendUint32(a.buf, word)
	}
}

func (a *array) int4(v int32) {
	a.n++
	a.buf = binary.BigEndian.AppendUint32(a.buf, 4)
	a.buf = binary.BigEndian.AppendUint32(a.buf, uint32(v))
}

func (a *array) int8(v uint64) {
	a.n++
	a.buf = binary.BigEndian.AppendUint32(a.buf, 8)
	a.buf = binary.BigEndian.AppendUint64(a.buf, v)
}

func (a *array) bytes(v []byte) {
	a.n++
	a.buf = binary.BigEndian.AppendUint32(a.buf, uint32(len(v)))
	a.buf = append(a.buf, v...)
}

// value is the array in its binary form, valid until begin.
func (a *array) value() []byte {
	const atLength = 12
	binary.BigEndian.PutUint32(a.buf[atLength:], a.n)
	return a.buf
}

// fill takes the records of requests, but for those that have left.
func (g *group) fill(batch []*request) {
	g.id.begin(oidInt4)
	g.payload.begin(oidBytea)
	for _, a := range []*array{&g.term, &g.at, &g.before, &g.chain} {
		a.begin(oidInt8)
	}
	for _, q := range batch {
		g.add(q)
	}
	g.values = append(g.values[:0], g.id.value(), g.term.value(), g.at.value(), g.before.value(), g.chain.value(), g.payload.value())
}

func (g *group) add(q *request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.left {
		return
	}
	g.id.int4(q.shard)
	g.term.int8(q.r.Term)
	g.at.int8(uint64(q.r.At))
	g.before.int8(q.before)
	g.chain.int8(q.r.Chain)
	g.payload.bytes(q.r.Payload)
}
