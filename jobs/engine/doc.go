// Package engine is for authors of job types. It executes runs: it begins them, keeps
// their leases, ends them, tries failed ones again, and recovers those that were lost.
// Users of the types continuous, debounce and workerpool do not need it.
//
// A job type adds three things: the work to run, the rows to store at the end, and the
// time of the next run. It is one of two:
//
//   - a [Policy] over an [Engine], which keeps any number of executions open in one
//     object, such as a partition of a worker pool;
//   - a [Type] over a [Job], which has at most one execution open, metadata, a status and
//     the verbs Create, RunNow, Pause, PauseUntil, Resume, Stop, EndNow and Terminate.
//
// # A first job type
//
// A box sends its one letter and is empty then. Its constructor reads its rows and
// attaches the engine; its alarm is the engine's:
//
//	type box struct {
//		st     *object.State
//		engine *engine.Engine
//		run    jobs.Run // of the letter; Number 0: the box is empty
//	}
//
//	func load(ctx context.Context, st *object.State) (b *box, err error) {
//		b = &box{st: st}
//		if _, err = st.Storage().GetInto(ctx, "run", &b.run); err != nil {
//			return nil, err
//		}
//		b.engine, err = engine.Attach(ctx, st, engine.Options{}, b)
//		return b, err
//	}
//
//	func (b *box) Alarm(ctx context.Context, info object.AlarmInfo) error { return b.engine.Alarm(ctx, info) }
//
//	func (b *box) Next() time.Time {
//		if b.run.Number == 0 || b.engine.Count() > 0 {
//			return time.Time{} // nothing is to be begun
//		}
//		return cmp.Or(b.run.RetryAt, b.run.Scheduled)
//	}
//
//	func (b *box) Due(ctx context.Context, now time.Time) error {
//		if at := b.Next(); at.IsZero() || at.After(now) {
//			return nil
//		}
//		_, err := b.engine.Begin(ctx, engine.Spec{Run: b.run, Work: send})
//		return err
//	}
//
//	func (b *box) Ended(ctx context.Context, x engine.Execution, out engine.Outcome) error {
//		run := jobs.Run{}
//		if out.Waits() {
//			run = out.Run // Due begins it again at run.RetryAt
//		}
//		err := b.st.Storage().Put(ctx, "run", run)
//		if err == nil {
//			b.run = run
//		}
//		return err
//	}
//
// The class is defined with [ClassOptions]. A handler that changes something runs in
// [Engine.Turn]. examples/crashtest has a whole type like this one, and its crash test. A type
// that describes its methods by package jobs/verbs can be used by tools that have no Go types.
//
// # Jobs that complete
//
// The type above runs its work once; a Job may do so too, and end by itself. Its work
// returns a [Result] with the [Wish] Complete, Fail or Cancel, and the end batch stores that
// end with its time (J21). JobOptions.Retention says how long the job is kept then.
//
// Work that repeats a record of its steps, as a workflow does, needs four things more:
//
//   - JobOptions.Stuck, so that a failure of the code, such as a step that a deploy has
//     renamed, does not end the job. It is tried again until the code is right (J20).
//   - [Engine.Progressed], in the turn that records a step, so that a run of a thousand
//     steps is not given up for four crashes between different ones (R4).
//   - JobOptions.FreeResets, so that a failed turn of the object, which cuts the work off,
//     counts as no loss.
//   - [Heal] in the Class.AtOpen of the type, so that the process with the right code tries
//     the stuck jobs soon.
//
// # Guarantees
//
//   - An execution is two batches (J5). The begin batch stores that it is open, with the
//     time of its next lease check as the object's alarm. Then the work runs beside the
//     turns. The end batch stores the result, the next status, and the next alarm.
//   - The meaning of an alarm is never stored. At each wake-up the engine derives from the
//     stored state which tasks are due, and arms the earliest time of those that remain.
//   - An execution has a [Token]; an end with another token changes nothing (J8).
//   - A lost execution is found by the next instance, or by its lease, and runs again
//     with the same run number, until its recoveries are used up (R2, R4).
//   - Policy.Ended is called once for each execution that ends, in its end batch.
//
// # Not promised
//
//   - Work may run more often than it ends, because a crash can come between: it is given
//     Execution.Key, which is the same in each repeat.
//   - The methods of a Policy or a Type run in turns and must not wait. They write first
//     and change memory after that: a turn that fails after a write resets the instance,
//     and one that fails before it must have changed nothing.
//   - Only the engine sets the object's alarm and its open-execution mark. A type that sets
//     the alarm itself loses wake-ups.
//   - Next and IdleEnd depend on stored values alone, and not on the present time.
//
// # Costs and limits
//
// An execution costs two commits and one row of about 100 bytes while it is open, and a
// commit for each Heartbeat. Executions that end while an end batch is being stored share
// the next batch, up to Options.MergeEnds of them and a quarter of the largest batch. The
// text of an error is stored up to [MaxTextBytes]. Executions, tokens and outcomes are
// values; an Engine and a Job belong to one instance, and their methods need a turn.
package engine
