package tap

import "slices"

// queue is a list with a cheap end at both sides. The zero value is empty.
type queue[T any] struct {
	items []T // from head on
	head  int
}

func (q *queue[T]) len() int { return len(q.items) - q.head }

func (q *queue[T]) at(i int) T { return q.items[q.head+i] }

func (q *queue[T]) push(v T) { q.items = append(q.items, v) }

// pop removes the first item, and moves the others to the front when half of the list is gone.
func (q *queue[T]) pop() T {
	v := q.items[q.head]
	var none T
	q.items[q.head] = none
	q.head++
	if 2*q.head >= len(q.items) {
		q.items, q.head = slices.Delete(q.items, 0, q.head), 0
	}
	return v
}
