package storagetest

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-dev/holdfast/internal/crashfs"
	"github.com/holdfast-dev/holdfast/storage"
)

// damage is a change of one file of a store.
type damage struct {
	name string // of the file
	at   int    // byte
	bit  int    // to flip; cutOff: the file ends at the byte; removed: it is gone
}

const (
	cutOff  = -1
	removed = -2
)

func (d damage) String() string {
	switch d.bit {
	case cutOff:
		return fmt.Sprintf("%s cut off at byte %d", d.name, d.at)
	case removed:
		return d.name + " removed"
	}
	return fmt.Sprintf("%s with bit %d of byte %d flipped", d.name, d.bit, d.at)
}

// apply is a copy of files with the damage.
func (d damage) apply(files crashfs.Tree) crashfs.Tree {
	files = maps.Clone(files)
	switch data := slices.Clone(files[d.name]); d.bit {
	case removed:
		delete(files, d.name)
	case cutOff:
		files[d.name] = data[:d.at]
	default:
		data[d.at] ^= 1 << d.bit
		files[d.name] = data
	}
	return files
}

// kindOf is the name of a file without its number.
func kindOf(name string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, path.Base(name)), ".-")
}

// victim is a store at rest. Its files are damaged one at a time.
type victim struct {
	name   string // how it was left
	open   Opener
	files  crashfs.Tree
	newest string // the newest log
	work   *workload
	last   int // commit, which was acknowledged
	before int // the last commit that the sync before the last one covered

	witness bool // no loss goes unnoticed
}

// Damage flips bits in each file of a store that was closed in order and of one
// that a killed process left, cuts the files off, and removes them. Each later read is
// right, or an error that names the file. The newest log alone may lose
// commits: cut off, those behind the cut, and by a flipped bit those of the last
// sync; with a witness not even these. A store that opens and reads is used on, and
// opened again.
func Damage(t testing.TB, open Opener, o Options) Figures {
	t.Helper()
	o = o.withDefaults()
	o.Commits *= 4 // they are small
	sum := &tally{t: t}
	kinds := map[string]int{}
	ends := []string{"closed", "killed"}
	for _, how := range ends {
		v := newVictim(t, open, o, how)
		for _, d := range v.sweep(sum, o.Seed, o.Points/len(ends)) {
			kinds[kindOf(d.name)]++
		}
	}
	t.Logf("damages: seed %d, %d points: %d refused, %d harmless, %d lost the newest commits; by file: %v",
		o.Seed, sum.Points, sum.Refused, sum.Harmless, sum.Lost, kinds)
	return sum.Figures
}

func newVictim(t testing.TB, open Opener, o Options, how string) *victim {
	t.Helper()
	mem := vfs.NewCrashableMem()
	fsys := crashfs.New(mem, nil)
	left := mem
	kill := func(st *storage.Store) (err error) {
		left, err = fsys.Crash(crashfs.KeepNone) // everything was acknowledged
		return errors.Join(err, st.Abandon())
	}
	subj := newSubject(open, o.Seed, o.Commits)
	// Pebble looks for the flipped bit of a damaged block, in time that grows with
	// the square of its size.
	subj.work = newWorkload(o.Seed, o.Commits+secondLife, true)
	err := subj.live(fsys, o.Commits/2, (*storage.Store).Close)
	if err == nil && how == "closed" {
		err = subj.live(fsys, o.Commits, (*storage.Store).Close)
	} else if err == nil {
		err = subj.live(fsys, o.Commits, kill)
	}
	if err != nil {
		t.Fatalf("seed %d: without damage: %v", o.Seed, err)
	}
	v := &victim{
		name: how, open: open, files: crashfs.Read(left), work: subj.work,
		last: o.Commits, before: (o.Commits - 1) / subj.ackEvery * subj.ackEvery,
		witness: o.Witness,
	}
	for name := range v.files {
		if strings.HasSuffix(name, ".log") {
			v.newest = max(v.newest, name)
		}
	}
	return v
}

// sweep tries damages, and returns them.
func (v *victim) sweep(sum *tally, seed uint64, points int) []damage {
	damages, wait := each(func(d damage) {
		result, err := v.check(d)
		if err != nil {
			sum.wrong("seed %d: store %s, %v: %v", seed, v.name, d, err)
		}
		sum.add(result.figures())
	})
	chosen := v.choose(seed, points)
	for _, d := range chosen {
		damages <- d
	}
	wait()
	return chosen
}

// choose lists the damages to try: each file removed, all of a small file, and a
// share of a large one, at equal distances, with as many for small files as for
// large ones.
func (v *victim) choose(seed uint64, points int) (out []damage) {
	var names []string
	for name, data := range v.files {
		if data == nil { // a directory
			continue
		}
		out = append(out, damage{name, 0, removed})
		if len(data) > 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for i, name := range names {
		bits := len(v.files[name]) * 8
		share := max(0, points-len(out)) / (len(names) - i)
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

func (r result) figures() Figures {
	switch r {
	case refused:
		return Figures{Points: 1, Refused: 1}
	case harmless:
		return Figures{Points: 1, Harmless: 1}
	default:
		return Figures{Points: 1, Lost: 1}
	}
}

// check opens and reads the damaged store, uses it on, and opens it again.
func (v *victim) check(d damage) (r result, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	fsys, err := d.apply(v.files).Write()
	if err != nil {
		return 0, err
	}
	subj := &subject{open: v.open, dir: dir, work: v.work, ackEvery: 1}
	n, err := subj.after(0, int64(v.last)).verify(fsys)
	switch {
	case errors.Is(err, errWrong):
		return 0, err
	case err != nil:
		return refused, v.named(d, err)
	case n == v.last:
		return harmless, nil
	case v.witness || d.name != v.newest || d.bit == removed || d.bit >= 0 && n < v.before:
		return lost, fmt.Errorf("%w: silently lost the commits after %d of %d", errWrong, n, v.last)
	}
	return lost, nil
}

// named returns nil if the error tells which file is damaged.
func (v *victim) named(d damage, err error) error {
	number, _, _ := strings.Cut(path.Base(d.name), ".") // Pebble calls a table by its number
	if v.witness && errors.Is(err, storage.ErrAckedDataLost) || strings.Contains(err.Error(), number) {
		return nil
	}
	return fmt.Errorf("the error does not name the file: %w", err)
}
