package main

// webhookMutants are bugs of webhooks: of the place in the feed, of attempts, of secrets, and of addresses.
var webhookMutants = []mutant{
	{
		Name: "webhook-place-before-its-deliveries", Promise: "U1", File: "server/webhook/relay.go",
		Edits: []edit{{
			Old: `	o.save.Store(false)
	err = o.st.Do(`,
			New: `	o.save.Store(false)
	if mutant("webhook-place-before-its-deliveries") {
		err = o.st.Do(ctx, func(ctx context.Context) error { now := *o.rec; now.Place = next; return o.put(ctx, now) })
		if err != nil {
			return false, err
		}
	}
	err = o.st.Do(`,
		}},
		Package: "server/webhook", Test: "TestCrashPlace",
	},
	{
		Name: "webhook-place-after-its-deliveries", Promise: "U1", File: "server/webhook/relay.go",
		Edits: []edit{{
			Old: `		now.Place = next
		return o.deliver(ctx, now, events)
	})
`,
			New: `		if !mutant("webhook-place-after-its-deliveries") {
			now.Place = next
		}
		return o.deliver(ctx, now, events)
	})
	if err == nil && mutant("webhook-place-after-its-deliveries") {
		err = o.st.Do(ctx, func(ctx context.Context) error { now := *o.rec; now.Place = next; return o.put(ctx, now) })
	}
`,
		}},
		Package: "server/webhook", Test: "TestCrashPlace",
	},
	{
		Name: "webhook-rests-without-a-second-look", Promise: "U1", File: "server/webhook/relay.go",
		Edits: []edit{{
			Old: `		default:
			if err := o.wait(ctx, tap); err != nil {`,
			New: `			if mutant("webhook-rests-without-a-second-look") {
				if err := o.wait(ctx, tap); err != nil {
					return err
				}
				rest()
			}
		default:
			if err := o.wait(ctx, tap); err != nil {`,
		}},
		Package: "server/webhook", Test: "TestEventWhileTheRelayGoesToRest",
	},
	{
		Name: "webhook-id-of-the-attempt", Promise: "U1", File: "server/webhook/delivery.go",
		Edits: []edit{{
			Old: `	d.Stage++
`,
			New: `	d.Stage++
	if mutant("webhook-id-of-the-attempt") {
		d.ID += "1"
	}
`,
		}},
		Package: "server/webhook", Test: "TestCrashPlace",
	},
	{
		Name: "webhook-opening-begins-no-relay", Promise: "U1", File: "server/webhook/object.go",
		Edits: []edit{{
			Old: `	if err := o.st.Driver().OpenExecution(ctx, nil); err != nil {`,
			New: `	if err := o.st.Driver().OpenExecution(ctx, nil); err != nil && !mutant("webhook-opening-begins-no-relay") {`,
		}, {
			Old: `	return o, o.begin(ctx)
`,
			New: `	if mutant("webhook-opening-begins-no-relay") {
		return o, nil
	}
	return o, o.begin(ctx)
`,
		}},
		Package: "server/webhook", Test: "TestOpening",
	},
	{
		Name: "webhook-one-attempt-less", Promise: "U2", File: "server/webhook/delivery.go",
		Edits: []edit{{
			Old: `case t.In.Stage < len(w.config.Waits) &&`,
			New: `case t.In.Stage < len(w.config.Waits) && !(mutant("webhook-one-attempt-less") && t.In.Stage == len(w.config.Waits)-1) &&`,
		}},
		Package: "server/webhook", Test: "TestSchedule",
	},
	{
		Name: "webhook-tries-again-early", Promise: "U2", File: "server/webhook/delivery.go",
		Edits: []edit{{
			Old: `		wait := n.Wait + `,
			New: `		if mutant("webhook-tries-again-early") {
			n.Wait -= time.Second
		}
		wait := n.Wait + `,
		}},
		Package: "server/webhook", Test: "TestSchedule",
	},
	{
		Name: "webhook-failing-for-ever", Promise: "U2", File: "server/webhook/delivery.go",
		Edits: []edit{{
			Old: `kind, rec.Failing = EventDelivered, time.Time{}`,
			New: `kind = EventDelivered
		if !mutant("webhook-failing-for-ever") {
			rec.Failing = time.Time{}
		}`,
		}},
		Package: "server/webhook", Test: "TestSchedule",
	},
	{
		Name: "webhook-old-secret-for-ever", Promise: "U3", File: "server/webhook/object.go",
		Edits: []edit{{
			Old: `	if o.st.Now().Before(o.rec.OldUntil) {
		t.Sealed`,
			New: `	if o.st.Now().Before(o.rec.OldUntil) || mutant("webhook-old-secret-for-ever") && o.rec.Old != nil {
		t.Sealed`,
		}},
		Package: "server/webhook", Test: "TestOldSecret",
	},
	{
		Name: "webhook-silent-gap", Promise: "U4", File: "server/webhook/relay.go",
		Edits: []edit{{
			Old: `		now.Gaps++
`,
			New: `		if !mutant("webhook-silent-gap") {
			now.Gaps++
		}
`,
		}},
		Package: "server/webhook", Test: "TestGap",
	},
	{
		Name: "webhook-place-stays-while-quiet", Promise: "U4", File: "server/webhook/relay.go",
		Edits: []edit{{
			Old: `	o.save.Store(true)
	o.poke()
`,
			New: `	if !mutant("webhook-place-stays-while-quiet") {
		o.save.Store(true)
	}
	o.poke()
`,
		}},
		Package: "server/webhook", Test: "TestQuiet",
	},
	{
		Name: "webhook-without-end-of-waiting", Promise: "U4", File: "server/webhook/relay.go",
		Edits: []edit{{
			Old: `r.Waiting >= maxWaiting }`,
			New: `r.Waiting >= maxWaiting && !mutant("webhook-without-end-of-waiting") }`,
		}},
		Package: "server/webhook", Test: "TestBackPressure",
	},
	{
		Name: "webhook-to-a-private-address", Promise: "U5", File: "server/webhook/address.go",
		Edits: []edit{{
			Old: `	return checkAddress(at.Addr())
`,
			New: `	if mutant("webhook-to-a-private-address") {
		return nil
	}
	return checkAddress(at.Addr())
`,
		}},
		Package: "server/webhook", Test: "TestAddresses",
	},
	{
		Name: "webhook-to-any-port", Promise: "U5", File: "server/webhook/address.go",
		Edits: []edit{{
			Old: `	if at.Port() != 443 {`,
			New: `	if at.Port() != 443 && !mutant("webhook-to-any-port") {`,
		}},
		Package: "server/webhook", Test: "TestAddresses",
	},
	{
		Name: "webhook-follows-redirects", Promise: "U5", File: "server/webhook/send.go",
		Edits: []edit{{
			Old: `CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },`,
			New: `CheckRedirect: func(*http.Request, []*http.Request) error {
			if mutant("webhook-follows-redirects") {
				return nil
			}
			return http.ErrUseLastResponse
		},`,
		}},
		Package: "server/webhook", Test: "TestHostileReceiver",
	},
	{
		Name: "webhook-of-its-own-events", Promise: "U6", File: "server/webhook/subscription.go",
		Edits: []edit{{
			Old: `	return !system(e.ID.Class) || `,
			New: `	return mutant("webhook-of-its-own-events") || !system(e.ID.Class) || `,
		}},
		Package: "server/webhook", Test: "TestNoLoop",
	},
	{
		Name: "webhook-tells-of-its-telling", Promise: "U6", File: "server/webhook/delivery.go",
		Edits: []edit{{
			Old: `kind != "" && a.Class != Class {`,
			New: `kind != "" && (a.Class != Class || mutant("webhook-tells-of-its-telling")) {`,
		}},
		Package: "server/webhook", Test: "TestNoLoop",
	},
	{
		Name: "webhook-410-is-a-failure", Promise: "U7", File: "server/webhook/delivery.go",
		Edits: []edit{{
			Old: `case a.Status == http.StatusGone &&`,
			New: `case a.Status == http.StatusGone && !mutant("webhook-410-is-a-failure") &&`,
		}},
		Package: "server/webhook", Test: "TestGone",
	},
	{
		Name: "webhook-sends-while-disabled", Promise: "U7", File: "server/webhook/delivery.go",
		Edits: []edit{{
			Old: `	case to.Gone, to.Disabled:`,
			New: `	case to.Gone, to.Disabled && !mutant("webhook-sends-while-disabled"):`,
		}},
		Package: "server/webhook", Test: "TestDisabled",
	},
	{
		Name: "webhook-replays-more-than-its-span", Promise: "U8", File: "server/webhook/relay.go",
		Edits: []edit{{
			Old: `!e.At.Before(p.Since) && `,
			New: `(!e.At.Before(p.Since) || mutant("webhook-replays-more-than-its-span")) && `,
		}},
		Package: "server/webhook", Test: "TestReplaySpan",
	},
	{
		Name: "webhook-receivers-in-one-row", Promise: "U9", File: "server/webhook/delivery.go",
		Edits: []edit{{
			Old: `	key := fmt.Sprintf("%s/%d", d.To, d.Stage)
`,
			New: `	if mutant("webhook-receivers-in-one-row") {
		d.To = ""
	}
	key := fmt.Sprintf("%s/%d", d.To, d.Stage)
`,
		}},
		Package: "server/webhook", Test: "TestSlowReceiver",
	},
	{
		Name: "webhook-shown-to-an-operator", Promise: "U10", File: "server/webhooks.go",
		Edits: []edit{{
			Old: `		{method: "GET", pattern: "/v1/webhooks", access: admin,`,
			New: `		{method: "GET", pattern: "/v1/webhooks", access: map[bool]access{false: admin, true: operator}[mutant("webhook-shown-to-an-operator")],`,
		}},
		Package: "server", Test: "TestWebhooks",
	},
}

// outcomeMutants are bugs of webhooks for the outcome of one task.
var outcomeMutants = []mutant{
	{
		Name: "each-host-takes-outcomes", Promise: "U11", File: "server/webhook/tasks.go",
		Edits: []edit{{
			Old: `	host := hostName(u.Hostname())
`,
			New: `	host := hostName(u.Hostname())
	if mutant("each-host-takes-outcomes") {
		return nil
	}
`,
		}},
		Package: "server/webhook", Test: "TestHostsOfTasks",
	},
	{
		Name: "outcome-before-a-secret-is-dropped", Promise: "U11", File: "server/webhook/delivery.go",
		Edits: []edit{{
			Old: `	case to.Gone && d.URL == "":
`,
			New: `	case to.Gone && (d.URL == "" || mutant("outcome-before-a-secret-is-dropped")):
`,
		}},
		Package: "server/webhook", Test: "TestCrashOutcome/map",
	},
	{
		Name: "410-disables-the-pool", Promise: "U11", File: "server/webhook/delivery.go",
		Edits: []edit{{
			Old: ` t.In.URL == "":
		n.Disable`,
			New: ` (t.In.URL == "" || mutant("410-disables-the-pool")):
		n.Disable`,
		}},
		Package: "server/webhook", Test: "TestGoneForAnOutcome",
	},
	{
		Name: "outcome-of-a-dead-task-is-not-posted", Promise: "W13", File: "jobs/workerpool/execution.go",
		Edits: []edit{{
			Old: `	if s != Done { // a done`,
			New: `	if s != Done && !(s == Dead && mutant("outcome-of-a-dead-task-is-not-posted")) { // a done`,
		}},
		Package: "server/webhook", Test: "TestGoneForAnOutcome",
	},
	{
		Name: "outcome-before-the-end-of-its-task", Promise: "W13", File: "jobs/workerpool/execution.go",
		Edits: []edit{{
			Old: `		return p.result(r, x.Run.Failed()+1, output), nil
`,
			New: `		res := p.result(r, x.Run.Failed()+1, output)
		if mutant("outcome-before-the-end-of-its-task") && res.Store != nil {
			if err := p.st.Do(ctx, res.Store); err != nil {
				return res, err
			}
			res.Store = nil
		}
		return res, nil
`,
		}},
		Package: "server/webhook", Test: "TestCrashOutcome/map",
	},
	{
		Name: "sync-between-an-outcome-and-the-end", Promise: "W13", File: "jobs/workerpool/execution.go",
		Edits: []edit{{
			Old: `			return err
		}
	}
	p.count(s)
`,
			New: `			return err
		}
		if r.rare.Webhook != nil && mutant("sync-between-an-outcome-and-the-end") {
			if err := p.st.Sync(ctx); err != nil {
				return err
			}
		}
	}
	p.count(s)
`,
		}},
		Package: "server/webhook", Test: "TestCrashOutcome/map",
	},
	{
		Name: "sync-between-a-result-and-the-end", Promise: "W13", File: "jobs/workerpool/execution.go",
		Edits: []edit{{
			Old: `		return p.keepOutcome(ctx, kept, Done)
`,
			New: `		if mutant("sync-between-a-result-and-the-end") {
			if err := p.st.Sync(ctx); err != nil {
				return err
			}
		}
		return p.keepOutcome(ctx, kept, Done)
`,
		}},
		Package: "server/webhook", Test: "TestCrashOutcome/map",
	},
	{
		Name: "a-full-outbox-costs-a-recovery", Promise: "W13", File: "jobs/engine/engine.go",
		Edits: []edit{{
			Old: ` || !x.Began.After(d.OutboxFullAt())`,
			New: ` || !x.Began.After(d.OutboxFullAt()) && !mutant("a-full-outbox-costs-a-recovery")`,
		}},
		Package: "server/webhook", Test: "TestFullOutbox/full",
	},
}
