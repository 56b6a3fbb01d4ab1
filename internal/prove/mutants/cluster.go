package main

// clusterMutants are bugs of the nodes of a cluster: of their beats, of the rule by which they claim, and of their views.
var clusterMutants = []mutant{
	{
		Name: "replaced-owner-is-not-asked", Promise: "N6", File: "cluster/beat.go",
		Edits: []edit{{
			Old: `	if h := n.host.Load(); h != nil && look.State.Term`,
			New: `	if h := n.host.Load(); !mutant("replaced-owner-is-not-asked") && h != nil && look.State.Term`,
		}},
		Package: "cluster", Test: "TestOneSilenceMakesOneTerm",
	},
	{
		Name: "refused-connection-is-no-hint", Promise: "N6", File: "cluster/probe.go",
		Edits: []edit{{
			Old: `		n.watch.silence.Hint(id)`,
			New: `		if !mutant("refused-connection-is-no-hint") {
			n.watch.silence.Hint(id)
		}`,
		}},
		Package: "cluster", Test: "TestKilledProcessIsReplacedAtOnce",
	},
	{
		Name: "address-that-was-never-reached", Promise: "N6", File: "cluster/probe.go",
		Edits: []edit{{
			Old: `	known := n.reached == owner.Incarnation`,
			New: `	known := n.reached == owner.Incarnation || mutant("address-that-was-never-reached")`,
		}},
		Package: "cluster", Test: "TestWrongAddressMovesNothing",
	},
	{
		Name: "beat-without-an-answer-counts", Promise: "N6", File: "cluster/beat.go",
		Edits: []edit{{
			Old: `	if works && !n.deaf {`,
			New: `	if works && (!n.deaf || mutant("beat-without-an-answer-counts")) {`,
		}},
		Package: "cluster", Test: "TestBeatWithoutAnswerDoesNotCount",
	},
	{
		Name: "beat-of-a-store-that-hangs", Promise: "N6", File: "cluster/beat.go",
		Edits: []edit{{
			Old: `	works := n.pulse.works()`,
			New: `	works := n.pulse.works() || mutant("beat-of-a-store-that-hangs")`,
		}},
		Package: "cluster", Test: "TestOwnerThatHangsIsReplaced",
	},
	{
		Name: "owner-with-a-wrong-clock-keeps", Promise: "N6", File: "cluster/beat.go",
		Edits: []edit{{
			Old: `	case w.skew > skewMost && n.cease != nil:`,
			New: `	case w.skew > skewMost && n.cease != nil && !mutant("owner-with-a-wrong-clock-keeps"):`,
		}},
		Package: "cluster", Test: "TestWrongClockNeitherClaimsNorKeeps",
	},
	{
		Name: "wrong-clock-looks-like-an-owner", Promise: "N6", File: "cluster/beat.go",
		Edits: []edit{{
			Old: `	if w.skew > skewMost && n.engine == nil {`,
			New: `	if w.skew > skewMost && n.engine == nil && !mutant("wrong-clock-looks-like-an-owner") {`,
		}},
		Package: "cluster", Test: "TestWrongClockAfterARestartLetsGo",
	},
	{
		Name: "claim-without-a-check", Promise: "N6", File: "cluster/run.go",
		Edits: []edit{{
			Old: `func (n *Node) check(view engine.Engine) error {
`,
			New: `func (n *Node) check(view engine.Engine) error {
	if mutant("claim-without-a-check") {
		return nil
	}
`,
		}},
		Package: "cluster", Test: "TestNodeWithoutSpaceClaimsNothing",
	},
	{
		Name: "old-view-is-not-restored", Promise: "N7", File: "cluster/run.go",
		Edits: []edit{{
			Old: `	if errors.Is(err, shardlog.ErrTruncated) ||`,
			New: `	if errors.Is(err, shardlog.ErrTruncated) && !mutant("old-view-is-not-restored") ||`,
		}},
		Package: "cluster", Test: "TestViewBehindATruncatedLog",
	},
	{
		Name: "drain-from-outside-looks-like-a-twin", Promise: "N6", File: "cluster/beat.go",
		Edits: []edit{{
			Old: `		if row.ID == n.o.ID && row.Draining && row.Addr != "" {`,
			New: `		if row.ID == n.o.ID && row.Draining && row.Addr != "" && !mutant("drain-from-outside-looks-like-a-twin") {`,
		}},
		Package: "cluster", Test: "TestDrainHandsOver",
	},
	{
		Name: "accepted-loss-keeps-the-epoch", Promise: "N7", File: "cluster/recover.go",
		Edits: []edit{{
			Old: `		if err := storage.RaiseEpoch(view, &b); err != nil {
`,
			New: `		if mutant("accepted-loss-keeps-the-epoch") {
			b.DeleteMeta("none")
		} else if err := storage.RaiseEpoch(view, &b); err != nil {
`,
		}},
		Package: "cluster", Test: "TestRecoveryAsksAgain",
	},
	{
		Name: "recovery-from-a-lost-snapshot", Promise: "N7", File: "cluster/recover.go",
		Edits: []edit{{
			Old: `		if chain == s.Chain {
`,
			New: `		if chain == s.Chain || mutant("recovery-from-a-lost-snapshot") {
`,
		}, {
			Old: `			if s.Last > p.head.Last {
`,
			New: `			if s.Last > p.head.Last && !mutant("recovery-from-a-lost-snapshot") {
`,
		}, {
			Old: `			if chain, err = chainOf(ctx, p.Log, shard, s.Last); err != nil {
`,
			New: `			if chain, err = chainOf(ctx, p.Log, shard, s.Last); err != nil && !mutant("recovery-from-a-lost-snapshot") {
`,
		}},
		Package: "cluster", Test: "TestRecoveryPassesLostSnapshots",
	},
	{
		Name: "rescue-of-another-cluster", Promise: "N7", File: "cluster/rescue.go",
		Edits: []edit{{
			Old: `	case r.Cluster != "" && r.Cluster != name:
`,
			New: `	case r.Cluster != "" && r.Cluster != name && !mutant("rescue-of-another-cluster"):
`,
		}},
		Package: "cluster", Test: "TestPutBackRefuses",
	},
	{
		Name: "rescue-put-back-from-its-begin", Promise: "N7", File: "cluster/rescue.go",
		Edits: []edit{{
			Old: `	if n := head.Last + 1 - first; n > 0 {
`,
			New: `	if n := head.Last + 1 - first; n > 0 && !mutant("rescue-put-back-from-its-begin") {
`,
		}},
		Package: "cluster", Test: "TestPutBackTheRest",
	},
}
