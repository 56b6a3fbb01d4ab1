package storagetest

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"runtime"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-dev/holdfast/internal/torn"
	"github.com/holdfast-dev/holdfast/storage"
)

// logBlock is the size of a block of Pebble's log.
const logBlock = 32 << 10

// damage is a change of one file of a store.
type damage struct {
	name string // of the file
	at   int    // byte
	bit  int    // to flip; cutOff: the file ends at the byte
}

const cutOff = -1

func (d damage) String() string {
	if d.bit == cutOff {
		return fmt.Sprintf("%s cut off at byte %d", d.name, d.at)
	}
	return fmt.Sprintf("%s with bit %d of byte %d flipped", d.name, d.bit, d.at)
}

func (d damage) apply(data []byte) []byte {
	if d.bit == cutOff {
		return slices.Clone(data[:d.at])
	}
	data = slices.Clone(data)
	data[d.at] ^= 1 << d.bit
	return data
}

// victim is a store at rest whose files are damaged one at a time.
type victim struct {
	name   string // how it was left
	open   Opener
	files  torn.Tree
	newest string // the newest log
	end    int    // of what is in it; Pebble writes new logs over old ones
	work   *workload

	witness bool // no loss goes unnoticed
}

// Damage flips bits in each file of a store that was closed in order and of one
// whose process was killed, and cuts the files off. What is then read is right,
// or an error that names the file; only damage of the newest log may lose the
// newest commits, and of its newest block where bits are flipped; with a witness
// not even that.
func Damage(t testing.TB, open Opener, o Options) Figures {
	t.Helper()
	o = o.withDefaults()
	o.Commits *= 4 // they are small
	var f Figures
	ends := []string{"closed", "killed"}
	for _, how := range ends {
		v := newVictim(t, open, o, how)
		f.add(v.sweep(t, o.Seed, o.Points/len(ends)))
	}
	t.Logf("damages: seed %d, %d points: %d refused, %d harmless, %d lost the newest commits", o.Seed, f.Points, f.Refused, f.Harmless, f.Lost)
	return f
}

func (f *Figures) add(g Figures) {
	f.Points += g.Points
	f.Refused += g.Refused
	f.Harmless += g.Harmless
	f.Lost += g.Lost
}

func newVictim(t testing.TB, open Opener, o Options, how string) *victim {
	t.Helper()
	mem := vfs.NewCrashableMem()
	fsys := torn.New(mem, nil)
	left := mem
	kill := func(st *storage.Store) (err error) {
		left, err = fsys.Crash(torn.KeepNone) // everything was acknowledged
		return errors.Join(err, st.Abandon())
	}
	subj := newSubject(open, o.Seed, o.Commits)
	// Pebble looks for the flipped bit of a damaged block, in time that grows with
	// the square of its size.
	subj.work = newWorkload(o.Seed, o.Commits, true)
	err := subj.live(fsys, o.Commits/2, (*storage.Store).Close)
	if err == nil && how == "closed" {
		err = subj.live(fsys, o.Commits, (*storage.Store).Close)
	} else if err == nil {
		err = subj.live(fsys, o.Commits, kill)
	}
	if err != nil {
		t.Fatalf("seed %d: without damage: %v", o.Seed, err)
	}
	v := &victim{name: how, open: open, files: torn.Read(left), work: subj.work, witness: o.Witness}
	for name := range v.files {
		if strings.HasSuffix(name, ".log") {
			v.newest = max(v.newest, name)
		}
	}
	v.end = sort.Search(len(v.files[v.newest]), func(at int) bool {
		result, err := v.check(damage{v.newest, at, cutOff})
		return err == nil && result == harmless
	})
	return v
}

// sweep tries damages at equal distances, with as many for small files as for
// large ones, and more for the logs.
func (v *victim) sweep(t testing.TB, seed uint64, points int) (f Figures) {
	damages := make(chan damage)
	var checks sync.WaitGroup
	var mu sync.Mutex // guards f
	for range runtime.GOMAXPROCS(0) {
		checks.Go(func() {
			for d := range damages {
				result, err := v.check(d)
				if err != nil {
					t.Errorf("seed %d: store %s, %v: %v", seed, v.name, d, err)
				}
				mu.Lock()
				f.Points++
				switch result {
				case refused:
					f.Refused++
				case harmless:
					f.Harmless++
				case lost:
					f.Lost++
				}
				mu.Unlock()
			}
		})
	}
	for _, d := range v.choose(seed, points) {
		damages <- d
	}
	close(damages)
	checks.Wait()
	return f
}

// choose lists the damages to try: all of a small file, a share of a large one.
func (v *victim) choose(seed uint64, points int) (out []damage) {
	var names []string
	for name, data := range v.files {
		if len(data) > 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for i, name := range names {
		bits := len(v.files[name]) * 8
		share := (points - len(out)) / (len(names) - i)
		cuts := min(share/8, len(v.files[name]))
		for k := range cuts {
			out = append(out, damage{name, len(v.files[name]) * k / cuts, cutOff})
		}
		flips := min(share-cuts, bits)
		for k := range flips {
			at := (bits*k + int(splitmix(seed+uint64(k))%uint64(bits))) / flips
			out = append(out, damage{name, at / 8 % len(v.files[name]), at % 8})
		}
	}
	return out
}

type result int

const (
	refused result = iota
	harmless
	lost
)

// check opens and reads the damaged store.
func (v *victim) check(d damage) (r result, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	files := maps.Clone(v.files)
	files[d.name] = d.apply(files[d.name])
	fsys, err := files.Write()
	if err != nil {
		return 0, err
	}
	held, err := v.read(fsys)
	if err != nil {
		if v.witness && errors.Is(err, storage.ErrAckedDataLost) {
			return refused, nil
		}
		number, _, _ := strings.Cut(path.Base(d.name), ".") // Pebble calls a table by its number
		if !strings.Contains(err.Error(), number) {
			return refused, fmt.Errorf("the error does not name the file: %w", err)
		}
		return refused, nil
	}
	return v.judge(d, held)
}

// read opens the store and reads all of it.
func (v *victim) read(fsys vfs.FS) (held rows, err error) {
	st, err := v.open(fsys, dir)
	if err != nil {
		return nil, err
	}
	if held, err = readAll(st); err == nil {
		err = st.Check()
	}
	if endErr := st.Abandon(); err == nil {
		err = endErr
	}
	return held, err
}

// judge tells what a damage did that was not noticed.
func (v *victim) judge(d damage, held rows) (result, error) {
	n, err := held.number()
	if err != nil || n >= len(v.work.states) {
		return 0, fmt.Errorf("the store ends with commit %q", held["meta n"])
	}
	if err := held.compare(v.work.states[n]); err != nil {
		return 0, fmt.Errorf("the store says that commit %d is its last: %w", n, err)
	}
	if n == len(v.work.states)-1 {
		return harmless, nil
	}
	if v.witness || d.name != v.newest || d.bit != cutOff && d.at < (v.end-1)/logBlock*logBlock {
		return lost, fmt.Errorf("silently lost the commits after %d of %d", n, len(v.work.states)-1)
	}
	return lost, nil
}
