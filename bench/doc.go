// Package bench measures Holdfast against what its disk and its store allow: each
// benchmark has a reference beside it that does the same bytes and syncs with
// bare Pebble, so that a figure is a ratio of one run on one machine.
//
//	go test -bench . -benchtime 2s
//
// docs/PERFORMANCE.md holds the targets (P1 to P19) and the latest figures.
package bench
