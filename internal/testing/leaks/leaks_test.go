package leaks

import "testing"

// A goroutine that stays is found, and one that only has yet to run is none.
func TestFind(t *testing.T) {
	stay := make(chan struct{})
	go func() { <-stay }()
	if find(1) == nil {
		t.Error("a goroutine that waits was not found")
	}
	close(stay)
	None(t)
}
