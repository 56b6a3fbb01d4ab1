// Package workflow runs functions that survive their process.
//
// A run of a workflow is a plain Go function with recorded steps. After a crash, a
// deploy, or a sleep of years the function is executed again: it repeats the
// operations that its history holds, without running those steps again, and goes on behind it.
//
//	var Approved = workflow.NewSignal[bool]("approved")
//
//	var Orders = workflow.New[Order, Receipt]("order", workflow.Config{Signals: workflow.Signals{Approved}})
//
//	func init() { Orders.Func(place) }
//
//	func place(ctx *workflow.Context, o Order) (Receipt, error) {
//		hold, err := workflow.Step(ctx, "reserve", func(ctx context.Context) (Hold, error) {
//			return stock.Reserve(ctx, workflow.Key(ctx), o.Items) // the same key in each repeat
//		})
//		if err != nil {
//			return Receipt{}, err
//		}
//		workflow.Undo(ctx, "release", func(ctx context.Context) error { return stock.Release(ctx, hold.ID) })
//		ok, err := Approved.Wait(ctx, 72*time.Hour)
//		if err != nil || !ok {
//			return Receipt{}, cmp.Or(err, errRefused) // an error: the undos run, last first
//		}
//		if err := workflow.Sleep(ctx, o.ShipAfter); err != nil { // years, if need be
//			return Receipt{}, err
//		}
//		return workflow.Step(ctx, "ship", func(ctx context.Context) (Receipt, error) { return ship(ctx, hold) })
//	}
//
// The program passes Orders to object.Open, and then calls Orders.Start with an id for each
// order.
//
// # Operations
//
// The function calls Step for work outside, Atomic for a change of the store alone, Sleep,
// Signal.Wait, Child for another workflow, Each for branches that run at the same time, and
// Undo to register a compensation. Var.Set shows a value, Patched guards a change of the
// code, and Workflow.ContinueAs begins anew when the history is long. Each takes the Context
// of the function; only steps, Atomic and undos get a context.Context.
//
// Go begins one branch beside the function, Branch.Wait returns its result, and First the branch
// of several that ends first. A step with the option Through waits while the breaker before
// its dependency is open. Workflow.Restart lets a run that has ended begin anew.
//
// # Guarantees
//
//   - A recorded step is never run again, and it is recorded before the next begins (F1, F2).
//   - Each repeat sees the same values, or changes nothing and says where it differs (F3).
//   - A wait is never early and never forgotten, and costs no memory if it is long (F4).
//   - An acknowledged signal is taken once, in the order of arrival (F5).
//   - Atomic is exactly once (F6), and there is one child for each Child (F7).
//   - After an acknowledged Cancel no step begins but those of undos and WithoutCancel (F8).
//   - Undos run in one recorded order (F9).
//   - A run that cannot go on with this code, or in this process, is stuck and not failed: it
//     is tried again, and heals by the next deploy (F10, F11).
//
// # Not promised
//
// A step runs again if its process dies before its entry is stored: pass Key to the service
// outside. A defer in the function runs at each suspension. A panic of the function makes the
// run stuck; a panic of a step is a failed attempt.
//
// # Tests
//
// Package workflowtest runs a workflow in one call, with steps replaced by name, and finds a
// function that does not repeat. In a crash test of package harness, the scenario makes the
// workflow itself and gives it its function, so that steps reach the World of the Sim, and
// passes the Sim as from:
//
//	harness.Exhaust(t, func(s *harness.Sim) {
//		orders := newOrders(s) // calls New and Func
//		s.Host(orders)
//		s.OK(s.Retry(func() error { _, err := orders.Start(s.Context(), s, "1", order); return err }))
//		s.Advance(96 * time.Hour)
//	}, harness.NoLostAck, harness.NeverOrphaned, harness.NoStuck)
//
// Such a test needs NoStuck, because a run that is stuck breaks no promise of the other checks.
package workflow
