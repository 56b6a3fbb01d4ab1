// Package timers gives an object many named wake-ups over its one alarm.
//
// # A first program
//
// An account has a trial that ends once, and a statement each month:
//
//	type account struct {
//		st     *object.State
//		timers *timers.Timers
//	}
//
//	func load(ctx context.Context, st *object.State) (*account, error) {
//		a := &account{st: st}
//		var err error
//		a.timers, err = timers.Attach(ctx, st, timers.Options{}, a.fire)
//		return a, err
//	}
//
//	// Alarm hands the object's alarm to its timers.
//	func (a *account) Alarm(ctx context.Context, info object.AlarmInfo) error {
//		return a.timers.Alarm(ctx, info)
//	}
//
//	// fire runs for each timer that is due.
//	func (a *account) fire(ctx context.Context, t timers.Timer) error {
//		switch t.Name {
//		case "trial ends":
//			return a.st.Storage().Put(ctx, "plan", "free")
//		case "statement":
//			return mail.Send(ctx, a.st, a.st.Name(), t.Scheduled) // a message, sent with the commit
//		}
//		return nil
//	}
//
//	func (a *account) open(ctx context.Context, trial time.Duration) (bool, error) {
//		return true, errors.Join(
//			a.timers.At(ctx, "trial ends", a.st.Now().Add(trial), nil),
//			a.timers.On(ctx, "statement", jobs.Cron("0 0 9 1 * *", "Europe/Paris"), nil),
//		)
//	}
//
//	var accounts = object.Define("account", load, timers.ClassOptions(object.ClassOptions{}))
//
// # Guarantees
//
// The promises have numbers in docs/CONTRACT.md: T1 to T5.
//
//   - A timer fires once for each occurrence, at its time or later. The rows and messages of
//     its handler and its removal, or its next time, are one commit (T1). So its effects on
//     stored rows happen exactly once, and its effects on other systems at least once.
//   - A timer that fails, panics or kills its process holds up no other, and takes back
//     nothing of those that ran before it (T2).
//   - Each timer is tried again as Options.Retry says. When that is used up the occurrence is
//     a dead letter of the kind DeadTimer, and Timers.Replay sets it again (T3).
//   - Set, replace and cancel are part of the turn (T4).
//   - A list is in the order of the times, and costs as much as it returns (T5).
//
// # Not to be assumed
//
//   - A handler runs in a Transaction of the alarm's turn, because a failure must undo its
//     writes and no others. So Sync, Release and Await fail in it. For slow work outside, send
//     a message, enqueue a task, or begin a routine with State.Go.
//   - The instance is constructed anew after a handler has failed, as after each failed turn
//     that has written.
//   - The alarm belongs to the timers: State.SetAlarm returns object.ErrAlarmOwned.
//   - Storage.DeleteAll removes the timers with the other rows.
//
// # Costs
//
// A timer that is set costs two rows, one that is moved three records, one that is cancelled
// two, in the batch of the turn. Nothing of a timer is in memory: the alarm, which the
// object has in any case, stands at the time of the earliest. So a hundred thousand timers
// cost as much as ten. An alarm runs up to 64 timers in one turn and one commit. A retry
// writes the payload of the timer again, so large values belong in rows of their own.
package timers
