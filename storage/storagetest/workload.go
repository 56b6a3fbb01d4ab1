package storagetest

import (
	"encoding/binary"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/storage"
)

// rows is the content of a store, in words: a key such as "data cell/3 last" and its
// value. Object numbers and epochs, which differ from life to life, are left out.
type rows map[string]string

const class = "cell"

// never is an expiry that no test reaches.
const never = 1 << 60

// workload is a list of numbered commits. The commit n is the same each time it
// is made upon the state n-1.
type workload struct {
	seed   uint64
	small  bool   // no value is larger than a few kilobytes
	states []rows // states[n] is the content of the store after commit n
}

func newWorkload(seed uint64, commits int, small bool) *workload {
	w := &workload{seed: seed, small: small, states: []rows{{}}}
	nobody := func(id storage.ID) storage.Object { return storage.Object{ID: id, Number: 1} }
	nothing := func(storage.ID, byte) (m storage.StoredMessage) { return m }
	for n := 1; n <= commits; n++ {
		d := draft{rows: maps.Clone(w.states[n-1]), objects: nobody, first: nothing}
		w.fill(&d, n)
		w.states = append(w.states, d.rows)
	}
	return w
}

// fill puts commit n into d: rows of every kind, of two objects and of the store.
func (w *workload) fill(d *draft, n int) {
	here, there := fmt.Sprint(n%5), fmt.Sprint((n+1+n/5)%5)
	if n%11 == 10 {
		d.drop(here)
	}
	if n%9 == 8 {
		d.clear(there)
	}
	d.put(here, "n", w.value(n, 10))
	d.put(here, fmt.Sprint("v", n%7), w.value(n, w.size(n)))
	d.put(there, "last", w.value(n, 100))
	if n%4 == 3 {
		d.remove(here, fmt.Sprint("v", (n+3)%7))
	}
	d.alarm(here, int64(n))
	if n%6 == 5 {
		d.alarm(there, 0)
	}
	d.open(here, n%2 == 1)
	d.event(here, uint64(n), w.value(n, 30))
	d.mark(there, fmt.Sprint(n%3), w.value(n, 5))
	w.messages(d, n, here, there)
	d.meta("n", strconv.Itoa(n))
}

// size is small mostly, and sometimes larger than a block of the log (32 KiB) or
// half a small memtable.
func (w *workload) size(n int) int {
	dice := splitmix(w.seed+uint64(n)) % 16
	switch {
	case w.small && dice < 5:
		return 2 << 10
	case dice == 0:
		return 40 << 10
	case dice < 5:
		return 9 << 10
	default:
		return 300
	}
}

func (w *workload) value(n, size int) string {
	return fmt.Sprintf("%d:%s", n, noise(w.seed^uint64(n)<<8, size))
}

// draft makes the same changes in a batch and in rows.
type draft struct {
	batch   storage.Batch
	rows    rows
	objects func(storage.ID) storage.Object
	first   func(to storage.ID, queue byte) storage.StoredMessage // as it is stored
}

// object makes the object exist.
func (d *draft) object(name string) storage.Object {
	o := d.objects(storage.ID{Class: class, Name: name})
	if _, ok := d.rows["object "+name]; !ok {
		d.batch.SetHeader(o)
		d.rows["object "+name] = ""
	}
	return o
}

func (d *draft) put(name, key, value string) {
	d.batch.SetData(d.object(name), key, []byte(value))
	d.rows["data "+name+" "+key] = value
}

func (d *draft) remove(name, key string) {
	d.batch.DeleteData(d.object(name), key)
	delete(d.rows, "data "+name+" "+key)
}

func (d *draft) clear(name string) {
	d.batch.DeleteDataRange(d.object(name), "", "")
	d.deletePrefix("data " + name + " ")
}

func (d *draft) deletePrefix(p string) {
	maps.DeleteFunc(d.rows, func(k, _ string) bool { return strings.HasPrefix(k, p) })
}

// due is when the object's alarm is due, or nil.
func (d *draft) due(name string) *int64 {
	v, ok := d.rows["alarm "+name]
	if !ok {
		return nil
	}
	at, _ := strconv.ParseInt(v, 10, 64) // written by alarm
	return &at
}

// alarm sets the object's alarm; at 0 there is none.
func (d *draft) alarm(name string, at int64) {
	o, from, value := d.object(name), d.due(name), strconv.FormatInt(at, 10)
	if at == 0 {
		d.batch.MoveAlarm(o, from, nil, nil, nil)
		delete(d.rows, "alarm "+name)
		return
	}
	d.batch.MoveAlarm(o, from, &at, []byte(value), []byte(name))
	d.rows["alarm "+name] = value
}

func (d *draft) open(name string, open bool) {
	o := d.object(name)
	if !open {
		d.batch.DeleteOpenMark(o)
		delete(d.rows, "open "+name)
		return
	}
	d.batch.SetOpenMark(o, []byte(name))
	d.rows["open "+name] = ""
}

// event outlives the object.
func (d *draft) event(name string, seq uint64, value string) {
	o := d.object(name)
	d.batch.AddEvent(o.Shard, o.ID, seq, never, []byte(value))
	d.rows[fmt.Sprintf("event %s %d", name, seq)] = value
}

func (d *draft) mark(name, key, value string) {
	o := d.object(name)
	d.batch.SetMark(o, never, key, never, []byte(value))
	d.batch.IndexMarks(o, never)
	d.rows["mark "+name+" "+key] = value
}

func (d *draft) meta(name, value string) {
	d.batch.SetMeta(name, []byte(value))
	d.rows["meta "+name] = value
}

// drop removes the object; the next change of it begins a new life.
func (d *draft) drop(name string) {
	if _, ok := d.rows["object "+name]; !ok {
		return
	}
	d.batch.DeleteObject(d.object(name), d.due(name))
	for _, kind := range []string{"object ", "alarm ", "open "} {
		delete(d.rows, kind+name)
	}
	d.deletePrefix("data " + name + " ")
	d.deletePrefix("mark " + name + " ")
}

// splitmix spreads the bits of x.
func splitmix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// noise is n bytes that do not compress and differ from seed to seed.
func noise(seed uint64, n int) []byte {
	out := make([]byte, 0, n+8)
	for len(out) < n {
		seed = splitmix(seed)
		out = binary.LittleEndian.AppendUint64(out, seed)
	}
	return out[:n]
}
