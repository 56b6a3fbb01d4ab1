package main

// previewMutants are bugs of the look at what the next open of a store finds to do.
var previewMutants = []mutant{
	{
		Name: "look-ahead-counts-an-alarm-too-early", Promise: "S13", File: "recovery/preview.go",
		Edits: []edit{{
			Old: `				if e.Due > now.UnixNano() {`,
			New: `				if e.Due > now.UnixNano() && !(e.Due == now.UnixNano()+1 && mutant("look-ahead-counts-an-alarm-too-early")) {`,
		}},
		Package: "recovery", Test: "TestLookAhead",
	},
	{
		Name: "look-ahead-ends-at-a-damaged-mark", Promise: "R6", File: "object/host_recovery.go",
		Edits: []edit{{
			Old: `			case len(damaged) < mostErrors:
`,
			New: `			case mutant("look-ahead-ends-at-a-damaged-mark"):
				return err
			case len(damaged) < mostErrors:
`,
		}},
		Package: "recovery", Test: "TestLookAheadGoesOnAfterDamage",
	},
	{
		Name: "look-ahead-is-clean-after-a-crash", Promise: "S13", File: "recovery/preview.go",
		Edits: []edit{{
			Old: `	if p.Previous.Epoch > 0 && !p.Previous.Clean || p.Open > 0 {`,
			New: `	if p.Previous.Epoch > 0 && !p.Previous.Clean && !mutant("look-ahead-is-clean-after-a-crash") || p.Open > 0 {`,
		}},
		Package: "recovery", Test: "TestLookAhead",
	},
}
