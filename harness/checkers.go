package harness

// NoLostAck checks that no reply is let out before the commit of its turn is
// synced. That an acknowledged change is still there at the end is for
// StateMatches, or the scenario, to say.
func NoLostAck(c *Config) { c.gateCheck = true }

// OneAlarm checks in each state that a crash leaves that every alarm row has one
// entry in the time index, and the reverse.
func OneAlarm(c *Config) {
	c.checks = append(c.checks, check{
		name:    "OneAlarm",
		promise: "A1: in every stored state each alarm row has exactly one index entry and the reverse",
		stored:  func(_ *Sim, view *storedState) error { return view.Check() },
	})
}

// StateMatches adds a check of the state that a run ends with, against what the
// test knows it must be.
func StateMatches(model func(s *Sim) error) Option {
	return checker(check{name: "StateMatches", end: model})
}
