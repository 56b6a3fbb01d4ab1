package workflow

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/jobs/internal/history"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
)

// Tx holds all that Atomic may change: keys of the run, and messages to other objects. It is valid
// until its function returns.
type Tx struct {
	storage *object.Storage
	st      *object.State
}

// dataPrefix begins the keys of Tx.
const dataPrefix = "u/"

// Get returns the value of a key, and whether there is one.
func (t *Tx) Get(ctx context.Context, key string) (value []byte, ok bool, err error) {
	return t.storage.Get(ctx, dataPrefix+key)
}

// Put sets the value of a key. It returns object.ErrValueTooLarge, ErrKeyTooLarge or
// ErrBatchTooLarge.
func (t *Tx) Put(ctx context.Context, key string, value []byte) error {
	return t.storage.PutBytes(ctx, dataPrefix+key, value)
}

// Delete removes keys.
func (t *Tx) Delete(ctx context.Context, keys ...string) error {
	all := make([]string, len(keys))
	for i, k := range keys {
		all[i] = dataPrefix + k
	}
	return t.storage.Remove(ctx, all...)
}

// DeleteAll removes all keys of the run that Put has set.
func (t *Tx) DeleteAll(ctx context.Context) error { return t.storage.DeletePrefix(ctx, dataPrefix) }

// List yields the keys that begin with prefix and their values, in the order of the keys.
func (t *Tx) List(ctx context.Context, prefix string) iter.Seq2[object.Item, error] {
	return func(yield func(object.Item, error) bool) {
		for item, err := range t.storage.List(ctx, object.ListOptions{Prefix: dataPrefix + prefix}) {
			if err == nil {
				item.Key = item.Key[len(dataPrefix):]
			}
			if !yield(item, err) || err != nil {
				return
			}
		}
	}
}

// Outbox returns a Caller for the verbs of jobs and for methods with object.Sent. Their calls
// are messages of the same commit.
func (t *Tx) Outbox() object.Caller { return t.st.Outbox() }

// Atomic runs fn and records its value in one batch with all that fn has changed through tx:
// exactly once, because a crash leaves either all of it or nothing (F6). fn runs in a turn of
// the run's object, so it must be quick and not wait. An error or a panic undoes its changes
// and its messages, is recorded, and is not tried again. So is an object.ErrBatchTooLarge, of
// changes that do not fit in one batch with the value. A fn that returns object.ErrNoSpace,
// for example of a call that it makes, is called again each second until there is space (O17).
//
// The errors are those of Step.
func Atomic[T any](ctx *Context, name string, fn func(ctx context.Context, tx *Tx) (T, error)) (T, error) {
	var value T
	if err := validName("step", name); err != nil {
		return value, err
	}
	if err := ctx.enter("Atomic", name); err != nil {
		return value, err
	}
	codec := ctx.s.codec
	raw, err := ctx.atomic(name, func(ctx context.Context, tx *Tx) ([]byte, error) {
		v, err := fn(ctx, tx)
		if err != nil {
			return nil, err
		}
		return codec.Encode(v)
	})
	ctx.leave()
	if err != nil {
		return value, err
	}
	ctx.decode(raw, &value, history.Atomic, name)
	return value, nil
}

// spaceEvery is how long an Atomic waits between two looks whether there is space again.
const spaceEvery = time.Second

// atomic reads the entry of an Atomic, or runs it.
func (c *Context) atomic(name string, fn func(ctx context.Context, tx *Tx) ([]byte, error)) ([]byte, error) {
	e, err := c.next(name, history.Atomic)
	if err != nil {
		return nil, err
	}
	for e == nil {
		if err := c.ready(); err != nil {
			return nil, err
		}
		var made *history.Entry
		full := false
		c.s.turn(func(ctx context.Context) (err error) {
			if c.begins() {
				made, err = c.runAtomic(ctx, name, fn)
			}
			if full = made == nil && errors.Is(err, object.ErrNoSpace); full { // the transaction is undone, so the turn may go on
				return nil
			}
			return err
		})
		if made != nil {
			c.note(made)
			e = made
		}
		if full { // if the sleep is cut short, the next turn tells why
			_ = c.s.seams.Sleep(c.s.base, spaceEvery)
		}
	}
	return e.Value, stepError(e)
}

// runAtomic runs fn in a turn and stores its entry: that of its value with its changes, or
// that of its failure alone.
func (c *Context) runAtomic(ctx context.Context, name string, fn func(ctx context.Context, tx *Tx) ([]byte, error)) (made *history.Entry, err error) {
	var entry history.Entry
	failed := c.s.transaction(ctx, fn, func(value []byte) error {
		entry = c.entry(history.Entry{Kind: history.Atomic, Name: name, Value: value})
		return c.s.storeNow(ctx, &entry)
	})
	switch {
	case failed == nil:
		return &entry, nil
	case engine.OfRuntime(failed): // the turn fails with it
		return nil, failed
	case errors.Is(failed, object.ErrBatchTooLarge):
		failed = fmt.Errorf("the changes and the value do not fit in one batch, make them in several: %w", failed)
	}
	entry = c.entry(c.failure(name, 1, failed))
	entry.Kind = history.Atomic
	return &entry, c.s.storeNow(ctx, &entry)
}

// transaction runs fn over the run's data, and then store with its value. Its changes are
// undone if one of them fails.
func (s *stretch) transaction(ctx context.Context, fn func(ctx context.Context, tx *Tx) ([]byte, error), store func(value []byte) error) error {
	return s.st.Storage().Transaction(ctx, func(ctx context.Context, storage *object.Storage) error {
		var value []byte
		err := seam.Guard(func() (err error) {
			value, err = fn(ctx, &Tx{storage, s.st})
			if err == nil {
				err = s.tooLarge(value)
			}
			return err
		}, func(p *seam.PanicError) error { return p })
		if err != nil {
			return err
		}
		return store(value)
	})
}
