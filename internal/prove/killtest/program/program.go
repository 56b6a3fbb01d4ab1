package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
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

// Program is the classes and the callers of one process. It serves on one host at a time.
type Program struct {
	config  Config
	journal *journal
	lease   time.Duration
	ops     atomic.Uint64
	ctx     context.Context // of the calls; it never ends
	host    *object.Host
	classes []object.Definition

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

// New returns a program with its log on out. timed lines say when they were written, and lease is for how long a task of the
// tray is claimed: somewhat longer than a commit takes.
func New(out io.Writer, timed bool, lease time.Duration) *Program {
	p := &Program{journal: &journal{out: out, timed: timed}, lease: lease, ctx: context.Background()}
	p.define()
	return p
}

// Definitions are the classes that a host of the program must have.
func (p *Program) Definitions() []object.Definition { return p.classes }

// Logger makes a line of each recovery, and writes warnings and errors to stderr.
func (p *Program) Logger() *slog.Logger { return newLogger(p.journal) }

// Say writes a line to the log.
func (p *Program) Say(l judge.Line) { p.journal.write(l) }

// Serve calls the objects of a host as the configuration says, until ctx ends or, with Config.Finish, until nothing is left
// to do. The host stays open.
func (p *Program) Serve(ctx context.Context, host *object.Host, c Config) error {
	p.take(host, c)
	if c.Finish {
		return p.finish(ctx)
	}
	p.callAll(ctx, func() {})
	return nil
}

// take sets the host and the configuration of the next calls.
func (p *Program) take(host *object.Host, c Config) {
	p.host, p.config = host, c
	p.ops.Store(max(p.ops.Load(), c.FirstOp))
}

// StoreOptions are those of the store: small, so that tables and logs change often
// in a short life.
func StoreOptions(dir string) storage.Options {
	return storage.Options{
		Dir: dir, Shards: 4, MinFreeBytes: floorBytes,
		Pebble: pebblestore.Options{CacheBytes: 4 << 20, MemTableBytes: 512 << 10},
	}
}

// shutdownTime is how long works may go on after SIGTERM. They end by themselves within milliseconds, so only one
// that hangs reaches it.
const shutdownTime = 5 * time.Minute

// Main lives the life that the configuration describes, with its log on out, and
// returns the exit code.
func Main(c Config, out io.Writer) int {
	p := New(out, false, 5*time.Millisecond)
	stop, release := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer release()
	p.Say(judge.Line{Kind: judge.Began})
	disk := newDisk()
	disk.full.Store(c.FullAfter < 0)
	c.limitFiles()
	options := object.Options{Storage: StoreOptions(c.Dir), Logger: p.Logger(), IdleAfter: 20 * time.Millisecond}
	options.Storage.Pebble.FS = disk
	host, err := object.Open(options, p.classes...)
	if err != nil {
		fmt.Fprintln(os.Stderr, "program: open:", err)
		return ExitFailed
	}
	p.take(host, c)
	p.Say(judge.Line{Kind: judge.Opened})
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
		p.callAll(done, func() { _ = p.shutdown() }) // end has its error
	}
	return p.end(err)
}

// callAll lets everybody call until ctx ends, and then calls last under the last calls, unless the host has failed.
func (p *Program) callAll(ctx context.Context, last func()) {
	var all sync.WaitGroup
	for i, call := range p.callers() {
		c := &caller{Program: p, id: i, rand: rand.New(rand.NewPCG(p.config.Seed, uint64(i)))}
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
		all.Go(last)
	}
	all.Wait()
}

// seams are those of production, because the program is a real one.
var seams = seam.Seams{}.WithDefaults()

// pause lets others work, between two calls.
func (p *Program) pause(d time.Duration) { _ = seams.Sleep(p.ctx, d) } // p.ctx never ends

// repeat makes calls of earlier lives again, until they are answered.
func (p *Program) repeat(ctx context.Context) {
	for _, l := range p.config.Repeat {
		l.Kind, l.Op = "", 0
		for ctx.Err() == nil && p.repeatable(l) != nil {
			p.pause(time.Millisecond)
		}
	}
}

// end shuts the host down and returns the exit code.
func (p *Program) end(err error) int {
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

func (p *Program) shutdown() error {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTime)
	defer cancel()
	return p.host.Shutdown(ctx)
}

// finish makes the last calls again, and waits until nothing is left to do.
func (p *Program) finish(ctx context.Context) error {
	repeated := make(chan struct{})
	go func() {
		defer close(repeated)
		p.repeat(ctx)
	}()
	c := &caller{Program: p, rand: rand.New(rand.NewPCG(p.config.Seed, 0))}
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
