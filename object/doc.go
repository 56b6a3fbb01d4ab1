// Package object hosts durable objects in one process. An object has a class, a name,
// rows under keys of its own, and one alarm. Its handlers run one at a time, and each
// handler is a transaction on its rows. All objects of a Host live in one store on disk.
//
// # A first program
//
// An account keeps a balance. The constructor loads it, and each call of the method
// deposit changes it:
//
//	type account struct {
//		st      *object.State
//		balance int
//	}
//
//	func load(ctx context.Context, st *object.State) (*account, error) {
//		a := &account{st: st}
//		_, err := st.Storage().GetInto(ctx, "balance", &a.balance)
//		return a, err
//	}
//
//	func (a *account) deposit(ctx context.Context, amount int) (int, error) {
//		if err := a.st.Storage().Put(ctx, "balance", a.balance+amount); err != nil {
//			return 0, err
//		}
//		a.balance += amount
//		return a.balance, nil
//	}
//
//	var (
//		accounts = object.Define("account", load)
//		deposit  = object.Handle(accounts, "deposit", (*account).deposit)
//	)
//
//	host, err := object.Open(object.Options{Dir: "data"}, accounts)
//	if err != nil {
//		log.Fatal(err)
//	}
//	defer func() {
//		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
//		defer cancel()
//		_ = host.Shutdown(ctx) // work that still runs then is cut off, and run again by the next process
//	}()
//	balance, err := deposit.Call(ctx, host, "alice", 5) // on disk when Call returns
//
// Objects need not be created. The first call of a name constructs the object in memory,
// and it is stored while it has a row or an alarm (O1). A handler calls other objects with
// its State in place of the host. If *account has a method Alarm (see AlarmHandler), its
// handlers can set the alarm with State.SetAlarm.
//
// # Guarantees
//
// The promises have numbers in docs/CONTRACT.md: O1 to O17, S1 to S12, A1 to A11.
//
//   - A handler runs in a turn. One object has one turn at a time, in the order of
//     arrival, so a handler needs no mutex for its instance. Different objects run in
//     parallel (O3).
//   - A turn commits when its handler returns nil: keys, alarm, marks and events in one
//     atomic batch. A handler that returns an error or panics stores nothing, except for
//     the writes that Sync, Release or Await have committed before. If it panicked, or
//     had written, the next turn constructs a new instance from the stored rows (O6).
//   - A reply, an event or the start of work leaves the host only after everything it
//     depends on is on disk. The next turn does not wait for the disk (O7).
//   - An alarm fires at its time or later, also after a restart. It is removed in the
//     batch of the turn that handles it. So its effects on stored rows happen exactly
//     once, and its effects on other systems at least once (A3, A4).
//   - A call with an idempotency key succeeds once. Repeats get the stored answer (O16).
//   - A call that would make turns wait for one another in a circle fails at once with
//     ErrDeadlock, if it is made with the context of its turn (O8).
//   - After an error of the store the host acknowledges nothing more and ends (O13).
//
// # Not to be assumed
//
//   - Memory is not state. An idle object leaves memory, and a failed turn that had
//     written drops its instance, so keep in rows everything that must survive.
//   - An instance and its State belong to turns. A goroutine that a handler starts must
//     end before the handler does, or use State.Go, and State.Do to get a turn.
//   - Arguments and answers are not copied between caller and handler, for example a
//     slice that both keep: see Method.Call.
//   - A call that returned ErrUnknown may have committed. Give calls a key with
//     Idempotent, so that a repeat is safe.
//   - A call between objects is not one transaction: each object commits for itself.
//
// # Costs
//
// A turn that only reads memory makes no commit and no sync of its own. A turn that
// writes makes one commit, and its caller outside waits for a sync, which all callers at
// that time share. An alarm is part of the commit. If more bytes wait for a sync than
// storage.Options.MaxUnsyncedBytes, each turn that writes waits for one, because these
// bytes are in memory. An idle object has no goroutine and no timer.
//
// A page of Host.Objects costs about a row for each shard and a few for each object in it,
// wherever it begins. All lists come in pages, because a list may be longer than memory.
//
// # Limits
//
// A key has up to 2 KiB, a value up to 2 MiB, a turn writes up to 16 MiB, and up to
// 100,000 objects are in memory at a time; Options changes these figures. Up to 1,024
// calls wait for one object; ClassOptions changes that. Names have up to 1,024 bytes. One
// process opens a directory at a time.
package object
