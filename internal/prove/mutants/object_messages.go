package main

// deliveryMutants are bugs of the way of messages from the commits of their senders to those
// of their receivers. A message cannot be handed over before its sender's commit by mistake,
// because that commit draws its number.
var deliveryMutants = []mutant{
	{
		Name: "message-removed-in-a-second-commit", Promise: "M2", File: "object/message_turn.go",
		Edits: []edit{{
			Old: `	m.outcome = delivered
	return nil
}

// repeats`,
			New: `	m.outcome = delivered
	if mutant("message-removed-in-a-second-commit") {
		m.remove(t)
		return t.commit(false)
	}
	return nil
}

// repeats`,
		}, {
			Old: `	t.begun().DeleteMessage(m.MessageID, m.stated, m.due)
`,
			New: `	if mutant("message-removed-in-a-second-commit") && t.message != nil && m.outcome != delivered {
		return
	}
	t.begun().DeleteMessage(m.MessageID, m.stated, m.due)
`,
		}},
		Package: "object", Test: "TestMessageChainAcrossCrashes/map",
	},
	{
		Name: "message-removed-at-the-first-sync", Promise: "M2", File: "object/turn_commit.go",
		Edits: []edit{{
			Old: `		if last {
			m.remove(t)`,
			New: `		if last || mutant("message-removed-at-the-first-sync") {
			m.remove(t)`,
		}},
		Package: "object", Test: "TestHandlerWithSyncAndRelease",
	},
	{
		Name: "receiver-without-the-sender's-ticket", Promise: "M2", File: "object/message_turn.go",
		Edits: []edit{{
			Old: `	a.depend(m.ticket)
`,
			New: `	if !mutant("receiver-without-the-sender's-ticket") {
		a.depend(m.ticket)
	}
`,
		}},
		Package: "object", Test: "TestReceiverDependsOnTheSender",
	},
	{
		Name: "message-from-the-disk-without-a-ticket", Promise: "M2", File: "object/message.go",
		Edits: []edit{{
			Old: `		m.ticket = applied
`,
			New: `		if !mutant("message-from-the-disk-without-a-ticket") {
			m.ticket = applied
		}
`,
		}},
		Package: "object", Test: "TestReceiverDependsOnTheSender",
	},
	{
		Name: "messages-swapped-at-the-hand-over", Promise: "M3", File: "object/message_mail.go",
		Edits: []edit{{
			Old: `	for m := first; m != nil; {
		next := m.earlier
`,
			New: `	if second := first.earlier; second != nil && mutant("messages-swapped-at-the-hand-over") {
		first.earlier, second.earlier = second.earlier, first
		defer h.store.HandedOver(first.Seq)
		first = second
	}
	for m := first; m != nil; {
		next := m.earlier
`,
		}},
		Package: "object", Test: "TestSendIsPartOfTheCommit/two_to_two",
	},
	{
		Name: "reader-of-an-object-passes-an-open-commit", Promise: "M3", File: "object/message_mail.go",
		Edits: []edit{{
			Old: `	below := h.store.MessagesBelow()
`,
			New: `	below := h.store.MessagesBelow()
	if mutant("reader-of-an-object-passes-an-open-commit") {
		below += 1 << 20
	}
`,
		}},
		Package: "object", Test: "TestManySendersAgainstAReader",
	},
	{
		Name: "backlog-ends-without-a-second-look", Promise: "M3", File: "object/internal/inbox/reading.go",
		Edits: []edit{{
			Old: `		if b.joinedBelow(upper) {`,
			New: `		if b.joinedBelow(upper) || mutant("backlog-ends-without-a-second-look") {`,
		}},
		Package: "object/internal/inbox", Test: "TestMessagesThatJoinAReading",
	},
	{
		Name: "messages-of-a-failed-transaction-are-sent", Promise: "M1", File: "object/storage.go",
		Edits: []edit{{
			Old: `	if t.batch != nil {
		t.batch.Rollback(start.batch)
	}
`,
			New: `	if mutant("messages-of-a-failed-transaction-are-sent") {
		return undone
	}
	if t.batch != nil {
		t.batch.Rollback(start.batch)
	}
`,
		}},
		Package: "object", Test: "TestSendIsPartOfTheCommit/undone_transaction",
	},
	{
		Name: "attempt-of-a-message-not-counted", Promise: "M5", File: "object/message_turn.go",
		Edits: []edit{{
			Old: `	next.attempts++
`,
			New: `	if !mutant("attempt-of-a-message-not-counted") {
		next.attempts++
	}
`,
		}},
		Package: "object", Test: "TestErrorsOfMessages",
	},
	{
		Name: "pause-counts-an-attempt", Promise: "M3", File: "object/message_turn.go",
		Edits: []edit{{
			Old: `	case notTheReceivers(cause):
		m.pause(cause)
		return cause
`,
			New: `	case notTheReceivers(cause) && !mutant("pause-counts-an-attempt"):
		m.pause(cause)
		return cause
`,
		}},
		Package: "object", Test: "TestErrorsOfMessages",
	},
	{
		Name: "withdrawn-message-is-handled", Promise: "M3", File: "object/message_turn.go",
		Edits: []edit{{
			Old: `	if m.Withdrawn() || m.host`,
			New: `	if m.Withdrawn() && !mutant("withdrawn-message-is-handled") || m.host`,
		}},
		Package: "object", Test: "TestPausesOfAReceiver",
	},
	{
		Name: "messages-stay-with-an-ended-activation", Promise: "M3", File: "object/activation.go",
		Edits: []edit{{
			Old: `	read := a.host.mail.boxes.Detach(to)
`,
			New: `	read := !mutant("messages-stay-with-an-ended-activation") && a.host.mail.boxes.Detach(to)
`,
		}},
		Package: "object", Test: "TestMessagesAcrossADelete",
	},
	{
		Name: "reader-goes-on-after-a-pause", Promise: "M3", File: "object/internal/inbox/reading.go",
		Edits: []edit{{
			Old: `	if b.stale {
		return false
`,
			New: `	if b.stale && !mutant("reader-goes-on-after-a-pause") {
		return false
`,
		}},
		Package: "object/internal/inbox", Test: "TestPauseDuringAReading",
	},
	{
		Name: "second-delivery-of-a-retry", Promise: "M2", File: "object/message_turn.go",
		Edits: []edit{{
			Old: `	if err != nil || ok && s.Due == m.due {`,
			New: `	if err != nil || ok && s.Due == m.due || mutant("second-delivery-of-a-retry") {`,
		}},
		Package: "object", Test: "TestRetryThatIsDeliveredTwice",
	},
	{
		Name: "permanent-error-of-an-overload-waits", Promise: "M5", File: "object/message_turn.go",
		Edits: []edit{{
			Old: `	case IsPermanent(err):
		return false
`,
			New: `	case IsPermanent(err) && !mutant("permanent-error-of-an-overload-waits"):
		return false
`,
		}},
		Package: "object", Test: "TestErrorsOfMessages",
	},
	{
		Name: "trials-in-reverse", Promise: "M3", File: "object/activation_mailbox.go",
		Edits: []edit{{
			Old: `		return m.onTrial() && m.trial == tried.trial
`,
			New: `		return m.onTrial() && m.trial == tried.trial && !mutant("trials-in-reverse")
`,
		}},
		Package: "object", Test: "TestTrialsKeepTheirOrder",
	},
	{
		Name: "message-of-a-crash-is-not-announced", Promise: "M5", File: "object/message_flight.go",
		Edits: []edit{{
			Old: `		if old {
			fly = append(fly, m)
		}`,
			New: `		if old && !mutant("message-of-a-crash-is-not-announced") {
			fly = append(fly, m)
		}`,
		}},
		Package: "object", Test: "TestKillingMessageIsFoundAmongMany/alone",
	},
	{
		Name: "suspect-message-is-not-held", Promise: "A8", File: "object/message_flight.go",
		Edits: []edit{{
			Old: `	if !s.some.Load() {
		return false
	}
	set,`,
			New: `	if !s.some.Load() || mutant("suspect-message-is-not-held") {
		return false
	}
	set,`,
		}},
		Package: "object", Test: "TestKillingMessageIsFoundAmongMany/alone",
	},
	{
		Name: "new-trial-waits-behind-the-last", Promise: "M3", File: "object/activation_mailbox.go",
		Edits: []edit{{
			Old: `func (r *Request) before(tried *message) bool {
`,
			New: `func (r *Request) before(tried *message) bool {
	if m := r.message(); m != nil && mutant("new-trial-waits-behind-the-last") {
		return m.onTrial()
	}
`,
		}},
		Package: "object", Test: "TestTrialsKeepTheirOrder",
	},
	{
		Name: "replayed-message-loses-its-key", Promise: "M5", File: "object/message_turn.go",
		Edits: []edit{{
			Old: `	m.To, m.Shard, m.Queue = d.ID, h.store.ShardOf(d.ID), rest.Queue
`,
			New: `	m.To, m.Shard, m.Queue = d.ID, h.store.ShardOf(d.ID), rest.Queue
	if mutant("replayed-message-loses-its-key") {
		m.letter.key = ""
	}
`,
		}},
		Package: "object", Test: "TestReplayOfAMessage",
	},
	{
		Name: "held-messages-are-read", Promise: "M4", File: "object/internal/inbox/inbox.go",
		Edits: []edit{{
			Old: `return b.paused || b.holds > 0 }`,
			New: `return b.paused || b.holds > 0 && !mutant("held-messages-are-read") }`,
		}},
		Package: "object/internal/inbox", Test: "TestHold",
	},
	{
		Name: "delete-forgets-the-messages", Promise: "M4", File: "object/message_flight.go",
		Edits: []edit{{
			Old: `		err = x.host.store.Messages(to, queue, 0, below, func(s storage.StoredMessage) bool {
			if more`,
			New: `		if mutant("delete-forgets-the-messages") {
			below = 0
		}
		err = x.host.store.Messages(to, queue, 0, below, func(s storage.StoredMessage) bool {
			if more`,
		}},
		Package: "object", Test: "TestDeleteWithMessages",
	},
	{
		Name: "queue-passes-a-suspect", Promise: "M3", File: "object/message_mail.go",
		Edits: []edit{{
			Old: `			m.Alone = m.left() && h.flightLog.suspects.some.Load()
`,
			New: `			m.Alone = m.left() && h.flightLog.suspects.some.Load() && !mutant("queue-passes-a-suspect")
`,
		}},
		Package: "object", Test: "TestQueueWaitsBehindASuspect",
	},
	{
		Name: "message-goes-alone-beside-others", Promise: "M3", File: "object/internal/inbox/inbox.go",
		Edits: []edit{{
			Old: `m.Alone && len(b.under) > int(b.lent) {`,
			New: `m.Alone && len(b.under) > int(b.lent) && !mutant("message-goes-alone-beside-others") {`,
		}},
		Package: "object/internal/inbox", Test: "TestMessagesThatGoAlone",
	},
	{
		Name: "lent-turn-holds-up-the-queue", Promise: "M3", File: "object/message_flight.go",
		Edits: []edit{{
			Old: `	if m.Alone && m.host`,
			New: `	if m.Alone && !mutant("lent-turn-holds-up-the-queue") && m.host`,
		}},
		Package: "object", Test: "TestLentTurnMeetsTheNextMessageAfterCrashes",
	},
	{
		Name: "reader-goes-on-without-room", Promise: "M7", File: "object/internal/inbox/reading.go",
		Edits: []edit{{
			Old: `		b.full, b.starved = len(b.under) > 0,`,
			New: `		b.full, b.starved = len(b.under) > 0 && !mutant("reader-goes-on-without-room"),`,
		}},
		Package: "object/internal/inbox", Test: "TestReaderRestsBesideLargeMessages",
	},
	{
		Name: "held-suspect-outlives-its-deletion", Promise: "M4", File: "object/message_flight.go",
		Edits: []edit{{
			Old: `removeMessages(id) {
`,
			New: `removeMessages(id) {
		if mutant("held-suspect-outlives-its-deletion") {
			continue
		}
`,
		}},
		Package: "object", Test: "TestDeleteOfAHeldSuspect",
	},
	{
		Name: "due-message-runs-during-its-deletion", Promise: "M4", File: "object/message_turn.go",
		Edits: []edit{{
			Old: `m.due != 0 && m.host.mail.boxes.Held(m.Receiver()) {`,
			New: `m.due != 0 && m.host.mail.boxes.Held(m.Receiver()) && !mutant("due-message-runs-during-its-deletion") {`,
		}},
		Package: "object", Test: "TestDueMessageWaitsForADelete",
	},
	{
		Name: "messages-of-a-parked-class-removed-twice", Promise: "M4", File: "object/message_flight.go",
		Edits: []edit{{
			Old: `	if before != nil {
		_ = h.seams`,
			New: `	if before != nil && !mutant("messages-of-a-parked-class-removed-twice") {
		_ = h.seams`,
		}},
		Package: "object", Test: "TestDeleteWithMessagesBesideSenders/parked_true",
	},
	{
		Name: "deletion-ends-its-hold-with-the-caller", Promise: "M4", File: "object/message_flight.go",
		Edits: []edit{{
			Old: `		defer h.mail.holdBack(id)() // the`,
			New: `		if mutant("deletion-ends-its-hold-with-the-caller") {
			if err := h.mail.drop(t, below); err != nil {
				return err
			}
			return h.purge(t)
		}
		defer h.mail.holdBack(id)() // the`,
		}},
		Package: "object", Test: "TestDeleteWithMessagesWhoseCallerLeaves",
	},
	{
		Name: "deletion-does-not-wait-for-older-commits", Promise: "M4", File: "object/message_flight.go",
		Edits: []edit{{
			Old: `	for x.host.store.MessagesBelow() < below {
`,
			New: `	if mutant("deletion-does-not-wait-for-older-commits") {
		return x.host.store.MessagesBelow()
	}
	for x.host.store.MessagesBelow() < below {
`,
		}},
		Package: "object", Test: "TestDeleteWithMessagesWaitsForAnOlderCommit",
	},
	{
		Name: "reader-waits-for-ended-commits", Promise: "M3", File: "object/message_mail.go",
		Edits: []edit{{
			Old: `		if h.store.MessagesBelow() > below {`,
			New: `		if h.store.MessagesBelow() > below && !mutant("reader-waits-for-ended-commits") {`,
		}},
		Package: "object", Test: "TestReaderGoesOnAtOnce",
	},
}
