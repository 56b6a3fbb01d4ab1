package storage

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/seam"
)

// stepping is a clock that each sleep moves at once, and an executor that reports each
// sleep.
type stepping struct {
	seam.Executor
	manualClock
	sleeps int
	asleep func(n int)
}

func (c *stepping) AfterFunc(d time.Duration, f func()) seam.Timer {
	c.now = c.now.Add(d)
	c.sleeps++
	if c.asleep != nil {
		c.asleep(c.sleeps)
	}
	f()
	return spent{}
}

// spent is a timer that has rung.
type spent struct{}

func (spent) Stop() bool { return false }

func (c *stepping) Wait(ctx context.Context, ready <-chan struct{}) error {
	return seam.Seams{}.WithDefaults().Executor.Wait(ctx, ready)
}

// waiting are options of an Open that waits for so long by the clock.
func waiting(dir string, clock *stepping, limit time.Duration) (Options, *lines) {
	log := &lines{}
	o := Options{Dir: dir, WaitForLock: limit, Log: slog.New(slog.NewTextHandler(log, nil))}
	o.Seams.Clock = clock
	return o, log
}

// An Open that waits for the lock of another process gets it when that process has closed
// the store. The log says for which process it waits.
//
// Case ST13. Proves O2.
func TestOpenWaitsForAnotherProcess(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), "HOLDFAST_TEST_CHILD=hold", "HOLDFAST_TEST_DIR="+dir)
	child.Stderr = os.Stderr
	in, err1 := child.StdinPipe()
	out, err2 := child.StdoutPipe()
	if err := errors.Join(err1, err2, child.Start()); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "open\n" {
		t.Fatalf("the child says %q, %v", line, err)
	}
	clock := &stepping{manualClock: manualClock{now: time.Unix(1000, 0)}}
	clock.asleep = func(n int) {
		if n == 3 {
			if err := errors.Join(in.Close(), child.Wait()); err != nil {
				t.Error(err)
			}
		}
	}
	o, log := waiting(dir, clock, time.Minute)
	s := open(t, o)
	defer checkAndClose(t, s)
	if clock.sleeps != 3 || !s.Previous().Clean {
		t.Errorf("it slept %d times, after %+v", clock.sleeps, s.Previous())
	}
	text := strings.Join(log.all(), "\n")
	if !strings.Contains(text, fmt.Sprintf("the process with pid %d", child.Process.Pid)) || !strings.Contains(text, "waited=150ms") {
		t.Errorf("the log says:\n%s", text)
	}
}

// The wait has its limit. Open gets the lock if the holder closes in the last sleep
// within the limit, and not if it closes later. Without a wait there is one look.
//
// Case ST13. Proves O2.
func TestWaitForLockIsBounded(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	for _, c := range []struct {
		limit  time.Duration
		freeAt int // the sleep in which the holder closes; 0: never
		sleeps int
		locked bool
	}{
		{0, 0, 0, true},
		{10 * lockPoll, 0, 10, true},
		{10*lockPoll + 1, 0, 11, true},
		{10 * lockPoll, 10, 10, false},
		{10 * lockPoll, 11, 10, true},
	} {
		holder := open(t, Options{Dir: dir})
		clock := &stepping{manualClock: manualClock{now: time.Unix(1000, 0)}}
		clock.asleep = func(n int) {
			if n == c.freeAt {
				checkAndClose(t, holder)
			}
		}
		o, _ := waiting(dir, clock, c.limit)
		s, err := Open(o)
		if errors.Is(err, ErrLocked) != c.locked || clock.sleeps != c.sleeps {
			t.Errorf("%+v: %d sleeps, %v", c, clock.sleeps, err)
		}
		if err == nil {
			checkAndClose(t, s)
		}
		if err := holder.Close(); err != nil {
			t.Error(err)
		}
	}
	wantOpenError(t, Options{Dir: dir, WaitForLock: -1}, nil, "WaitForLock is -1ns")
}
