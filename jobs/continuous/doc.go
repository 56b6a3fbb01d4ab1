// Package continuous runs a function again and again by a schedule, for each of
// any number of ids, with a state that is carried from run to run. For example,
// it refreshes an access token every half hour for each of a million accounts.
//
// # A first program
//
// Define a job at package level and open a host with it:
//
//	var Refresh = continuous.New(continuous.Config[Token]{
//		Name:     "token-refresh",
//		Schedule: jobs.Every(30 * time.Minute),
//		Retry:    jobs.Retry{MaxAttempts: 5},
//		Run: func(ctx context.Context, run *continuous.Run[Token]) error {
//			access, err := auth.Refresh(ctx, run.State.Refresh, run.Key)
//			if err != nil {
//				return err // tried again; the state stays as it was
//			}
//			run.State.Access = access // stored because Run returns nil
//			return nil
//		},
//	})
//
//	host, err := object.Open(object.Options{Dir: "data"}, Refresh)
//	...
//	started, err := Refresh.Start(ctx, host, "account-7", Token{Refresh: secret})
//
// # Guarantees
//
//   - The state after run n is the result of Run on the state after run n-1. No
//     run is skipped and none counts twice, whatever crashes (C3).
//   - A run that fails or is cut off leaves the state as it was. It is tried
//     again with the same Run.Number and Run.Key (J6, J8).
//   - After a long stop the job runs once, promptly, and then by its schedule
//     (C2), without a call of the program.
//
// # Do not assume
//
//   - Run may be called more than once for the same run, because a crash can
//     come between its last effect and the batch that ends it. Give other systems
//     Run.Key as an idempotency key.
//   - A run may be late, for example after a downtime; Run.Scheduled says when it
//     was due.
//
// # Costs and limits
//
// A run is two commits, because a crash between its begin and its end must be
// found. Between runs a job is a few rows on disk and one alarm; it
// needs no memory and no goroutine. Jobs run concurrently, up to
// Config.Concurrency; each job runs one at a time. A state takes at most
// object.Options.MaxValueBytes.
package continuous
