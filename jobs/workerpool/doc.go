// Package workerpool runs tasks from a durable queue. A task is one call of a
// function with an input; it is stored by Enqueue and tried until it is done,
// dead or cancelled, whatever crashes in between.
//
// # A first program
//
// Define a pool at package level and open a host with it:
//
//	var Mails = workerpool.New(workerpool.Config[Mail, string]{
//		Name:        "mails",
//		Concurrency: 8,
//		Retry:       jobs.Retry{MaxAttempts: 5, Backoff: jobs.Constant(time.Minute)},
//		Work: func(ctx context.Context, t *workerpool.Task[Mail]) (string, error) {
//			return smtp.Send(ctx, t.In, t.OutsideKey) // returns the message id
//		},
//	})
//
//	host, err := object.Open(object.Options{Dir: "data"}, Mails)
//	...
//	task, err := Mails.Enqueue(ctx, host, Mail{To: "alice"},
//		workerpool.Key("alice"),                       // after alice's earlier mails
//		workerpool.Idempotent("order-7/paid", 0))      // once, if this line is repeated
//	id, err := Mails.Wait(ctx, host, task.ID)          // or Status, or nothing
//
// A Config without Work is a pool for outside workers: they call Claim, then
// Heartbeat while they work, and Ack or Nack at the end.
//
// # Guarantees
//
//   - An acknowledged task ends as exactly one of done, dead and cancelled (W2).
//     In every stored state, submitted = pending + running + done + dead +
//     cancelled (W1); see Stats.
//   - At most Config.Concurrency tasks run at a time (W3).
//   - Tasks with the same Key run in the order of their submission, one at a
//     time or up to Config.PerKey. A task that waits for a retry, or for its
//     time, holds back the later tasks of its key.
//   - In a queue, tasks of higher priority begin first. Queues share the workers
//     by weight, so that none starves (W4).
//   - A failed task is retried as Config.Retry says, and then becomes a dead
//     letter with its errors (W6). DeadLetters lists them; Replay and DiscardDead
//     end that state.
//   - Idempotent and Unique recognise a repeated submission (W8, W9).
//   - A task is never lost in a crash, and a crash costs it no attempt (W5).
//   - The result of a finished [Phase] is stored, and no later attempt runs that
//     phase again (H1). Its progress never falls within an attempt (H2).
//
// # Do not assume
//
//   - A task may run more than once, because a crash can come between its last
//     effect and the batch that ends it. Give other systems Task.OutsideKey as an
//     idempotency key.
//   - Tasks without a common Key have no order, and in a pool of several
//     partitions priorities hold within a partition only.
//   - Wait and Status know a done task for Config.Retention, one hour by default.
//   - Work must not wait for another task of its own pool. If all workers did,
//     no worker would be left to run those tasks.
//
// # Costs
//
// A task costs about one commit: Enqueue stores it and, if a worker is free,
// begins it in the same batch; up to 512 tasks end in one batch. Concurrent
// commits share a sync of the disk, so that many producers are much faster than
// one. docs/PERFORMANCE.md has figures: on its machine about 110,000 empty tasks
// a second with 512 producers, with or without a million tasks queued before
// them, and half a millisecond from Enqueue to done for a single task. Pass many
// tasks to EnqueueBatch, because it stores them in one commit.
//
// A partition is one object and does its bookkeeping on one processor; raise
// Config.Partitions if that is the limit. In memory it keeps a bounded window of
// each queue, however many tasks are stored. A queue of millions costs disk.
//
// # Limits
//
// An input takes at most seven eighths of object.Options.MaxValueBytes, a key 512 bytes,
// a batch 10,000 tasks. A pool has at most 64 named queues, 64 phases and 1024
// partitions, and Config.MaxQueued pending tasks; beyond them Enqueue returns
// ErrQueueFull.
package workerpool
