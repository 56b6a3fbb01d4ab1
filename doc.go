// Package holdfast is the durable object you can import. It has no code of its own;
// this page tells the promises of the module, and its packages.
//
// An object is named by its class and a name, and lives in an embedded store. Its
// handlers run one at a time. The rows that a handler writes, the object's one alarm
// and its events are one commit, which is on disk before a reply leaves. A job is an
// object that has work to do: on a schedule, after a burst of events, or for each task
// of a queue. A process that holds objects may die at any instant; the next one finds
// what was open and goes on.
//
// The packages, from the top:
//
//   - [github.com/holdfast-dev/holdfast/jobs/continuous],
//     [github.com/holdfast-dev/holdfast/jobs/debounce],
//     [github.com/holdfast-dev/holdfast/jobs/workerpool] and
//     [github.com/holdfast-dev/holdfast/jobs/workflow] are the types of jobs.
//   - [github.com/holdfast-dev/holdfast/jobs] has their common parts: metadata,
//     schedules, retries and the life cycle of an execution.
//   - [github.com/holdfast-dev/holdfast/recovery] decides how work goes on that a crash
//     left open.
//   - [github.com/holdfast-dev/holdfast/object] is where most programs begin:
//     Define, Handle, Open.
//   - [github.com/holdfast-dev/holdfast/alarm] knows which object is due next.
//   - [github.com/holdfast-dev/holdfast/storage] keeps all rows of a host.
//   - [github.com/holdfast-dev/holdfast/seam] is where time, goroutines and
//     randomness come from.
//   - [github.com/holdfast-dev/holdfast/harness] crashes your own objects and jobs
//     in an ordinary go test, at every point where it can matter.
//
// docs/CONTRACT.md lists every promise by number, ARCHITECTURE.md says how they are
// kept, and FORMAT.md has the bytes on disk.
package holdfast
