// Package patterns is the code of docs/PATTERNS.md: how objects and jobs do what a
// program with queues and a database does in other ways. Each pattern has a file, and
// beside it a crash test that kills the process at each point where it can matter:
//
//	go test -v ./examples/patterns
package patterns
