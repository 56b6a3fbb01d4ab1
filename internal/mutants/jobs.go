package main

var jobMutants = []mutant{
	{
		Number: 1, Name: "run-count-before-the-work", Promise: "C3", File: "jobs/meta.go",
		Edits: []edit{{
			Old: `	m.Run = x.Run
	return m
`,
			New: `	m.Run = x.Run
	if mutant("run-count-before-the-work") {
		m.RunCount = x.Run.Number
	}
	return m
`,
		}},
		Package: "jobs/continuous", Test: "TestRunsSurviveCrashes/map",
	},
	{
		Number: 2, Name: "next-alarm-in-a-second-commit", Promise: "J5", File: "jobs/wake.go",
		Edits: []edit{{
			Old: `	return e.st.SetAlarm(ctx, due)
}
`,
			New: `	if mutant("next-alarm-in-a-second-commit") {
		if err := e.st.Sync(ctx); err != nil {
			return err
		}
	}
	return e.st.SetAlarm(ctx, due)
}
`,
		}},
		Package: "jobs/continuous", Test: "TestRunsSurviveCrashes/map",
	},
}
