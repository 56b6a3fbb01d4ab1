package main

// observerMutants are bugs in the operations that an Observer hears of.
var observerMutants = []mutant{
	{
		Name: "observer-takes-another-turn-for-its-own", Promise: "O22", File: "object/observer.go",
		Edits: []edit{{Old: `.(*observed); ok && o.request == r {
`, New: `.(*observed); ok && (o.request == r || mutant("observer-takes-another-turn-for-its-own")) {
`}},
		Package: "object", Test: "TestObserverOfCalls",
	},
	{
		Name: "observer-sees-one-alarm-only", Promise: "O22", File: "object/observer.go",
		Edits: []edit{{Old: `	if o.outer != nil {
		r.ctx = o.outer
`, New: `	if o.outer != nil && !mutant("observer-sees-one-alarm-only") {
		r.ctx = o.outer
`}},
		Package: "object", Test: "TestObserverOfAlarmsAndMessages",
	},
	{
		Name: "observer-hears-of-the-reply-before-the-gate", Promise: "O22", File: "object/observer.go",
		Edits: []edit{{Old: `	o.observation.TurnEnded(r.err)
`, New: `	o.observation.TurnEnded(r.err)
	if mutant("observer-hears-of-the-reply-before-the-gate") {
		o.observation.Ended(r.err)
	}
`}},
		Package: "object", Test: "TestObserverOfTheGate",
	},
}
