package main

// storeMutants are bugs of the store and what rests on it.
var storeMutants = []mutant{}
