package main

import (
	"time"

	restate "github.com/restatedev/sdk-go"

	"github.com/holdfast-dev/holdfast/bench/peers/internal/steps"
)

// Steps is a workflow of empty steps.
type Steps struct{ timer *steps.Timer }

// Run is the workflow. It takes the number of its steps, and answers it.
func (s Steps) Run(ctx restate.WorkflowContext, n int) (int, error) {
	last := time.Now()
	for range n {
		if _, err := restate.Run(ctx, func(restate.RunContext) (int, error) { return 0, nil }); err != nil {
			return 0, err
		}
		last = s.timer.Step(last)
	}
	return n, nil
}
