// Package measure turns loops of operations into figures: rates, latencies and costs of
// an operation, and says how far several rounds lie apart.
package measure
