package shardlog

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-dev/holdfast/internal/crashfs"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage/pebblestore"
)

// rescueOf is a rescue with two records.
func rescueOf() Rescue {
	r := Rescue{Shard: 3, Cluster: "blue", Term: 7, Before: 42}
	chain := r.Before
	for i, payload := range []string{"one", ""} {
		chain = Next(chain, []byte(payload))
		r.Records = append(r.Records, Record{At: Position(i + 5), Term: uint64(i + 6), Chain: chain, Payload: []byte(payload)})
	}
	return r
}

// Proves N7: the power fails before each operation on the disk in turn, and any part of the bytes that are not synced is kept. A file with the name
// of a rescue is whole. Once writeRescue has returned, it is there.
func TestRescueFileIsWholeOrAbsent(t *testing.T) {
	want := rescueOf()
	for k := 0; ; k++ {
		for percent := 0; percent <= 100; percent += 50 {
			mem := vfs.NewCrashableMem()
			var lost *vfs.MemFS
			fsys := crashfs.New(mem, func(op crashfs.Op) error {
				if op.Index == k {
					lost = mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rand.New(rand.NewPCG(uint64(k), uint64(percent)))})
				}
				return nil
			})
			dir := pebblestore.Dir{FS: fsys, Path: "rescue/blue"}
			path, err := writeRescue(dir, &seam.Seams{}, want)
			if err != nil {
				t.Fatal(err)
			}
			done := lost == nil
			if done {
				lost = mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rand.New(rand.NewPCG(uint64(k), uint64(percent)))})
			}
			text, err := pebblestore.Dir{FS: lost, Path: "rescue/blue"}.Read(want.name())
			if err != nil && !done {
				continue // it is absent
			}
			if got, readErr := ReadRescue(strings.NewReader(text)); err != nil || readErr != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("power lost before operation %d, %d %% kept: %s has %+v: %v, %v", k, percent, path, got, err, readErr)
			}
			if done && percent == 100 {
				return
			}
		}
	}
}

// Each operation on the disk fails in turn. The error says so, and no file has the name of a rescue.
func TestRescueOnABrokenDisk(t *testing.T) {
	for k := 0; ; k++ {
		mem := vfs.NewMem()
		met := false
		fsys := crashfs.New(mem, func(op crashfs.Op) error {
			if met = met || op.Index == k; op.Index == k {
				return fmt.Errorf("broken on purpose")
			}
			return nil
		})
		_, err := writeRescue(pebblestore.Dir{FS: fsys, Path: "rescue"}, &seam.Seams{}, rescueOf())
		if !met {
			if err != nil || k < 5 {
				t.Errorf("%d operations: %v", k, err)
			}
			return
		}
		if err == nil {
			t.Errorf("operation %d failed, and the error is lost", k)
		}
	}
}
