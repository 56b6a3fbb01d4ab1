package main

// poolMutants are bugs of the worker pool.
var poolMutants = []mutant{
	{
		Name: "batch-refused-after-its-first-write", Promise: "W6", File: "jobs/workerpool/submit.go",
		Edits: []edit{{
			Old: `	refs, same, err := p.admitAll(ctx, inputs, all)
	if err != nil {
`,
			New: `	refs, same, err := p.admitAll(ctx, inputs, all)
	if err != nil && mutant("batch-refused-after-its-first-write") {
		_, bad := p.add(ctx, inputs[0], &all[0])
		return nil, errors.Join(err, bad)
	}
	if err != nil {
`,
		}, {
			Old: `import (
	"context"
`,
			New: `import (
	"context"
	"errors"
`,
		}},
		Package: "jobs/workerpool", Test: "TestRefusedBatchLeavesRunningWork",
	},
	{
		Name: "dead-letters-not-counted-by-bytes", Promise: "W6", File: "jobs/workerpool/dead.go",
		Edits: []edit{{
			Old: `bytes > limitBytes && len(rows) > 0 {`,
			New: `bytes > limitBytes && len(rows) > 0 && !mutant("dead-letters-not-counted-by-bytes") {`,
		}},
		Package: "jobs/workerpool", Test: "TestLargeDeadLetters",
	},
}
