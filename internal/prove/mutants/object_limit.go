package main

// limitMutants are bugs of the context of a section with a limit.
var limitMutants = []mutant{
	{
		Name: "limit-ends-no-context", Promise: "O4", File: "object/turn_sections.go",
		Edits: []edit{{
			Old: `	l.cancel(ErrTimeout)
`,
			New: `	if !mutant("limit-ends-no-context") {
		l.cancel(ErrTimeout)
	}
`,
		}},
		Package: "object", Test: "TestLimitedContext",
	},
	{
		Name: "section-outlived-by-its-context", Promise: "O4", File: "object/turn_sections.go",
		Edits: []edit{{
			Old: `		if l.ended {
`,
			New: `		if l.ended && !mutant("section-outlived-by-its-context") {
`,
		}},
		Package: "object", Test: "TestLimitedContext",
	},
}
