//go:build race

package storagetest

// Under the race detector a point costs up to a hundred times as much.
func init() { slowdown = 50 }
