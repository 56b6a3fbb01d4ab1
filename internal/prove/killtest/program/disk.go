package program

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-dev/holdfast/internal/prove/killtest/judge"
)

// floorBytes is the free space that the store wants.
const floorBytes = 1 << 20

// disk is the disk of this machine, which can seem to be full.
type disk struct {
	vfs.FS
	full atomic.Bool
}

func newDisk() *disk { return &disk{FS: vfs.Default} }

// GetDiskUsage tells less than the floor while the disk is full.
func (d *disk) GetDiskUsage(path string) (vfs.DiskUsage, error) {
	u, err := d.FS.GetDiskUsage(path)
	if d.full.Load() {
		u.AvailBytes = floorBytes / 2
	}
	return u, err
}

// Unwrap is for Pebble, which looks below.
func (d *disk) Unwrap() vfs.FS { return d.FS }

// fillDisk lets the disk become full when the configuration says so, and free
// again. A store looks at the free space only every few MiB, so somebody writes
// them.
func (p *Program) fillDisk(ctx context.Context, d *disk) {
	if p.config.FullAfter <= 0 {
		return
	}
	go func() {
		p.pause(p.config.FullAfter)
		d.full.Store(true)
		for ctx.Err() == nil {
			err := p.tell(judge.Line{Verb: judge.Other, On: "ballast"}, func(*judge.Line) error {
				_, err := p.fill.Call(p.ctx, p.host, "ballast", 1<<20)
				return err
			})
			if err != nil {
				break
			}
		}
		if p.config.FullFor > 0 {
			p.pause(p.config.FullFor)
			d.full.Store(false)
		}
	}()
}

// limitFiles makes writes beyond a length fail, when the configuration says so.
// The signal that comes with it is ignored, so that the write returns EFBIG.
func (c Config) limitFiles() {
	if c.LimitBytes == 0 {
		return
	}
	signal.Ignore(syscall.SIGXFSZ)
	limit := func() {
		l := syscall.Rlimit{Cur: c.LimitBytes, Max: c.LimitBytes}
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &l); err != nil {
			fmt.Fprintln(os.Stderr, "program: limit the length of files:", err)
			os.Exit(ExitShutdown)
		}
	}
	if c.LimitAfter == 0 {
		limit()
		return
	}
	seams.Clock.AfterFunc(c.LimitAfter, limit)
}
