package main

var alarmMutants = []mutant{}
