//go:build race

package server

// The race detector ends a process with more than 8,128 goroutines, and a stream has two.
func init() { many = 2000 }
