// Package recovery finds work that a crash left open and says what to do about
// it. It knows no job type from another.
//
//   - [Check] looks at one job as its stored state shows it at a wake-up, and
//     returns what is to be done. It reads nothing and changes nothing, so that
//     it may be repeated, also after a crash in the middle of a recovery (R5).
//   - An execution of an earlier open of the store is lost by definition; of
//     this one it is lost when it is old and its work is not alive (R2).
//   - [Report] is what a host has recovered since it was opened (R6).
//   - [Scrub] walks all jobs of a store and finds those that no wake-up would
//     ever reach again.
package recovery
