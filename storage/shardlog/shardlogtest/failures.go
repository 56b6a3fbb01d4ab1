package shardlogtest

import (
	"fmt"
	"runtime"
	"sync"
)

// Failures runs a case in a goroutine of its own and returns the messages with which it failed, none if it passed. With
// it a test sees that a case finds a fault.
func Failures(k Case) []string {
	var r recorder
	done := make(chan struct{})
	go func() {
		defer close(done)
		k.Run(&r)
	}()
	<-done
	return r.messages
}

// recorder is a TB that keeps the failures.
type recorder struct {
	mu       sync.Mutex
	messages []string
}

// Helper implements TB.
func (r *recorder) Helper() {}

// Errorf implements TB.
func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.messages = append(r.messages, fmt.Sprintf(format, args...))
}

// Fatalf implements TB. It ends the goroutine of the case.
func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}
