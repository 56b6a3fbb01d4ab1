package main

// storeMutants are bugs of the store and what rests on it.
var storeMutants = []mutant{
	{
		Name: "numbers-begin-again-after-a-block", Promise: "S10", File: "storage/numbers.go",
		Edits: []edit{{
			Old: `block > s.through.Load() {
		s.reserve(block)`,
			New: `block > s.through.Load() && !mutant("numbers-begin-again-after-a-block") {
		s.reserve(block)`,
		}},
		Package: "storage", Test: "TestNumbersGoOnAfterABlock",
	},
}
