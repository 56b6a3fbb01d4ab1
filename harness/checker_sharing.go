package harness

import "errors"

// NoSharedMemory checks that no handler keeps in its object, when it returns, memory of
// its argument or of its answer: a slice, a map or a pointer that the caller has too.
// Otherwise a later write of the caller would change the object outside of its turns.
// It looks at up to 10,000 values of the object, and not behind functions.
func NoSharedMemory(c *Config) { c.sharing = true }

// WatchesSharing reports whether the run is checked by NoSharedMemory.
func (p *processProbe) WatchesSharing() bool { return p.s.cfg.sharing }

// Shared makes a handler that keeps memory of its caller the problem of the run.
func (p *processProbe) Shared(object, problem string) {
	p.s.report("NoSharedMemory", "no handler keeps memory of its argument or answer (see Method.Call)", concerning{errors.New(problem), object})
}
