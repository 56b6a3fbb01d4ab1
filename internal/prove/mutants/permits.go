package main

// permitMutants are bugs of the limits that the runs of a definition share.
var permitMutants = []mutant{
	{
		Name: "one-run-more-than-concurrency", Promise: "J16", File: "object/work_permits.go",
		Edits: []edit{{
			Old: `	return (p.limit.AtOnce == 0 || p.taken < p.limit.AtOnce) &&`,
			New: `	return (p.limit.AtOnce == 0 || p.taken < p.limit.AtOnce || mutant("one-run-more-than-concurrency") && p.taken == p.limit.AtOnce) &&`,
		}},
		Package: "jobs/continuous", Test: "TestConcurrency/3",
	},
	{
		Name: "recovered-run-goes-last", Promise: "J16", File: "jobs/engine/job.go",
		Edits: []edit{{
			Old: `TakePermit(ctx, l.meta.Run.Recovering)`,
			New: `TakePermit(ctx, l.meta.Run.Recovering && !mutant("recovered-run-goes-last"))`,
		}},
		Package: "jobs/continuous", Test: "TestOrderInLine",
	},
	{
		Name: "permit-of-a-failed-turn-is-kept", Promise: "J16", File: "object/work_permits.go",
		Edits: []edit{{
			Old: `	if t.permits > 0 {`,
			New: `	if t.permits > 0 && !mutant("permit-of-a-failed-turn-is-kept") {`,
		}},
		Package: "object", Test: "TestPermitsComeBack/error",
	},
	{
		Name: "reserved-permit-is-kept", Promise: "J16", File: "object/work_permits.go",
		Edits: []edit{{
			Old: `	if p.unclaimed(name) {`,
			New: `	if p.unclaimed(name) && !mutant("reserved-permit-is-kept") {`,
		}},
		Package: "object", Test: "TestPermitsComeBack/unused",
	},
	{
		Name: "permit-ends-with-the-execution", Promise: "J16", File: "object/work.go",
		Edits: []edit{{
			Old: `	if r.suspect != nil {
		r.suspect.release()`,
			New: `	if mutant("permit-ends-with-the-execution") {
		r.state.act.hosted.permits.over(1)
		r.permit = false
	}
	if r.suspect != nil {
		r.suspect.release()`,
		}},
		Package: "jobs/continuous", Test: "TestLongRunAmongWaiting",
	},
	{
		Name: "heartbeat-waits-in-line", Promise: "J16", File: "object/work_permits.go",
		Edits: []edit{{
			Old: `	return open || err != nil // the turn`,
			New: `	return (open || err != nil) && !mutant("heartbeat-waits-in-line") // the turn`,
		}},
		Package: "jobs/continuous", Test: "TestLongRunAmongWaiting",
	},
	{
		Name: "waiting-alarm-keeps-its-slot", Promise: "J16", File: "object/alarm_flight.go",
		Edits: []edit{{
			Old: `			h.alarms.Done(e) // its object`,
			New: `			if mutant("waiting-alarm-keeps-its-slot") {
				continue
			}
			h.alarms.Done(e) // its object`,
		}},
		Package: "jobs/continuous", Test: "TestWaitingRun",
	},
	{
		Name: "start-rate-a-nanosecond-early", Promise: "J17", File: "object/work_permits.go",
		Edits: []edit{{
			Old: `	return (r.Per-1)/time.Duration(r.Starts) + 1`,
			New: `	if mutant("start-rate-a-nanosecond-early") {
		return r.Per / time.Duration(r.Starts)
	}
	return (r.Per-1)/time.Duration(r.Starts) + 1`,
		}},
		Package: "jobs/continuous", Test: "TestStartRate/{3_1s_2}",
	},
	{
		Name: "unused-permit-uses-up-the-rate", Promise: "J17", File: "object/work_permits.go",
		Edits: []edit{{
			Old: `	p.next = p.next.Add(-rate)`,
			New: `	if !mutant("unused-permit-uses-up-the-rate") {
		p.next = p.next.Add(-rate)
	}`,
		}},
		Package: "object", Test: "TestUnusedPermitsKeepTheRate",
	},
	{
		Name: "pause-saves-up-starts", Promise: "J17", File: "object/work_permits.go",
		Edits: []edit{{
			Old: `	if p.next.Before(now) {`,
			New: `	if p.next.Before(now) && !(mutant("pause-saves-up-starts") && !p.next.IsZero()) {`,
		}},
		Package: "object", Test: "TestUnusedPermitsKeepTheRate",
	},
}
