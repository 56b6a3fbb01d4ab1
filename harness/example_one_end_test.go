package harness_test

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
)

// OneEnd looks at the run after each of its commits, and after each crash: here a cancel comes at the
// time at which the run completes, and one of the two wins for ever.
func ExampleOneEnd() {
	report, err := harness.Explore(func(s *harness.Sim) {
		visits := workflow.New[string, string]("visit", workflow.Config{})
		visits.Func(func(ctx *workflow.Context, to string) (string, error) {
			if err := workflow.Sleep(ctx, time.Hour); err != nil {
				return "", err
			}
			return workflow.Step(ctx, "look around", func(context.Context) (string, error) { return "was in " + to, nil })
		})
		s.Host(visits)
		s.OK(s.Retry(func() error { _, err := visits.Start(s.Context(), s, "1", "Rome"); return err }))
		s.Go("client", func() {
			s.Sleep(time.Hour)
			s.OK(s.Retry(func() error { return visits.Cancel(s.Context(), s, "1", "it rains") }))
		})
		s.Advance(2 * time.Hour)
	}, harness.OneEnd)
	fmt.Println(report.Crashes > 0, err)
	// Output: true <nil>
}
