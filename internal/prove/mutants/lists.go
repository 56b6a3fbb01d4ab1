package main

// listMutants are bugs of the lists: the merge over the shards, filters, bounds and cursors.
var listMutants = []mutant{
	{
		Name: "list-in-the-order-of-shards", Promise: "O15", File: "storage/list_sorted.go",
		Edits: []edit{{
			Old: `{ return m.parts[i].ahead[0].ID.Name <`,
			New: `{ return !mutant("list-in-the-order-of-shards") && m.parts[i].ahead[0].ID.Name <`,
		}},
		Package: "storage", Test: "TestListIsSorted",
	},
	{
		Name: "list-begins-at-its-cursor", Promise: "O15", File: "storage/list_sorted.go",
		Edits: []edit{{
			Old: `	m.lower = append(m.lower[:m.begins], first...)`,
			New: `	if mutant("list-begins-at-its-cursor") {
		first = max(m.options.Prefix, p.last)
	}
	m.lower = append(m.lower[:m.begins], first...)`,
		}},
		Package: "storage", Test: "TestListIsSorted",
	},
	{
		Name: "list-goes-on-behind-its-prefix", Promise: "O15", File: "storage/list_sorted.go",
		Edits: []edit{{
			Old: `	m.upper = after(append(slices.Clone(m.lower), o.Prefix...))
`,
			New: `	m.upper = after(append(slices.Clone(m.lower), o.Prefix...))
	if mutant("list-goes-on-behind-its-prefix") {
		m.upper = after(m.lower)
	}
`,
		}},
		Package: "storage", Test: "TestListIsSorted",
	},
	{
		Name: "page-reads-a-page-of-each-shard", Promise: "O15", File: "storage/list_sorted.go",
		Edits: []edit{{
			Old: `portion: 1 + 3*o.Limit/(2*s.shards)}
`,
			New: `portion: 1 + 3*o.Limit/(2*s.shards)}
	if mutant("page-reads-a-page-of-each-shard") {
		m.portion = o.Limit
	}
`,
		}},
		Package: "storage", Test: "TestListReadsAPage",
	},
	{
		Name: "list-stops-after-a-portion", Promise: "O15", File: "storage/list_sorted.go",
		Edits: []edit{{
			Old: `len(p.ahead) == 0 && !p.whole {`,
			New: `len(p.ahead) == 0 && !p.whole && !mutant("list-stops-after-a-portion") {`,
		}},
		Package: "storage", Test: "TestListIsSorted",
	},
	{
		Name: "list-looks-behind-the-end-of-a-shard", Promise: "O15", File: "storage/list_sorted.go",
		Edits: []edit{{
			Old: `	p.whole = len(p.ahead) < m.portion
`,
			New: `	p.whole = len(p.ahead) < m.portion && !mutant("list-looks-behind-the-end-of-a-shard")
`,
		}},
		Package: "storage", Test: "TestListReadsAPage",
	},
	{
		Name: "list-makes-an-iterator-for-each-portion", Promise: "O15", File: "storage/list_sorted.go",
		Edits: []edit{{
			Old: `	return m.rows.err
`,
			New: `	if mutant("list-makes-an-iterator-for-each-portion") {
		if err := m.rows.close(); err != nil {
			return err
		}
	}
	return m.rows.err
`,
		}},
		Package: "storage", Test: "TestListReadsAPage",
	},
	{
		Name: "changed-label-is-listed", Promise: "O15", File: "storage/list_sorted.go",
		Edits: []edit{{
			Old: `next.Label == o.Label {`,
			New: `next.Label == o.Label || mutant("changed-label-is-listed") {`,
		}},
		Package: "storage", Test: "TestListPassesOverAChangedLabel",
	},
	{
		Name: "classes-in-the-order-of-shards", Promise: "O15", File: "storage/list.go",
		Edits: []edit{{
			Old: `	slices.Sort(out)
`,
			New: `	if !mutant("classes-in-the-order-of-shards") {
		slices.Sort(out)
	}
`,
		}},
		Package: "storage", Test: "TestClassesAreSorted",
	},
	{
		Name: "page-begins-with-the-last-letter", Promise: "A11", File: "storage/dead_list.go",
		Edits: []edit{{
			Old: `lower = append(slices.Clone(place), 0)`,
			New: `lower = append(slices.Clone(place), make([]byte, map[bool]int{false: 1}[mutant("page-begins-with-the-last-letter")])...)`,
		}},
		Package: "storage", Test: "TestDeadCursorIsAPlace",
	},
	{
		Name: "cursor-of-another-version-is-taken", Promise: "A11", File: "storage/dead_list.go",
		Edits: []edit{{
			Old: `cursor[0] != deadCursorVersion {`,
			New: `cursor[0] != deadCursorVersion && !mutant("cursor-of-another-version-is-taken") {`,
		}},
		Package: "storage", Test: "TestMadeUpDeadCursor",
	},
	{
		Name: "cursor-with-a-bad-name-is-taken", Promise: "A11", File: "storage/dead_list.go",
		Edits: []edit{{
			Old: `	if err == nil {
		err = id.Validate()`,
			New: `	if err == nil && !mutant("cursor-with-a-bad-name-is-taken") {
		err = id.Validate()`,
		}},
		Package: "storage", Test: "TestMadeUpDeadCursor",
	},
	{
		Name: "letters-of-like-classes", Promise: "A11", File: "storage/dead_list.go",
		Edits: []edit{{
			Old: `	return lower, after(lower)`,
			New: `	if mutant("letters-of-like-classes") && o.Name == "" {
		lower = lower[:len(lower)-1]
	}
	return lower, after(lower)`,
		}},
		Package: "storage", Test: "TestDeadLettersInPages",
	},
	{
		Name: "oldest-events-for-the-newest", Promise: "O15", File: "storage/events.go",
		Edits: []edit{{
			Old: `s.named(kindEvent, id, 0, true, s`,
			New: `s.named(kindEvent, id, 0, !mutant("oldest-events-for-the-newest"), s`,
		}},
		Package: "object", Test: "TestInspectShowsTheNewestEvents",
	},
	{
		Name: "dead-letters-of-any-kind", Promise: "A11", File: "object/dead_letters.go",
		Edits: []edit{{
			Old: `d.Kind == o.Kind)`,
			New: `d.Kind == o.Kind || mutant("dead-letters-of-any-kind"))`,
		}},
		Package: "object", Test: "TestDeadLettersByFilter",
	},
	{
		Name: "dead-letters-for-any-reason", Promise: "A11", File: "object/dead_letters.go",
		Edits: []edit{{
			Old: `strings.HasPrefix(d.Reason, o.Reason)`,
			New: `(strings.HasPrefix(d.Reason, o.Reason) || mutant("dead-letters-for-any-reason"))`,
		}},
		Package: "object", Test: "TestDeadLettersByFilter",
	},
	{
		Name: "dead-letters-of-any-error", Promise: "A11", File: "object/dead_letters.go",
		Edits: []edit{{
			Old: `strings.HasPrefix(d.LastError, o.Error)`,
			New: `(strings.HasPrefix(d.LastError, o.Error) || mutant("dead-letters-of-any-error"))`,
		}},
		Package: "object", Test: "TestDeadLettersByFilter",
	},
	{
		Name: "since-leaves-its-instant-out", Promise: "A11", File: "object/dead_letters.go",
		Edits: []edit{{
			Old: `!d.Died.Before(o.DiedSince)`,
			New: `!d.Died.Before(o.DiedSince) && !(mutant("since-leaves-its-instant-out") && d.Died.Equal(o.DiedSince))`,
		}},
		Package: "object", Test: "TestDeadLettersByFilter",
	},
	{
		Name: "before-takes-its-instant-in", Promise: "A11", File: "object/dead_letters.go",
		Edits: []edit{{
			Old: `|| d.Died.Before(o.DiedBefore))`,
			New: `|| d.Died.Before(o.DiedBefore) || mutant("before-takes-its-instant-in") && d.Died.Equal(o.DiedBefore))`,
		}},
		Package: "object", Test: "TestDeadLettersByFilter",
	},
	{
		Name: "page-reads-all-letters", Promise: "A11", File: "object/dead_letters.go",
		Edits: []edit{{
			Old: `letters < maxLettersRead &&`,
			New: `(letters < maxLettersRead || mutant("page-reads-all-letters")) &&`,
		}},
		Package: "object", Test: "TestPageOfDeadLettersReadsABoundedNumber",
	},
	{
		Name: "page-of-letters-of-any-size", Promise: "A11", File: "object/dead_letters.go",
		Edits: []edit{{
			Old: `bytes < maxLetterBytesRead
`,
			New: `(bytes < maxLetterBytesRead || mutant("page-of-letters-of-any-size"))
`,
		}},
		Package: "object", Test: "TestPageOfLargeDeadLetters",
	},
	{
		Name: "damaged-letter-hides-those-behind-it", Promise: "A11", File: "object/dead_letters.go",
		Edits: []edit{{
			Old: `	return page, damaged, nil
`,
			New: `	if damaged != nil && mutant("damaged-letter-hides-those-behind-it") {
		page = DeadLetterPage{}
	}
	return page, damaged, nil
`,
		}},
		Package: "object", Test: "TestPagesGoOnBehindADamagedLetter",
	},
	{
		Name: "page-of-keys-of-any-size", Promise: "O15", File: "object/reader_inspect.go",
		Edits: []edit{{
			Old: ` listed > o.MaxBytes `,
			New: ` listed > o.MaxBytes && !mutant("page-of-keys-of-any-size") `,
		}},
		Package: "object", Test: "TestPagesOfKeys",
	},
	{
		Name: "values-count-for-nothing-in-a-page", Promise: "O15", File: "object/reader_inspect.go",
		Edits: []edit{{
			Old: `		listed += len(key) + len(info.Value)
`,
			New: `		listed += len(key)
		if !mutant("values-count-for-nothing-in-a-page") {
			listed += len(info.Value)
		}
`,
		}},
		Package: "object", Test: "TestPagesOfKeys",
	},
	{
		Name: "page-reads-values-without-end", Promise: "O15", File: "object/reader_inspect.go",
		Edits: []edit{{
			Old: `read > maxReadBytes
`,
			New: `read > maxReadBytes && !mutant("page-reads-values-without-end")
`,
		}},
		Package: "object", Test: "TestPageOfLargeKeys",
	},
	{
		Name: "large-key-ends-the-walk", Promise: "O15", File: "object/reader_inspect.go",
		Edits: []edit{{
			Old: `if full && len(page.Keys) > 0 {`,
			New: `if full && (len(page.Keys) > 0 || mutant("large-key-ends-the-walk")) {`,
		}},
		Package: "object", Test: "TestPagesOfKeys",
	},
	{
		Name: "page-of-any-length", Promise: "O15", File: "object/reader.go",
		Edits: []edit{{
			Old: `	if limit > MaxPage {`,
			New: `	if limit > MaxPage && !mutant("page-of-any-length") {`,
		}},
		Package: "object", Test: "TestListsCheckTheirOptions",
	},
	{
		Name: "execution-of-no-opening", Promise: "O15", File: "object/reader_inspect.go",
		Edits: []edit{{
			Old: `		in.ExecutionSince, in.ExecutionEpoch = m.at, m.epoch
`,
			New: `		if !mutant("execution-of-no-opening") {
			in.ExecutionSince, in.ExecutionEpoch = m.at, m.epoch
		}
`,
		}},
		Package: "object", Test: "TestReaderOfAStoreAtRest",
	},
}
