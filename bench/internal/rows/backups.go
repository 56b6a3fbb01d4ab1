package rows

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/fail"
	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/bench/internal/workload"
	"github.com/holdfast-dev/holdfast/object"
)

// stored is how many bytes the store of a backup has.
func stored(s Size) int64 { return pick[int64](s, 8<<20, 1<<30, 10<<30) }

// filled opens a host with counters and with so many bytes.
func (c *setup) filled(ctx context.Context, bytes int64) *workload.Counters {
	h := c.counters(hot, object.Options{}, workload.Blobs)
	fail.On(h.FillBlobs(ctx, bytes))
	return h
}

// p39 is P4 while one backup after another is made of the store. A round takes about as long as a backup of a gigabyte does at
// its rate: a shorter one would have the begin of a backup alone, which copies the logs.
func p39(s Size) []*Case {
	n, bytes := pick(s, 8, 64, 64), stored(s)
	return []*Case{{
		ID: "P39", What: "durable increments beside backups of the store", Size: fmt.Sprintf("MiB=%d", bytes>>20), N: float64(bytes >> 20), Unit: "/s",
		Against: "the same without backups", Rounds: 3,
		Targets: []Target{ratio(0.9), slowest(50_000, "no commit later than 50 ms")},
		Prepare: prepared(func(ctx context.Context, c *setup) (ours, reference Side) {
			h := c.filled(ctx, bytes)
			increments := rate(n, max(c.For, pick(s, 0, time.Minute, time.Minute)), h.Meters(), h.Increment)
			return func(ctx context.Context) (Sample, error) {
				dir, err := c.NewDir()
				if err != nil {
					return Sample{}, err
				}
				ctx, cancel := context.WithCancel(ctx)
				made := make(chan error, 1)
				go func() {
					for i := 0; ; i++ { // each into a repository of its own, because the next one would find nearly all there
						at := fmt.Sprint(dir, "/", i)
						v, err := workload.OpenVault(at)
						if err == nil {
							_, err = v.Make(ctx, h.Host)
						}
						if removed := os.RemoveAll(at); err == nil {
							err = removed
						}
						if ctx.Err() != nil {
							made <- nil
							return
						}
						if err != nil {
							made <- err
							return
						}
					}
				}()
				sample, err := increments(context.WithoutCancel(ctx))
				cancel()
				if failed := <-made; err == nil {
					err = failed
				}
				if removed := os.RemoveAll(dir); err == nil {
					err = removed
				}
				return sample, err
			}, increments
		}),
	}}
}

const (
	byLinks    = "restore a backup by links"
	besideCopy = "restore a backup, beside a copy"
)

// p43 is how fast a backup is verified and restored, beside reading its files, and beside copying them durably,
// because no restore by copies is faster than the disk writes. Each round begins with files that are on the disk alone.
func p43(s Size) (cases []*Case) {
	bytes := stored(s)
	from := "from the disk"
	if !measure.Forgets {
		from = "from the memory of the system"
	}
	for _, row := range []struct{ what, against string }{
		{"verify a backup", "reading its files "},
		{byLinks, "reading its files "},
		{"restore a backup", "reading its files "},
		{besideCopy, "reading its files and writing and syncing each, "},
	} {
		cases = append(cases, &Case{
			ID: "P43", What: row.what, Size: fmt.Sprintf("MiB=%d", bytes>>20), N: float64(bytes >> 20), Unit: "MiB/s",
			Against: row.against + from, Rounds: 3,
			Targets: []Target{ratio(0.8)},
			Prepare: prepared(func(ctx context.Context, c *setup) (ours, reference Side) {
				h := c.filled(ctx, bytes)
				dir := c.dir()
				v := fail.Must(workload.OpenVault(dir))
				mib := int(fail.Must(v.Make(ctx, h.Host)) >> 20)
				fail.On(v.Check(ctx)) // a restore without a name and without it is refused
				side := func(work func(ctx context.Context, to string) error) Side { return cold(c.Env, dir, mib, work) }
				verify := func(ctx context.Context, _ string) error { return v.Check(ctx) }
				read := func(context.Context, string) error { _, err := v.Read(); return err }
				switch row.what {
				case "verify a backup":
					return side(verify), side(read)
				case byLinks:
					return side(v.LinkTo), side(read)
				case besideCopy:
					read = v.CopyTo
				}
				return side(v.RestoreTo), side(read)
			}),
		})
	}
	return cases
}

// cold measures work that may fill a new directory, while none of the files of another one is in the memory of the system.
func cold(e *Env, dir string, mib int, work func(ctx context.Context, to string) error) Side {
	return func(ctx context.Context) (Sample, error) {
		to, err := e.NewDir()
		if err == nil {
			err = measure.Forget(dir)
		}
		if err != nil {
			return Sample{}, err
		}
		sample, err := amount(mib, measure.Meters{}, func(ctx context.Context) error { return work(ctx, to) })(ctx)
		return sample, errors.Join(err, os.RemoveAll(to))
	}
}
