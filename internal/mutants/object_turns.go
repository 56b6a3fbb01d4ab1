package main

// turnMutants are bugs of calls and turns.
var turnMutants = []mutant{
	{
		Name: "lent-turn-waits-for-nobody", Promise: "O8", File: "object/host.go",
		Edits: []edit{{
			Old: `	if t == nil {
		return h.outside(ctx, c, r)`,
			New: `	if t == nil || mutant("lent-turn-waits-for-nobody") {
		return h.outside(ctx, c, r)`,
		}},
		Package: "object", Test: "TestCirclesThroughLentTurns",
	},
	{
		Name: "repeat-waits-for-nobody", Promise: "O8", File: "object/idempotent.go",
		Edits: []edit{{
			Old: `		if err := h.waits.begin(t, a, on); err != nil {
			return err
		}
`,
			New: `		if mutant("repeat-waits-for-nobody") {
			return h.seams.Executor.Wait(ctx, first.back)
		}
		if err := h.waits.begin(t, a, on); err != nil {
			return err
		}
`,
		}},
		Package: "object", Test: "TestCircleThroughARepeat",
	},
	{
		Name: "lent-turn-needs-no-object", Promise: "O8", File: "object/waits.go",
		Edits: []edit{{
			Old: `t.turn.phase.Load() == phaseLost {`,
			New: `t.turn.phase.Load() == phaseLost || t.turn.phase.Load() == phaseLent && mutant("lent-turn-needs-no-object") {`,
		}},
		Package: "object", Test: "TestALentTurnNeedsItsObjectBack",
	},
}
