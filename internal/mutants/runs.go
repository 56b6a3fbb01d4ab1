package main

// runMutants are bugs of runs and their hooks.
var runMutants = []mutant{}
