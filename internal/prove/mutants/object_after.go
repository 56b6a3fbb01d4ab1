package main

// delayMutants are bugs of messages that are sent with a delay.
var delayMutants = []mutant{
	{
		Name: "retries-keep-the-places-of-their-receiver", Promise: "M4", File: "object/message_turn.go",
		Edits: []edit{{
			Old: ` || x.share.Behind(m.To)) &&`,
			New: ` || x.share.Behind(m.To) && !mutant("retries-keep-the-places-of-their-receiver")) &&`,
		}},
		Package: "object", Test: "TestRetriesLeavePlacesToTheirReceiver",
	},
	{
		Name: "early-after-the-clock-was-put-back", Promise: "M4", File: "object/message_turn.go",
		Edits: []edit{{
			Old: `		if m.host.early(m.due) {`,
			New: `		if m.host.early(m.due) && !mutant("early-after-the-clock-was-put-back") {`,
		}},
		Package: "object", Test: "TestAfterWithTheClockPutBack",
	},
	{
		Name: "delay-is-not-stored", Promise: "M4", File: "object/message.go",
		Edits: []edit{{
			Old: `	if m.due == 0 {
		t.begun()`,
			New: `	if m.due == 0 || mutant("delay-is-not-stored") {
		t.begun()`,
		}},
		Package: "object", Test: "TestAfterAcrossRestarts",
	},
	{
		Name: "delay-without-a-bound", Promise: "M4", File: "object/call.go",
		Edits: []edit{{
			Old: `	if delay > maxDelay ||`,
			New: `	if delay > maxDelay && !mutant("delay-without-a-bound") ||`,
		}},
		Package: "object", Test: "TestAfterIsRefused",
	},
	{
		Name: "due-time-is-cut", Promise: "M4", File: "object/call.go",
		Edits: []edit{{
			Old: `at.After(time.Unix(0, math.MaxInt64))`,
			New: `at.After(time.Unix(0, math.MaxInt64)) && !mutant("due-time-is-cut")`,
		}},
		Package: "object", Test: "TestTimesOfDelayedMessages",
	},
	{
		Name: "delayed-call-runs", Promise: "M4", File: "object/call.go",
		Edits: []edit{{
			Old: `	if r.after {
`,
			New: `	if r.after && !mutant("delayed-call-runs") {
`,
		}},
		Package: "object", Test: "TestAfterIsRefused",
	},
	{
		Name: "outbox-forgets-its-delay", Promise: "M4", File: "object/message.go",
		Edits: []edit{{
			Old: `	if !r.after {
`,
			New: `	if !r.after && !mutant("outbox-forgets-its-delay") {
`,
		}},
		Package: "object", Test: "TestOutboxWithOptions",
	},
	{
		Name: "outbox-overrules-a-key", Promise: "M4", File: "object/message.go",
		Edits: []edit{{
			Old: `	if r.key == "" {
`,
			New: `	if r.key == "" || mutant("outbox-overrules-a-key") {
`,
		}},
		Package: "object", Test: "TestOutboxWithOptions",
	},
	{
		Name: "delayed-messages-do-not-count", Promise: "M7", File: "object/message_mail.go",
		Edits: []edit{{
			Old: `	if n < limit && n+x.timed`,
			New: `	if !mutant("delayed-messages-do-not-count") && n < limit && n+x.timed`,
		}},
		Package: "object", Test: "TestDelayedMessagesCount",
	},
	{
		Name: "bucket-counts-for-each-receiver", Promise: "M7", File: "object/message_mail.go",
		Edits: []edit{{
			Old: `		n += later
`,
			New: `		n += later
		if mutant("bucket-counts-for-each-receiver") {
			n = limit
		}
`,
		}},
		Package: "object", Test: "TestDelayedMessagesCount",
	},
	{
		Name: "delayed-messages-uncounted-at-open", Promise: "M7", File: "object/message_mail.go",
		Edits: []edit{{
			Old: `			x.timed.Add(to, later, 0)
`,
			New: `			if !mutant("delayed-messages-uncounted-at-open") {
				x.timed.Add(to, later, 0)
			}
`,
		}},
		Package: "object", Test: "TestDelayedMessagesCount",
	},
	{
		Name: "messages-to-an-unknown-class-do-not-count", Promise: "M7", File: "object/message_mail.go",
		Edits: []edit{{
			Old: `	if m.due != 0 || !x.delivers(m.To) {
`,
			New: `	if m.due != 0 || !x.delivers(m.To) && !mutant("messages-to-an-unknown-class-do-not-count") {
`,
		}},
		Package: "object", Test: "TestMaxWaitingOfAnUnknownClass",
	},
	{
		Name: "deleted-messages-count", Promise: "M7", File: "object/message_mail.go",
		Edits: []edit{{
			Old: `	x.timed.Remove(id.To, 1, at)
`,
			New: `	if !mutant("deleted-messages-count") {
		x.timed.Remove(id.To, 1, at)
	}
`,
		}},
		Package: "object", Test: "TestLaterCountsGoBackToNothing",
	},
	{
		Name: "stuck-messages-keep-their-places", Promise: "M4", File: "object/message_turn.go",
		Edits: []edit{{
			Old: `	case (x.later.Stats().Queued > 0`,
			New: `	case !mutant("stuck-messages-keep-their-places") && (x.later.Stats().Queued > 0`,
		}},
		Package: "object", Test: "TestDelayedMessagesThatCannotBeHandled",
	},
	{
		Name: "message-is-handled-before-its-hand-over", Promise: "M3", File: "object/message_mail.go",
		Edits: []edit{{
			Old: `		if e.Object >= handed {`,
			New: `		if e.Object >= handed && !mutant("message-is-handled-before-its-hand-over") {`,
		}},
		Package: "object", Test: "TestDelayedMessageBeforeItsReport",
	},
	{
		Name: "slow-receiver-takes-all-places", Promise: "M7", File: "object/internal/inbox/share.go",
		Edits: []edit{{
			Old: `	switch {
	case slices.Contains(s.under, at.Seq):
`,
			New: `	switch {
	case mutant("slow-receiver-takes-all-places"), slices.Contains(s.under, at.Seq):
`,
		}},
		Package: "object", Test: "TestSlowReceiversLeavePlaces/39_slow",
	},
	{
		Name: "message-without-a-place-is-forgotten", Promise: "M7", File: "object/internal/inbox/share.go",
		Edits: []edit{{
			Old: `	if s.behind && !s.reading && last <= x.most()/2 {`,
			New: `	if s.behind && !s.reading && last <= x.most()/2 && !mutant("message-without-a-place-is-forgotten") {`,
		}},
		Package: "object", Test: "TestSlowReceiversLeavePlaces/1_slow",
	},
	{
		Name: "messages-that-were-found-have-no-places", Promise: "M6", File: "object/internal/inbox/share.go",
		Edits: []edit{{
			Old: `		x.place(s, m.Seq)
`,
			New: `		if !mutant("messages-that-were-found-have-no-places") {
			x.place(s, m.Seq)
		}
`,
		}},
		Package: "object/internal/inbox", Test: "TestSharesForgetNoMessage",
	},
	{
		Name: "message-gets-a-place-during-a-reading", Promise: "M6", File: "object/internal/inbox/share.go",
		Edits: []edit{{
			Old: `	case s.reading, s.behind`,
			New: `	case s.reading && !mutant("message-gets-a-place-during-a-reading"), s.behind`,
		}},
		Package: "object/internal/inbox", Test: "TestSharesFireOnce",
	},
	{
		Name: "reading-goes-on-behind-its-end", Promise: "M6", File: "object/message_turn.go",
		Edits: []edit{{
			Old: `return due, !over, nil`,
			New: `return due, !over || mutant("reading-goes-on-behind-its-end") && len(due) == c.Room, nil`,
		}},
		Package: "object", Test: "TestMessagesThatRestInOnePlace",
	},
	{
		Name: "message-that-left-is-found-again", Promise: "M4", File: "object/internal/inbox/share.go",
		Edits: []edit{{
			Old: `{ return slices.Contains(c.under, seq) }`,
			New: `{ return !mutant("message-that-left-is-found-again") && slices.Contains(c.under, seq) }`,
		}},
		Package: "object/internal/inbox", Test: "TestShareOfAReceiverThatIsBehind",
	},
	{
		Name: "early-messages-keep-places", Promise: "M4", File: "object/message_turn.go",
		Edits: []edit{{
			Old: `			case x.host.early(l.Due):`,
			New: `			case x.host.early(l.Due) && !mutant("early-messages-keep-places"):`,
		}},
		Package: "object", Test: "TestMessagesWithoutAPlaceWithTheClockPutBack",
	},
	{
		Name: "deleted-message-keeps-its-place", Promise: "M7", File: "object/message_mail.go",
		Edits: []edit{{
			Old: `	x.leave(inbox.Receiver{ID: id.To, Shard: id.Shard}, id.Seq)
`,
			New: `	if !mutant("deleted-message-keeps-its-place") {
		x.leave(inbox.Receiver{ID: id.To, Shard: id.Shard}, id.Seq)
	}
`,
		}},
		Package: "object", Test: "TestDeletedMessageGivesItsPlaceBack",
	},
	{
		Name: "deleted-messages-end-the-catching-up", Promise: "M7", File: "object/internal/inbox/share.go",
		Edits: []edit{{
			Old: `	return s.behind && len(s.under) == 0
`,
			New: `	return s.behind && len(s.under) == 0 && !mutant("deleted-messages-end-the-catching-up")
`,
		}},
		Package: "object/internal/inbox", Test: "TestShareWhoseFoundMessagesAreDeleted",
	},
	{
		Name: "each-send-counts-a-full-receiver", Promise: "M7", File: "object/internal/inbox/later.go",
		Edits: []edit{{
			Old: `k != nil && k.after != counting {`,
			New: `k != nil && k.after != counting && !mutant("each-send-counts-a-full-receiver") {`,
		}},
		Package: "object", Test: "TestRefusedSendReadsNoMessages",
	},
	{
		Name: "message-is-counted-twice-beside-a-count", Promise: "M7", File: "object/internal/inbox/later.go",
		Edits: []edit{{
			Old: `	k.after = order.NextSeq()
`,
			New: `	k.after = order.NextSeq()
	if mutant("message-is-counted-twice-beside-a-count") {
		k.after -= 2
	}
`,
		}},
		Package: "object/internal/inbox", Test: "TestLaterCountBesideCommits",
	},
	{
		Name: "removal-is-lost-beside-a-count", Promise: "M7", File: "object/internal/inbox/later.go",
		Edits: []edit{{
			Old: `return at > k.before })`,
			New: `return at > k.before && (k.after != counting || !mutant("removal-is-lost-beside-a-count")) })`,
		}},
		Package: "object/internal/inbox", Test: "TestLaterCountBesideCommits",
	},
	{
		Name: "message-without-a-method-comes-again", Promise: "M6", File: "object/message_mail.go",
		Edits: []edit{{
			Old: `.methods[m.letter.method] != nil {
		return false`,
			New: `.methods[m.letter.method] != nil || mutant("message-without-a-method-comes-again") {
		return false`,
		}},
		Package: "object", Test: "TestDelayedMessagesThatCannotBeHandled",
	},
	{
		Name: "handled-message-waits", Promise: "M7", File: "object/internal/inbox/inbox.go",
		Edits: []edit{{
			Old: `		if m.Withdrawn() {`,
			New: `		if m.Withdrawn() && !mutant("handled-message-waits") {`,
		}},
		Package: "object/internal/inbox", Test: "TestWaitingOfThoseThatAreHandled",
	},
	{
		Name: "buried-message-takes-effect", Promise: "M8", File: "object/message_flight.go",
		Edits: []edit{{
			Old: `	if !m.lent {
`,
			New: `	if !m.lent || mutant("buried-message-takes-effect") {
`,
		}},
		Package: "object", Test: "TestBuryMessageOfALentTurn",
	},
	{
		Name: "buried-message-keeps-its-room", Promise: "M7", File: "object/message_flight.go",
		Edits: []edit{{
			Old: `	if m.due == 0 {
		x.boxes.Removed(`,
			New: `	if m.due == 0 && !mutant("buried-message-keeps-its-room") {
		x.boxes.Removed(`,
		}},
		Package: "object", Test: "TestBuryMessage",
	},
	{
		Name: "message-is-buried-before-its-hand-over", Promise: "M8", File: "object/message_flight.go",
		Edits: []edit{{
			Old: `	sent := h.mail.sentByNow()
`,
			New: `	sent := ^uint64(0)
	if !mutant("message-is-buried-before-its-hand-over") {
		sent = h.mail.sentByNow()
	}
`,
		}},
		Package: "object", Test: "TestBuryMessageBeforeItsHandOver",
	},
	{
		Name: "entry-by-time-without-its-number", Promise: "S12", File: "storage/message.go",
		Edits: []edit{{
			Old: `	copy(b.data[d.entry:], number)
`,
			New: `	if !mutant("entry-by-time-without-its-number") {
		copy(b.data[d.entry:], number)
	}
`,
		}},
		Package: "storage", Test: "TestNumbersOfDelayedMessages",
	},
	{
		Name: "rollback-keeps-the-delays", Promise: "S12", File: "storage/batch.go",
		Edits: []edit{{
			Old: `	b.delayed = b.delayed[:sp.delayed]
`,
			New: `	if !mutant("rollback-keeps-the-delays") {
		b.delayed = b.delayed[:sp.delayed]
	}
`,
		}},
		Package: "storage", Test: "TestNumbersOfDelayedMessages",
	},
	{
		Name: "full-mailbox-refuses-messages", Promise: "O11", File: "object/message_mail.go",
		Edits: []edit{{
			Old: `m.To, &m.delivery, m.letter.key, m.letter.ttl, true`,
			New: `m.To, &m.delivery, m.letter.key, m.letter.ttl, !mutant("full-mailbox-refuses-messages")`,
		}},
		Package: "object", Test: "TestFullMailboxTakesMessages",
	},
	{
		Name: "mailbox-takes-all-messages", Promise: "O11", File: "object/internal/inbox/inbox.go",
		Edits: []edit{{
			Old: `len(b.under) < MaxMessages && b.bytes`,
			New: `(mutant("mailbox-takes-all-messages") || len(b.under) < MaxMessages) && b.bytes`,
		}},
		Package: "object", Test: "TestFullMailboxTakesMessages",
	},
}
