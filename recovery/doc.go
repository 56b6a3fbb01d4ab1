// Package recovery decides how a job goes on after a crash. It is the one home of both
// rules, of the report and of the scrubber. It reads jobs with the words of package jobs,
// and knows no job type from another. Package object finds the jobs that a crash left open
// when it opens a store, and package jobs/engine asks Check about each and does what the
// answer says.
//
//   - [Check] looks at one job as it is stored at a wake-up, and returns an action. It
//     reads nothing and changes nothing, so it may be repeated, also because of a crash
//     in the middle of a recovery (R5).
//   - An execution of an earlier opening of the store is lost by definition, because its
//     process is gone. One of this opening is lost when its work is gone and it is older
//     than [Limits].StaleThreshold (R2).
//   - A job that has something to do and no alarm is an orphan: its alarm is set to the time
//     that its schedule gives, and not to the present time (R3).
//   - [Report] lists the recoveries of a host since it was opened (R6).
//   - [Scrub] walks all jobs of a store and finds those that no wake-up would ever reach
//     again, because their rows contradict one another.
package recovery
