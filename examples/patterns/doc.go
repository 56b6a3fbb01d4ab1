// Package patterns is the code of docs/PATTERNS.md: the usual tasks of programs with
// queues and a database, done with objects and jobs. Each pattern has a file, and
// beside it a crash test that kills the process at each point where it can matter:
//
//	go test -v ./examples/patterns
package patterns
