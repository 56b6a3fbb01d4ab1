// Package journeys has tests that do what a person does to operate a program, step by step, each in a file of its
// own: with the command holdfast and the example service as they are built, over HTTP and the Unix socket.
package journeys
