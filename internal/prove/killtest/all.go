package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/prove/killtest/judge"
	"github.com/holdfast-dev/holdfast/internal/prove/killtest/program"
	"github.com/holdfast-dev/holdfast/internal/prove/killtest/stored"
)

// campaign is all stores that are killed.
type campaign struct {
	o    options
	dir  string
	tell io.Writer

	mu      sync.Mutex
	figures figures
}

// all kills the program "all".
func all(ctx context.Context, o options, tell io.Writer) (figures, error) {
	if o.each == 0 {
		o.each = 25
	}
	dir, err := os.MkdirTemp("", "killtest-")
	if err != nil {
		return figures{}, err
	}
	c := &campaign{o: o, dir: dir, tell: tell}
	err = c.play(ctx)
	switch {
	case errors.Is(err, context.Canceled):
		err = errors.Join(errors.New("interrupted"), os.RemoveAll(dir))
	case err != nil:
		err = fmt.Errorf("%w\nthe stores and logs are kept in %s", err, dir)
	default:
		err = os.RemoveAll(dir)
	}
	c.report()
	return c.figures, err
}

// play plays rounds, several at a time, until there were enough kills or one of
// them fails.
func (c *campaign) play(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var tracks sync.WaitGroup
	for range c.o.parallel {
		tracks.Go(func() {
			for ctx.Err() == nil && !c.enough() {
				if err := c.round(ctx); err != nil {
					cancel(err)
				}
			}
		})
	}
	reported := make(chan struct{})
	go func() {
		defer close(reported)
		for seams.Sleep(ctx, 2*time.Second) == nil {
			c.report()
		}
	}()
	tracks.Wait()
	err := context.Cause(ctx)
	cancel(nil)
	<-reported
	return err
}

func (c *campaign) enough() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.figures.Kill9 >= c.o.cycles
}

func (c *campaign) report() {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := &c.figures
	fmt.Fprintf(c.tell, "%d of %d kills, %d by SIGTERM, %d with a full disk, %d with a write error; %d stores; %d acknowledged, %d lost; %d recovered\n",
		f.Kill9, c.o.cycles, f.SIGTERM, f.NoSpace, f.WriteErrors, f.Stores, f.Acked, f.AckedLost, f.Recovered)
}

// round is the lives of one store.
type round struct {
	*campaign
	number int
	rand   *rand.Rand
	dir    string // of the store
	book   *judge.Book
	log    *bufio.Writer
	lives  int
	// opening is how long the last life needed for its open, and a little more.
	opening time.Duration
}

// round kills a new store until there were enough, then runs it to its end.
func (c *campaign) round(ctx context.Context) (err error) {
	c.mu.Lock()
	number := c.figures.Stores
	c.figures.Stores++
	c.mu.Unlock()
	path := filepath.Join(c.dir, fmt.Sprintf("round-%d", number))
	if err := os.MkdirAll(path, 0o755); err != nil {
		return err
	}
	file, err := os.Create(filepath.Join(path, "log"))
	if err != nil {
		return err
	}
	r := &round{
		campaign: c, number: number, rand: rand.New(rand.NewPCG(c.o.seed, uint64(number))),
		dir: filepath.Join(path, "store"), book: judge.NewBook(), log: bufio.NewWriter(file), opening: 50 * time.Millisecond,
	}
	err = r.play(ctx)
	if err = errors.Join(err, r.log.Flush(), file.Close()); err != nil {
		return err
	}
	return os.RemoveAll(path)
}

func (r *round) play(ctx context.Context) error {
	for r.lives < r.o.each && !r.enough() {
		if err := r.live(ctx, r.life()); err != nil {
			return err
		}
	}
	return r.live(ctx, life{kind: finished, config: program.Config{Finish: true}})
}

// life draws a life. Three in four end by -9, and a third of these while the
// program starts or recovers.
func (r *round) life() life {
	between := func(low, high time.Duration) time.Duration {
		return low + time.Duration(r.rand.Int64N(int64(high-low)))
	}
	const ms = time.Millisecond
	l := life{from: opened, after: between(0, 120*ms)}
	switch r.rand.IntN(16) {
	case 0, 1:
		l.kind = terminated
		if r.rand.IntN(4) == 0 {
			l.from, l.after = began, between(0, r.opening)
		}
	case 2:
		l.kind, l.from, l.after = noSpace, full, between(0, 30*ms)
		l.config.FullAfter = between(10*ms, 60*ms)
		switch r.rand.IntN(5) {
		case 0:
			l.config.FullAfter = -1
		case 1, 2: // else it stays full, and ends by SIGTERM
			l.config.FullFor = between(1*ms, 20*ms)
			l.after = l.config.FullFor + between(0, 60*ms)
		}
	case 3:
		l.kind, l.config.LimitBytes = writeError, uint64(1+r.rand.IntN(300<<10))
		if r.rand.IntN(3) > 0 { // else from the start
			l.config.LimitAfter = between(1, 80*ms)
		}
		l.from, l.after = opened, time.Second // if it does not fail at or before the open
	case 4, 5, 6, 7:
		l.from, l.after = began, between(0, r.opening)
	}
	return l
}

// live lives one life and checks the store that it leaves.
func (r *round) live(ctx context.Context, l life) error {
	r.lives++
	l.config.Dir = r.dir
	l.config.Seed = r.rand.Uint64()
	l.config.FirstOp = uint64(r.lives) << 32
	l.config.Repeat = r.book.Repeats(r.rand, 1000, 30)
	acked, refused, recovered := r.book.Acked, r.book.Refused, r.book.Recovered
	e, err := live(ctx, l, func(raw []byte, line judge.Line) {
		_, _ = r.log.Write(raw) // Flush returns the error
		r.book.Read(line)
	})
	if e.opened > 0 {
		r.opening = e.opened*5/4 + time.Millisecond
	}
	r.mu.Lock()
	r.figures.Acked += r.book.Acked - acked
	r.figures.Refused += r.book.Refused - refused
	r.figures.Recovered += int64(r.book.Recovered - recovered)
	r.mu.Unlock()
	if err == nil {
		err = r.judge(l, e)
	}
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("seed %d, round %d, life %d (%s, %s after %s; %d lines of log): %w", r.o.seed, r.number, r.lives, l.kind, l.after, l.from, e.lines, err)
	}
	return err
}

// judge compares the end of a life, and its store, with the book.
func (r *round) judge(l life, e end) error {
	if err := l.check(e); err != nil {
		return fmt.Errorf("%w\n%s", err, e.stderr)
	}
	r.count(l, e)
	if _, err := os.Stat(r.dir); errors.Is(err, fs.ErrNotExist) {
		return nil // it was killed before it made the store
	}
	copied, err := stored.Copy(r.dir)
	if err != nil {
		return err
	}
	found, clean, err := stored.Look(copied)
	if err != nil {
		return fmt.Errorf("look at the store: %w", err)
	}
	violations := r.book.Check(&found, l.kind == finished)
	if !e.signalled && e.code == program.ExitOK && !clean {
		violations = append(violations, judge.Violation{Promise: "O14", Text: "the program ended in order, and the store is not marked as closed"})
	}
	if len(violations) == 0 {
		return nil
	}
	return r.broken(violations, e)
}

// check says whether a life ended as it was to end.
func (l life) check(e end) error {
	switch {
	case l.kind == noSpace && l.config.FullAfter < 0:
		if e.code != program.ExitFailed {
			return fmt.Errorf("the disk was full before the open, and the program ended with code %d", e.code)
		}
	case l.kind == noSpace && !e.full:
		return errors.New("the disk was full, and no call was refused for want of space")
	case e.signalled:
	case e.code == program.ExitOK && (l.kind == terminated || l.kind == finished || l.kind == noSpace):
	case e.code == program.ExitFailed && l.kind == writeError:
	default:
		return fmt.Errorf("the program ended with code %d", e.code)
	}
	return nil
}

func (r *round) count(l life, e end) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := &r.figures
	switch {
	case l.kind == noSpace:
		f.NoSpace++
	case e.signalled:
		f.Kill9++
	case l.kind == writeError:
		f.WriteErrors++
	case l.kind == terminated:
		f.SIGTERM++
	}
}

// broken is the error of violations, the first of them in words.
func (r *round) broken(all []judge.Violation, e end) error {
	r.mu.Lock()
	r.figures.Violations += len(all)
	lost := 0
	for _, v := range all {
		lost += v.Lost
	}
	r.figures.AckedLost += lost
	r.mu.Unlock()
	const most = 10
	var text strings.Builder
	for i, v := range all {
		if i == most {
			fmt.Fprintf(&text, "\n  and %d more", len(all)-most)
			break
		}
		fmt.Fprintf(&text, "\n  %s", v)
	}
	if e.stderr != "" {
		fmt.Fprintf(&text, "\n  the program said:\n%s", e.stderr)
	}
	return fmt.Errorf("%d promises are broken, with %d acknowledged calls lost:%s", len(all), lost, text.String())
}
