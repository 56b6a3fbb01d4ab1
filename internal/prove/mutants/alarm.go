package main

var alarmMutants = []mutant{
	{
		Name: "alarm-fires-early", Promise: "A3", File: "alarm/pump.go",
		Edits: []edit{{
			Old: `		if len(s.line) == 0 || s.line[0].pos.at > now {`,
			New: `		if mutant("alarm-fires-early") {
			now += int64(time.Second)
		}
		if len(s.line) == 0 || s.line[0].pos.at > now {`,
		}, {
			Old: `		n := s.due.pop()
		if n.pos.at > now {`,
			New: `		n := s.due.pop()
		if n.pos.at > now && !mutant("alarm-fires-early") {`,
		}},
		Package: "alarm", Test: "TestFiresStoredAndNewWhenDueA3",
	},
	{
		Name: "alarm-set-in-flight-is-lost", Promise: "A5", File: "alarm/shard.go",
		Edits: []edit{{
			Old: `		n.next.Entry, n.next.pos = *e, p
`,
			New: `		n.next.Entry, n.next.pos = *e, p
		if mutant("alarm-set-in-flight-is-lost") {
			n.next = nil
		}
`,
		}},
		Package: "object", Test: "TestAlarmSetInItsHandler",
	},
}
