package workerpool

import "errors"

// Errors of the verbs of a pool, beside jobs.ErrNotFound, jobs.ErrInvalid and
// jobs.ErrStaleExecution. All of them leave the pool as it was.
var (
	// ErrQueueFull refuses a task while Config.MaxQueued are pending.
	ErrQueueFull = errors.New("workerpool: queue is full")
	// ErrDraining refuses a task while the pool is drained.
	ErrDraining = errors.New("workerpool: pool is draining")
	// ErrFailed is the error of Wait for a task that is dead.
	ErrFailed = errors.New("workerpool: task is dead")
	// ErrCancelled is the error of Wait for a task that was cancelled, and the
	// cause of the context of one that was asked to end.
	ErrCancelled = errors.New("workerpool: task is cancelled")
)
