package workerpool

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"

	"github.com/holdfast-dev/holdfast/alarm"
	codec "github.com/holdfast-dev/holdfast/internal/row"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/storage"
)

// Keys of a partition. Numbers are 8 bytes, big-endian.
//
//	c                             counters
//	t/ number                     a pending or running task
//	r/ name length, queue, place  a ready task: its number
//	w/ place                      a task that waits for a time: its number
//	k/ key length, key, order     a task with a key that has not ended: 0 or 1, its number
//	z/ number                     a dead letter
//	u/ key                        the task that holds a unique key: its number
//	p/ number                     the phases of a task that has begun one: phaseRow, JSON
//	p/ number, index (2 bytes)    the result of a phase
//	v                             versions of stored inputs, if not empty: engine.Versions by number
//	d/ step, place                a dead letter, by its step under the Retention: its number
//	h/ number                     a dead letter with a call of OnDead to be made: its run, JSON
//	h/ number, hook               the same with a call of OnStale (1) or OnDelete (2)
//	o                             a call of OnEmpty to be repeated: its run, JSON
//
// A pending task has a row in r/ or in w/, unless it waits for earlier tasks of
// its key; then it has only its row in k/, with a 0. A running task has a row
// in neither. The engine's keys begin with x/. Expiring rows (State.Mark): e/
// number is a task that is done or cancelled, i/ key is an idempotency key.
const (
	countersKey  = "c"
	taskPrefix   = "t/"
	readyPrefix  = "r/"
	waitPrefix   = "w/"
	chainPrefix  = "k/"
	deadPrefix   = "z/"
	callPrefix   = "h/"
	phasePrefix  = "p/"
	emptyKey     = "o"
	uniquePrefix = "u/"
	versionsKey  = "v"

	outcomePrefix = "e/"
	oncePrefix    = "i/"
)

// row is a task as it is stored. A pending or running task is stored under
// taskKey. The row does not say which of the two it is: a running task has an
// open execution. So a task that begins needs no new row. Times are nanoseconds
// since 1970, 0 for none.
//
//	version 1 · state · uvarint order · varint priority · varint notBefore
//	varint enqueued · varint ended · varint attempts · key · queue · input · output · rare
//	uvarint letter
//
// The last five before letter are bytes preceded by their length. rare is empty
// or the JSON of the struct of that name, which takes new fields. letter is left
// out if it is 0.
type row struct {
	num       uint64 // not stored: it is in the key
	state     State
	attempts  int32  // only of a done task
	order     uint64 // position among tasks: num, or a later one after a replay
	priority  int
	notBefore int64
	enqueued  int64
	endedAt   int64
	key       string
	queue     string
	input     []byte // removed when the task is done or cancelled
	output    []byte
	rare      rare
	letter    uint64 // of a dead task: the number of its letter in Host.DeadLetters; 0 in stores of before
}

// rare has the properties that most tasks never have, so that most rows stay
// short.
type rare struct {
	Run        jobs.Run    `json:"run,omitzero"` // progress after the last failed attempt
	Failures   []Failure   `json:"failures,omitempty"`
	Cancelling bool        `json:"cancelling,omitempty"` // Cancel was called while the task was running
	Stale      bool        `json:"stale,omitempty"`      // of a dead task: goStale was there
	Reason     jobs.Reason `json:"reason,omitempty"`
	Stack      string      `json:"stack,omitempty"`  // of the last failure if that was a panic
	Unique     string      `json:"unique,omitempty"` // released when the task ends; taken again by a replay
	// Phases is only of a done or cancelled task, whose phase rows are gone. It and Webhook are
	// pointers, because a row has room for no more without a larger allocation.
	Phases  *[]PhaseStatus `json:"phases,omitempty"`
	Webhook *string        `json:"webhook,omitempty"` // the URL that takes the outcome
}

// empty reports whether x need not be stored.
func (x *rare) empty() bool {
	return x.Run == (jobs.Run{}) && len(x.Failures) == 0 && !x.Cancelling && x.Reason == "" && x.Stack == "" && x.Unique == "" && x.Webhook == nil && !x.Stale && x.Phases == nil
}

const rowVersion = 1

// size estimates the bytes of r after one more failed attempt. The engine and
// the pages of dead letters use it to bound a batch.
func (r *row) size() int {
	n := len(r.key) + len(r.queue) + 2*len(r.rare.Unique) + 2*len(r.url()) + len(r.input) + len(r.output) + len(r.rare.Stack)
	for _, f := range r.rare.Failures {
		n += len(f.Error)
	}
	return n
}

// append appends the stored form of r to b.
func (r *row) append(b []byte) ([]byte, error) {
	w := codec.Writer(b)
	w = w.Byte(rowVersion)
	w = w.Byte(byte(r.state))
	w = w.Uint(r.order)
	for _, v := range [...]int64{int64(r.priority), r.notBefore, r.enqueued, r.endedAt, int64(r.attempts)} {
		w = w.Int(v)
	}
	w = w.Text(r.key)
	w = w.Text(r.queue)
	w = w.Bytes(r.input)
	w = w.Bytes(r.output)
	var extra []byte
	if !r.rare.empty() {
		var err error
		if extra, err = json.Marshal(&r.rare); err != nil {
			return nil, err
		}
	}
	w = w.Bytes(extra)
	if r.letter != 0 {
		w = w.Uint(r.letter)
	}
	return w, nil
}

// decodeRow is the inverse of append. Its error is a storage.ErrCorrupt. input
// and output share memory with b.
func decodeRow(num uint64, b []byte) (*row, error) {
	d := codec.Read(b)
	if v := d.Byte(); v != rowVersion {
		return nil, fmt.Errorf("%w: task row version %d", storage.ErrCorrupt, v)
	}
	r := &row{num: num, state: State(d.Byte()), order: d.Uint()}
	r.priority = int(d.Int())
	r.notBefore, r.enqueued, r.endedAt = d.Int(), d.Int(), d.Int()
	r.attempts = int32(d.Int())
	r.key, r.queue = d.Text(), d.Text()
	r.input, r.output = d.Bytes(), d.Bytes()
	if extra := d.Bytes(); len(extra) > 0 {
		if err := json.Unmarshal(extra, &r.rare); err != nil {
			d.Fail()
		}
	}
	d.Required()
	r.letter = d.Uint()
	return r, tail(&d, "task row")
}

// counters is the one row with the counts of the partition. Each batch that
// changes a count contains the row, so that W1 holds in every stored state.
//
//	version 1 · mode · flags · uvarint count of the next · uvarints: submitted,
//	pending, running, done, dead, cancelled, executions, lost, order, partitions,
//	calls, buried, phased, whole (the last three left out while they are 0) · varint changed
//	uvarints: pass, lines · for each line: name, pass
type counters struct {
	mode       Mode
	emptyDue   bool // a call of OnEmpty is still to be made
	submitted  uint64
	pending    uint64
	running    uint64
	done       uint64
	dead       uint64
	cancelled  uint64
	executions uint64 // attempts begun
	lost       uint64 // attempts cut off with a process or a lease
	order      uint64 // the last one given; a task number is the order of its submission
	partitions uint64 // the most partitions the pool ever had, as far as known here
	calls      uint64 // hook rows: dead letters with a call of OnDead still to be made
	buried     uint64 // dead tasks with a letter in Host.DeadLetters; fewer than dead in a store of before letters
	phased     uint64 // tasks with phase rows: while there are none, no task looks for its own
	whole      uint64 // 1: each dead letter is in the index of the Retention
	changed    int64  // when the row was last written, in nanoseconds
}

// numbers lists the counters in their stored order. New ones go to the end.
func (c *counters) numbers() [14]*uint64 {
	return [...]*uint64{&c.submitted, &c.pending, &c.running, &c.done, &c.dead, &c.cancelled, &c.executions, &c.lost, &c.order, &c.partitions, &c.calls, &c.buried, &c.phased, &c.whole}
}

// numbersKept is how many of the numbers are stored even if they are 0, because each
// version of this package has written them.
const numbersKept = 11

// append appends the stored form of c and of the virtual times in ls to b.
func (c *counters) append(b []byte, ls *lines) []byte {
	flags := byte(0)
	if c.emptyDue {
		flags = 1
	}
	w := codec.Writer(append(b, rowVersion, byte(c.mode), flags))
	all := c.numbers()
	numbers := all[:]
	for n := len(numbers); n > numbersKept && *numbers[n-1] == 0; n-- {
		numbers = numbers[:n-1]
	}
	w = w.Uint(uint64(len(numbers)))
	for _, n := range numbers {
		w = w.Uint(*n)
	}
	w = w.Int(c.changed)
	w = w.Uint(ls.pass)
	w = w.Uint(uint64(len(ls.all)))
	for _, l := range ls.all {
		w = w.Text(l.name)
		w = w.Uint(l.pass)
	}
	return w
}

// decode is the inverse of append. It adds queues that ls lacks with weight 1.
func (c *counters) decode(b []byte, ls *lines) error {
	d := codec.Read(b)
	if v := d.Byte(); v != rowVersion {
		return fmt.Errorf("%w: counters row version %d", storage.ErrCorrupt, v)
	}
	c.mode, c.emptyDue = Mode(d.Byte()), d.Byte() == 1
	numbers := c.numbers()
	for i, n := uint64(0), d.Uint(); i < n && d.OK(); i++ { // an older version of this package wrote fewer
		v := d.Uint()
		if d.Required(); i < uint64(len(numbers)) {
			*numbers[i] = v
		}
	}
	c.changed, ls.pass = d.Int(), d.Uint()
	for n := d.Uint(); n > 0 && d.OK(); n-- {
		name, pass := d.Text(), d.Uint()
		d.Required() // or a damaged count would not end the loop
		ls.named(name).pass = pass
	}
	return end(&d, "counters row")
}

// end returns a storage.ErrCorrupt unless the fields read were exactly the row.
func end(d *codec.Reader, kind string) error {
	d.Required()
	return tail(d, kind)
}

// tail is end for a row with last fields that may be left out.
func tail(d *codec.Reader, kind string) error {
	d.End()
	if !d.OK() {
		return fmt.Errorf("%w: %s", storage.ErrCorrupt, kind)
	}
	return nil
}

// task reads a pending or running task. It reports false if there is none.
func (p *partition) task(ctx context.Context, num uint64) (*row, bool, error) {
	b, ok, err := p.st.Storage().Get(ctx, taskKey(num))
	if err != nil || !ok {
		return nil, false, err
	}
	r, err := decodeRow(num, b)
	return r, true, err
}

// mustTask reads a task that an index row names. A missing task is corruption.
func (p *partition) mustTask(ctx context.Context, num uint64) (*row, error) {
	r, ok, err := p.task(ctx, num)
	if err == nil && !ok {
		err = fmt.Errorf("%w: task %s is queued and not stored", storage.ErrCorrupt, p.id(num))
	}
	return r, err
}

// put stores the row of a task.
func (p *partition) put(ctx context.Context, key string, r *row) error {
	var room [256]byte // most rows fit, so that most calls allocate nothing
	b, err := p.encoded(room[:0], r)
	if err != nil {
		return err
	}
	return p.st.Storage().PutBytes(ctx, key, b)
}

// encoded appends the stored form of r to b. If that exceeds MaxValueBytes, r
// loses some of its failures, because a task that cannot be stored could never
// end.
func (p *partition) encoded(b []byte, r *row) ([]byte, error) {
	full, err := r.append(b)
	for err == nil && len(full) > p.st.Driver().MaxValueBytes() && r.rare.shrink() {
		full, err = r.append(b)
	}
	return full, err
}

// shrink removes some of the failures, the middle ones first. It reports false
// if nothing is left to remove.
func (x *rare) shrink() bool {
	switch n := len(x.Failures); {
	case n > 1:
		kept := append([]Failure(nil), x.Failures[:n/4]...)
		x.Failures = append(kept, x.Failures[n-max(n/4, 1):]...)
	case n == 1 && x.Failures[0].Error != "":
		f := x.Failures[0]
		f.Error = alarm.Cut(f.Error, len(f.Error)/4)
		x.Failures, x.Run.LastError = []Failure{f}, alarm.Cut(x.Run.LastError, len(f.Error))
	case n == 1:
		x.Failures = nil
	default:
		return false
	}
	return true
}

// numbered appends a number to a prefix.
func numbered(prefix string, n uint64) string {
	return string(binary.BigEndian.AppendUint64([]byte(prefix), n))
}

func taskKey(num uint64) string { return numbered(taskPrefix, num) }
func deadKey(num uint64) string { return numbered(deadPrefix, num) }

// numberOf reads the number in the last 8 bytes of a key.
func numberOf(key string) (uint64, error) {
	if len(key) < 8 {
		return 0, fmt.Errorf("%w: key %q", storage.ErrCorrupt, key)
	}
	return binary.BigEndian.Uint64([]byte(key[len(key)-8:])), nil
}

// placed appends a place to a prefix.
func placed(prefix []byte, p place) string {
	b := binary.BigEndian.AppendUint64(prefix, p.major)
	return string(binary.BigEndian.AppendUint64(b, p.order))
}

// placeOf reads the place in the last 16 bytes of a key.
func placeOf(key string) (place, error) {
	if len(key) < 16 {
		return place{}, fmt.Errorf("%w: key %q", storage.ErrCorrupt, key)
	}
	b := []byte(key[len(key)-16:])
	return place{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])}, nil
}

// linePrefix is the prefix of the ready tasks of a queue. It has room for a
// place behind it, so that readyKey allocates once.
func linePrefix(queue string) []byte {
	b := make([]byte, 0, len(readyPrefix)+1+len(queue)+16)
	return append(append(append(b, readyPrefix...), byte(len(queue))), queue...)
}

func readyKey(queue string, p place) string { return placed(linePrefix(queue), p) }
func waitKey(p place) string                { return placed([]byte(waitPrefix), p) }

// chainOf is the prefix of the chain of a key.
func chainOf(key string) []byte {
	b := make([]byte, 0, len(chainPrefix)+2+len(key)+8)
	return codec.Writer(append(b, chainPrefix...)).Text(key)
}

func chainKey(key string, order uint64) string { return numbered(string(chainOf(key)), order) }

// readyPlace is the place of a task in its queue: higher priorities first, then
// by order.
func readyPlace(priority int, order uint64) place {
	return place{uint64(maxPriority - priority), order}
}

// waitPlace is the place of a task among those that wait for a time: earlier
// times first.
func waitPlace(at int64, order uint64) place { return place{uint64(max(at, 0)), order} }

// encodeNumber makes the value of an index row.
func encodeNumber(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// decodeNumber reads the value of an index row.
func decodeNumber(b []byte) (uint64, error) {
	if len(b) != 8 {
		return 0, fmt.Errorf("%w: number %x", storage.ErrCorrupt, b)
	}
	return binary.BigEndian.Uint64(b), nil
}
