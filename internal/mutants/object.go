package main

var objectMutants = []mutant{
	{
		Number: 6, Name: "alarm-deleted-at-dispatch", Promise: "A4", File: "object/alarms.go",
		Edits: []edit{{
			Old: `	handler, ok := a.instance.(AlarmHandler)
`,
			New: `	if mutant("alarm-deleted-at-dispatch") {
		t.firing = nil
		t.write()
		t.writes.alarmSet, t.writes.removes = true, true
		if err := t.commit(false); err != nil {
			return err
		}
	}
	handler, ok := a.instance.(AlarmHandler)
`,
		}},
		Package: "object", Test: "TestCrashAlarm/map",
	},
	{
		Number: 12, Name: "reply-before-sync", Promise: "O7", File: "object/host.go",
		Edits: []edit{{
			Old: `	if !h.store.Durable(r.ticket) {`,
			New: `	if !mutant("reply-before-sync") && !h.store.Durable(r.ticket) {`,
		}},
		Package: "object", Test: "TestCrashDeposits/map",
	},
}
