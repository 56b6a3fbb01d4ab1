package main

// tapMutants are bugs of taps, which give events to listeners.
var tapMutants = []mutant{
	{
		Name: "event-told-before-it-is-durable", Promise: "V8", File: "object/internal/tap/tap.go",
		Edits:   []edit{{Old: `!h.config.Durable(e.ticket)`, New: `!h.config.Durable(e.ticket) && !mutant("event-told-before-it-is-durable")`}},
		Package: "object", Test: "TestCrashTaps",
	},
	{
		Name: "events-of-a-commit-in-reverse", Promise: "V7", File: "object/internal/tap/tap.go",
		Edits: []edit{{Old: `	for _, ev := range events {
`, New: `	for i, ev := range events {
		if mutant("events-of-a-commit-in-reverse") {
			ev = events[len(events)-1-i]
		}
`}},
		Package: "object", Test: "TestCrashTaps",
	},
	{
		Name: "gap-without-a-reset", Promise: "V7", File: "object/internal/tap/listener.go",
		Edits:   []edit{{Old: `l.cursor < t.floor`, New: `l.cursor < t.floor && !mutant("gap-without-a-reset")`}},
		Package: "object", Test: "TestCrashTaps",
	},
	{
		Name: "event-from-the-store-and-from-memory", Promise: "V7", File: "object/events.go",
		Edits:   []edit{{Old: `e.Seq <= t.after {`, New: `e.Seq <= t.after && !mutant("event-from-the-store-and-from-memory") {`}},
		Package: "object", Test: "TestCrashTaps",
	},
	{
		Name: "expired-events-pass-in-silence", Promise: "V7", File: "object/events.go",
		Edits: []edit{{Old: `	t.strict = true
`, New: `	t.strict = !mutant("expired-events-pass-in-silence")
`}},
		Package: "object", Test: "TestTapOfAnObjectThatIsBehind",
	},
	{
		Name: "ring-goes-back-behind-its-begin", Promise: "V7", File: "object/internal/tap/tap.go",
		Edits: []edit{{Old: `		t.floor = max(t.floor, e.Position)
`, New: `		if t.floor = max(t.floor, e.Position); mutant("ring-goes-back-behind-its-begin") {
			t.floor = e.Position
		}
`}},
		Package: "object/internal/tap", Test: "TestRingBeginsBehindObjects",
	},
	{
		Name: "ring-goes-on-without-a-listener", Promise: "V9", File: "object/internal/tap/tap.go",
		Edits:   []edit{{Old: `h.ring && h.wide == 0 &&`, New: `h.ring && h.wide == 0 && !mutant("ring-goes-on-without-a-listener") &&`}},
		Package: "object/internal/tap", Test: "TestLinger",
	},
}
