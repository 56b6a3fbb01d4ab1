package object

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/object/internal/crew"
	"github.com/holdfast-dev/holdfast/storage"
)

// The kinds of dead letters that Host.ReplayDeadLetter and DiscardDeadLetter act on. Job
// types have kinds of their own, for example workerpool.DeadTask.
const (
	DeadAlarm   = "alarm"
	DeadMessage = "message"
)

// MaxDeadData is the most bytes of DeadLetter.Data.
const MaxDeadData = 64 << 10

// DeadLetter is work that is not tried any more, because its retries are used up, its
// handler returned a permanent error, or it is charged with too many crashes. It is
// stored until it is replayed or discarded: the letter of an alarm or a message by
// ReplayDeadLetter or DiscardDeadLetter, that of a job by the functions in Verb.
type DeadLetter struct {
	ID storage.ID `json:"-"` // the object whose work it was
	// Seq tells the letter from other dead letters of the object.
	Seq uint64 `json:"-"`
	// Kind is DeadAlarm, DeadMessage, or the word of a job type for its work.
	Kind string `json:"kind,omitempty"`
	// Scheduled is when the work was due: of an alarm, the time that SetAlarm was given.
	Scheduled time.Time `json:"scheduled"`
	// Died is when the work was given up.
	Died time.Time `json:"died"`
	// Attempts counts the attempts that failed before, and the last one.
	Attempts int `json:"attempts"`
	// Crashes counts the last attempts, in a row, that a crash of the process ended.
	Crashes int `json:"crashes"`
	// LastError is the text of the last error, shortened to alarm.MaxErrorBytes.
	LastError string `json:"lastError"`
	// Reason says in words why there are no further attempts, for example "retries used up".
	Reason string `json:"reason"`
	// Stack is that of the last attempt if it panicked, at most MaxStackBytes.
	Stack string `json:"stack,omitempty"`
	// Method, Arg and From are the method of a message, its argument as it is stored, and
	// the object that sent it.
	Method string     `json:"method,omitempty"`
	Arg    []byte     `json:"arg,omitempty"`
	From   storage.ID `json:"from,omitzero"`
	// Data is JSON in which a job type names the work, at most MaxDeadData bytes. That of a
	// message has its idempotency key.
	Data json.RawMessage `json:"data,omitempty"`
	// Verb names the functions that replay or discard the letter of a job, for example
	// "Pool.Replay or Pool.DiscardDead". It is empty for the other kinds.
	Verb string `json:"verb,omitempty"`
}

// encodeDead returns the stored value of a dead letter. ID and Seq are in its key, and an
// alarm's letter has no kind, as those of versions that knew no other kinds.
func encodeDead(d DeadLetter) []byte {
	if d.Kind == DeadAlarm {
		d.Kind = ""
	}
	b, err := json.Marshal(d)
	if err != nil {
		panic("object: encode a dead letter: " + err.Error()) // strings, times, numbers and checked JSON always encode
	}
	return b
}

// decodeDead is the reverse of encodeDead. A value that is no JSON is ErrCorrupt.
func decodeDead(id storage.ID, seq uint64, b []byte) (DeadLetter, error) {
	d := DeadLetter{ID: id, Seq: seq}
	if err := json.Unmarshal(b, &d); err != nil {
		return d, fmt.Errorf("%w: dead letter %d of %s: %w", storage.ErrCorrupt, seq, id, err)
	}
	d.Kind = cmp.Or(d.Kind, DeadAlarm)
	return d, nil
}

// valid returns the first mistake in a letter for Bury.
func (d *DeadLetter) valid() error {
	const most = 128
	switch {
	case d.Kind == "" || d.Kind == DeadAlarm || d.Kind == DeadMessage || len(d.Kind) > most:
		return fmt.Errorf("kind %.140q is not one of a job type: give it a word of at most %d bytes", d.Kind, most)
	case d.Verb == "" || len(d.Verb) > most:
		return fmt.Errorf("verb %.140q: name the functions that replay or discard the letter, in at most %d bytes", d.Verb, most)
	case d.Method != "" || len(d.Arg) > 0 || d.From != (storage.ID{}):
		return errors.New("a method, argument or sender is of a message: use Data")
	case len(d.Data) > 0 && !json.Valid(d.Data):
		return errors.New("its data is not JSON")
	}
	return nil
}

// deadKeyBytes is about how many bytes the key of a dead letter takes in a batch.
func deadKeyBytes(id storage.ID) int { return recordBytes + len(id.Class) + len(id.Name) }

// DeadLettersOptions say which dead letters DeadLetters lists. All of them apply together, and
// the zero value lists the first DefaultPage letters.
type DeadLettersOptions struct {
	Class string // only letters of objects of this class
	Name  string // only letters of the object with this name in Class
	Kind  string // only letters of this kind, for example DeadAlarm
	// Reason and Error list only the letters with a Reason, or a LastError, that begins
	// with it.
	Reason, Error string
	// DiedSince lists only the work that was given up at that time or later, and
	// DiedBefore only the work that was given up before that time. The zero time is no
	// bound.
	DiedSince, DiedBefore time.Time
	// After begins behind a page: it is the Next of that page.
	After []byte
	// Limit is how many letters a page has at most. Zero means DefaultPage; it may be up
	// to MaxPage.
	Limit int
}

// checked returns the options with their defaults, or the first mistake in them.
func (o DeadLettersOptions) checked() (_ DeadLettersOptions, err error) {
	if err := validID(storage.ID{Class: cmp.Or(o.Class, "-"), Name: cmp.Or(o.Name, "-")}); err != nil {
		return o, fmt.Errorf("object: DeadLetters: %w", err)
	}
	switch o.Limit, err = pageLimit(o.Limit); {
	case err != nil:
	case o.Name != "" && o.Class == "":
		err = fmt.Errorf("Name is %q, but there is no Class", o.Name)
	case !o.DiedBefore.IsZero() && !o.DiedSince.Before(o.DiedBefore):
		err = fmt.Errorf("DiedSince is %v: it must be before DiedBefore, which is %v", o.DiedSince, o.DiedBefore)
	}
	if err != nil {
		return o, fmt.Errorf("object: DeadLetters: %w", err)
	}
	return o, nil
}

// list reports whether a letter of the right class and name is one of those that o means.
func (o *DeadLettersOptions) list(d *DeadLetter) bool {
	return (o.Kind == "" || d.Kind == o.Kind) &&
		strings.HasPrefix(d.Reason, o.Reason) && strings.HasPrefix(d.LastError, o.Error) &&
		!d.Died.Before(o.DiedSince) && (o.DiedBefore.IsZero() || d.Died.Before(o.DiedBefore))
}

// DeadLetterPage is a page of dead letters. A page may have fewer letters than its limit, or
// none, and not be the last one, because it reads 4,096 letters or 16 MiB at most.
type DeadLetterPage struct {
	Letters []DeadLetter `json:"letters,omitempty"`
	// Next is where the next page begins, to be passed as DeadLettersOptions.After: opaque
	// bytes, of which those of one store are of no use in another. It is empty after the
	// last page.
	Next []byte `json:"next,omitempty"`
}

// DeadLetters lists a page of the work that is not tried any more: alarms, messages and the
// work of jobs, such as tasks of worker pools, of all classes, also of those that are not
// registered. The order does not change: a letter that stays is in one page, and one that
// comes or goes meanwhile may be in a page or not.
//
// With Class or Name it reads the letters of that class or object alone; the other options
// pass over letters that it has read. It returns ErrBadName for a Class or Name that no
// object can have, ErrBadCursor for an After that is of no page, and an error for a Limit below
// 0 or above MaxPage. A letter that cannot be read is an error that matches storage.ErrCorrupt and
// names it. Then the page has the letters before it, and Next goes on behind it.
func (r Reader) DeadLetters(ctx context.Context, o DeadLettersOptions) (DeadLetterPage, error) {
	var damaged error
	page, err := read(ctx, r, storage.ID{}, func() (p DeadLetterPage, err error) {
		p, damaged, err = r.deadLetters(o)
		return p, err
	})
	return page, cmp.Or(err, damaged)
}

// DeadLetters is Reader.DeadLetters for an open host. The page is returned when the commits that it
// shows are durable. All letters, page by page:
//
//	for o := (object.DeadLettersOptions{}); ; {
//		page, err := host.DeadLetters(ctx, o)
//		if err != nil || len(page.Next) == 0 {
//			return err
//		}
//		o.After = page.Next
//	}
func (h *Host) DeadLetters(ctx context.Context, o DeadLettersOptions) (DeadLetterPage, error) {
	var damaged error
	page, err := readDurably(ctx, h, storage.ID{}, func(r Reader) (p DeadLetterPage, err error) {
		p, damaged, err = r.deadLetters(o)
		return p, err
	})
	return page, cmp.Or(err, damaged)
}

// A page of dead letters reads so much at most. Without a bound a filter that few letters pass
// would walk over all of them, and letters with long arguments would fill the memory.
const (
	maxLettersRead     = 4096
	maxLetterBytesRead = 16 << 20
)

// deadLetters reads a page, which ends behind the first letter that is damaged.
func (r Reader) deadLetters(o DeadLettersOptions) (page DeadLetterPage, damaged, err error) {
	if o, err = o.checked(); err != nil {
		return page, nil, err
	}
	letters, bytes := 0, 0
	in := storage.DeadOptions{Class: o.Class, Name: o.Name, After: o.After}
	page.Next, err = r.store.ListDead(in, func(id storage.ID, seq uint64, value []byte) bool {
		var d DeadLetter
		if d, damaged = decodeDead(id, seq, value); damaged != nil {
			return false
		}
		if o.list(&d) {
			page.Letters = append(page.Letters, d)
		}
		letters, bytes = letters+1, bytes+len(value)
		return len(page.Letters) < o.Limit && letters < maxLettersRead && bytes < maxLetterBytesRead
	})
	if err != nil {
		return DeadLetterPage{}, nil, err
	}
	return page, damaged, nil
}

// DeadLetter reads one dead letter. It returns ErrNoDeadLetter if there is none.
func (r Reader) DeadLetter(ctx context.Context, id storage.ID, seq uint64) (DeadLetter, error) {
	d, err := read(ctx, r, id, func() (*DeadLetter, error) { return r.deadLetter(id, seq) })
	return orNoLetter(id, d, err)
}

// DeadLetter is Reader.DeadLetter for an open host. It returns when the commit that stored the
// letter, or removed it, is durable.
func (h *Host) DeadLetter(ctx context.Context, id storage.ID, seq uint64) (DeadLetter, error) {
	d, err := readDurably(ctx, h, id, func(r Reader) (*DeadLetter, error) { return r.deadLetter(id, seq) })
	return orNoLetter(id, d, err)
}

// deadLetter reads one dead letter; nil if there is none.
func (r Reader) deadLetter(id storage.ID, seq uint64) (*DeadLetter, error) {
	if err := validID(id); err != nil {
		return nil, err
	}
	value, ok, err := r.store.DeadLetter(id, seq)
	if err != nil || !ok {
		return nil, err
	}
	d, err := decodeDead(id, seq, value)
	return &d, err
}

// orNoLetter returns a letter that was read, or the error of one that was not found.
func orNoLetter(id storage.ID, d *DeadLetter, err error) (DeadLetter, error) {
	switch {
	case err != nil:
		return DeadLetter{}, err
	case d == nil:
		return DeadLetter{}, named(id, ErrNoDeadLetter)
	}
	return *d, nil
}

var (
	// ErrNoDeadLetter is returned for a dead letter that does not exist.
	ErrNoDeadLetter = errors.New("object: no such dead letter")
	// ErrUseVerb refuses to replay or discard the dead letter of a job or of a timer,
	// because rows of the object keep the work. The error names the functions that do it
	// (DeadLetter.Verb). Those of a timer, Timers.Replay and Timers.Discard, run in a turn of
	// the object, so its class needs a method that calls them.
	ErrUseVerb = errors.New("object: the dead letter is of a job or a timer")
)

// ReplayDeadLetter makes the work of a dead letter due again, with all its attempts, and
// removes the letter, in one commit. An alarm replaces the alarm that the object has set
// meanwhile. A message goes to the end of the object's messages; while too many wait it is
// refused with ErrOutboxFull. The letter of a job or a timer is refused with ErrUseVerb. It returns ErrNoDeadLetter
// if the letter is gone. The class must be registered.
func (h *Host) ReplayDeadLetter(ctx context.Context, id storage.ID, seq uint64) error {
	return h.takeDeadLetter(ctx, id, seq, h.replay)
}

// errArmed leaves the dead letter of an alarm, because the object has set another alarm.
var errArmed = errors.New("object: an alarm is set")

// ReplayIfUnarmed is ReplayDeadLetter, but it keeps an alarm that the object has set meanwhile: the
// letter of an alarm then stays, and replayed is false. It looks for that alarm in the turn that
// replays, so that none is lost in between. Letters of other kinds are replayed in any case.
func (h *Host) ReplayIfUnarmed(ctx context.Context, id storage.ID, seq uint64) (replayed bool, err error) {
	err = h.takeDeadLetter(ctx, id, seq, h.replayUnarmed)
	if errors.Is(err, errArmed) {
		return false, nil
	}
	return err == nil, err
}

// replayUnarmed is replay for a letter that must replace no alarm.
func (h *Host) replayUnarmed(t *turn, d DeadLetter) error {
	if d.Kind == DeadAlarm {
		row, err := t.act.alarm()
		switch {
		case err != nil:
			return h.storageError(d.ID, err)
		case row != nil:
			return errArmed
		}
	}
	return h.replay(t, d)
}

// DiscardDeadLetter removes a dead letter for good. The letter of a job or a timer is refused
// with ErrUseVerb. It returns ErrNoDeadLetter if the letter is gone. The class need not be
// registered.
func (h *Host) DiscardDeadLetter(ctx context.Context, id storage.ID, seq uint64) error {
	if h.hosted[id.Class] == nil {
		return h.discardParked(ctx, id, seq)
	}
	return h.takeDeadLetter(ctx, id, seq, func(_ *turn, d DeadLetter) error { return d.discardable() })
}

// replay makes the work of a letter due again in the turn that removes the letter. Each
// kind of letter that ReplayDeadLetter acts on has a case here.
func (h *Host) replay(t *turn, d DeadLetter) error {
	switch {
	case d.Verb != "":
		return d.useVerb()
	case d.Kind == DeadAlarm:
		t.replaceAlarm(&alarm.Row{
			Due: h.seams.Clock.Now().Round(0), Scheduled: d.Scheduled, Gen: h.store.NextSeq(), LastError: d.LastError,
		})
		return nil
	case d.Kind == DeadMessage:
		return h.repost(t, d)
	}
	return fmt.Errorf("%s: object: dead letter %d is of the kind %q, which this program cannot replay", d.ID, d.Seq, d.Kind)
}

// discardable refuses the letter of a job or a timer, because a row tells of the same work.
func (d DeadLetter) discardable() error {
	if d.Verb != "" {
		return d.useVerb()
	}
	return nil
}

// useVerb returns an ErrUseVerb that names the functions to use.
func (d DeadLetter) useVerb() error {
	return fmt.Errorf("%s: %w: letter %d is of the kind %s: use %s", d.ID, ErrUseVerb, d.Seq, d.Kind, d.Verb)
}

// findDead reads one dead letter. It returns ErrNoDeadLetter if there is none.
func (h *Host) findDead(id storage.ID, seq uint64) (DeadLetter, error) {
	d, err := NewReader(h.store).deadLetter(id, seq)
	return orNoLetter(id, d, h.lookFailed(id, err))
}

// discardParked does the work of DiscardDeadLetter for an object of a class that is not
// registered. It commits outside of a turn, because no turn of such an object can run.
func (h *Host) discardParked(ctx context.Context, id storage.ID, seq uint64) error {
	if err := h.look(ctx, id); err != nil {
		return err
	}
	defer h.lifecycle.leave()
	d, err := h.findDead(id, seq)
	if err == nil {
		err = d.discardable()
	}
	if err != nil {
		return err
	}
	o, err := h.store.Find(id)
	if err != nil {
		return h.storageError(id, err)
	}
	var b storage.Batch
	b.For(id)
	b.DeleteDead(o.Shard, id, seq)
	if _, err := h.store.Commit(&b); err != nil {
		return h.storageError(id, err)
	}
	return h.storageError(id, h.store.WaitSeen(ctx))
}

// takeDeadLetter removes a dead letter in a turn of its object, which runs no user code.
// It calls use with the letter in that turn, so that the removal and the writes of use
// are one commit. An error of use leaves the letter.
func (h *Host) takeDeadLetter(ctx context.Context, id storage.ID, seq uint64, use func(*turn, DeadLetter) error) error {
	c, err := h.runnable(ctx, id)
	if err != nil {
		return err
	}
	return h.bare(ctx, c, id, func(t *turn) error {
		d, err := h.findDead(id, seq)
		if err != nil {
			return err
		}
		if err := use(t, d); err != nil {
			return err
		}
		t.begun().DeleteDead(t.object.Shard, id, seq)
		return nil
	})
}

// fewLetters is up to how many letters exhumeAll removes one by one. More are one range,
// because a range deletion slows down the reads of its shard until it is flushed.
const fewLetters = 1024

// exhumeAll adds the removal of all letters of job types that an object has to a batch,
// because the work that they tell of goes with the object. Its other letters stay, and so
// do those that cannot be read.
func (h *Host) exhumeAll(b *storage.Batch, shard int, id storage.ID) error {
	var gone []uint64
	kept := make(map[uint64][]byte)
	err := h.store.DeadLetters(id, func(seq uint64, value []byte) error {
		if d, err := decodeDead(id, seq, value); err == nil && d.Verb != "" {
			gone = append(gone, seq)
		} else {
			kept[seq] = slices.Clone(value)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if len(gone) <= fewLetters {
		for _, seq := range gone {
			b.DeleteDead(shard, id, seq)
		}
		return nil
	}
	b.DeleteAllDead(shard, id)
	for _, seq := range slices.Sorted(maps.Keys(kept)) {
		b.SetDead(shard, id, seq, kept[seq])
	}
	return nil
}

// died logs a new dead letter of the runtime's own kinds, and reports it.
func (h *Host) died(c *hosted, d DeadLetter, cause error, at storage.Ticket) {
	h.options.Logger.Error(d.Kind+" is a dead letter", telling(cause, "class", d.ID.Class, "object", d.ID.Name,
		"attempt", d.Attempts, "scheduled", d.Scheduled, "reason", d.Reason)...)
	h.reportDead(c, d, at)
}

// reportDead counts a new dead letter, and calls OnDeadLetter when the commit at is durable.
// It runs at the end of the turn that committed the letter, so it must not wait for the
// disk: afterDurable calls the hook on a goroutine of the crew. The hook counts in the
// lifecycle, so that Shutdown waits for it.
func (h *Host) reportDead(c *hosted, d DeadLetter, at storage.Ticket) {
	c.counts.dead.Add(1)
	if c.options.OnDeadLetter == nil {
		return
	}
	h.lifecycle.begin()
	h.afterDurable.Do(at, func(err error) {
		if err != nil {
			h.lifecycle.leave()
			return
		}
		h.crew.Add(crew.Func(func() { h.tellDead(c, d) }))
	})
}

// tellDead runs the hook for a dead letter and logs a panic of it. A hook that ends its
// goroutine is logged too, and ends a goroutine of the crew with it.
func (h *Host) tellDead(c *hosted, d DeadLetter) {
	defer h.lifecycle.leave()
	log := func(err error) {
		h.options.Logger.Error("OnDeadLetter panicked", telling(err, "class", d.ID.Class, "object", d.ID.Name)...)
	}
	if err := guard(&d.ID, func() error { c.options.OnDeadLetter(h.lifecycle.ctx, d); return nil }, log); err != nil {
		log(err)
	}
}
