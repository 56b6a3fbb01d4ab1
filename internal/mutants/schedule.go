package main

// scheduleMutants are bugs of schedules and retries.
var scheduleMutants = []mutant{}
