package main

// poolMutants are bugs of the worker pool.
var poolMutants = []mutant{}
