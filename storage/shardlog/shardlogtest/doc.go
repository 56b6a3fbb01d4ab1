// Package shardlogtest finds out whether a shardlog.Log, and a Directory and Blobs beside it, keep their promises.
//
// One test runs all cases on an implementation:
//
//	func TestLog(t *testing.T) {
//		log := open(t)
//		shardlogtest.Run(t, shardlogtest.Config{Log: log, Restart: ..., Base: ..., Lose: ...})
//	}
//
// RunDirectory does the same for a shardlog.Directory with its shardlog.Blobs.
//
// The cases are of order, fence, repeats, unknown outcomes, bases, reads, quarantine and power loss. They wait for no time, and
// the implementation may leave the outcome of any call unknown: the suite repeats the call, as an owner does.
//
// Some promises need the engine itself, for example its settings that change under load. Tests of those belong to the
// implementation. They take Claim, Writer and Records from here, and Cases with Failures to see that an engine with a wrong setting
// fails the very case that is for it.
//
// The package's own tests run the suite on liars, each of which breaks one promise, and see it fail in the right case.
package shardlogtest
