// Package admin lists the jobs of a store and runs their verbs by name, for tools such as a
// command line. It works on a live host, and as far as stored rows tell on a directory.
//
//	a := admin.Live(host, shop.Definitions...)
//	page, err := a.Jobs(ctx, admin.JobsOptions{Label: "failed"})
//	for _, job := range page.Jobs {
//		_, err = a.Do(ctx, job.ID, "resume", nil)
//	}
//
// Lists are read from stored rows. So they run no code, load no object into memory, and also show
// the jobs of a class that the program no longer defines (G2). Verbs run the typed methods of the
// job types that the program defines, see package verbs.
//
// It checks no caller: a program that has an Admin may do all that it offers. The Role in each
// verb's description is for the adapter in front of it.
package admin
