// Package silent has the way of one node to a log, which a test cuts and mends again.
package silent

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// Log is a log that stops to answer, and answers again, as a test wants it. Claims are answered all the time.
type Log struct {
	shardlog.Log
	Heads atomic.Int64 // that it has answered

	mu    sync.Mutex
	quiet chan struct{} // nil: it answers; else calls wait until it is closed
}

// Stop makes calls from now on wait until the function that it returns is called. After a further Stop they wait for that of the
// further one.
func (l *Log) Stop() (answer func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	quiet := make(chan struct{})
	l.quiet = quiet
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.quiet == quiet {
			l.quiet = nil
		}
		close(quiet)
	}
}

func (l *Log) wait(ctx context.Context) error {
	l.mu.Lock()
	quiet := l.quiet
	l.mu.Unlock()
	if quiet == nil {
		return nil
	}
	select {
	case <-quiet:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Head waits while the log is silent.
func (l *Log) Head(ctx context.Context, shard int) (shardlog.State, error) {
	if err := l.wait(ctx); err != nil {
		return shardlog.State{}, err
	}
	l.Heads.Add(1)
	return l.Log.Head(ctx, shard)
}

// Append waits while the log is silent.
func (l *Log) Append(ctx context.Context, shard int, before uint64, r shardlog.Record) error {
	if err := l.wait(ctx); err != nil {
		return err
	}
	return l.Log.Append(ctx, shard, before, r)
}
