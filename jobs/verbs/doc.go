// Package verbs calls the methods of jobs by name, with JSON in and JSON out.
//
// A program calls the typed methods of a job type, for example Job.Stop of package continuous.
// A command line or an HTTP adapter does not know those types. It asks the job type for its
// Table, in which the type describes each of its verbs and views once:
//
//	table := reports.Verbs()
//	for _, v := range table.Verbs() {
//		fmt.Println(v.Name, v.Argument, v.Help)
//	}
//	_, err := table.Do(ctx, host, "daily", "stop", []byte(`{"reason": "no longer needed"}`))
//
// A verb may change a job, and a view changes nothing. Both run the typed method of the same
// effect, so each rule of that method holds: its checks, its errors and its durability (G1).
//
//   - An argument is one JSON value. A field that its type does not have is refused, so that a
//     misspelt field is not left out silently.
//   - An answer is one JSON value, or empty if the method has no answer.
//   - The Role says for which callers an adapter should run a verb. This package checks no
//     caller, because it knows none: a program that has the table may call all of it.
//   - The Effect says how far a verb can be taken back, so that a page for people asks before
//     those that are Final.
//
// All four job types are Described. An author of another type makes its Table with New.
package verbs
