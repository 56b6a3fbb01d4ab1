package main

// transferMutants are bugs of the export and import of one object.
var transferMutants = []mutant{
	{
		Name: "import-does-not-compare-the-sum", Promise: "O28", File: "admin/transfer/import.go",
		Edits: []edit{{
			Old: `	case sum != want:
`,
			New: `	case sum != want && !mutant("import-does-not-compare-the-sum"):
`,
		}},
		Package: "admin/transfer", Test: "TestImportRefuses",
	},
	{
		Name: "import-counts-no-parts", Promise: "O28", File: "admin/transfer/import.go",
		Edits: []edit{{
			Old: `f.lines[kindAlarm+int(part.Part)]+part.Index, err)
`,
			New: `f.lines[kindAlarm+int(part.Part)]+part.Index, err)
		if mutant("import-counts-no-parts") {
			err = part
		}
`,
		}},
		Package: "admin/transfer", Test: "TestImportRefuses",
	},
	{
		Name: "import-always-arms", Promise: "O27", File: "admin/transfer/import.go",
		Edits: []edit{{
			Old: `	if !o.Alarms {
`,
			New: `	if !o.Alarms && !mutant("import-always-arms") {
`,
		}},
		Package: "admin/transfer", Test: "TestAlarmFiresThereOnce",
	},
	{
		Name: "import-hides-its-class", Promise: "O15", File: "object/copy_import.go",
		Edits: []edit{{
			Old: `		h.known.add(id.Class) // before the object can be found
`,
			New: `		if !mutant("import-hides-its-class") {
			h.known.add(id.Class)
		}
`,
		}},
		Package: "object", Test: "TestKnownClasses",
	},
	{
		Name: "import-writes-the-header-first", Promise: "O28", File: "object/copy_import.go",
		Edits: []edit{{
			Old: `		x.batch.BeginUnfinished(x.object)
`,
			New: `		if mutant("import-writes-the-header-first") {
			x.batch.SetHeader(x.object)
		}
		x.batch.BeginUnfinished(x.object)
`,
		}},
		Package: "admin/transfer", Test: "TestCrashImportInPortions",
	},
	{
		Name: "opening-keeps-unfinished-objects", Promise: "O28", File: "storage/epoch.go",
		Edits: []edit{{
			Old: `	return s.dropUnfinished()
`,
			New: `	if mutant("opening-keeps-unfinished-objects") {
		return nil
	}
	return s.dropUnfinished()
`,
		}},
		Package: "admin/transfer", Test: "TestCrashImportInPortions",
	},
}
