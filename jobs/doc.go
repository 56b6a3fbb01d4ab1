// Package jobs holds what all job types share: the metadata and the status of a
// job, its schedule and its retries, and the one life cycle of an execution.
//
//   - A job is an object; its id is the object's name, its type a class (J1).
//   - An execution is two batches (J5). The begin batch stores that it is open,
//     with the time of its next lease check as the object's alarm. Then the work
//     runs beside the turns of the object. The end batch stores what it made,
//     what follows, and the next alarm.
//   - What an alarm means is never stored. At each wake-up the engine derives
//     from the state what is due, and arms the earliest of what remains.
//   - An execution has a token; an end with another token changes nothing (J8).
//   - A lost execution is found by the next activation and runs again with the
//     same run number, until its recoveries are used up (R2, R4).
//
// A job type gives only what to run, what to store at the end, and when next.
// [Engine] keeps any number of executions open in one object; [Life] is the
// life of a job that has at most one. Programs use a type over them:
// continuous, debounce or workerpool.
package jobs
