package object

import (
	"context"
	"errors"
	"testing"
	"time"
)

// Proves O4: the context of a section with a limit ends with the section, at its
// limit or with its parent's, whether or not anything had asked for Done before.
func TestLimitedContext(t *testing.T) {
	far := time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, asked := range []bool{false, true} {
		for _, c := range []struct {
			name  string
			end   func(l *limited, cancel context.CancelCauseFunc)
			cause error
		}{
			{"returned", func(l *limited, _ context.CancelCauseFunc) { l.end() }, context.Canceled},
			{"limit", func(l *limited, _ context.CancelCauseFunc) { l.expire() }, ErrTimeout},
			{"limit, then returned", func(l *limited, _ context.CancelCauseFunc) {
				if !l.expire() || !l.end() || !l.end() {
					t.Error("a block that has reached its limit returns in time")
				}
			}, ErrTimeout},
			{"returned, then limit", func(l *limited, _ context.CancelCauseFunc) {
				if l.end() || l.expire() || l.end() {
					t.Error("a block that has returned reaches its limit")
				}
			}, context.Canceled},
			{"parent", func(_ *limited, cancel context.CancelCauseFunc) { cancel(ErrShutdown) }, ErrShutdown},
		} {
			parent, cancel := context.WithCancelCause(context.Background())
			l := &limited{Context: parent, at: far}
			if asked {
				select {
				case <-l.Done():
					t.Errorf("%s: done at once", c.name)
				default:
				}
			}
			if err := l.Err(); err != nil || context.Cause(l) != nil {
				t.Errorf("%s: ended at once: %v, %v", c.name, err, context.Cause(l))
			}
			child, stop := context.WithCancel(context.WithoutCancel(l))
			c.end(l, cancel)
			if err := l.Err(); !errors.Is(err, context.Canceled) || !errors.Is(context.Cause(l), c.cause) {
				t.Errorf("%s, asked %t: %v, cause %v, want %v", c.name, asked, err, context.Cause(l), c.cause)
			}
			select {
			case <-l.Done():
			default:
				t.Errorf("%s, asked %t: Done is open", c.name, asked)
			}
			if child.Err() != nil {
				t.Errorf("%s: a context without cancel has ended", c.name)
			}
			stop()
			cancel(nil)
		}
	}
}

// The deadline of a section is its limit, or that of its parent if it is earlier.
func TestLimitedDeadline(t *testing.T) {
	limit := time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct{ parent, want time.Time }{
		{limit.Add(-1), limit.Add(-1)}, {limit, limit}, {limit.Add(1), limit},
	} {
		parent, cancel := context.WithDeadline(context.Background(), c.parent)
		if at, ok := (&limited{Context: parent, at: limit}).Deadline(); !ok || !at.Equal(c.want) {
			t.Errorf("parent %v: %v, want %v", c.parent, at, c.want)
		}
		cancel()
	}
}
