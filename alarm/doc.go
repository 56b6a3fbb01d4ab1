// Package alarm knows when objects want to be woken: how an alarm is stored,
// how long a failed one waits, and which one is due next.
//
//   - A Row is an object's alarm as its store keeps it; an index value names the
//     object that has an alarm at a time. Both are written in the batch of the turn that set them.
//   - A Retry policy gives the wait after each failed attempt.
//   - A Scheduler hands out the entries of a time index as they become due, never
//     early by its clock. It keeps the near future in memory, within bounds; alarms
//     further off cost disk only.
//
// The package runs no user code and writes nothing. The index alone decides which
// alarms are due: a Scheduler that is thrown away with its process loses no alarm,
// because the next one reads the same index.
package alarm
