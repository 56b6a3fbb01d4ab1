package object

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync/atomic"

	"github.com/holdfast-dev/holdfast/object/internal/inbox"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
)

// errDeleted is the cause of the end of an instance that Host.Delete or a purge has ended.
var errDeleted = errors.New("deleted")

// check returns why a request from outside cannot be served: the name is invalid, ctx has
// ended or the store has failed.
func (h *Host) check(ctx context.Context, id storage.ID) error {
	if err := id.Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrBadName, err)
	}
	if err := seam.Cause(ctx); err != nil {
		return named(id, err)
	}
	return h.storageError(id, h.store.Err())
}

// look is check for a request that reads the store without a turn. If it returns nil, the
// request counts as under way until the caller calls lifecycle.leave, so that Shutdown
// does not close the store under it.
func (h *Host) look(ctx context.Context, id storage.ID) error {
	if err := h.check(ctx, id); err != nil {
		return err
	}
	if err := h.lifecycle.enter(false); err != nil {
		return named(id, err)
	}
	return nil
}

// Labels returns how many objects of a registered class have each label, from memory. After
// an Open they are counted in the background; complete is false until that has ended. It is
// always false for a class that is not registered, because no turn counts its changes. Labels
// does not wait for the disk.
func (h *Host) Labels(class string) (counts map[string]int, complete bool) {
	if h.hosted[class] == nil {
		return nil, false
	}
	return h.labels.Class(class)
}

// ClassInfo is a class of a host, as Classes lists it. Fields may be added to it.
type ClassInfo struct {
	Name    string
	Alarms  bool         // its objects handle alarms
	Options ClassOptions // with their defaults; Internal says that CallBytes refuses the methods
	Methods []MethodInfo // sorted by name
}

// MethodInfo is a method of a class.
type MethodInfo struct {
	Name string
	// Argument and Answer are its types in Go. In the host's codec they are the bytes that
	// CallBytes takes and returns.
	Argument, Answer reflect.Type
	// Sent says that it has an answer for a call that is sent, see the option Sent.
	Sent bool
}

// Classes lists the classes with which the host was opened, in that order. A server makes its
// routes and their documentation from it. Any goroutine may call it, also after Shutdown.
func (h *Host) Classes() (list []ClassInfo) {
	for _, name := range h.names {
		c := h.hosted[name]
		info := ClassInfo{Name: name, Alarms: c.alarms, Options: c.options}
		for _, method := range slices.Sorted(maps.Keys(c.methods)) {
			info.Methods = append(info.Methods, c.methods[method].info())
		}
		list = append(list, info)
	}
	return list
}

// PausedReceiver is an object whose messages wait, see PausedReceivers.
type PausedReceiver struct {
	ID      storage.ID `json:"id"`
	Waiting int        `json:"waiting"` // messages that wait, as far as is known
	Reason  error      `json:"reason"`  // the failure that was not the handler's; its text in JSON
}

// MarshalJSON writes the reason as its text.
func (p PausedReceiver) MarshalJSON() ([]byte, error) {
	type plain PausedReceiver // without this method
	out := struct {
		plain
		Reason string `json:"reason"`
	}{plain: plain(p)}
	if p.Reason != nil {
		out.Reason = p.Reason.Error()
	}
	return json.Marshal(out)
}

// PausedReceivers returns the objects whose messages wait, because one of them could not be
// handled for a reason that is not its handler's: for example the constructor fails, or the
// method is not registered. They are tried again after at most 30 s (M3), and those with ErrSuspended when the log answers (N5). It reads memory
// alone, so it knows of no class that is not registered, see Parked.
func (h *Host) PausedReceivers() (out []PausedReceiver) {
	h.mail.boxes.Paused(func(to inbox.Receiver, waiting int, reason error) {
		out = append(out, PausedReceiver{to.ID, waiting, reason})
	})
	slices.SortFunc(out, func(a, b PausedReceiver) int {
		return cmp.Or(cmp.Compare(a.ID.Class, b.ID.Class), cmp.Compare(a.ID.Name, b.ID.Name))
	})
	return out
}

// Delete removes an object: its keys, alarm and marks in one batch. No user code runs. A
// turn that runs meanwhile gets ErrReset, and nothing that it has not committed yet is
// stored. Events stay, and so do dead letters, except those of job types, because their work
// goes with the object. Messages to its name stay too, unless WithMessages is given. Delete
// returns when the removal is durable. If the object does not exist, only letters of job
// types, and with the option messages, may be removed. The class need not be registered.
func (h *Host) Delete(ctx context.Context, id storage.ID, opts ...DeleteOption) error {
	if err := h.check(ctx, id); err != nil {
		return err
	}
	for _, o := range opts {
		if o.messages {
			return h.deleteWithMessages(ctx, id)
		}
	}
	return h.delete(ctx, id)
}

// DeleteOption changes a Delete. WithMessages returns one.
type DeleteOption struct{ messages bool }

// WithMessages has Delete remove the messages to the object too: all that were sent by
// commits which ended before the call, without a run of their handler. They leave no dead
// letters. Up to 1,000 are removed with each commit, and the object after the last of them, all in
// one turn of the object.
func WithMessages() DeleteOption { return DeleteOption{messages: true} }

// activationOf returns the activation of an object, nil if it is not in memory.
func (h *Host) activationOf(id storage.ID) *activation {
	c := h.hosted[id.Class]
	if c == nil {
		return nil
	}
	a, _ := liveIn(c).Load(id.Name)
	return a
}

// delete is Delete without options.
func (h *Host) delete(ctx context.Context, id storage.ID) error {
	c := h.hosted[id.Class]
	if c == nil {
		return h.deleteParked(ctx, id)
	}
	if a, ok := liveIn(c).Load(id.Name); ok {
		// The calls that wait go on to a new activation, and run there before the removal,
		// because its request comes after them.
		a.end(errDeleted, c.again)
	}
	c.backlogs.forget(id.Name)
	return h.bare(ctx, c, id, h.purge)
}

// purge removes the turn's object, with its letters of job types. The turn's commit does it.
func (h *Host) purge(t *turn) error {
	t.writes.purge = t.object.Number != 0
	return h.storageError(t.act.object.ID, h.exhumeAll(t.begun(), t.object.Shard, t.act.object.ID))
}

// deleteParked is Delete for an object of a class that is not registered. No turn of it
// can run, so the rows are removed directly.
func (h *Host) deleteParked(ctx context.Context, id storage.ID) error {
	if err := h.look(ctx, id); err != nil {
		return err
	}
	defer h.lifecycle.leave()
	o, err := h.store.Find(id)
	if err == nil {
		err = h.deleteStored(o)
	}
	if err == nil {
		err = h.store.WaitSeen(ctx) // another call may have removed it a moment ago
	}
	return h.storageError(id, err)
}

// deleteStored removes all rows of an object, and its letters of job types. Two calls at the
// same time for one object remove the same rows, which does no harm.
func (h *Host) deleteStored(o storage.Object) error {
	var b storage.Batch
	b.For(o.ID)
	if o.Number != 0 {
		row, err := alarmRow(h.store, o)
		if err != nil {
			return err
		}
		if err := h.store.DeleteObject(&b, o, dueOf(row)); err != nil {
			return err
		}
	}
	if err := h.exhumeAll(&b, o.Shard, o.ID); err != nil || b.Empty() {
		return err
	}
	if _, err := h.store.Commit(&b); err != nil {
		return err
	}
	h.tellScheduler(o, storage.Object{}, nil)
	return nil
}

// runnable returns the class of an object on which the runtime is to run a turn, or why no
// turn of it can run.
func (h *Host) runnable(ctx context.Context, id storage.ID) (*hosted, error) {
	if err := h.check(ctx, id); err != nil {
		return nil, err
	}
	c := h.hosted[id.Class]
	if c == nil {
		return nil, named(id, ErrUnknownClass)
	}
	return c, nil
}

// bare runs an operation of the runtime in a turn and waits until it is durable. If ctx is
// that of another object's turn, the wait for this turn is part of the graph of waits, so
// that a circle is found (ErrDeadlock).
func (h *Host) bare(ctx context.Context, c *hosted, id storage.ID, op bare) error {
	if err := h.lifecycle.enter(false); err != nil {
		return named(id, err)
	}
	defer h.lifecycle.leave()
	r := &Request{id: id, op: op, exempt: true}
	t, a := h.turnBehind(ctx)
	w, err := h.link(t, a, r)
	if err != nil {
		return err
	}
	defer h.unlink(w)
	return h.outside(ctx, c, r)
}

// Parked returns the classes that have objects or messages in the store and are not
// registered with this host. Their objects, alarms, executions and messages stay as they are
// until a host is opened with the class again (J12, M6).
func (h *Host) Parked() ([]string, error) {
	if err := h.lifecycle.enter(false); err != nil {
		return nil, err
	}
	defer h.lifecycle.leave()
	classes, err := h.store.Classes()
	if err != nil {
		return nil, h.storageError(storage.ID{}, err)
	}
	messages, err := h.store.MessageClasses()
	if err != nil {
		return nil, h.storageError(storage.ID{}, err)
	}
	for _, c := range messages {
		if !slices.Contains(classes, c) {
			classes = append(classes, c)
		}
	}
	return slices.DeleteFunc(classes, func(c string) bool { return h.hosted[c] != nil }), nil
}

// KnownClasses returns the classes that are registered with this host and those of which the store has held an object since the
// first call, in the order of their names. It is for lists of all objects that have to be cheap: only the first call that
// succeeds reads the store, and a class whose last object is gone stays. StoredClasses is exact. Any goroutine may call it.
func (h *Host) KnownClasses(ctx context.Context) ([]string, error) {
	if !h.known.scanned.Load() {
		stored, err := h.StoredClasses(ctx)
		if err != nil {
			return nil, err
		}
		h.known.add(stored...)
		h.known.scanned.Store(true)
	}
	names := slices.Clone(h.names)
	parkedIn(&h.known).Range(func(class, _ any) bool {
		if name := class.(string); h.hosted[name] == nil {
			names = append(names, name)
		}
		return true
	})
	slices.Sort(names)
	return names, nil
}

// knownClasses is the classes of which the store has held an object, by one scan of it and by what imports have added. Turns add
// none, because theirs are registered.
type knownClasses struct {
	scanned atomic.Bool
	parked  any // names; see parkedIn
}

func (k *knownClasses) add(names ...string) {
	for _, name := range names {
		parkedIn(k).Store(name, true)
	}
}
