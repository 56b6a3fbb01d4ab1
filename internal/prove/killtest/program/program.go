package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast/internal/prove/killtest/judge"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/jobs/debounce"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/pebblestore"
)

// program is one life.
type program struct {
	config  Config
	journal *journal
	ops     atomic.Uint64
	ctx     context.Context // of the calls; it never ends
	host    *object.Host

	add, read *object.Method[struct{}, uint64]
	once      *object.Method[string, uint64]
	set       *object.Method[setting, struct{}]
	pending   *object.Method[struct{}, uint64]
	fill      *object.Method[int, struct{}]
	loop      *continuous.Job[LoopState]
	batch     *debounce.Job[BatchEvent, struct{}]
	pool      *workerpool.Pool[TaskInput, string] // runs its tasks
	tray      *workerpool.Pool[TaskInput, string] // with tasks for outside workers
}

// StoreOptions are those of the store: small, so that tables and logs change often
// in a short life.
func StoreOptions(dir string) storage.Options {
	return storage.Options{
		Dir: dir, Shards: 4, MinFreeBytes: floorBytes,
		Pebble: pebblestore.Options{CacheBytes: 4 << 20, MemTableBytes: 512 << 10},
	}
}

// shutdownTime is how long works may go on after SIGTERM.
const shutdownTime = time.Second

// Main lives the life that the configuration describes, with its log on out, and
// returns the exit code.
func Main(c Config, out io.Writer) int {
	p := &program{config: c, journal: &journal{out: out}, ctx: context.Background()}
	p.ops.Store(c.FirstOp)
	stop, release := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer release()
	p.journal.write(judge.Line{Kind: judge.Began})
	disk := newDisk()
	disk.full.Store(c.FullAfter < 0)
	p.limitFiles()
	options := object.Options{Storage: StoreOptions(c.Dir), Logger: newLogger(p.journal), IdleAfter: 20 * time.Millisecond}
	options.Storage.Pebble.FS = disk
	var err error
	if p.host, err = object.Open(options, p.define()...); err != nil {
		fmt.Fprintln(os.Stderr, "program: open:", err)
		return ExitFailed
	}
	p.journal.write(judge.Line{Kind: judge.Opened})
	done, ended := context.WithCancel(stop)
	defer ended()
	go func() {
		<-p.host.Done()
		ended()
	}()
	p.fillDisk(done, disk)
	if c.Finish {
		err = p.finish(done)
	} else {
		p.callAll(done)
	}
	return p.end(err)
}

// callAll lets everybody call until ctx ends.
func (p *program) callAll(ctx context.Context) {
	var all sync.WaitGroup
	for i, call := range p.callers() {
		c := &caller{program: p, id: i, rand: rand.New(rand.NewPCG(p.config.Seed, uint64(i)))}
		all.Go(func() {
			for ctx.Err() == nil {
				if err := call(c); err != nil {
					c.pause(time.Millisecond)
				}
			}
		})
	}
	all.Go(func() { p.repeat(ctx) })
	<-ctx.Done()
	if p.host.Err() == nil {
		all.Go(func() { p.shutdown() }) // under the last calls
	}
	all.Wait()
}

// seams are those of production, because the program is a real one.
var seams = seam.Seams{}.WithDefaults()

// pause lets others work, between two calls.
func (p *program) pause(d time.Duration) { _ = seams.Sleep(p.ctx, d) } // p.ctx never ends

// repeat makes calls of earlier lives again, until they are answered.
func (p *program) repeat(ctx context.Context) {
	for _, l := range p.config.Repeat {
		l.Kind, l.Op = "", 0
		for p.repeatable(l) != nil && ctx.Err() == nil {
			p.pause(time.Millisecond)
		}
	}
}

// end shuts the host down and returns the exit code.
func (p *program) end(err error) int {
	failed := p.host.Err() != nil && !errors.Is(p.host.Err(), object.ErrShutdown)
	err = errors.Join(err, p.shutdown())
	switch {
	case failed:
		fmt.Fprintln(os.Stderr, "program: the store has failed:", err)
		return ExitFailed
	case err != nil:
		fmt.Fprintln(os.Stderr, "program: end:", err)
		return ExitShutdown
	}
	return ExitOK
}

func (p *program) shutdown() error {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTime)
	defer cancel()
	return p.host.Shutdown(ctx)
}

// finish makes the last calls again, and waits until nothing is left to do.
func (p *program) finish(ctx context.Context) error {
	repeated := make(chan struct{})
	go func() {
		defer close(repeated)
		p.repeat(ctx)
	}()
	c := &caller{program: p, rand: rand.New(rand.NewPCG(p.config.Seed, 0))}
	for again := true; again; { // a full tray takes no task before some are claimed
		select {
		case <-repeated:
			again = false
		default:
		}
		if err := c.claims(0); err != nil && !refused(err) {
			return err
		}
	}
	for i := range loops {
		on := fmt.Sprintf("loop-%d", i)
		err := p.tell(judge.Line{Verb: judge.Pause, On: on}, func(*judge.Line) error { return p.loop.Pause(p.ctx, p.host, on) })
		if err != nil && !refused(err) {
			return err
		}
	}
	for ctx.Err() == nil {
		if err := c.claims(0); err != nil && !refused(err) {
			return err
		}
		left, err := p.left()
		if err != nil || left == "" {
			return err
		}
		p.pause(time.Millisecond)
	}
	return context.Cause(ctx)
}
