package main

var storageMutants = []mutant{
	{
		Number: 7, Name: "commit-without-sync", Promise: "S9", File: "storage/pebble.go",
		Edits: []edit{{
			Old: `	if err := e.db.LogData(nil, pebble.Sync); err != nil {`,
			New: `	how := pebble.Sync
	if mutant("commit-without-sync") {
		how = pebble.NoSync
	}
	if err := e.db.LogData(nil, how); err != nil {`,
		}},
		Package: "object", Test: "TestCrashDeposits/pebble",
	},
}
