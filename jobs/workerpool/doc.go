// Package workerpool runs tasks that are submitted to a durable queue, each
// until it is done, dead or cancelled.
//
//   - An acknowledged task ends in exactly one of done, dead, cancelled (W2), and
//     submitted = pending + running + done + dead + cancelled in every stored
//     state (W1).
//   - A pool is split in partitions, each an object; a task goes by the hash of
//     its key (W4). Never more tasks run than Config.Concurrency (W3).
//   - Tasks with one key run in the order of their submission, one at a time or
//     up to Config.PerKey. A task that waits for a retry, or for its time, holds
//     back the later tasks of its key.
//   - In a queue the highest priority goes first. Queues share the workers by
//     weight, so none starves.
//   - A repeated submission is recognised by Idempotent for a time, or by Unique
//     until the task has ended (W8, W9).
//   - A task is run again after a failure, and after a crash, which costs it no
//     attempt (W5). So the work's effects outside of Holdfast may happen more than
//     once: use Task.OutsideKey to recognise a repeat.
//   - Tasks are run by Config.Work in this process, or by outside workers that
//     call Claim, Heartbeat, Ack and Nack.
//
// A partition keeps a bounded window of its queues in memory, however many tasks
// are stored.
package workerpool
