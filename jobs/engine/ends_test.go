package engine

import (
	"slices"
	"testing"
)

// Ends share a batch up to its number and its bytes, and an end that is larger has
// one of its own.
func TestEndsShareABatch(t *testing.T) {
	const half = 10_000
	var q endQueue
	for i, size := range []int{0, half, half, 1, 4 * half, 3, 4, 5} {
		if serve := q.add(end{size: size}); serve != (i == 0) {
			t.Errorf("end %d must serve the queue: %v", i, serve)
		}
	}
	const limit = 3
	for i, want := range [][]int{{0, half, half}, {1}, {4 * half}, {3, 4, 5}, nil} {
		var got []int
		for _, end := range q.take(limit, 2*half+3*endBytes) {
			got = append(got, end.size)
		}
		if !slices.Equal(got, want) {
			t.Errorf("batch %d has ends of %d bytes, want %d", i, got, want)
		}
	}
	if !q.add(end{}) {
		t.Error("nobody serves the queue")
	}
}
