package main

// suspectMutants are bugs of work that kills its process.
var suspectMutants = []mutant{}
