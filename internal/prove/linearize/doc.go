// Package linearize proves that hosts are linearizable on the real executor: many
// goroutines call a few objects while the store is cut off at random moments, and
// porcupine looks for an order of the calls that explains every answer. A simulation
// cannot show this, since it runs one task at a time. It holds tests only.
//
// A second kind of history has several hosts over one log, which take it over from one another.
//
// A long run of each is
//
//	go test ./internal/prove/linearize -run TestHistories -v -args -histories 300 -ops 2000
//	go test ./internal/prove/linearize -run TestTakeovers -v -args -takeovers 200
package linearize
