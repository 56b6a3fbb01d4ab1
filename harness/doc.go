// Package harness crashes a whole host at every point where a crash can matter,
// and shows that each promise holds all the same. It is for tests.
//
//	func TestCartSurvivesCrashes(t *testing.T) {
//		harness.Exhaust(t, func(s *harness.Sim) {
//			s.Host(Carts)                                      // opens a simulated host
//			s.Must(Add.Call(s.Context(), s, "alice", 499))     // the Sim is the caller
//			s.Advance(time.Hour)                               // virtual time: alarms fire
//		}, harness.Depth(2), harness.NoLostAck)
//	}
//
// Exhaust runs the scenario once without a crash and notes each point that it
// passes: before and after each commit, sync, acknowledgement and outside effect.
// Then it runs it again for each of them, kills the process there, opens the
// store that the crash leaves, goes on, and checks. Depth(2) crashes a second time at each later
// point, and so inside recovery too.
//
//   - A scenario is run many times, each in a fresh world. All that it uses must
//     be made in it, and it must do the same each time.
//   - Time is virtual and tasks run one at a time. Code under test waits through
//     its seams (Driver.Seams, State.Release), never on a bare channel, and starts
//     work with State.Go: a goroutine of its own that calls into the host is found
//     in the first two runs, and named.
//   - A call whose process dies before the reply is Unknown: it may have happened
//     or not. Must takes that for an answer, Retry calls again.
//   - A failure prints the broken promise, the points around the crash, the stored
//     rows before and after it, and a line for Replay.
//
// docs/TESTING.md is a tutorial: a job with two bugs, the failures as printed, the
// fixes, each checker and fault, and the limits of the method.
//
// # Checks
//
// A scenario fails like a test, with Sim.Errorf, Sim.Always or Sim.Finally. Options
// add checks that hold for each run:
//
//	harness.Exhaust(t, scenario,
//		harness.NoLostAck,                  // no reply before its commit is synced
//		harness.NoCallBeforeCommit,         // no half of a change of two objects
//		harness.NeverOrphaned,              // no open work that nothing will take up
//		harness.NoStuck,                    // no workflow that cannot go on
//		harness.OneEnd,                     // no workflow with two outcomes
//		harness.NoDoubleEffect("payment/"), // no payment twice
//		harness.RecoversWithin(time.Minute))
//
// A check with a key, such as NoDoubleEffect, looks at the effects that handlers and
// routines report to Sim.World, by World.Do, or by DoOnce for a service that knows
// idempotency keys. A check of the store, such as Invariant, runs after each
// crash on a copy, because reads of a scenario must not change the run.
//
// Exhaust, Check and Fuzz answer different questions. Exhaust tries each point, and
// with Depth(2) each pair of points, of one scenario without random inputs. Check draws
// inputs and crashes with rapid, for properties with many inputs. Fuzz leaves the
// choices to the fuzzer of the go command.
//
// # Faults
//
// Beside crashes a run may meet other faults, if the option AllowFaults, or
// Sim.AllowFaults, allows them: a commit that fails, a step or timer that is late, a
// clock that jumps, an alarm's timer that is lost, an alarm that is delivered twice,
// an effect or reply that arrives after its process has died (a zombie), and an effect
// that is done while its caller gets an error. A commit
// of a dead process never arrives, because each change of the store asks first
// whether its process lives, as the lock of the directory does outside of a
// simulation. Faults are chosen by the schedule, so that Replay makes them again, and
// end with the scenario.
//
//	harness.Exhaust(t, scenario, harness.AllowFaults(harness.Faults{FailCommit: 1, Slow: time.Minute}))
//
// # Longer runs, without a change of the code
//
// The environment variable HOLDFAST_CRASHTEST overrides the options of every
// Exhaust, Check and Fuzz of a test run. It is a list between commas:
//
//	HOLDFAST_CRASHTEST=depth=2,budget=20000,store=pebble go test -count=1 ./...
//
//	depth=   1 or 2, as the option Depth
//	budget=  schedules of each Exhaust, as the option Budget
//	store=   map, pebble, log or takeover
//	seed=    of each Exhaust, as the option Seed; Check takes rapid's -rapid.seed
//	workers= runs of each Exhaust at a time, as the option Workers
//	report=  a file, by its absolute path, to which each of them appends its
//	         Report as one line of JSON
//
// The flag -rapid.checks says how many schedules each Check runs.
package harness
