// Package bench measures Holdfast against the limits of its disk and its store: each
// measurement has a reference beside it that does the same bytes and syncs with bare
// Pebble, so that a figure is a ratio of one run on one machine. README.md tells how to
// run it and how to read it.
//
//   - cmd/holdfast-bench measures the rows P1 to P37, P39 and P42 to P50 of docs/PERFORMANCE.md, and the
//     scenarios of a large store.
//   - cmd/holdfast-plot draws its JSON.
//   - The Go benchmarks of this package are seven of the rows, for profiles and
//     benchstat.
//   - internal/workload has the operations, internal/raw the references,
//     internal/measure the meters, internal/rows and internal/scale the sizes,
//     internal/fail the errors of their setups.
package bench
