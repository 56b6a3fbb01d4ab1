// Package bench measures Holdfast against what its disk and its store allow: each
// measurement has a reference beside it that does the same bytes and syncs with
// bare Pebble, so that a figure is a ratio of one run on one machine. README.md
// tells how to run it and how to read it.
//
//   - cmd/holdfast-bench measures the rows P1 to P19 of docs/PERFORMANCE.md, and the
//     scenarios of a large store.
//   - cmd/holdfast-plot draws its JSON.
//   - The Go benchmarks of this package are seven of the rows, for profiles and
//     benchstat.
//   - internal/workload is what is measured, internal/raw what it is compared with,
//     internal/measure how, internal/rows and internal/scale at which sizes.
package bench
