package workerpool

import (
	"encoding/binary"
	"encoding/json"
	"fmt"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/storage"
)

// row is a task as it is stored. While it is pending or running it lies under
// taskKey, and whether it runs is known by its open execution alone. Times are in
// nanoseconds since 1970, 0 for none.
//
//	version 1 · state · uvarint order · varint priority · varint notBefore
//	varint enqueued · varint ended · varint attempts · key · queue · input · output · rare
//
// where the last five are bytes with their length before them, and rare is empty
// or the JSON of the struct of that name, where new fields go.
type row struct {
	num       uint64 // not stored: it is in the key
	state     State
	order     uint64 // place among tasks; num, or later if it was replayed
	priority  int
	notBefore int64
	enqueued  int64
	ended     int64
	key       string
	queue     string
	attempts  int    // of a task that is done
	input     []byte // dropped when it is done or cancelled
	output    []byte
	rare      rare
}

// rare is what most tasks never have.
type rare struct {
	Run        jobs.Run    `json:"run,omitzero"` // after the last attempt that failed
	Failures   []Failure   `json:"failures,omitempty"`
	Cancelling bool        `json:"cancelling,omitempty"`
	Reason     jobs.Reason `json:"reason,omitempty"`
	Stack      string      `json:"stack,omitempty"`  // of the last failure if it was a panic
	Unique     string      `json:"unique,omitempty"` // held until the task ends, and again if it is replayed
}

func (x *rare) empty() bool {
	return x.Run == (jobs.Run{}) && len(x.Failures) == 0 && !x.Cancelling && x.Reason == "" && x.Stack == "" && x.Unique == ""
}

const rowVersion = 1

// size is about how many bytes r takes when one more attempt has failed.
func (r *row) size() int {
	n := len(r.key) + len(r.queue) + 2*len(r.rare.Unique) + len(r.input) + len(r.output) + len(r.rare.Stack)
	for _, f := range r.rare.Failures {
		n += len(f.Error)
	}
	return n
}

// append adds r as it is stored to b.
func (r *row) append(b []byte) ([]byte, error) {
	b = append(b, rowVersion, byte(r.state))
	b = binary.AppendUvarint(b, r.order)
	for _, v := range [...]int64{int64(r.priority), r.notBefore, r.enqueued, r.ended, int64(r.attempts)} {
		b = binary.AppendVarint(b, v)
	}
	b = appendBytes(b, r.key)
	b = appendBytes(b, r.queue)
	b = appendBytes(b, r.input)
	b = appendBytes(b, r.output)
	var extra []byte
	if !r.rare.empty() {
		var err error
		if extra, err = json.Marshal(&r.rare); err != nil {
			return nil, err
		}
	}
	return appendBytes(b, extra), nil
}

func decodeRow(num uint64, b []byte) (*row, error) {
	d := reader{b: b}
	if v := d.byte(); v != rowVersion {
		return nil, fmt.Errorf("%w: task row version %d", storage.ErrCorrupt, v)
	}
	r := &row{num: num, state: State(d.byte()), order: d.uvarint()}
	r.priority = int(d.varint())
	r.notBefore, r.enqueued, r.ended = d.varint(), d.varint(), d.varint()
	r.attempts = int(d.varint())
	r.key, r.queue = string(d.bytes()), string(d.bytes())
	r.input, r.output = d.bytes(), d.bytes()
	if extra := d.bytes(); len(extra) > 0 && !d.bad {
		if err := json.Unmarshal(extra, &r.rare); err != nil {
			d.bad = true
		}
	}
	return r, d.end("task row")
}

// counters are the partition's own row: W1 holds in each stored value of it, and
// it is part of every batch that changes one of its terms.
//
//	version 1 · mode · flags · uvarint count of the next · uvarints: submitted,
//	pending, running, done, dead, cancelled, executions, lost, order, partitions,
//	calls · varint changed · uvarints: pass, lines · for each line: name, pass
type counters struct {
	mode       Mode
	emptyDue   bool // OnEmpty has yet to be called
	submitted  uint64
	pending    uint64
	running    uint64
	done       uint64
	dead       uint64
	cancelled  uint64
	executions uint64 // begun
	lost       uint64 // of these, lost with a process or a lease
	order      uint64 // the last one given; task numbers are orders too
	partitions uint64 // the most partitions the pool was known to have
	calls      uint64 // dead letters of which OnDead has yet to be told
	changed    int64  // when the row was last written
}

func (c *counters) numbers() [11]*uint64 {
	return [...]*uint64{&c.submitted, &c.pending, &c.running, &c.done, &c.dead, &c.cancelled, &c.executions, &c.lost, &c.order, &c.partitions, &c.calls}
}

// append adds c and the passes of ls as they are stored to b.
func (c *counters) append(b []byte, ls *lines) []byte {
	flags := byte(0)
	if c.emptyDue {
		flags = 1
	}
	b = append(b, rowVersion, byte(c.mode), flags)
	numbers := c.numbers()
	b = binary.AppendUvarint(b, uint64(len(numbers)))
	for _, n := range numbers {
		b = binary.AppendUvarint(b, *n)
	}
	b = binary.AppendVarint(b, c.changed)
	b = binary.AppendUvarint(b, ls.pass)
	b = binary.AppendUvarint(b, uint64(len(ls.all)))
	for _, l := range ls.all {
		b = appendBytes(b, l.name)
		b = binary.AppendUvarint(b, l.pass)
	}
	return b
}

// decode reads c and the passes of ls; queues that ls does not have yet are added
// with weight 1.
func (c *counters) decode(b []byte, ls *lines) error {
	d := reader{b: b}
	if v := d.byte(); v != rowVersion {
		return fmt.Errorf("%w: counters row version %d", storage.ErrCorrupt, v)
	}
	c.mode, c.emptyDue = Mode(d.byte()), d.byte() == 1
	numbers := c.numbers()
	for i, n := uint64(0), d.uvarint(); i < n && !d.bad; i++ { // an older writer had fewer
		if v := d.uvarint(); i < uint64(len(numbers)) {
			*numbers[i] = v
		}
	}
	c.changed, ls.pass = d.varint(), d.uvarint()
	for n := d.uvarint(); n > 0 && !d.bad; n-- {
		name, pass := string(d.bytes()), d.uvarint()
		ls.named(name).pass = pass
	}
	return d.end("counters row")
}

func appendBytes[T string | []byte](dst []byte, b T) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(b)))
	return append(dst, b...)
}

// reader takes fields off the front of b; after a field that is not there, bad is
// set and everything is zero.
type reader struct {
	b   []byte
	bad bool
}

func (d *reader) byte() byte {
	if len(d.b) == 0 {
		d.bad = true
		return 0
	}
	v := d.b[0]
	d.b = d.b[1:]
	return v
}

func (d *reader) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.bad, d.b = true, nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *reader) varint() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.bad, d.b = true, nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *reader) bytes() []byte {
	n := d.uvarint()
	if n > uint64(len(d.b)) {
		d.bad, d.b = true, nil
		return nil
	}
	v := d.b[:n:n]
	d.b = d.b[n:]
	return v
}

// end returns an error if the fields were not exactly b.
func (d *reader) end(what string) error {
	if d.bad || len(d.b) > 0 {
		return fmt.Errorf("%w: %s", storage.ErrCorrupt, what)
	}
	return nil
}
