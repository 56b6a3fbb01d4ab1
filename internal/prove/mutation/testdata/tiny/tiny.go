// Package tiny is the code that the tests of the mutation tool change.
package tiny

import (
	"errors"
	"time"
)

const most = 3

var errFull = errors.New("the shelf is full")

// Shelf holds a few books.
type Shelf struct {
	books int
	last  time.Duration
	open  bool
}

// Put adds books, and notes when.
func (s *Shelf) Put(n int, at time.Duration) error {
	if n > 0 && s.books+n > most {
		return errFull
	}
	s.books += n
	s.last = at + time.Second
	s.open = true
	return nil
}

// Empty says whether there is no book.
func (s *Shelf) Empty() bool { return s.books == 0 }

// Unread is run by no test.
func (s *Shelf) Unread() { s.books-- }

// Count counts down, and never ends if it counts up.
func Count(n int) (steps int) {
	for n != 0 {
		n--
		steps++
	}
	return steps
}

// Sums has the forms that are hard to change: arrays, keys, shifts, type parameters.
func Sums[T ~int | ~int64](a, b T) [3]T {
	sizes := [...]T{0: a + b, 2: a - b<<1}
	if !(len(sizes) != 3) || a < 1<<4 {
		sizes[1]++
	}
	return sizes
}
