// Package machine simulates a computer that runs one process at a time: tasks,
// time, randomness and death.
//
//   - Tasks are coroutines. One runs at a time, and another is chosen only where
//     the running one waits, passes a point or ends, so a run is a function of
//     its seed.
//   - Time moves only by Drive, from timer to timer.
//   - A process dies at a point. Its tasks are unwound by a panic with seam.Killed, and
//     every later call of its seams panics the same, so that a dead process changes
//     nothing that survives it.
package machine
