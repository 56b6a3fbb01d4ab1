package main

// feedMutants are bugs of the feed, the stored order of all events.
var feedMutants = []mutant{
	{
		Name: "position-not-given-back", Promise: "S16", File: "storage/store.go",
		Edits: []edit{{Old: `		defer s.feed.drawn.close(first)
`, New: `		if !mutant("position-not-given-back") {
			defer s.feed.drawn.close(first)
		}
`}},
		Package: "storage", Test: "TestPositionsAreGivenBack",
	},
	{
		Name: "mark-not-low", Promise: "S16", File: "storage/feed.go",
		Edits: []edit{{Old: `	d.open = append(d.open, drawing{first: first})
	return first
`, New: `	if !mutant("mark-not-low") {
		d.open = append(d.open, drawing{first: first})
	}
	return first
`}},
		Package: "storage", Test: "TestFeedWaitsForAnOlderCommit",
	},
	{
		Name: "positions-begin-again", Promise: "O25", File: "storage/feed.go",
		Edits: []edit{{Old: `	s.feed.last.Store(s.epoch << blockBits)
`, New: `	s.feed.last.Store(s.epoch << blockBits)
	if mutant("positions-begin-again") {
		s.feed.last.Store(1 << blockBits)
	}
`}},
		Package: "object", Test: "TestCrashFeed",
	},
	{
		Name: "feed-goes-on-over-an-opening-without-it", Promise: "S16", File: "storage/feed.go",
		Edits:   []edit{{Old: `kept == s.previous.Epoch`, New: `(kept == s.previous.Epoch || mutant("feed-goes-on-over-an-opening-without-it"))`}},
		Package: "storage", Test: "TestFeedOverOpenings",
	},
	{
		Name: "cursor-below-expired-not-told", Promise: "O25", File: "object/feed.go",
		Edits:   []edit{{Old: `r.After < floor ||`, New: `r.After < floor && !mutant("cursor-below-expired-not-told") ||`}},
		Package: "object", Test: "TestFeedTellsOfGaps",
	},
	{
		Name: "event-gone-before-its-row-not-told", Promise: "O25", File: "object/feed.go",
		Edits:   []edit{{Old: `!stored && r.After != 0;`, New: `!stored && r.After != 0 && !mutant("event-gone-before-its-row-not-told");`}},
		Package: "object", Test: "TestFeedTellsOfEventsThatGoEarlier",
	},
	{
		Name: "parked-import-tells-no-tap", Promise: "O25", File: "object/copy_import.go",
		Edits: []edit{{Old: `	h.noteFeed(x.batch)
`, New: `	if !mutant("parked-import-tells-no-tap") {
		h.noteFeed(x.batch)
	}
`}},
		Package: "admin/transfer", Test: "TestImportFeedsItsEvents",
	},
}
