package main

// turnMutants are bugs of calls and turns.
var turnMutants = []mutant{}
