package main

// messageMutants are bugs of the rows of messages and of their numbers.
var messageMutants = []mutant{
	{
		Name: "reader-passes-an-open-commit", Promise: "S12", File: "storage/message_numbers.go",
		Edits: []edit{{
			Old: `	if d.head < len(d.open) {`,
			New: `	if d.head < len(d.open) && !mutant("reader-passes-an-open-commit") {`,
		}},
		Package: "storage", Test: "TestReaderWaitsForAnOlderCommit",
	},
	{
		Name: "number-drawn-before-it-is-listed", Promise: "S12", File: "storage/store.go",
		Edits: []edit{{
			Old: `	s.draw(b)
	t, err := s.apply(b)
`,
			New: `	s.draw(b)
	if mutant("number-drawn-before-it-is-listed") {
		s.HandedOver(b.MessageSeq(0))
	}
	t, err := s.apply(b)
`,
		}},
		Package: "storage", Test: "TestReaderWaitsForAnOlderCommit",
	},
	{
		Name: "younger-commit-is-not-handed-over", Promise: "S12", File: "storage/message_numbers.go",
		Edits: []edit{{
			Old: `	if found {`,
			New: `	if found && (i == d.head || !mutant("younger-commit-is-not-handed-over")) {`,
		}},
		Package: "storage", Test: "TestMessagesBelowStandsAtTheOldest",
	},
	{
		Name: "younger-commit-ends-the-older", Promise: "S12", File: "storage/message_numbers.go",
		Edits: []edit{{
			Old: `	for d.head < len(d.open) && d.open[d.head].done {`,
			New: `	for d.head < len(d.open) && (d.open[d.head].done || mutant("younger-commit-ends-the-older")) {`,
		}},
		Package: "storage", Test: "TestMessagesBelowStandsAtTheOldest",
	},
	{
		Name: "messages-of-a-batch-in-reverse", Promise: "S12", File: "storage/message_numbers.go",
		Edits: []edit{{
			Old: `	for _, at := range b.messages {
`,
			New: `	for i, at := range b.messages {
		if mutant("messages-of-a-batch-in-reverse") {
			at = b.messages[len(b.messages)-1-i]
		}
`,
		}},
		Package: "storage", Test: "TestMessageNumbersGrow",
	},
	{
		Name: "deleted-message-leaves-its-state", Promise: "S12", File: "storage/message.go",
		Edits: []edit{{
			Old: `	if stated {`,
			New: `	if stated && !mutant("deleted-message-leaves-its-state") {`,
		}},
		Package: "storage", Test: "TestDeleteMessageLeavesNothing",
	},
	{
		Name: "deleted-message-leaves-its-entry", Promise: "S12", File: "storage/message.go",
		Edits: []edit{{
			Old: `	if due != 0 {`,
			New: `	if due != 0 && !mutant("deleted-message-leaves-its-entry") {`,
		}},
		Package: "storage", Test: "TestDeleteMessageLeavesNothing",
	},
	{
		Name: "moved-message-leaves-its-entry", Promise: "S12", File: "storage/message.go",
		Edits: []edit{{
			Old: `	if from != 0 && from != to {`,
			New: `	if from != 0 && from != to && !mutant("moved-message-leaves-its-entry") {`,
		}},
		Package: "storage", Test: "TestMessageStateMovesItsEntry",
	},
	{
		Name: "rollback-keeps-the-place-of-a-message", Promise: "S12", File: "storage/batch.go",
		Edits: []edit{{
			Old: `	b.data, b.count, b.messages = b.data[:sp.len], sp.count, b.messages[:sp.messages]
`,
			New: `	b.data, b.count = b.data[:sp.len], sp.count
	if !mutant("rollback-keeps-the-place-of-a-message") {
		b.messages = b.messages[:sp.messages]
	}
`,
		}},
		Package: "storage", Test: "TestRollbackTakesMessagesBack",
	},
}
