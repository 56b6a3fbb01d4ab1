package harness_test

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
)

// A kettle boils once and in time, whatever fails beside it.
func ExampleSim_Faults() {
	report, err := harness.Explore(func(s *harness.Sim) {
		s.Faults(harness.Plan{FailCommit: 1, Slow: 10 * time.Second, DropWake: 1, DupAlarm: 1})
		s.Host(kettles)
		s.OK(s.Retry(func() error { _, err := putOn.Call(s.Context(), s, "k", struct{}{}); return err }))
		s.Finally("the water boils", func() error {
			if !boiled(s) {
				return errors.New("it is cold")
			}
			return nil
		})
	})
	fmt.Println(err, report.Faults["failcommit"] > 0, report.Faults["slow"] > 0)
	// Output: <nil> true true
}

// An alarm that is due is delivered twice, and handled once.
func ExampleFaults() {
	_, err := harness.Explore(func(s *harness.Sim) {
		s.Host(kettles)
		s.OK(s.Retry(func() error { _, err := putOn.Call(s.Context(), s, "k", struct{}{}); return err }))
		s.Advance(time.Hour)
		s.Always("the water boils", boiled(s))
	}, harness.Faults(harness.Plan{DupAlarm: 1}))
	fmt.Println(err)
	// Output: <nil>
}

// The disk loses power in the midst of a write. What was acknowledged is there.
func ExampleSim_Crash_torn() {
	_, err := harness.Explore(func(s *harness.Sim) {
		s.Host(carts)
		total, err := cartAdd.Call(s.Context(), s, "alice", 5)
		s.OK(err)
		if s.Crashes() > 0 {
			return
		}
		s.Crash(harness.Torn)
		s.Restart()
		got, err := cartGet.Call(s.Context(), s, "alice", struct{}{})
		s.OK(err)
		s.Always("nothing is lost", harness.Unknown(err) || got == total, got)
	}, harness.PebbleStore(), harness.NoTornBatch)
	fmt.Println(err)
	// Output: <nil>
}

// A plan of a failure may name faults beside crashes, each with its place.
func ExamplePlan() {
	_, err := harness.Explore(func(s *harness.Sim) {
		s.Host(kettles)
		s.OK(s.Retry(func() error { _, err := putOn.Call(s.Context(), s, "k", struct{}{}); return err }))
		s.Advance(time.Minute)
		s.Always("it boils to the second", s.Crashes() > 0 || boiled(s))
	}, harness.Faults(harness.Plan{Slow: time.Second}))
	var f *harness.Failure
	if errors.As(err, &f) {
		fmt.Println(strings.HasPrefix(f.Plan, "v1:seed=0:slow="))
	}
	// Output: true
}
