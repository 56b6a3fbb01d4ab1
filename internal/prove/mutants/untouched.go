package main

// untouchedMutants are bugs of the facts that an error tells about its call: O20 and O21.
var untouchedMutants = []mutant{
	{
		Name: "untouched-after-a-sync", Promise: "O21", File: "object/call.go",
		Edits: []edit{{
			Old: `if r.left || !r.draft.at.IsZero() ||`,
			New: `if r.left || !r.draft.at.IsZero() && !mutant("untouched-after-a-sync") ||`,
		}},
		Package: "object", Test: "TestUntouched",
	},
	{
		Name: "untouched-after-a-call-of-another", Promise: "O21", File: "object/call.go",
		Edits: []edit{{
			Old: `r.turn != nil && h.waits.called(r.turn)`,
			New: `r.turn != nil && h.waits.called(r.turn) && !mutant("untouched-after-a-call-of-another")`,
		}},
		Package: "object", Test: "TestUntouched",
	},
	{
		Name: "the-error-of-another-call-tells-untouched", Promise: "O21", File: "object/call.go",
		Edits: []edit{{
			Old: `if u, ok := err.(*untouched); ok {`,
			New: `if u, ok := err.(*untouched); ok && !mutant("the-error-of-another-call-tells-untouched") {`,
		}},
		Package: "object", Test: "TestUntouched",
	},
	{
		Name: "a-wake-ends-its-constructor", Promise: "O20", File: "object/host_recovery.go",
		Edits: []edit{{
			Old: `r.detached = true`,
			New: `r.detached = !mutant("a-wake-ends-its-constructor")`,
		}},
		Package: "object", Test: "TestWakeCallerLeaves",
	},
}
