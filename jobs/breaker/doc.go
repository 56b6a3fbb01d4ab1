// Package breaker keeps calls from a dependency that fails: a circuit breaker that survives a
// restart.
//
// A Breaker is a class of objects, one for each dependency. While the dependency works,
// the breaker is closed: calls go through, and failures are counted in memory. When too many
// have failed it opens: calls are refused at once with ErrOpen, for Config.OpenFor. Then it
// is half open: a few calls go through as probes. If they succeed it closes, and if one fails
// it opens again. The words and the three states are those of M. Nygard, "Release It!".
//
//	var Bank = breaker.New(breaker.Config{Name: "bank", Failures: 5, OpenFor: time.Minute})
//
//	err := Bank.Do(ctx, host, "eu", func(ctx context.Context) error { return charge(ctx, order) })
//
// Opening, half opening and closing are commits with events, so a breaker that is open stays
// open when the process restarts. A closed one has no row, and its calls write nothing.
//
// The error that Do returns while the breaker is open says when to try again. If a run of a job
// returns it, the job waits until then, and no attempt is counted, as with jobs.Snooze.
package breaker
