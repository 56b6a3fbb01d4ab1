// Package jobtypes has one job type of each kind, and a plain class, with types of their own. TestJobTypesAreThin compiles it.
package jobtypes

import (
	"context"

	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/jobs/debounce"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
)

type (
	poolIn    struct{ PoolIn string }
	poolOut   struct{ PoolOut string }
	flowIn    struct{ FlowIn string }
	flowOut   struct{ FlowOut string }
	flowStep  struct{ StepValue string }
	flowSign  struct{ SignalValue string }
	quietEv   struct{ QuietEvent string }
	quietSum  struct{ QuietState string }
	loopState struct{ LoopState string }
	classArg  struct{ ClassArg string }
	classRes  struct{ ClassRes string }
	classObj  struct{ ClassObj string }
)

var (
	pool = workerpool.New(workerpool.Config[poolIn, poolOut]{Name: "pool", Work: func(_ context.Context, t *workerpool.Task[poolIn]) (poolOut, error) {
		return poolOut{t.In.PoolIn}, nil
	}})
	sign = workflow.NewSignal[flowSign]("sign")
	flow = workflow.New[flowIn, flowOut]("flow", workflow.Config{})
	loop = continuous.New(continuous.Config[loopState]{Name: "loop", Run: func(_ context.Context, r *continuous.Run[loopState]) error {
		r.State.LoopState = r.Key
		return nil
	}})
	quiet = debounce.New(debounce.Config[quietEv, quietSum]{Name: "quiet", Flush: func(context.Context, *debounce.Flush[quietEv, quietSum]) error {
		return nil
	}})
	class = object.Define("class", func(context.Context, *object.State) (*classObj, error) { return new(classObj), nil })
	get   = object.Handle(class, "get", func(o *classObj, _ context.Context, a classArg) (classRes, error) { return classRes{a.ClassArg}, nil })
)

func init() {
	flow.Func(func(ctx *workflow.Context, in flowIn) (flowOut, error) {
		if _, err := sign.Wait(ctx, 0); err != nil {
			return flowOut{}, err
		}
		step, err := workflow.Step(ctx, "step", func(context.Context) (flowStep, error) { return flowStep{in.FlowIn}, nil })
		if err != nil {
			return flowOut{}, err
		}
		return workflow.Child(ctx, flow, "child", flowIn{step.StepValue})
	})
}

// Use calls what programs call.
func Use(ctx context.Context, h *object.Host) error {
	ref, err := pool.Enqueue(ctx, h, poolIn{"a"})
	if err != nil {
		return err
	}
	if _, err := pool.Status(ctx, h, ref.ID); err != nil {
		return err
	}
	if _, err := pool.Wait(ctx, h, ref.ID); err != nil {
		return err
	}
	if _, err := flow.Start(ctx, h, "a", flowIn{"a"}); err != nil {
		return err
	}
	if err := sign.Send(ctx, h, flow, "a", flowSign{"a"}); err != nil {
		return err
	}
	if _, err := flow.Wait(ctx, h, "a"); err != nil {
		return err
	}
	if _, err := loop.Start(ctx, h, "a", loopState{"a"}); err != nil {
		return err
	}
	if _, err := loop.State(ctx, h, "a"); err != nil {
		return err
	}
	if _, err := quiet.Add(ctx, h, "a", quietEv{"a"}); err != nil {
		return err
	}
	_, err = get.Call(ctx, h, "a", classArg{"a"})
	return err
}
