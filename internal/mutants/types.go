package main

var typeMutants = []mutant{}
