// Package why tells why an object, a job or a task does not run now. It answers for an open host,
// and for the store of a program that has ended or was killed:
//
//	answer, err := why.Object(ctx, why.Live(host), orders.ID("4711"))
//	fmt.Println(answer.Code, answer.Text) // waits-for-signal It waits for a signal.
//
//	store, err := storage.OpenReadOnly(storage.Options{Dir: "data"})
//	answer, err := why.Task(ctx, why.Cold(store, time.Now()), "thumbs", id)
//
// # How it works
//
// A look makes facts: the stored rows of the object, and of a live host also object.Explanation. A
// table of rules, in one order, leads from the facts to reasons. The first that holds is the
// headline, the others are in Answer.Also, and Answer.Because follows the chain to the task, the
// child or the object that it waits for. Codes lists the table.
//
// # Guarantees
//
//   - If nothing else happens, then at Answer.Next it runs, or the answer is another (Y1).
//   - A live look and a look at the store give the same codes, but for those that need a fact of
//     the process; CodeInfo.Live tells which (Y2).
//   - An object with damaged rows is Unreadable, and All goes on behind it (Y4).
//   - IdleByDesign never stands for a job that is an orphan (Y3).
//   - A look runs no turn and no user code, and changes nothing.
//
// # Not promised
//
//   - The text of an answer is for people. Programs compare the code.
//   - The limits of a definition stand in no row: how many tasks of a pool may run, whether a
//     continuous job has a schedule, when a debounce is due. The time of the alarm tells most of
//     it, and the definitions that Live and Cold are given tell about schedules.
//   - The rows of a job are read as JSON. With another codec a job is told as a plain object.
//
// # Costs and limits
//
// An answer reads some twenty rows, and for a task up to workerpool.MaxPlace rows more to count
// those before it. A chain is at most 16 deep. A live look at an object with a turn under way
// takes 100 ms longer, because it looks twice to learn whether the turn is the same.
package why
