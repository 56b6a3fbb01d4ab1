package seam_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/seam"
)

// asItIs returns the panic itself as the error of a guard.
func asItIs(p *seam.PanicError) error { return p }

func TestGuard(t *testing.T) {
	broken := errors.New("broken")
	if err := seam.Guard(func() error { return broken }, asItIs); err != broken {
		t.Errorf("an error: %v", err)
	}
	if err := seam.Guard(func() error { return nil }, asItIs); err != nil {
		t.Errorf("no error: %v", err)
	}
	err := seam.Guard(func() error { panic(broken) }, asItIs)
	var p *seam.PanicError
	if !errors.As(err, &p) || !errors.Is(err, broken) || p.Exited() {
		t.Fatalf("a panic: %v", err)
	}
	if !strings.Contains(string(p.Stack), "TestGuard") {
		t.Errorf("the stack does not name the code that panicked:\n%s", p.Stack)
	}
	if err := seam.Guard(func() error { panic("text") }, func(*seam.PanicError) error { return broken }); err != broken {
		t.Errorf("a panic of which broken was made: %v", err)
	}
}

// Code under a guard ends its goroutine with runtime.Goexit. Only the function that makes
// the error learns of it, because Guard does not return.
func TestGuardOfCodeThatExits(t *testing.T) {
	told := make(chan *seam.PanicError)
	go func() {
		defer close(told)
		_ = seam.Guard(func() error { runtime.Goexit(); return nil }, func(p *seam.PanicError) error { told <- p; return p })
		t.Error("the goroutine has gone on")
	}()
	if p := <-told; p == nil || !p.Exited() || p.Unwrap() != nil || p.Stack != nil {
		t.Errorf("told of %v", p)
	}
	<-told
}

// The stack of code that exits is taken where it is asked for, and that of a panic stays what it was.
func TestTakeStack(t *testing.T) {
	done := make(chan string)
	go func() {
		_ = seam.Guard(func() error { runtime.Goexit(); return nil }, func(p *seam.PanicError) error {
			p.TakeStack()
			done <- string(p.Stack)
			return p
		})
	}()
	if s := <-done; !strings.Contains(s, "TestTakeStack") {
		t.Errorf("the stack does not name the code that exited:\n%s", s)
	}
	_ = seam.Guard(func() error { panic("text") }, func(p *seam.PanicError) error {
		was := string(p.Stack)
		p.TakeStack()
		if string(p.Stack) != was {
			t.Errorf("the stack of a panic became\n%s", p.Stack)
		}
		return p
	})
}

// The end of a simulated process passes every guard.
func TestGuardPassesKilledOn(t *testing.T) {
	defer func() {
		if v := recover(); v != any(seam.Killed{}) {
			t.Errorf("recovered %v", v)
		}
	}()
	_ = seam.Guard(func() error { panic(seam.Killed{}) }, asItIs)
	t.Error("the task has gone on")
}

// A guard allocates nothing, because each turn has one.
func TestGuardAllocatesNothing(t *testing.T) {
	n := 0
	allocs := testing.AllocsPerRun(100, func() {
		_ = seam.Guard(func() error { n++; return nil }, func(p *seam.PanicError) error { n--; return p })
	})
	if allocs != 0 || n == 0 {
		t.Errorf("%v allocations, %d runs", allocs, n)
	}
}
