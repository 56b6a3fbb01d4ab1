package harness

// Failed replays a plan and returns its failure, or nil.
func Failed(scenario Scenario, planText string, opts ...Option) *Failure {
	p, err := parsePlan(planText)
	if err != nil {
		panic(err)
	}
	r := &runner{cfg: newConfig(opts), scenario: scenario}
	var out outcome
	if err := r.guard(func() { out = r.run(p) }); err != nil {
		panic(err)
	}
	return out.problem
}
