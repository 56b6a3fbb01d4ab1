// Package jobs has the words that every user of a job meets: schedules, retries,
// statuses, errors, kinds of events, and the metadata of a job. The jobs themselves
// are of one of the types in the packages below it:
//
//   - continuous runs one piece of work again and again, by a schedule, on a state.
//   - debounce collects events and handles many of them together.
//   - workerpool runs many tasks, each once.
//   - workflow runs functions with many recorded steps, which survive their process.
//
// A job is an object. Its type and definition are the object's class, and its id is the
// object's name (J1). Authors of further types use package engine, which executes runs
// for all types; users need it only for the errors and rows that a tool looks at.
//
// # A first program
//
// This job polls a feed every 30 minutes. It tries a failed run five times, waits 1 s
// after the first failure, 2 s after the second, and so on, and never tries again after
// an error that is Permanent:
//
//	var Polls = continuous.New(continuous.Config[int]{
//		Name:     "poll",
//		Schedule: jobs.Every(30 * time.Minute),
//		Retry:    jobs.Retry{MaxAttempts: 5, Backoff: jobs.Exponential(time.Second, time.Minute)},
//		Run: func(ctx context.Context, run *continuous.Run[int]) error {
//			n, err := fetch(ctx, run.ID, run.State)
//			if errors.Is(err, errNoSuchFeed) {
//				return jobs.Permanent(err)
//			}
//			run.State += n
//			return err
//		},
//	})
//
//	host, err := object.Open(object.Options{Dir: "data"}, Polls)
//	...
//	_, err = Polls.Start(ctx, host, "news", 0)
//
// # Guarantees
//
//   - An execution is two batches: one begins it, one ends it. The second stores the
//     result, the counters, the status, the events and the next alarm together, or
//     nothing of them (J5). A result counts exactly once.
//   - A status moves only along one table: see Status.CanMove (J3). A verb that the table
//     does not allow returns a *MoveError and changes nothing.
//   - Each change of a job, and each begin and end of an execution, emits exactly one
//     event, in the batch of the change (J11). The kinds are the Event constants.
//   - A run that a crash cut off is executed again, with the same number and the same
//     key (R2). Crashes are counted apart from failures (J9, R4).
//   - A schedule depends on its Cursor, which is stored, and not on the present: after a
//     downtime the policy Missed says which occurrences still happen (C2).
//
// # Not promised
//
//   - Work is done at least once, not exactly once: the process may die after the work
//     and before the end batch. So hand the key of the run to each service outside.
//   - Work that a timeout or a verb has cancelled may go on for a while, because Go
//     cannot end a goroutine. It cannot store anything any more (J8).
//   - A retry is not at the given time but at that time or later: when work may begin,
//     and when the host runs.
//   - The text of an error is for people. Compare errors with errors.Is and errors.As.
//
// # Costs and limits
//
// A run costs two commits, and one more for each third of its lease. Waiting costs
// nothing in memory: the next run is the object's one alarm. The text of an error is
// stored up to 2 KiB, a stack up to object.MaxStackBytes, the Version of a definition up
// to 128 bytes. The shortest period of a schedule is a millisecond. Times from 1970 to
// 2262 can be stored.
//
// All values of this package may be used by many goroutines at a time.
package jobs
