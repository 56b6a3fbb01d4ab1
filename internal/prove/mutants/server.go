package main

// serverMutants are bugs of the server: of the rights and the bounds of a request, of keys, tokens and
// sessions, and of streams.
var serverMutants = []mutant{
	{
		Name: "method-that-config-does-not-name-is-called", Promise: "V1", File: "server/calls.go",
		Edits: []edit{{
			Old: `; !ok || !may {`,
			New: `; !ok && !mutant("method-that-config-does-not-name-is-called") || !may {`,
		}},
		Package: "server", Test: "TestOnlyExposedMethods",
	},
	{
		Name: "grant-is-not-asked", Promise: "V6", File: "server/calls.go",
		Edits: []edit{{
			Old: `may := x.who.MayCall(id.Class, id.Name, method)`,
			New: `may := x.who.MayCall(id.Class, id.Name, method) || mutant("grant-is-not-asked")`,
		}},
		Package: "server", Test: "TestOnlyExposedMethods",
	},
	{
		Name: "role-is-not-asked", Promise: "V6", File: "server/admit.go",
		Edits: []edit{{
			Old: `if x.who.Role < role {`,
			New: `if x.who.Role < role && !mutant("role-is-not-asked") {`,
		}},
		Package: "server", Test: "TestSteps",
	},
	{
		Name: "lists-show-a-prefix-all-names", Promise: "V6", File: "server/admit.go",
		Edits: []edit{{
			Old: `if x.who.Prefix != "" && !x.route.single {`,
			New: `if x.who.Prefix != "" && !x.route.single && !mutant("lists-show-a-prefix-all-names") {`,
		}},
		Package: "server", Test: "TestSteps",
	},
	{
		Name: "prefix-hides-nothing", Promise: "V6", File: "server/admit.go",
		Edits: []edit{{
			Old: `	if !x.who.Sees(name) {`,
			New: `	if !x.who.Sees(name) && !mutant("prefix-hides-nothing") {`,
		}},
		Package: "server", Test: "TestPrefixOfJobs",
	},
	{
		Name: "foreign-host-is-answered", Promise: "V13", File: "server/admit.go",
		Edits: []edit{{
			Old: `if !x.config.answers(x.r.Host) {`,
			New: `if !x.config.answers(x.r.Host) && !mutant("foreign-host-is-answered") {`,
		}},
		Package: "server", Test: "TestHosts",
	},
	{
		Name: "page-of-another-site-is-answered", Promise: "V13", File: "server/admit.go",
		Edits: []edit{{
			Old: `if err := x.origins.Check(x.r); err != nil {`,
			New: `if err := x.origins.Check(x.r); err != nil && !mutant("page-of-another-site-is-answered") {`,
		}},
		Package: "server", Test: "TestSteps",
	},
	{
		Name: "idempotency-key-of-a-call-is-dropped", Promise: "V3", File: "server/calls.go",
		Edits: []edit{{
			Old: `	if key != "" {
		opts`,
			New: `	if key != "" && !mutant("idempotency-key-of-a-call-is-dropped") {
		opts`,
		}},
		Package: "server", Test: "TestIdempotencyKey",
	},
	{
		Name: "principals-share-idempotency-keys", Promise: "V3", File: "server/calls.go",
		Edits: []edit{{
			Old: `	key, err := x.key()`,
			New: `	if mutant("principals-share-idempotency-keys") {
		x.who.ID = ""
	}
	key, err := x.key()`,
		}},
		Package: "server", Test: "TestIdempotencyKey",
	},
	{
		Name: "stored-key-without-the-length-of-the-id", Promise: "V3", File: "server/calls.go",
		Edits: []edit{{
			Old: `	b = append(append(b, principal...), key...)`,
			New: `	if mutant("stored-key-without-the-length-of-the-id") {
		b = nil
	}
	b = append(append(b, principal...), key...)`,
		}},
		Package: "server", Test: "TestStoredKeys",
	},
	{
		Name: "end-of-the-wait-ends-the-handler", Promise: "V4", File: "server/calls.go",
		Edits: []edit{{
			Old: `	seams := x.host.Seams()
`,
			New: `	if mutant("end-of-the-wait-ends-the-handler") {
		opts = opts[1:]
	}
	seams := x.host.Seams()
`,
		}},
		Package: "server", Test: "TestEndOfTheWait",
	},
	{
		Name: "call-of-unknown-outcome-tells-none", Promise: "V4", File: "server/calls.go",
		Edits: []edit{{
			Old: `	p.Outcome = unknown
	if object.Untouched(e.err) {`,
			New: `	p.Outcome = unknown
	if object.Untouched(e.err) || mutant("call-of-unknown-outcome-tells-none") {`,
		}},
		Package: "server", Test: "TestOutcomes",
	},
	{
		Name: "body-may-have-one-byte-more", Promise: "V5", File: "server/exchange.go",
		Edits: []edit{{
			Old: `	if err := x.takesBody(limit); err != nil {
		return nil, err`,
			New: `	if mutant("body-may-have-one-byte-more") {
		limit++
	}
	if err := x.takesBody(limit); err != nil {
		return nil, err`,
		}},
		Package: "server", Test: "TestBodyBound",
	},
	{
		Name: "second-backup-begins", Promise: "V22", File: "server/backup_run.go",
		Edits: []edit{{
			Old: `	case b.running != nil:`,
			New: `	case b.running != nil && !mutant("second-backup-begins"):`,
		}},
		Package: "server", Test: "TestOneBackupAtATime",
	},
	{
		Name: "backup-of-another-store-counts", Promise: "V22", File: "server/backup_run.go",
		Edits: []edit{{
			Old: `s.Store == store && !s.Verified.IsZero()`,
			New: `(s.Store == store || mutant("backup-of-another-store-counts")) && !s.Verified.IsZero()`,
		}},
		Package: "server", Test: "TestBackupOverHTTP",
	},
	{
		Name: "import-takes-jobs", Promise: "V23", File: "server/transfers.go",
		Edits: []edit{{
			Old: `	if err := x.plainClass(id.Class); err != nil {`,
			New: `	if err := x.plainClass(id.Class); err != nil && !mutant("import-takes-jobs") {`,
		}},
		Package: "server", Test: "TestImportIsRefused",
	},
	{
		Name: "principals-share-a-rate", Promise: "V5", File: "server/rates.go",
		Edits: []edit{{
			Old: `	now := time.Now()
`,
			New: `	if mutant("principals-share-a-rate") {
		id = ""
	}
	now := time.Now()
`,
		}},
		Package: "server", Test: "TestRate",
	},
	{
		Name: "rates-are-kept-for-ever", Promise: "V5", File: "server/rates.go",
		Edits: []edit{{
			Old: `if len(r.byID) == maxRates {`,
			New: `if len(r.byID) == maxRates && !mutant("rates-are-kept-for-ever") {`,
		}},
		Package: "server", Test: "TestRate",
	},
	{
		Name: "principal-may-have-one-stream-more", Promise: "V5", File: "server/streams.go",
		Edits: []edit{{
			Old: `s.of[who] >= most.streamsEach`,
			New: `(s.of[who] > most.streamsEach || s.of[who] == most.streamsEach && !mutant("principal-may-have-one-stream-more"))`,
		}},
		Package: "server", Test: "TestStreamsAreBounded",
	},
	{
		Name: "stream-repeats-the-event-of-its-cursor", Promise: "V7", File: "server/events.go",
		Edits: []edit{{
			Old: `	if st.of.After == 0 && isPlace {`,
			New: `	if mutant("stream-repeats-the-event-of-its-cursor") && st.of.After > 0 {
		st.of.After--
	}
	if st.of.After == 0 && isPlace {`,
		}},
		Package: "server", Test: "TestStreamOfAnObject",
	},
	{
		Name: "snapshot-begins-one-event-late", Promise: "V7", File: "server/events.go",
		Edits: []edit{{
			Old: `		st.of.After = in.Events[0].Seq
`,
			New: `		st.of.After = in.Events[0].Seq
		if mutant("snapshot-begins-one-event-late") {
			st.of.After++
		}
`,
		}},
		Package: "server", Test: "TestStreamOfAnObject",
	},
	{
		Name: "events-below-reader-have-data", Promise: "V6", File: "server/events.go",
		Edits: []edit{{
			Old: `case st.who.Role < auth.Reader:`,
			New: `case st.who.Role < auth.Reader && !mutant("events-below-reader-have-data"):`,
		}},
		Package: "server", Test: "TestStreamsByRole",
	},
	{
		Name: "bulk-token-of-another-principal-runs", Promise: "V11", File: "server/bulk.go",
		Edits: []edit{{
			Old: `	fmt.Fprintf(h, "%q %q %q", of, token, x.who.ID)`,
			New: `	who := x.who.ID
	if mutant("bulk-token-of-another-principal-runs") {
		who = ""
	}
	fmt.Fprintf(h, "%q %q %q", of, token, who)`,
		}},
		Package: "server", Test: "TestSealOfTokens",
	},
	{
		Name: "bulk-token-of-another-route-runs", Promise: "V11", File: "server/bulk.go",
		Edits: []edit{{
			Old: `	h := hmac.New(sha256.New, x.operations.key[:])
`,
			New: `	h := hmac.New(sha256.New, x.operations.key[:])
	if mutant("bulk-token-of-another-route-runs") {
		of = ""
	}
`,
		}},
		Package: "server", Test: "TestSealOfTokens",
	},
	{
		Name: "bulk-run-does-not-ask-for-the-right-again", Promise: "V11", File: "server/bulk.go",
		Edits: []edit{{
			Old: `	if err := x.mayRun(t.Right); err != nil {`,
			New: `	if err := x.mayRun(t.Right); err != nil && !mutant("bulk-run-does-not-ask-for-the-right-again") {`,
		}},
		Package: "server", Test: "TestBulkAsksAgain",
	},
	{
		Name: "bulk-run-goes-on-without-its-grant", Promise: "V11", File: "server/bulk_right.go",
		Edits: []edit{{
			Old: `later.mayRun(right) != nil {`,
			New: `later.mayRun(right) != nil && !mutant("bulk-run-goes-on-without-its-grant") {`,
		}},
		Package: "server", Test: "TestARunEndsWithTheGrantOfItsVerb",
	},
	{
		Name: "continued-bulk-run-does-not-ask-for-its-role", Promise: "V11", File: "server/bulk_right.go",
		Edits: []edit{{
			Old: `x.allowed() == nil && x.mayRun(`,
			New: `(x.allowed() == nil || mutant("continued-bulk-run-does-not-ask-for-its-role")) && x.mayRun(`,
		}},
		Package: "server", Test: "TestAContinuedRunAsksForItsRight",
	},
	{
		Name: "continued-bulk-run-asks-too-late", Promise: "V11", File: "server/bulk_run.go",
		Edits: []edit{{
			Old: `
	ask()
	b = run.Bulk
`,
			New: `
	if !mutant("continued-bulk-run-asks-too-late") {
		ask()
	}
	b = run.Bulk
`,
		}},
		Package: "server", Test: "TestAContinuedRunAsksForItsRight",
	},
	{
		Name: "bulk-runs-of-another-server-are-not-known", Promise: "V11", File: "server/bulk_run.go",
		Edits: []edit{{
			Old: `if s.bulk = known.bulk.Value(); s.bulk == nil {`,
			New: `if s.bulk = known.bulk.Value(); s.bulk == nil || mutant("bulk-runs-of-another-server-are-not-known") {`,
		}},
		Package: "server", Test: "TestARunEndsWithTheGrantOfItsVerb",
	},
	{
		Name: "bulk-run-is-forgotten-at-a-restart", Promise: "V21", File: "server/bulk_run.go",
		Edits: []edit{{
			Old: `
	return o.start(ctx)
`,
			New: `
	if mutant("bulk-run-is-forgotten-at-a-restart") {
		return nil
	}
	return o.start(ctx)
`,
		}},
		Package: "server", Test: "TestBulkGoesOnAfterARestart",
	},
	{
		Name: "token-lives-a-moment-too-long", Promise: "V12", File: "server/auth/token.go",
		Edits: []edit{{
			Old: `!now.Before(t.Expires) }`,
			New: `(now.After(t.Expires) || now.Equal(t.Expires) && !mutant("token-lives-a-moment-too-long")) }`,
		}},
		Package: "server/auth", Test: "TestExpires",
	},
	{
		Name: "session-lives-a-moment-too-long", Promise: "V12", File: "server/auth/session.go",
		Edits: []edit{{
			Old: `	if err != nil || !now.Before(s.ends) {`,
			New: `	if err != nil || now.After(s.ends) || now.Equal(s.ends) && !mutant("session-lives-a-moment-too-long") {`,
		}},
		Package: "server/auth", Test: "TestSessionEnds",
	},
	{
		Name: "session-outlives-its-token", Promise: "V12", File: "server/auth/session.go",
		Edits: []edit{{
			Old: `!k.SHA256.equal(&s.sum)`,
			New: `!k.SHA256.equal(&s.sum) && !mutant("session-outlives-its-token")`,
		}},
		Package: "server/auth", Test: "TestSessionEndsWithItsToken",
	},
	{
		Name: "cookie-is-good-under-another-name", Promise: "V12", File: "server/auth/session.go",
		Edits: []edit{
			{Old: `	plain := binary.BigEndian.AppendUint64(`, New: `	if mutant("cookie-is-good-under-another-name") {
		name = ""
	}
	plain := binary.BigEndian.AppendUint64(`},
			{Old: `	plain, err := f.aead.Open(`, New: `	if mutant("cookie-is-good-under-another-name") {
		name = ""
	}
	plain, err := f.aead.Open(`},
		},
		Package: "server/auth", Test: "TestCookie",
	},
	{
		Name: "wrong-tokens-are-not-counted", Promise: "V12", File: "server/auth/tries.go",
		Edits: []edit{{
			Old: `now.Sub(oldest) < triesSpan {`,
			New: `now.Sub(oldest) < triesSpan && !mutant("wrong-tokens-are-not-counted") {`,
		}},
		Package: "server/auth", Test: "TestFiveTriesAMinute",
	},
	{
		Name: "call-over-its-time-keeps-the-connection", Promise: "V4", File: "server/hangup.go",
		Edits: []edit{{Old: `			_ = c.Close()
`, New: `			if !mutant("call-over-its-time-keeps-the-connection") {
				_ = c.Close()
			}
`}},
		Package: "server", Test: "TestAnswerBeforeTheHandler",
	},
	{
		Name: "call-over-its-time-is-not-flushed", Promise: "V4", File: "server/hangup.go",
		Edits: []edit{{Old: `		_ = control.Flush()`, New: `		if mutant("call-over-its-time-is-not-flushed") {
			return nil
		}
		_ = control.Flush()`}},
		Package: "server", Test: "TestAnswerBeforeTheHandler",
	},
	{
		Name: "call-behind-a-wrapper-stays", Promise: "V4", File: "server/hangup.go",
		Edits:   []edit{{Old: `direct && lowest(w) == w`, New: `direct && lowest(w) == w || mutant("call-behind-a-wrapper-stays")`}},
		Package: "server", Test: "TestHandlerReturnsAtTheEndOfTheWait",
	},
	{
		Name: "call-over-its-time-is-answered-twice", Promise: "V4", File: "server/calls.go",
		Edits:   []edit{{Old: `	if x.hasHungUp() {`, New: `	if x.hasHungUp() && !mutant("call-over-its-time-is-answered-twice") {`}},
		Package: "server", Test: "TestAnswerBeforeTheHandler",
	},
}
