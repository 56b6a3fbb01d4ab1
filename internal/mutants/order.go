package main

// orderMutants are bugs of the order of commits.
var orderMutants = []mutant{}
