package workflow

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/jobs/internal/history"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// parent names the Child operation of a run: the answer that a child sends it must fit, so
// that the child of an earlier life cannot answer a later one.
type parent struct {
	Class      string `json:"class"`
	Name       string `json:"name"`
	Life       string `json:"life"`
	Generation uint64 `json:"generation"`
	Place      uint64 `json:"place"` // sequence of the entry
}

func (p *parent) id() storage.ID { return storage.ID{Class: p.Class, Name: p.Name} }

// childStart is the argument of the method that starts a child.
type childStart[In any] struct {
	Input  In     `json:"input"`
	Parent parent `json:"parent"`
}

// childCancel is the argument of the method that cancels one.
type childCancel struct {
	Parent parent `json:"parent"`
	Reason string `json:"reason,omitempty"`
}

// answer is the argument of the method that takes the answer of a child.
type answer struct {
	Parent parent        `json:"parent"`
	Flags  history.Flags `json:"flags,omitempty"`
	Err    string        `json:"err,omitempty"`
	Value  []byte        `json:"value,omitempty"`
}

// child is the row of an open child: `c/` and the sequence of its entry.
type child struct {
	Class  string  `json:"class"`
	Name   string  `json:"name"`
	Answer *answer `json:"answer,omitempty"` // that has come and was not taken
	// Shielded: it was started WithoutCancel, so a Cancel of the run does not end it.
	Shielded bool `json:"shielded,omitempty"`
}

const (
	childPrefix = "c/"
	markPrefix  = "k/" // of marks, then a hash of the parent: a cancel that came before its child's start
	// markKept is how long such a mark is kept. A start that has failed is delivered again for
	// about an hour, so the mark of one that never comes goes, and its object with it.
	markKept = 30 * 24 * time.Hour

	methodAnswer = "answer"
	methodCancel = "cancel child"
)

// Child starts a run of another workflow, or of this one, and waits for its output. The
// start is a message of the commit that records it, and so is the answer: there is one child
// for each Child, and one answer (F7). The child is cancelled when the run is cancelled, when
// its branch of Each is given up because another has failed, and when the run ends or is
// terminated. One that was started WithoutCancel goes on until the run ends.
//
// It returns the output, a jobs.ErrInvalid if the input is too large, a *ChildError, which is an
// ErrFailed, ErrCancelled or ErrExists, ErrCancelled itself if the run or its branch is
// cancelled, or ErrMisuse.
func Child[In, Out any](ctx *Context, w *Workflow[In, Out], id string, in In) (Out, error) {
	var out Out
	err := ctx.childOf(w.d.name, id, in, &out, func(ctx context.Context, st *object.State, p parent) error {
		return w.startChild(ctx, st, id, childStart[In]{in, p})
	})
	return out, err
}

// childOf is Child, which sets *out. start sends the message that starts the child.
func (c *Context) childOf(class, id string, in, out any, start func(ctx context.Context, st *object.State, p parent) error) error {
	name := class + "/" + id
	if err := (storage.ID{Class: class, Name: id}).Validate(); err != nil {
		return fmt.Errorf("%w: %w", object.ErrBadName, err)
	}
	if err := c.enter("Child", name); err != nil {
		return err
	}
	if err := c.smallInput(name, in); err != nil {
		c.leave()
		return err
	}
	raw, err := c.child(class, id, start)
	c.leave()
	if err != nil {
		return err
	}
	c.decode(raw, out, history.Child, name)
	return nil
}

// smallInput returns a jobs.ErrInvalid unless the message that starts a child can hold its
// input. It is the same in each repeat, so it needs no entry.
func (c *Context) smallInput(name string, in any) error {
	raw, err := c.s.codec.Encode(in)
	if err != nil {
		return fmt.Errorf("%w: workflow: encode the input of child %s: %w", jobs.ErrInvalid, name, err)
	}
	limit := c.s.maxValueBytes
	if limit-len(raw) < 8<<10 { // near it the name of the parent counts too
		name, err := c.s.codec.Encode(parent{c.s.id.Class, c.s.id.Name, c.s.life, c.s.number, math.MaxUint64})
		if err != nil {
			return err
		}
		limit = min(limit, c.s.maxMessageBytes-len(name)-len(`{"input":,"parent":}`))
	}
	if len(raw) > limit {
		return fmt.Errorf("%w: workflow: the input of child %s has %s: store it outside and pass its name", jobs.ErrInvalid, name, overLimit(len(raw), limit))
	}
	return nil
}

// ChildError is how a child ended without an output.
type ChildError struct {
	Child string // class and id
	Text  string

	is error
}

func (e *ChildError) Error() string { return fmt.Sprintf("child %s: %s", e.Child, e.Text) }

// Is reports whether target is the ErrFailed, ErrCancelled or ErrExists that the error is.
func (e *ChildError) Is(target error) bool { return target == e.is }

// childError is the error of an answer, or nil.
func childError(name string, e *history.Entry) error {
	err := &ChildError{Child: name, Text: e.Err}
	switch {
	case e.Flags&history.Exists != 0:
		err.is, err.Text = ErrExists, "its id is in use"
	case e.Flags&history.Cancelled != 0:
		err.is = ErrCancelled
	case e.Flags&history.Failed != 0:
		err.is = ErrFailed
	default:
		return nil
	}
	return err
}

// child reads the entries of a child, or starts it and waits for its answer.
func (c *Context) child(class, id string, start func(ctx context.Context, st *object.State, p parent) error) ([]byte, error) {
	s, name := c.s, class+"/"+id
	begun, err := c.next(name, history.Child)
	if err != nil {
		return nil, err
	}
	for begun == nil {
		if err := c.ready(); err != nil {
			return nil, err
		}
		if begun, err = c.openChild(name, child{Class: class, Name: id, Shielded: c.shielded}, start); err != nil {
			return nil, err
		}
	}
	e, err := c.next(name, history.Answer)
	if err != nil {
		return nil, err
	}
	for e == nil {
		c.restIfAsked()
		if c.toCancel() {
			c.dropChild(begun.Seq)
			return nil, ErrCancelled
		}
		c.needsRoom()
		w := c.waiter(begun.Until, Wait{Kind: waitChild, Name: name})
		if e = c.takeAnswer(w, begun.Seq, name); e == nil {
			s.park(w)
		}
	}
	return e.Value, childError(name, e)
}

// openChild starts a child in a turn, with its entry, in one batch. It returns nil if no
// operation may begin, so that no child starts after a Cancel was acknowledged (F8).
func (c *Context) openChild(name string, open child, start func(ctx context.Context, st *object.State, p parent) error) (*history.Entry, error) {
	s := c.s
	var opened *history.Entry
	s.turn(func(ctx context.Context) error {
		if !c.begins() {
			return nil
		}
		e := c.entry(history.Entry{Kind: history.Child, Name: name})
		opened = &e
		if err := s.storeNow(ctx, opened); err != nil {
			return err
		}
		if err := s.in.putChild(ctx, e.Seq, open); err != nil {
			return err
		}
		return start(ctx, s.st, s.in.asParent(e.Seq))
	})
	if opened == nil {
		return nil, nil
	}
	c.note(opened)
	return opened, nil
}

// dropChild records that the scope has seen a Cancel while it waited for a child, and gives
// that up, in one batch.
func (c *Context) dropChild(place uint64) {
	s := c.s
	seen := c.entry(history.Entry{Kind: history.Cancel})
	s.turn(func(ctx context.Context) error {
		if err := s.storeNow(ctx, &seen); err != nil {
			return err
		}
		return s.in.giveUpChild(ctx, place, cmp.Or(s.in.row.Reason, "another branch has failed"))
	})
	c.note(&seen)
	c.sc.cancelled = true
}

// takeAnswer takes the answer of a child, with its entry, in one batch. If there is none, it
// enrolls w.
func (c *Context) takeAnswer(w *waiter, place uint64, name string) *history.Entry {
	var taken *history.Entry
	c.s.turn(func(ctx context.Context) error {
		open, ok := c.s.in.children[place]
		if !ok || open.Answer == nil {
			c.s.enroll(w)
			return nil
		}
		e := c.entry(history.Entry{Kind: history.Answer, Name: name, Flags: open.Answer.Flags, Err: open.Answer.Err, Value: open.Answer.Value})
		taken = &e
		if err := c.s.storeNow(ctx, taken); err != nil {
			return err
		}
		return c.s.in.closeChild(ctx, place)
	})
	if taken == nil {
		return nil
	}
	c.note(taken)
	return taken
}

// asParent names the Child operation of the run at a place of its history.
func (in *instance) asParent(place uint64) parent {
	id := in.st.ID()
	return parent{id.Class, id.Name, in.job.Meta().CreationID, in.row.Generation, place}
}

// loadChildren reads the rows of open children.
func (in *instance) loadChildren(ctx context.Context) error {
	for item, err := range in.st.Storage().List(ctx, object.ListOptions{Prefix: childPrefix}) {
		if err != nil {
			return err
		}
		var c child
		if err := json.Unmarshal(item.Value, &c); err != nil {
			return fmt.Errorf("%w: %s: child: %w", storage.ErrCorrupt, in.st.ID(), err)
		}
		in.setChild(seqOf(item.Key, childPrefix), c)
	}
	return nil
}

func (in *instance) setChild(place uint64, c child) {
	if in.children == nil {
		in.children = make(map[uint64]child)
	}
	in.children[place] = c
}

// putChild stores the row of an open child.
func (in *instance) putChild(ctx context.Context, place uint64, c child) error {
	raw, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if err := in.st.Storage().PutBytes(ctx, seqKey(childPrefix, place), raw); err != nil {
		return err
	}
	in.setChild(place, c)
	return nil
}

// closeChild removes the row of a child that is not waited for any more.
func (in *instance) closeChild(ctx context.Context, place uint64) error {
	if err := in.st.Storage().Remove(ctx, seqKey(childPrefix, place)); err != nil {
		return err
	}
	delete(in.children, place)
	return nil
}

// giveUpChild removes the row of an open child, and sends it a cancel if it has not answered.
// It does nothing if the child is not open.
func (in *instance) giveUpChild(ctx context.Context, place uint64, reason string) error {
	c, open := in.children[place]
	if !open {
		return nil
	}
	if c.Answer == nil {
		a := childCancel{in.asParent(place), reason}
		if err := in.st.Driver().Answer(ctx, storage.ID{Class: c.Class, Name: c.Name}, methodCancel, a); err != nil {
			return err
		}
	}
	return in.closeChild(ctx, place)
}

// cancelChildren gives up the open children, all or only those that are not shielded from a
// Cancel.
func (in *instance) cancelChildren(ctx context.Context, reason string, all bool) error {
	for place, c := range sorted(in.children) {
		if c.Shielded && !all {
			continue
		}
		if err := in.giveUpChild(ctx, place, reason); err != nil {
			return err
		}
	}
	return nil
}

// beginChild starts the run as a child. If its id is in use it answers that, and if its
// cancel came before, it answers that it is cancelled.
func (in *instance) beginChild(ctx context.Context, input []byte, p parent) error {
	key, err := markKey(p)
	if err != nil {
		return err
	}
	_, cancelled, err := in.st.Marked(ctx, key)
	switch {
	case err != nil:
		return err
	case cancelled:
		return in.answerTo(ctx, p, answer{Flags: history.Cancelled, Err: "cancelled before it was started"})
	case in.job.Exists():
		if in.row.Parent != nil && *in.row.Parent == p {
			return nil // the message was delivered before
		}
		return in.answerTo(ctx, p, answer{Flags: history.Exists})
	}
	_, err = in.start(ctx, input, &p)
	return err
}

// markKey is the key of the mark of a cancel that came before its child's start. It is a hash,
// because the name of a parent may be longer than a key.
func markKey(p parent) (string, error) {
	raw, err := json.Marshal(p)
	sum := sha256.Sum256(raw)
	return markPrefix + string(sum[:]), err
}

// cancelChild cancels the run, if it is the child of that parent.
func (in *instance) cancelChild(ctx context.Context, a childCancel) (none, error) {
	switch {
	case !in.job.Exists():
		key, err := markKey(a.Parent)
		if err != nil {
			return none{}, err
		}
		return none{}, in.st.Mark(ctx, key, nil, markKept)
	case in.row.Parent == nil || *in.row.Parent != a.Parent:
		return none{}, nil
	}
	return in.cancel(ctx, a.Reason)
}

// answerTo sends an answer to the parent.
func (in *instance) answerTo(ctx context.Context, p parent, a answer) error {
	a.Parent = p
	return in.st.Driver().Answer(ctx, p.id(), methodAnswer, a)
}

// answerParent sends the end of the run to its parent, in its end batch.
func (in *instance) answerParent(ctx context.Context, a answer) error {
	if in.row.Parent == nil || in.row.Answered {
		return nil
	}
	r := in.row
	r.Answered = true
	return errors.Join(in.answerTo(ctx, *r.Parent, a), in.put(ctx, r))
}

// takesAnswer stores the answer of a child until the run takes it. One that does not fit is
// dropped.
func (in *instance) takesAnswer(ctx context.Context, a answer) (none, error) {
	c, open := in.children[a.Parent.Place]
	if !in.job.Exists() || !open || c.Answer != nil || a.Parent != in.asParent(a.Parent.Place) {
		return none{}, nil
	}
	return none{}, in.job.Turn(ctx, func(ctx context.Context) error {
		c.Answer = &a
		if err := in.putChild(ctx, a.Parent.Place, c); err != nil {
			return err
		}
		if in.stretch != nil {
			in.stretch.came(waitChild, c.Class+"/"+c.Name)
		}
		return nil
	})
}

// answerOf is the answer that the end of a run is to its parent.
func answerOf(wish engine.Wish, value []byte, err error) answer {
	switch {
	case wish == engine.Complete:
		return answer{Value: value}
	case wish == engine.Cancel:
		return answer{Flags: history.Cancelled, Err: engine.Shorten(err.Error())}
	}
	return answer{Flags: history.Failed, Err: engine.Shorten(err.Error())}
}

// sorted yields the open children in the order of their start, so that a simulation repeats.
func sorted(children map[uint64]child) iter.Seq2[uint64, child] {
	return func(yield func(uint64, child) bool) {
		for _, place := range slices.Sorted(maps.Keys(children)) {
			if c, ok := children[place]; ok && !yield(place, c) {
				return
			}
		}
	}
}
