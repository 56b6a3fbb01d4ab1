// Package continuous runs one piece of work again and again, by a schedule, for
// each of any number of ids, with a state that is carried from run to run.
//
//   - The state after run n is what Run made of the state after run n-1: no run
//     is skipped and none counts twice, whatever crashes (C3).
//   - A run that fails or is cut off leaves the state as it was. It is tried
//     again with the same Run.Number and Run.Key, which make effects outside of
//     the store idempotent (J6, J8).
//   - After a long stop the job runs once, promptly, and then by its schedule
//     (C2). Nothing needs to call it.
//   - Between two runs a job is a few rows on disk and costs no memory.
//
// A definition is made once, at package level, and given to object.Open:
//
//	var Refresh = continuous.New(continuous.Config[Token]{
//		Name:     "token-refresh",
//		Schedule: jobs.Every(30 * time.Minute),
//		Run: func(ctx context.Context, run *continuous.Run[Token]) error {
//			...
//			run.State.Access = access // stored when Run returns nil
//			return nil
//		},
//	})
package continuous
