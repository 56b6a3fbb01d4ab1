// Package journal keeps the state of an object as the events that led to it. A handler
// appends events, a pure function folds them into the state, and the rows are the events
// and a snapshot of the state every 100 events. So the object starts quickly, its past
// can be read, and code that decides something new can look at how a state came about.
//
// # A first program
//
// An account is a journal of what was paid in and out:
//
//	type paid struct{ Cents int }
//	type account struct{ Cents, Payments int }
//
//	func apply(a account, e paid) (account, error) {
//		return account{a.Cents + e.Cents, a.Payments + 1}, nil
//	}
//
//	type box struct{ j *journal.Journal[account, paid] }
//
//	func load(ctx context.Context, st *object.State) (*box, error) {
//		j, err := journal.Attach(ctx, st, journal.Options[account, paid]{Apply: apply})
//		return &box{j}, err
//	}
//
//	func (b *box) pay(ctx context.Context, cents int) (account, error) {
//		if b.j.State().Cents+cents < 0 {
//			return account{}, errors.New("the account does not have so much")
//		}
//		err := b.j.Append(ctx, paid{cents})
//		return b.j.State(), err
//	}
//
// Attach belongs in the constructor, because it reads the rows. A handler decides with the
// state of before, appends what it has decided, and reads the state of after.
//
// # Guarantees
//
// The promises have the numbers E1 to E3 in docs/CONTRACT.md.
//
//   - The state is the fold of all events, from 1 on without a gap, in memory and in every
//     stored state. Events are rows in the batch of the turn, so they are stored if and
//     only if the turn commits. After a Transaction that was undone, and after DeleteAll,
//     the journal reads its rows again, so memory never tells of events that are not
//     stored (E1).
//   - An activation reads one snapshot and fewer events than Options.SnapshotEvery (E2).
//   - No event is lost or folded twice over a snapshot, a removal of old events, a change of
//     version or a crash. An event or a snapshot that this code cannot read stops the
//     object with an error, and the rows stay as they are (E3).
//
// # The fold
//
// Apply must be a function of its arguments alone: no clock, no random number, no other
// object and no memory of its own. It runs again at each activation, so all of that would
// give another state each time. Put the time into the event, from State.Now.
//
// The journal folds an event as its bytes decode, also in Append. So an event that does
// not survive its codec, for example because a field is not exported, shows it in the
// first test and not after the first crash. For the same reason the state in memory is
// read back from each snapshot.
//
// Apply may change the state that it is given, for example a map, and return it. So a
// handler must not keep or change what State returns, and an answer needs a copy of maps
// and slices.
//
// # Events that change
//
// Rows are kept for years, and types change. Add fields freely, as the codec allows. If an
// event must change otherwise, count Options.Version up and say in Upcast how an older row
// becomes an event of today; the rows are not rewritten. StateVersion and UpcastState do
// the same for snapshots. A snapshot without a way up is no loss while all events are kept
// (Keep below zero): the state is then folded from the first event, which is also the way
// to fold the past by new rules.
//
// # The past
//
// A snapshot makes the events before it needless, and by default its batch removes them.
// Keep says how many of them stay. At then returns the state as of an earlier event, and
// Since the events after one, for example for a reader that remembers how far it has come.
//
// # Not to be assumed
//
//   - A Journal belongs to the turns of its object, as the fields of the instance do. It
//     has no mutex.
//   - Events are no messages and nobody is told of them. For that use State.Emit or
//     Method.Send in the same turn.
//   - Keys that begin with the byte 0 belong to this package and its neighbours. A List
//     without bounds yields them, and DeleteAll empties the journal.
//
// # Costs and limits
//
// An Append writes a row of about 20 bytes and the event, and encodes, decodes and folds
// it once. Every 100th writes the state too. An event, and the state, may have as many
// bytes as a value of the host (2 MiB by default), less about 30. One object has one
// journal. In memory a journal is the state, five numbers and a few kilobytes at most.
package journal
