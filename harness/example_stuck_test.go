package harness_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
)

// NoStuck finds a workflow that cannot go on. This one names a step by the time, so a repeat
// asks for another step than its history has.
func ExampleNoStuck() {
	_, err := harness.Explore(func(s *harness.Sim) {
		reminders := workflow.New[string, string]("reminder", workflow.Config{})
		reminders.Func(func(ctx *workflow.Context, to string) (string, error) {
			_, err := workflow.Step(ctx, "mail at "+s.Now().Format(time.Kitchen), func(context.Context) (string, error) {
				return "sent", s.World().Do("mail/"+to, nil)
			})
			if err != nil {
				return "", err
			}
			return "reminded", workflow.Sleep(ctx, time.Hour)
		})
		s.Host(reminders)
		s.OK(s.Retry(func() error { _, err := reminders.Start(s.Context(), s, "1", "anna"); return err }))
		s.Advance(2 * time.Hour)
	}, harness.NoStuck)
	var found *harness.Failure
	if errors.As(err, &found) {
		place, _, _ := strings.Cut(found.Problem, ", the code asked for")
		fmt.Println(place)
	}
	// Output: NoStuck: reminder/1 is stuck: workflow: reminder/1: diverged: the code does not follow the history: entry 1 of the function is step "mail at 12:00AM"
}
