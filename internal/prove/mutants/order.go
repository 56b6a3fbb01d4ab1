package main

// orderMutants change the order in which a store keeps commits.
var orderMutants = []mutant{
	{
		Name: "commits-of-one-sync-stored-backwards", Promise: "S9", File: "storage/memstore/memstore.go",
		Edits: []edit{
			{
				Old: `	later  []*node // the root after each batch applied since the last Sync
`,
				New: `	later  []*node // the root after each batch applied since the last Sync
	round  [][]byte
`,
			},
			{
				Old: `	s.later = append(s.later, root)
`,
				New: `	s.later = append(s.later, root)
	s.round = append(s.round, append([]byte(nil), repr...))
`,
			},
			{
				Old: `	s.synced = s.root
`,
				New: `	backwards := &Store{root: s.synced}
	for i := len(s.round) - 1; i >= 0; i-- {
		_ = backwards.Apply(s.round[i])
	}
	s.round = nil
	s.synced = s.root
	if mutant("commits-of-one-sync-stored-backwards") {
		s.synced = backwards.root
	}
`,
			},
		},
		Package: "object", Test: "TestCrashManyCallersOfOneSync/map",
	},
}
