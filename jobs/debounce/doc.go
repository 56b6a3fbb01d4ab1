// Package debounce collects events and hands them over together: after a quiet
// time, at the end of a window, when there are enough of them, or on request.
//
//   - An added event is stored when Add returns, with its place in the flush, the
//     mark of its id and the alarm, in one batch (D1). A repeat of the id within
//     the dedup time gets the first answer and changes nothing (D2).
//   - Events are collected in generations. A flush is of one generation: every
//     retry of it, after an error or a crash, sees the same events under the same
//     key, and what is added meanwhile belongs to the next (D3).
//   - A flush that succeeds removes its events in the batch that ends it, so its
//     state changes happen once; its outside effects may happen again after a
//     crash, under the same key.
//   - When a generation is due follows from the times of its events. A process
//     that was down flushes soon after it is up, with the cause of then (D4).
//
// A job needs no start: the first event makes it. It ends with Terminate, or by itself
// when it has been idle for the dedup time (D6): then nothing is left that a later
// event could be told, and the next one begins a new life.
package debounce
