package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
)

// about tells the machine, the disk and the durability of the figures.
func about(dir string) string {
	s := fmt.Sprintf("%s/%s, %d CPUs, %s. Every commit is synced through Pebble's log before it is acknowledged.\nStores in %s",
		runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0), runtime.Version(), dir)
	sync, err := syncTime(dir)
	if err != nil {
		return s + fmt.Sprintf("; a sync could not be timed: %v\n", err)
	}
	s += fmt.Sprintf("; a write and sync of 4 KiB there takes %v (median).\n", sync.Round(time.Microsecond))
	if sync < 20*time.Microsecond {
		s += "warning: that is too fast for a disk: name one with -dir\n"
	}
	return s
}

// syncTime is the median time of a write and sync of 4 KiB.
func syncTime(dir string) (time.Duration, error) {
	f, err := os.Create(filepath.Join(dir, "sync"))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	lat := measure.NewLatencies()
	page := make([]byte, 4096)
	for range 100 {
		start := time.Now()
		if _, err := f.Write(page); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		lat.Record(time.Since(start))
	}
	return time.Duration(lat.Quantiles().P50 * 1e3), nil
}
