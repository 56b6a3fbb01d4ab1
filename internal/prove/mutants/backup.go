package main

// backupMutants are bugs of backups, and of stores that sleep after a restore.
var backupMutants = []mutant{
	{
		Name: "mark-before-the-check", Promise: "B1", File: "admin/backup/restore.go",
		Edits: []edit{{
			Old: `	if err := r.check(ctx, c, found); err != nil {
`,
			New: `	if err := r.check(ctx, c, found); err != nil && !mutant("mark-before-the-check") {
`,
		}},
		Package: "admin/backup", Test: "TestDamagedRepository",
	},
	{
		Name: "clean-removes-a-named-blob", Promise: "B1", File: "admin/backup/clean.go",
		Edits: []edit{{
			Old: `		if named[name] {
`,
			New: `		if named[name] && !mutant("clean-removes-a-named-blob") {
`,
		}},
		Package: "admin/backup", Test: "TestClean",
	},
	{
		Name: "backup-faster-than-its-rate", Promise: "B3", File: "admin/backup/pace.go",
		Edits: []edit{{
			Old: `	p.due = p.due.Add(p.takes(n))
`,
			New: `	if p.due = p.due.Add(p.takes(n)); mutant("backup-faster-than-its-rate") {
		p.due = p.due.Add(-p.takes(n) / 2)
	}
`,
		}},
		Package: "admin/backup", Test: "TestLimitRate",
	},
	{
		Name: "copy-with-the-epochs-of-its-source", Promise: "S17", File: "storage/restore.go",
		Edits: []edit{{
			Old: `	if was.through += adoptedAhead; was`,
			New: `	if mutant("copy-with-the-epochs-of-its-source") {
		was.through -= adoptedAhead
	}
	if was.through += adoptedAhead; was`,
		}},
		Package: "admin/backup", Test: "TestRestoredStoreGivesNoNumberAgain",
	},
	{
		Name: "dormant-store-fires", Promise: "O26", File: "object/host.go",
		Edits: []edit{{
			Old: `	if h.store.Dormant() {
		return nil
	}
`,
			New: `	if h.store.Dormant() && !mutant("dormant-store-fires") {
		return nil
	}
`,
		}},
		Package: "object", Test: "TestDormantStore",
	},
}
