// Package realtime runs whole hosts, with objects, alarms and jobs of every type, on
// the real executor in bubbles of testing/synctest: time jumps, and a goroutine that
// is left over or waits for ever ends the test. It holds tests only.
//
// A whole year of a job that runs each minute is
//
//	go test ./internal/prove/realtime -run TestYear -v -args -days 365
package realtime
