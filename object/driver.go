package object

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
)

// Driver is the part of an object's runtime that authors of job types need, as
// package database/sql/driver is for authors of databases. State.Driver returns it. A
// handler of a plain object seldom needs it: for a clock, random numbers and waits that
// a simulation rules (Seams), for the codec of stored values (Codec), for a number that
// is unique in the store (NextSequence), and to end the object (Purge).
//
// A job type embeds a Class, keeps its schedule and its tasks in the object's Storage,
// sets the object's alarm for its next step, and runs the user's function beside the
// turns. The Driver has the methods for this:
//
//   - Work: Start and StartSuspect run a function once the commit of the turn is
//     durable, TakePermit bounds how many run, Context ends with the instance.
//   - Executions: OpenExecution stores a mark, so that the next opening of the store
//     activates the object (R1); CloseExecution removes it. Suspicion, Epoch, OpenedAt
//     and EndedInOrder tell how earlier processes ended, and AlarmFailures how
//     often a wake-up has failed. ClearSuspect tells of progress.
//   - Alarm: OwnAlarm keeps others from setting it, SetAlarm and DeleteAlarm are for its
//     owner.
//   - Labels: SetLabel lets Host.Objects find the object by a word, such as the status of
//     a job.
//   - Dead work: Bury stores a dead letter, Exhume removes it, so that Host.DeadLetters lists
//     the work of jobs too.
//   - Marks: MarkNew stores one without a look for an earlier one, MarksEnd tells when
//     the last one expires.
//   - Sizes: MaxBatchBytes, MaxValueBytes and WrittenBytes, so that a turn with much to
//     write can leave the rest to the next turn. AllOrNothing undoes a part of a turn that
//     is too large. Space and SpaceRefusedAt tell of a disk that is nearly full, and OutboxFullAt
//     of messages that were refused.
//   - Memory: CacheRows has rows read again that the instance keeps in its fields, after a
//     Transaction has been undone.
//   - Reports: LogCommitted, Recovered, CountExecution, CountRepeat and Backlog fill the log, the
//     recovery report and the metrics of the host.
//
// For example, a turn that begins a run of a job writes all of it into one batch:
//
//	d := in.st.Driver()
//	key := fmt.Sprintf("run/%016x", d.NextSequence())
//	err := errors.Join(
//		in.st.Storage().Put(ctx, key, run),
//		d.OpenExecution(ctx, nil),
//		in.st.SetAlarm(ctx, in.st.Now().Add(lease)), // wakes the object if the run is lost
//		d.Start(ctx, new(object.Routine), "run", in.work),
//	)
//
// A Driver belongs to one instance, as its State does, and returns ErrReset when that is
// gone.
// Its methods that take a context need the one of the present turn, or one that comes
// from it. The others may be called from any goroutine.
type Driver struct{ state *State }

// Driver returns the part of the object's runtime that authors of job types need. It
// allocates nothing.
func (s *State) Driver() *Driver { return &s.driver }

// NextSequence returns a number that is greater than all that it has returned for
// any object of the store, in this process and in earlier ones, so a name made of it is
// unique in the store. Numbers may be left out, for example by a turn that fails or at a
// restart.
func (d *Driver) NextSequence() uint64 { return d.state.act.host.store.NextSeq() }

// SetLabel gives the object a label, by which Host.Objects finds it among those of its
// class, or takes it away ("") (S11). It changes with the commit of the turn, and ends with
// the object. A label is UTF-8 without NUL, at most 64 bytes, and should be one of a few: each
// counts in Host.Labels. A change costs a row of about 30 bytes more, a deletion, and the
// object's header; setting the same label again costs nothing.
func (d *Driver) SetLabel(ctx context.Context, label string) error {
	t, err := d.state.turn(ctx)
	if err != nil {
		return err
	}
	l, err := storage.NewLabel(label)
	if err != nil {
		return named(d.state.act.object.ID, fmt.Errorf("object: SetLabel: %w", err))
	}
	if l != t.object.Label {
		t.change().Label = l
	}
	return nil
}

// Label returns the label of the object as the present turn leaves it, empty if it has none.
func (d *Driver) Label(ctx context.Context) (string, error) {
	t, err := d.state.turn(ctx)
	if err != nil {
		return "", err
	}
	return t.object.Label.String(), nil
}

// Epoch returns the number of the present opening of the store. It grows with every
// opening and never repeats, so it tells rows of this process from rows of earlier ones.
func (d *Driver) Epoch() uint64 { return d.state.act.host.store.Epoch() }

// Era returns storage.Store.Era, which is greater in a restored copy than in its source. A job type that counts something counts from
// a number of its own in each era, so that no number of the time that was lost is given a second time.
func (d *Driver) Era() uint64 { return d.state.act.host.store.Era() }

// EndedInOrder reports whether the opening with the given epoch, which must be an
// earlier one, and all openings after it were closed in order. If so, an execution that
// this opening left open was not cut off by a crash.
func (d *Driver) EndedInOrder(epoch uint64) bool {
	store := d.state.act.host.store
	return epoch < store.Epoch() && epoch > store.Previous().CrashedEpoch
}

// OpenedAt returns when the present opening of the store began, by the host's clock.
func (d *Driver) OpenedAt() time.Time { return d.state.act.host.store.OpenedAt() }

// Seams returns the clock, executor, random source and probe of the host. A job type takes
// time and random numbers from here only, so that a simulation of it repeats.
func (d *Driver) Seams() *seam.Seams { return &d.state.act.host.seams }

// Codec returns the host's codec, which turns values into the bytes that are stored.
func (d *Driver) Codec() Codec { return d.state.act.host.options.Codec }

// MaxBatchBytes returns Options.MaxBatchBytes of the host, the limit of one turn's writes.
func (d *Driver) MaxBatchBytes() int { return d.state.act.host.options.MaxBatchBytes }

// MaxValueBytes returns Options.MaxValueBytes of the host, the limit of one value.
func (d *Driver) MaxValueBytes() int { return d.state.act.host.options.MaxValueBytes }

// WrittenBytes returns the size of the turn's batch since its last commit, in bytes. A
// turn that can leave work to the next one should end long before this comes near
// MaxBatchBytes. Outside of a turn it returns ErrNoTurn or ErrReset.
func (d *Driver) WrittenBytes(ctx context.Context) (int, error) {
	t, err := d.state.turn(ctx)
	if err != nil || t.batch == nil {
		return 0, err
	}
	return t.batch.Len(), nil
}

// Space returns an error that wraps ErrNoSpace while a commit would be refused for lack of
// free space (O17). A turn asks before it changes memory: a commit that is refused resets the
// instance, and that cuts off its work. It costs one atomic load while there is space.
func (d *Driver) Space() error {
	a := d.state.act
	return a.host.storageError(a.object.ID, a.host.store.Space())
}

// SpaceRefusedAt returns when a commit of any object was last refused for lack of free space
// in this process; zero: none was. Work that began before then may have been cut off by it.
func (d *Driver) SpaceRefusedAt() time.Time { return d.state.act.host.store.RefusedAt() }

// OutboxFullAt returns when a Send of an object of this class was last refused with ErrOutboxFull in
// this process; zero: none was. The end of work that began before then may not have been stored because of it.
func (d *Driver) OutboxFullAt() time.Time {
	at := d.state.act.hosted.outboxFullAt.Load()
	if at == 0 {
		return time.Time{}
	}
	return time.Unix(0, at)
}

// AllOrNothing runs fn, and undoes all that it has written if it returns an error or panics,
// as Storage.Transaction does, whose rules hold for it. It has no view, and allocates nothing.
func (d *Driver) AllOrNothing(ctx context.Context, fn func(ctx context.Context) error) (err error) {
	t, err := d.state.turn(ctx)
	if err != nil {
		return err
	}
	start, complete := t.beginPart(), false
	defer func() { err = t.endPart(ctx, start, complete, err) }()
	err = fn(ctx)
	complete = true
	return err
}

// Purge ends the object with this turn: the turn's batch removes its keys, alarm, marks
// and open-execution mark, also those that the turn itself has written. Events that the
// turn emits stay for their time, and dead letters until Exhume removes them. A later call
// finds a fresh object.
func (d *Driver) Purge(ctx context.Context) error {
	t, err := d.state.turn(ctx)
	if err != nil {
		return err
	}
	t.writes.purge = true
	return nil
}

// LogCommitted writes one line to the log of the host, with the class and the name of the
// object, once the turn has committed. A turn that fails writes none. So a change that is
// tried three times and succeeds at last has one line and not three.
func (d *Driver) LogCommitted(ctx context.Context, level slog.Level, msg string, args ...any) error {
	t, err := d.state.turn(ctx)
	if err != nil {
		return err
	}
	t.then(func(storage.Ticket) { d.state.Log().Log(context.Background(), level, msg, args...) })
	return nil
}

// Bury stores a dead letter of a job type with the commit of the turn, and returns its
// sequence number, which the job keeps for Exhume (A11). Kind is the job type's word for
// its work, and Verb names the functions that replay or discard it, both at most 128
// bytes. Data is empty, or JSON of at most MaxDeadData bytes. Bury sets ID and Seq, sets
// Died unless it has a time, and shortens LastError, Reason and Stack to their limits.
// Method, Arg and From must be empty, because they are of messages.
//
// After the commit the letter counts in holdfast_dead_letters_total, and OnDeadLetter is
// called when it is durable. Bury writes no line to the log, because a job type tells
// each failure in a line of its own (J13); others call LogCommitted. A letter does not
// make the object exist (O1). Bury returns ErrValueTooLarge, ErrBatchTooLarge, ErrNoTurn
// or ErrReset, and then changes nothing.
func (d *Driver) Bury(ctx context.Context, letter DeadLetter) (seq uint64, err error) {
	t, err := d.state.turn(ctx)
	if err != nil {
		return 0, err
	}
	a, h := t.act, t.act.host
	if err := letter.valid(); err != nil {
		return 0, named(a.object.ID, fmt.Errorf("object: Bury: %w", err))
	}
	if n := len(letter.Data); n > MaxDeadData {
		return 0, fmt.Errorf("%s: %w: Data of a dead letter has %d bytes, the limit is %d", a.object.ID, ErrValueTooLarge, n, MaxDeadData)
	}
	letter.ID, letter.Seq = a.object.ID, h.store.NextSeq()
	if letter.Died.IsZero() {
		letter.Died = h.seams.Clock.Now()
	}
	letter.LastError = alarm.Cut(letter.LastError, alarm.MaxErrorBytes)
	letter.Reason = alarm.Cut(letter.Reason, alarm.MaxErrorBytes)
	letter.Stack = alarm.Cut(letter.Stack, MaxStackBytes)
	value := encodeDead(letter)
	if err := d.state.storage.check(t, deadKeyBytes(a.object.ID)+len(value), "", nil); err != nil {
		return 0, err
	}
	t.begun().SetDead(t.object.Shard, a.object.ID, letter.Seq, value)
	t.then(func(at storage.Ticket) { h.reportDead(a.hosted, letter, at) })
	return letter.Seq, nil
}

// Exhume removes the dead letter that Bury stored under seq with the commit of the turn,
// because its work is tried again or discarded. It does nothing if the letter is gone.
func (d *Driver) Exhume(ctx context.Context, seq uint64) error {
	t, err := d.state.turn(ctx)
	if err != nil {
		return err
	}
	id := t.act.object.ID
	if err := d.state.storage.check(t, deadKeyBytes(id), "", nil); err != nil {
		return err
	}
	t.begun().DeleteDead(t.object.Shard, id, seq)
	return nil
}

// AlarmOwner is a library that sets the alarm of an object by itself.
type AlarmOwner uint8

const (
	OwnedByJob    AlarmOwner = iota + 1 // the engine of a job (package jobs/engine)
	OwnedByTimers                       // the timers of the object (package object/timers)
)

// String names the owner in words for an error.
func (o AlarmOwner) String() string {
	switch o {
	case OwnedByJob:
		return "the job of the object"
	case OwnedByTimers:
		return "the timers of the object"
	}
	return fmt.Sprintf("AlarmOwner(%d)", uint8(o))
}

// OwnAlarm gives the alarm of the object to a library. From then on State.SetAlarm and
// State.DeleteAlarm return ErrAlarmOwned, and so does a second OwnAlarm, because an alarm
// that another sets would take the place of the owner's, whose wake-up would be lost. The
// owner calls Driver.SetAlarm and Driver.DeleteAlarm. It owns the alarm for as long as the
// instance lives, so a constructor calls OwnAlarm. Nothing is stored, and an alarm that is
// set stays. It returns ErrNoAlarmHandler if the instance has no Alarm method, because then
// no wake-up would reach the owner. OwnAlarm costs no allocation.
func (d *Driver) OwnAlarm(ctx context.Context, by AlarmOwner) error {
	if _, err := d.state.unowned(ctx); err != nil {
		return err
	}
	if !d.state.act.hosted.class.alarms {
		return named(d.state.act.object.ID, ErrNoAlarmHandler)
	}
	d.state.act.owner = by
	return nil
}

// SetAlarm is State.SetAlarm for the owner of the alarm.
func (d *Driver) SetAlarm(ctx context.Context, at time.Time) error {
	t, err := d.state.turn(ctx)
	if err != nil {
		return err
	}
	return d.state.setAlarm(t, at)
}

// DeleteAlarm is State.DeleteAlarm for the owner of the alarm, but for one difference: in
// the alarm's own handler it also removes the alarm that is being handled, with the next
// commit, so that there is none if the handler calls Sync and then fails.
func (d *Driver) DeleteAlarm(ctx context.Context) error {
	t, err := d.state.turn(ctx)
	if err != nil {
		return err
	}
	if t.firing != nil {
		t.writes.alarmSet, t.writes.alarm, t.writes.removes = true, nil, true
		return nil
	}
	return d.state.deleteAlarm(t)
}

// AlarmFailures returns how many attempts of the object's alarm have failed or were
// ended by crashes or take-overs. It is zero for an alarm that was set and has not been tried, and for
// an object without an alarm. In the alarm's own handler it counts the failures of the
// alarm that is being handled.
func (d *Driver) AlarmFailures(ctx context.Context) (int, error) {
	t, err := d.state.turn(ctx)
	if err != nil {
		return 0, err
	}
	row, err := d.state.act.alarm()
	if err != nil {
		return 0, d.state.act.host.storageError(d.state.act.object.ID, err)
	}
	if t.writes.alarmSet {
		row = t.writes.alarm
	}
	if row == nil {
		return 0, nil
	}
	return row.Attempt + row.Crashes + row.OwnersLost, nil
}

// CacheRows says that the instance keeps in memory the result of the rows whose keys begin
// with prefix. A constructor calls it once for each prefix.
//
// The runtime calls reload when these rows change behind the instance: after a Transaction
// that wrote anything has been undone, and after DeleteAll, or a DeletePrefix that meets
// the prefix. reload runs on the goroutine of the turn before that method returns, and
// reads the rows as the turn sees them then. If it fails or panics, the writes of the turn
// are dropped and the instance is reset, as for BlockConcurrencyWhile. A turn that fails
// after a write calls no reload, because its instance is reset anyway.
//
// CacheRows returns an error if the prefix begins with that of an earlier call, or the
// reverse: both would keep the same rows.
func (d *Driver) CacheRows(ctx context.Context, prefix string, reload func(context.Context) error) error {
	s := d.state
	if _, err := s.turn(ctx); err != nil {
		return err
	}
	last := &s.caches
	for c := s.caches; c != nil; c = c.next {
		if strings.HasPrefix(prefix, c.prefix) || strings.HasPrefix(c.prefix, prefix) {
			return fmt.Errorf("%s: object: rows under %q are in memory already, those under %q overlap with them", s.act.object.ID, c.prefix, prefix)
		}
		last = &c.next
	}
	*last = &rowCache{prefix: prefix, reload: reload}
	return nil
}

// rowCache is one call of CacheRows.
type rowCache struct {
	prefix string
	reload func(context.Context) error
	next   *rowCache
}

// meets reports whether a key in [lower, upper) may begin with the prefix; an empty upper
// is no bound.
func (c *rowCache) meets(lower, upper string) bool {
	end := storage.PrefixEnd(c.prefix)
	return (upper == "" || c.prefix < upper) && (end == "" || lower < end)
}

// reload reads the caches anew that keep rows in [lower, upper), and returns err. If one
// fails it drops the writes of the turn, resets the instance and joins its error to err.
// The caller owns the turn and has not grasped it, because reload reads the store.
func (s *State) reload(ctx context.Context, t *turn, lower, upper string, err error) error {
	for c := s.caches; c != nil; c = c.next {
		if !c.meets(lower, upper) {
			continue
		}
		failed := guard(&s.act.object.ID, func() error { return c.reload(ctx) }, func(error) {})
		if failed == nil {
			continue
		}
		if t.grasp() { // else the turn has ended with txs above 0, and rollBack has reset the instance
			t.dropWrites()
			t.reset(failed)
			t.letGo()
		}
		return errors.Join(err, failed)
	}
	return err
}

// Tap is Host.Tap, for a routine of the object. A turn must not wait in Tap.Next.
func (d *Driver) Tap(o TapOptions) (*Tap, error) { return d.state.act.host.Tap(o) }

// Feed is Host.Feed, for a routine or a turn of the object.
func (d *Driver) Feed(ctx context.Context, o FeedOptions) (FeedPage, error) {
	return d.state.act.host.Feed(ctx, o)
}
