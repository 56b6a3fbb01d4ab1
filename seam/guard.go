package seam

import (
	"fmt"
	"runtime/debug"
)

// PanicError is a panic of user code as an error. Its text is one line; the stack is
// in the field.
type PanicError struct {
	Value any    // the argument of panic; nil if the code called runtime.Goexit
	Stack []byte // of the goroutine that ran the code; see TakeStack
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Unwrap returns the argument of panic if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Exited reports whether the code did not panic but ended its goroutine by
// runtime.Goexit, as testing.T.FailNow does.
func (e *PanicError) Exited() bool { return e.Value == nil }

// TakeStack sets Stack to that of the calling goroutine, if it is empty. Guard has taken the stack of a panic. It leaves
// that of a runtime.Goexit to caught, because most such ends are on purpose, as by Exit, and a stack takes some
// microseconds.
func (e *PanicError) TakeStack() {
	if e.Stack == nil {
		e.Stack = debug.Stack()
	}
}

// Guard runs user code and returns its error. If the code panics, Guard returns the
// error that caught makes of the panic. If the code ends its goroutine, no caller of
// Guard goes on, so caught is the last to run and must pass the error on by itself.
// Guard lets a panic with Killed through, because the process of the simulation has
// died. It allocates nothing unless the code panics.
func Guard(code func() error, caught func(p *PanicError) error) (err error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		v := recover()
		if _, ok := v.(Killed); ok {
			panic(v)
		}
		p := &PanicError{Value: v}
		if !p.Exited() {
			p.TakeStack()
		}
		err = caught(p)
	}()
	err = code()
	returned = true
	return err
}
