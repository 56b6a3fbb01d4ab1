// Package stored reads the objects of the killed program out of a store at rest, by the rules of FORMAT.md and with no code
// of the runtime.
package stored

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-dev/holdfast/internal/prove/killtest/judge"
	"github.com/holdfast-dev/holdfast/internal/prove/killtest/program"
	"github.com/holdfast-dev/holdfast/recovery"
	"github.com/holdfast-dev/holdfast/storage"
)

// Copy copies a closed store into memory, so that a look at it changes nothing for
// its next life. Look takes the copy.
func Copy(dir string) (vfs.FS, error) {
	mem := vfs.NewMem()
	_, err := vfs.Clone(vfs.Default, mem, dir, "/store")
	return mem, err
}

// Look reads a copy of a store and checks all of its rows. clean says that its last process has ended in order.
func Look(fsys vfs.FS) (s judge.Stored, clean bool, err error) {
	o := program.StoreOptions("/store")
	o.Pebble.FS, o.MinFreeBytes = fsys, -1
	store, err := storage.Open(o)
	if err != nil {
		return s, false, err
	}
	defer func() { err = errors.Join(err, store.Abandon()) }()
	seen, err := recovery.ScrubStore(store)
	if err != nil {
		return s, false, err
	}
	if len(seen.Findings) > 0 {
		return s, false, fmt.Errorf("%d findings in the store, the first: %s", len(seen.Findings), seen.Findings[0])
	}
	r := reader{store: store}
	s, err = r.read()
	return s, store.Previous().Clean, err
}

// reader reads the objects of the program.
type reader struct {
	store *storage.Store
	out   judge.Stored
}

func (r *reader) read() (judge.Stored, error) {
	r.out = judge.Stored{
		Counters: make(map[string]judge.Counter), Timers: make(map[string]judge.Timer), Loops: make(map[string]judge.Loop),
		Batches: make(map[string]judge.Batch), Pools: make(map[string]judge.Pool), Tasks: make(map[string]judge.Task),
	}
	for class, f := range map[string]func(storage.Object, map[string][]byte) error{
		program.CounterClass: r.counter, program.TimerClass: r.timer, program.LoopClass: r.loop,
		program.BatchClass: r.batch, program.PoolClass: r.partition, program.TrayClass: r.partition,
	} {
		var bad error
		err := r.store.Objects(class, "", func(o storage.Object) bool {
			var rows map[string][]byte
			if rows, bad = r.rows(o); bad == nil {
				bad = f(o, rows)
			}
			if bad != nil {
				bad = fmt.Errorf("%s: %w", o.ID, bad)
			}
			return bad == nil
		})
		if err = errors.Join(err, bad); err != nil {
			return r.out, err
		}
	}
	return r.out, nil
}

// rows are all keys of an object.
func (r *reader) rows(o storage.Object) (map[string][]byte, error) {
	it, err := r.store.ListData(nil, o, "", "", false)
	if err != nil {
		return nil, err
	}
	rows := make(map[string][]byte)
	for it.Next() {
		rows[string(it.Key())] = append([]byte(nil), it.Value()...)
	}
	return rows, it.Close()
}

// below are the rows under a prefix, without it.
func below(rows map[string][]byte, prefix string, f func(rest string, value []byte) error) error {
	for key, value := range rows {
		if rest, ok := strings.CutPrefix(key, prefix); ok {
			if err := f(rest, value); err != nil {
				return fmt.Errorf("row %q: %w", key, err)
			}
		}
	}
	return nil
}

// decode reads a JSON row, if it is there.
func decode(rows map[string][]byte, key string, v any) error {
	if rows[key] == nil {
		return nil
	}
	return json.Unmarshal(rows[key], v)
}

func (r *reader) counter(o storage.Object, rows map[string][]byte) error {
	var state program.CounterState
	if err := decode(rows, program.StateKey, &state); err != nil {
		return err
	}
	c := judge.Counter{N: state.N, Adds: state.Adds, Keys: make(map[string]uint64)}
	err := below(rows, program.KeyPrefix, func(key string, value []byte) (err error) {
		c.Keys[key], err = strconv.ParseUint(string(value), 10, 64)
		return err
	})
	if err == nil {
		err = r.store.Events(o.ID, 0, func(uint64, []byte) bool { c.Events++; return true })
	}
	r.out.Counters[o.ID.Name] = c
	return err
}

func (r *reader) timer(o storage.Object, rows map[string][]byte) error {
	var state program.TimerState
	if err := decode(rows, program.StateKey, &state); err != nil {
		return err
	}
	t := judge.Timer{Pending: state.Pending, Spurious: state.Spurious, Tokens: make(map[uint64]string)}
	err := below(rows, program.KeyPrefix, func(key string, value []byte) error {
		token, err := strconv.ParseUint(key, 10, 64)
		t.Tokens[token] = strings.Trim(string(value), `"`)
		return err
	})
	if err == nil {
		_, t.Alarm, err = r.store.Alarm(o)
	}
	r.out.Timers[o.ID.Name] = t
	return err
}

func (r *reader) loop(o storage.Object, rows map[string][]byte) error {
	var meta struct {
		Status   string `json:"status"`
		RunCount uint64 `json:"runCount"`
	}
	var state program.LoopState
	err := errors.Join(decode(rows, "meta", &meta), decode(rows, "state", &state))
	r.out.Loops[o.ID.Name] = judge.Loop{Status: meta.Status, Runs: meta.RunCount, State: state.N}
	return err
}

// batch reads a debounce job. Its events are e/generation/position, so the order
// of the keys is theirs; each tells of its generation, and for the open one the
// newest counts where it has more events than the buffer.
func (r *reader) batch(o storage.Object, rows map[string][]byte) error {
	b := judge.Batch{Count: make(map[uint64]int), Rows: make(map[uint64][]string)}
	f := fields{rows["b"]}
	f.skip(1) // version
	for _, number := range []*uint64{&b.Open, &b.Closed} {
		var count int
		if *number, count = f.generation(); *number != 0 {
			b.Count[*number] = count
		}
	}
	b.Flushed, b.Dropped = f.varint(), f.varint()
	ids := make(map[uint64]map[string]string)
	err := below(rows, "e/", func(rest string, value []byte) error {
		var event program.BatchEvent
		generation, position, _ := strings.Cut(rest, "/")
		g, err := strconv.ParseUint(generation, 16, 64)
		f := fields{value}
		f.skip(1) // version
		if number, count := f.generation(); err == nil && number != g {
			err = fmt.Errorf("the event %s tells of generation %d", rest, number)
		} else if g == b.Open {
			b.Count[g] = max(b.Count[g], count)
		}
		if err == nil {
			err = json.Unmarshal(f.rest, &event)
		}
		if ids[g] == nil {
			ids[g] = make(map[string]string)
		}
		ids[g][position] = event.ID
		return err
	})
	for g, all := range ids {
		for i := range len(all) {
			b.Rows[g] = append(b.Rows[g], all[fmt.Sprintf("%08x", i)])
		}
	}
	r.out.Batches[o.ID.Name] = b
	return err
}

// partition reads a partition of the pool. A task that has ended and is not dead
// is a mark.
func (r *reader) partition(o storage.Object, rows map[string][]byte) error {
	f := fields{rows["c"]}
	f.skip(3) // version, mode, flags
	f.uvarint()
	var numbers [9]uint64
	for i := range numbers {
		numbers[i] = f.uvarint()
	}
	r.out.Pools[o.ID.String()] = judge.Pool{
		Submitted: numbers[0], Pending: numbers[1], Running: numbers[2], Done: numbers[3], Dead: numbers[4], Cancelled: numbers[5],
	}
	put := func(number []byte, value []byte) error {
		task, err := taskOf(value)
		r.out.Tasks[fmt.Sprintf("%s-%d", o.ID, binary.BigEndian.Uint64(number))] = task
		return err
	}
	for _, prefix := range []string{"t/", "z/"} {
		err := below(rows, prefix, func(number string, value []byte) error { return put([]byte(number), value) })
		if err != nil {
			return err
		}
	}
	for last, n := numbers[8], uint64(1); n <= last; n++ {
		number := binary.BigEndian.AppendUint64(nil, n)
		value, _, ok, err := r.store.FindMark(o, "u/e/"+string(number))
		if ok && err == nil {
			err = put(number, value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// taskOf reads the row of a task. A task that is done has its name as its output,
// any other as its input.
func taskOf(row []byte) (judge.Task, error) {
	f := fields{row}
	f.skip(1) // version
	state := f.byte()
	f.uvarint() // order
	for range 5 {
		f.varint()
	}
	f.bytes() // key
	f.bytes() // queue
	input, output := f.bytes(), f.bytes()
	var in program.TaskInput
	var t judge.Task
	switch state {
	case 2:
		t.State = judge.StateDone
		return t, json.Unmarshal(output, &t.Name)
	case 3:
		t.State = judge.StateDead
	case 4:
		t.State = judge.StateCancelled
		return t, nil
	default:
		t.State = judge.StateQueued
	}
	err := json.Unmarshal(input, &in)
	t.Name = in.Name
	return t, err
}

// fields takes fields off the front of a row. After its end all are zero.
type fields struct{ rest []byte }

func (f *fields) skip(n int) { f.rest = f.rest[min(max(n, 0), len(f.rest)):] }

func (f *fields) byte() (b byte) {
	if len(f.rest) > 0 {
		b = f.rest[0]
	}
	f.skip(1)
	return b
}

func (f *fields) uvarint() uint64 {
	v, n := binary.Uvarint(f.rest)
	f.skip(n)
	return v
}

func (f *fields) varint() int64 {
	v, n := binary.Varint(f.rest)
	f.skip(n)
	return v
}

// generation reads a generation of a debounce job.
func (f *fields) generation() (number uint64, count int) {
	if number = f.uvarint(); number == 0 {
		return 0, 0
	}
	count = int(f.varint())
	for range 6 { // folded, and five times
		f.varint()
	}
	f.bytes() // reason
	return number, count
}

func (f *fields) bytes() []byte {
	n := int(min(f.uvarint(), uint64(len(f.rest))))
	b := f.rest[:n]
	f.skip(n)
	return b
}
