// Package measure turns loops of operations into figures: rates, latencies and
// what an operation costs, and says how far several rounds lie apart.
package measure
