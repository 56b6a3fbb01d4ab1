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
		Name: "table-that-is-not-hashed", Promise: "B1", File: "admin/backup/restore.go",
		Edits: []edit{{
			Old: `	if err := r.readBlob(ctx, f); err != nil {
`,
			New: `	if err := r.readBlob(ctx, f); err != nil && !(isTable(f.Name) && mutant("table-that-is-not-hashed")) {
`,
		}},
		Package: "admin/backup", Test: "TestDamagedRepository",
	},
	{
		Name: "unverified-snapshot-is-not-checked", Promise: "B1", File: "admin/backup/restore.go",
		Edits: []edit{{
			Old: `	if verified {
		return nil
	}
	return r.sound(`,
			New: `	if verified || mutant("unverified-snapshot-is-not-checked") {
		return nil
	}
	return r.sound(`,
		}},
		Package: "admin/backup", Test: "TestBackupOfADamagedTable",
	},
	{
		Name: "file-that-changes-is-linked", Promise: "B1", File: "admin/backup/restore.go",
		Edits: []edit{{
			Old: `		if isTable(f.Name) {
			return r.link(ctx, f, to)
`,
			New: `		if isTable(f.Name) || mutant("file-that-changes-is-linked") {
			return r.link(ctx, f, to)
`,
		}},
		Package: "admin/backup", Test: "TestRestoreLinked",
	},
	{
		Name: "damage-of-a-checked-table-is-dropped", Promise: "B1", File: "admin/backup/restore.go",
		Edits: []edit{{
			Old: `			t[c.Files[i].Name] = damage
`,
			New: `			if t[c.Files[i].Name] = damage; mutant("damage-of-a-checked-table-is-dropped") {
				t[c.Files[i].Name] = nil
			}
`,
		}},
		Package: "admin/backup", Test: "TestBackupOfADamagedTable",
	},
	{
		Name: "error-of-a-task-is-dropped", Promise: "B1", File: "seam/ordered.go",
		Edits: []edit{{
			Old: `		r.value, err = o.do(i)
`,
			New: `		if r.value, err = o.do(i); mutant("error-of-a-task-is-dropped") {
			err = nil
		}
`,
		}},
		Package: "seam", Test: "TestOrderedReturnsTheErrorOfALoop",
	},
	{
		Name: "number-begun-after-an-error", Promise: "B1", File: "seam/ordered.go",
		Edits: []edit{{
			Old: `		o.stopped = o.stopped || r.err != nil
`,
			New: `		o.stopped = o.stopped || r.err != nil && !mutant("number-begun-after-an-error")
`,
		}},
		Package: "seam", Test: "TestOrderedReturnsTheErrorOfALoop",
	},
	{
		Name: "first-backup-reads-twice", Promise: "B3", File: "admin/backup/create.go",
		Edits: []edit{{
			Old: `		if known[named{name, info.Size()}] {
`,
			New: `		if known[named{name, info.Size()}] || mutant("first-backup-reads-twice") {
`,
		}},
		Package: "admin/backup", Test: "TestCreateReadsEachFileOnce",
	},
	{
		Name: "known-content-is-written-again", Promise: "B3", File: "admin/backup/create.go",
		Edits: []edit{{
			Old: `	if err != nil || r.has(f) {
`,
			New: `	if err != nil || r.has(f) && !mutant("known-content-is-written-again") {
`,
		}},
		Package: "admin/backup", Test: "TestCreateReadsEachFileOnce",
	},
	{
		Name: "copy-without-a-name-stays", Promise: "B3", File: "admin/backup/create.go",
		Edits: []edit{{
			Old: `	removed := blobs.FS.Remove(blobs.Join(copyName))
`,
			New: `	var removed error
	if !mutant("copy-without-a-name-stays") {
		removed = blobs.FS.Remove(blobs.Join(copyName))
	}
`,
		}},
		Package: "admin/backup", Test: "TestCreateReadsEachFileOnce",
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
		Name: "copy-opens-before-it-is-adopted", Promise: "S17", File: "admin/backup/restore.go",
		Edits: []edit{{
			Old: `	rest.Files = slices.DeleteFunc(slices.Clone(c.Files), isFormat)`,
			New: `	rest.Files = slices.DeleteFunc(slices.Clone(c.Files), func(f file) bool { return isFormat(f) && !mutant("copy-opens-before-it-is-adopted") })`,
		}},
		Package: "admin/backup", Test: "TestPowerCutInARestore",
	},
	{
		Name: "flush-key-for-other-events", Promise: "S17", File: "jobs/debounce/flush.go",
		Edits: []edit{{
			Old: `	return fmt.Sprintf("%s/%s/%d/%d", in.st.ID()`,
			New: `	if mutant("flush-key-for-other-events") {
		g.last = time.Time{}
	}
	return fmt.Sprintf("%s/%s/%d/%d", in.st.ID()`,
		}},
		Package: "admin/backup", Test: "TestRestoredStoreGivesNoFlushKeyAgain",
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
		Name: "failed-backup-is-listed", Promise: "B3", File: "admin/backup/create.go",
		Edits: []edit{{
			Old: `	if c.Files, err = add(); err != nil {
`,
			New: `	if c.Files, err = add(); err != nil {
		if mutant("failed-backup-is-listed") && len(c.Files) > 0 {
			_, _ = r.name(c)
		}
`,
		}},
		Package: "admin/backup", Test: "TestFailingBackup",
	},
	{
		Name: "made-snapshot-is-read-again", Promise: "B3", File: "admin/backup/create.go",
		Edits: []edit{{
			Old: `	return c.describe(name), nil
`,
			New: `	if mutant("made-snapshot-is-read-again") {
		return r.describe(name, c, text)
	}
	return c.describe(name), nil
`,
		}},
		Package: "admin/backup", Test: "TestFailingReadsOfABackup",
	},
	{
		Name: "restore-fails-with-its-store-made", Promise: "S17", File: "admin/backup/restore.go",
		Edits: []edit{{
			Old: `		return Snapshot{}, errors.Join(err, clear(to))
	}
	return s, nil
`,
			New: `		return Snapshot{}, errors.Join(err, clear(to))
	}
	if mutant("restore-fails-with-its-store-made") {
		return r.describe(name, c, text)
	}
	return s, nil
`,
		}},
		Package: "admin/backup", Test: "TestFailingReadsOfARestore",
	},
	{
		Name: "copy-with-the-epochs-of-its-source", Promise: "S17", File: "storage/epoch.go",
		Edits: []edit{{
			Old: `	if was.through += raisedEpochs; was`,
			New: `	if mutant("copy-with-the-epochs-of-its-source") {
		was.through -= raisedEpochs
	}
	if was.through += raisedEpochs; was`,
		}},
		Package: "admin/backup", Test: "TestRestoredStoreGivesNoNumberAgain",
	},
	{
		Name: "token-without-the-epoch", Promise: "J8", File: "jobs/engine/execution.go",
		Edits: []edit{{
			Old: `	b = strconv.AppendUint(b, e.st.Driver().NextSequence(), digits)
`,
			New: `	n := e.st.Driver().NextSequence()
	if mutant("token-without-the-epoch") {
		n &= 1<<32 - 1
	}
	b = strconv.AppendUint(b, n, digits)
`,
		}},
		Package: "admin/backup", Test: "TestRestoredStoreGivesNoTokenAgain",
	},
	{
		Name: "restored-pool-counts-on", Promise: "S17", File: "jobs/workerpool/partition.go",
		Edits: []edit{{
			Old: `	return max(p.order, p.st.Driver().Era()*eraNumbers) + 1`,
			New: `	if mutant("restored-pool-counts-on") {
		return p.order + 1
	}
	return max(p.order, p.st.Driver().Era()*eraNumbers) + 1`,
		}},
		Package: "admin/backup", Test: "TestRestoredStoreGivesNoTaskIDAgain",
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
