package shardlog

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/engine"
)

// # The end of a log
//
// A log ends with an owner that no other follows. Its name has three words: "exported", the 128 random bits of the export, and those of the
// claim. Open refuses a log with such an owner before it claims anything, and appends of older terms are fenced as ever. So nothing
// is appended to the log any more.
//
// The bits of the export are in a row of the view before the claim. An export that was cut off is known by them, so that it goes
// on with its own view, and no other view becomes a second store.

// exported is the first word of such an owner.
const exported = "exported"

// ExportRow is the name of the row with the bits of the export, in the view and in the store that it becomes. Like the position row it is
// in no record.
const ExportRow = "export"

// ErrExported is returned for a log that Export has closed: its store is in the directory of one machine again.
var ErrExported = errors.New("shardlog: the log has ended, because its store was exported to a directory")

// isExport reports whether the name of an owner is that of an export.
func isExport(owner string) bool {
	word, _, _ := strings.Cut(owner, " ")
	return word == exported
}

// Exported reports whether the log has ended by Export.
func (s State) Exported() bool { return isExport(s.Owner) }

// ExportedTo reports whether the log has ended by the export into the store that has the value as its row ExportRow.
func (s State) ExportedTo(value []byte) bool {
	return len(value) > 0 && strings.HasPrefix(s.Owner, exported+" "+string(value)+" ")
}

// Export brings a view up to the end of the log of o and closes the log for good: it claims it under a name that no Open
// follows. The view has all of the log then, durably. It returns the head. The options are those of Open; o.Owner does not count.
//
// A call that was cut off is made again with the same view, also after storage.DetachView has begun. Another view is ErrExported,
// because two stores would come of one log; again is for an operator who knows that the view of the export is lost. The other
// errors are those of Open.
func Export(o Options, view engine.Engine, again bool) (State, error) {
	o, err := o.withDefaults()
	if err != nil {
		return State{}, err
	}
	calls, end := context.WithCancelCause(o.Context)
	defer end(errClosed)
	e := &Engine{view: view, barrier: new(barrier), asker: newAsker(o, calls, o.Patience)}
	head, err := e.export(again)
	if err != nil {
		return State{}, fmt.Errorf("shardlog: export of shard %d: %w", o.Shard, err)
	}
	return head, nil
}

// export is Export over an engine that applies and appends nothing.
func (e *Engine) export(again bool) (State, error) {
	bits, err := getRow(e.view, ExportRow)
	if err != nil {
		return State{}, err
	}
	position, err := getRow(e.view, positionRow)
	if err != nil {
		return State{}, err
	}
	head, err := e.head()
	if err != nil {
		return State{}, err
	}
	ours := head.ExportedTo(bits)
	switch {
	case ours && position == nil:
		return head, nil // the view was detached
	case head.Exported() && !ours && !again:
		return State{}, fmt.Errorf("%w: %s, term %d: another view has it", ErrExported, head.Owner, head.Term)
	}
	if e.last, e.chain, err = readPosition(e.view); err != nil {
		return State{}, err
	}
	e.o.Owner = exported
	if err := e.catchUp(head); err != nil {
		return State{}, err
	}
	if !ours {
		random := e.o.Seams.Rand
		bits = fmt.Appendf(nil, "%016x%016x", random.Uint64(), random.Uint64())
	}
	if err := e.keepExport(bits); err != nil {
		return State{}, err
	}
	e.o.Owner = exported + " " + string(bits)
	if head, err = e.claim(head.Term); err != nil {
		return State{}, err
	}
	if err := e.catchUp(head); err != nil {
		return State{}, err
	}
	return head, e.keepExport(bits)
}

// keepExport stores the bits of the export and the position in the view, durably.
func (e *Engine) keepExport(bits []byte) error {
	var b storage.Batch
	b.SetMeta(ExportRow, bits)
	if err := e.view.Apply(b.Repr()); err != nil {
		return err
	}
	if err := writePosition(e.view, e.last, e.chain); err != nil {
		return err
	}
	return e.view.Sync()
}

// getRow returns a copy of a row of the view's own, or nil if there is none.
func getRow(view engine.Engine, name string) ([]byte, error) {
	v, closer, err := view.Get(append([]byte{0xff, 0xff, 0x00}, name...))
	switch {
	case errors.Is(err, engine.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return append([]byte{}, v...), closer.Close()
}
