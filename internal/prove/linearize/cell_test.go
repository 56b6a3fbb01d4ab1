package linearize

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/holdfast-dev/holdfast/object"
)

// kind is the action of a call on a cell.
type kind int

const (
	read         kind = iota // answer from memory
	readStored               // answer from the store, which must be the same
	add                      // add amount to the number
	addOnce                  // the same under an idempotency key
	setIf                    // set the number to amount if it is old
	appendItem               // append amount to the list
	rollback                 // undo a transaction, then answer
	fail                     // write, and fail
	crashHandler             // write, and panic
	keepAndFail              // add 1, sync, write more, and fail
	purge                    // end the object
	remove                   // the same from outside, by Host.Delete
	kinds
)

var kindNames = [kinds]string{
	"read", "read stored", "add", "add once", "set if", "append", "roll back", "fail", "panic", "keep and fail", "purge", "delete",
}

// changes reports whether a call of the kind can have an effect.
func (k kind) changes() bool {
	switch k {
	case read, readStored, rollback, fail, crashHandler:
		return false
	}
	return true
}

// command is the argument of a call.
type command struct {
	kind        kind
	amount, old int
	slow        bool   // lend the turn out first
	relay       string // not empty: another cell, which is called from this one's turn
}

// content is all that a cell holds; the list by its length and a sum.
type content struct {
	Number, Length int
	Sum            uint64
}

func (c content) appended(item int) content {
	return content{c.Number, c.Length + 1, (c.Sum ^ uint64(item+1)) * 1099511628211}
}

// answer is the result of a call: the content after it, or before it if it failed.
type answer struct {
	Content content
	OK      bool // false: setIf has not set
}

// failure is a handler's error with the content that the handler has seen.
type failure struct{ seen content }

func (f failure) Error() string { return fmt.Sprintf("failed after seeing %v", f.seen) }

var errDiffers = errors.New("memory and storage differ")

// cell keeps its content in memory and, the same, in its storage.
type cell struct {
	st   *object.State
	held content
}

var (
	cells = object.Define("cell", newCell, object.ClassOptions{MailboxLimit: 6})
	do    *object.Method[command, answer]
)

func init() { do = object.Handle(cells, "do", (*cell).do) } // do calls itself

func newCell(ctx context.Context, st *object.State) (*cell, error) {
	c := &cell{st: st}
	var err error
	c.held, err = c.stored(ctx)
	return c, err
}

// stored reads the content from the storage.
func (c *cell) stored(ctx context.Context) (now content, err error) {
	if _, err := c.st.Storage().GetInto(ctx, "number", &now.Number); err != nil {
		return now, err
	}
	for item, err := range c.st.Storage().List(ctx, object.ListOptions{Prefix: "list/"}) {
		if err != nil {
			return now, err
		}
		var n int
		if _, err := fmt.Sscan(string(item.Value), &n); err != nil {
			return now, err
		}
		now = now.appended(n)
	}
	return now, nil
}

// set writes the number, here and in the storage.
func (c *cell) set(ctx context.Context, n int) error {
	c.held.Number = n
	return c.st.Storage().Put(ctx, "number", n)
}

func (c *cell) append(ctx context.Context, item int) error {
	key := fmt.Sprintf("list/%06d", c.held.Length)
	c.held = c.held.appended(item)
	return c.st.Storage().Put(ctx, key, item)
}

func (c *cell) do(ctx context.Context, cmd command) (answer, error) {
	if cmd.relay != "" {
		to := cmd.relay
		cmd.relay = ""
		return do.Call(ctx, c.st, to, cmd)
	}
	if cmd.slow {
		err := c.st.Release(ctx, func(context.Context) error { yield(20); return nil })
		if err != nil {
			return answer{}, err
		}
	}
	ok, err := c.change(ctx, cmd)
	return answer{c.held, ok}, err
}

func (c *cell) change(ctx context.Context, cmd command) (ok bool, err error) {
	switch cmd.kind {
	case readStored:
		now, err := c.stored(ctx)
		if err == nil && now != c.held {
			err = fmt.Errorf("%w: %v and %v", errDiffers, c.held, now)
		}
		return true, err
	case add, addOnce:
		return true, c.set(ctx, c.held.Number+cmd.amount)
	case setIf:
		if c.held.Number != cmd.old {
			return false, nil
		}
		return true, c.set(ctx, cmd.amount)
	case appendItem:
		return true, c.append(ctx, cmd.amount)
	case rollback:
		return true, c.undo(ctx)
	case fail, crashHandler, keepAndFail:
		return true, c.fail(ctx, cmd.kind)
	case purge:
		return true, c.st.Driver().Purge(ctx)
	}
	return true, nil
}

// undo writes in a transaction that fails.
func (c *cell) undo(ctx context.Context) error {
	err := c.st.Storage().Transaction(ctx, func(ctx context.Context, tx *object.Storage) error {
		if err := errors.Join(tx.Put(ctx, "number", -1), tx.Put(ctx, "list/999999", -1)); err != nil {
			return err
		}
		return failure{}
	})
	if errors.As(err, new(failure)) {
		return nil
	}
	return err
}

// fail changes memory and storage and then takes it back by failing.
func (c *cell) fail(ctx context.Context, how kind) error {
	if how == keepAndFail {
		if err := errors.Join(c.set(ctx, c.held.Number+1), c.st.Sync(ctx)); err != nil {
			return err
		}
	}
	seen := failure{c.held}
	if err := errors.Join(c.set(ctx, -1), c.append(ctx, -1)); err != nil {
		return err
	}
	if how == crashHandler {
		panic(seen)
	}
	return seen
}

// yield lets other goroutines run.
func yield(times int) {
	for range times {
		runtime.Gosched()
	}
}
