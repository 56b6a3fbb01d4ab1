// Package debounce collects events and hands them to a function together: after
// a quiet time, at the end of a window, when there are enough of them, or on
// request. For example, it turns a hundred changes of a document within a minute
// into one call that updates the search index.
//
// # A first program
//
// Define a job at package level and open a host with it:
//
//	var Index = debounce.New(debounce.Config[Change, struct{}]{
//		Name:    "index",
//		Quiet:   5 * time.Second, // flush when no change came for 5 s,
//		MaxWait: time.Minute,     // but at the latest a minute after the first
//		Retry:   jobs.Retry{MaxAttempts: 10},
//		Flush: func(ctx context.Context, f *debounce.Flush[Change, struct{}]) error {
//			return search.Update(ctx, f.ID, f.Events, f.Key)
//		},
//	})
//
//	host, err := object.Open(object.Options{Dir: "data"}, Index)
//	...
//	ack, err := Index.Add(ctx, host, "document-9", Change{Page: 3},
//		debounce.EventID(request.ID)) // added once, if this line is repeated
//
// Each id, here "document-9", is an object with events of its own. The first Add
// makes it. With Config.Reduce each event is folded into one state as it comes,
// for example into a sum, and a flush gets the state instead of the events.
//
// # Guarantees
//
//   - When Add returns, the event is stored, with its place in a flush, its id
//     and the alarm, in one batch (D1).
//   - An event with an id that was added within Config.Dedup is not added again; the
//     answer is the first one (D2).
//   - Events are collected in generations, and a flush is of one generation.
//     Each attempt at it, after an error or a crash, has the same events under
//     the same Flush.Key. Events added meanwhile belong to the next one (D3).
//   - A flush that succeeds deletes its events in the batch that ends it.
//   - The due time follows from the stored times of the events. A process that
//     was down flushes soon after it is up, for the reason that held then (D4).
//
// # Do not assume
//
//   - A flush may run more than once, because a crash can come between its last
//     effect and the batch that ends it. Give other systems Flush.Key as an
//     idempotency key.
//   - A flush may have more than Config.MaxEvents events, for example if they
//     came while an earlier flush was running.
//   - An id is forgotten after Config.Dedup, 24 hours by default. A later repeat
//     is a new event.
//   - Reduce runs in a turn: other calls of the object wait for it. Flush does
//     not; it may take long.
//
// # Life of an object
//
// An object needs no start and no end. It ends by Terminate, or by itself once it
// has had nothing to flush for Config.Dedup (D6), because then it has forgotten
// all ids. The next event makes it anew. Pause keeps collecting events and begins
// no flush until Resume. If a flush is given up, Config.Exhausted decides between
// a failed job that keeps its events and going on without them.
//
// # Costs
//
// An Add is one commit with two rows, the event and its id, and moves the alarm
// only if it must come earlier. docs/PERFORMANCE.md has figures: on its machine
// about 5,000 adds a second for one caller and 90,000 for 64 callers of one object.
// AddAll adds many events at the price of few. Waiting events and idle objects are
// rows on disk and need no memory.
//
// # Limits
//
// An event takes at most object.Options.MaxValueBytes, less a few bytes. An
// object without Reduce keeps Config.MaxPending waiting events; then Add returns
// ErrFull. A flush reads all its events into memory at once, so MaxEvents and
// MaxPending also bound that.
package debounce
