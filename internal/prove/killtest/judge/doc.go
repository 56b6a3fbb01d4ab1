// Package judge compares the answers that a program got with the rows of its store.
//
// The program writes a [Line] for each call before it makes it, for each answer when it
// has it, and for each effect of its works outside the store. A pipe takes the lines,
// so that a kill -9 loses none that was written. A [Book] reads them over all lives of
// a store. After each life the caller reads the store into a [Stored], with no code of
// the program or the runtime, and [Book.Check] returns the promises that the two
// together break. Nothing here reads a store or a clock.
package judge
