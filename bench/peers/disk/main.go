// Command disk measures how long a write and sync of 4 KiB takes: by that one sees
// whether the disk was as fast for one system as for another.
package main

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/bench/peers/internal/figure"
	"github.com/holdfast-dev/holdfast/bench/peers/internal/queue"
)

const pageSize = 4096

func main() {
	dir := flag.String("dir", "", "directory for the file")
	queue.Main(func(ctx context.Context, l queue.Load, r *figure.Reporter) error {
		f, err := os.Create(filepath.Join(*dir, "disk"))
		if err != nil {
			return err
		}
		defer f.Close() // it is thrown away
		page := make([]byte, pageSize)
		run, err := measure.Closed(ctx, 1, min(l.For, time.Second), func(int) error {
			if _, err := f.WriteAt(page, 0); err != nil {
				return err
			}
			return f.Sync()
		})
		if err != nil {
			return err
		}
		return r.Add("disk", pageSize, run.Lat.P50/1e6)
	})
}
