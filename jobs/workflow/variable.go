package workflow

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/holdfast-dev/holdfast/object"
)

// Var is a value that a run shows, for example how far it has come. Make it once, at package
// level.
type Var[T any] struct{ name string }

// NewVar makes a variable. Its name is UTF-8 of 1 to 128 bytes.
func NewVar[T any](name string) *Var[T] { return &Var[T]{name} }

// Set shows the value from the next entry of the run on, or the end of the stretch. It costs
// no commit of its own. A value that cannot be encoded, or is larger than a step's may be, makes
// the run stuck.
//
// A repeat sets nothing until it has passed its history. But a branch that is at the end of its
// entries sets its last value again, because it cannot know whether that was stored. So branches
// that set one variable may show an older value after a repeat: give each a variable of its own.
func (v *Var[T]) Set(ctx *Context, value T) { ctx.set(v.name, value) }

// set is Var.Set.
func (c *Context) set(name string, value any) {
	c.mustEnter("Set")
	s := c.s
	if err := validName("variable", name); err != nil {
		s.stuck(err)
	}
	raw, err := s.codec.Encode(value)
	if err == nil {
		err = s.tooLarge(raw)
	}
	if err != nil {
		s.stuck(fmt.Errorf("workflow: variable %q: %w", name, err))
	}
	if !c.shows() {
		return
	}
	s.mu.Lock()
	s.pending.set(name, raw)
	s.mu.Unlock()
	s.flushLarge()
}

// shows reports whether a value that the scope sets now is to be shown: behind the entries of all
// scopes, because the code of one of them may not follow the history (F3), and not in a branch that
// the function has gone on behind, or that was given up, because the run may have set another since.
func (c *Context) shows() bool {
	if c.sc.reader.Peek() != nil || c.sc.leaves || c.sc.over || c.s.failed || c.s.dry {
		return false
	}
	c.awaitRepeats()
	return true
}

// Get returns the value that the run id of w shows, and whether there is one. It was set by
// a stored part of the run (F14). It does not wait for the run, and works under each deploy.
// It returns jobs.ErrNotFound.
func (v *Var[T]) Get(ctx context.Context, from object.Caller, w Named, id string) (value T, ok bool, err error) {
	ok, err = w.of().get(ctx, from, id, v.name, &value)
	return value, ok, err
}

// get is Var.Get, which sets *value.
func (d *definition) get(ctx context.Context, from object.Caller, id, name string, value any) (bool, error) {
	shown, err := d.calls.variable(ctx, from, id, name)
	if err != nil || !shown.OK {
		return false, err
	}
	err = shown.codec.Decode(shown.Value, value)
	return err == nil, err
}

// shown is the answer of the method that reads a variable.
type shown struct {
	Value []byte `json:"value"`
	OK    bool   `json:"ok"`

	codec object.Codec
}

const varPrefix = "v/"

// setVars stores values that the run shows, in a turn.
func (in *instance) setVars(ctx context.Context, vars map[string][]byte) error {
	if len(vars) == 0 {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		if err := in.st.Storage().PutBytes(ctx, varPrefix+name, vars[name]); err != nil {
			return err
		}
	}
	return nil
}

// variable reads a value that the run shows.
func (in *instance) variable(ctx context.Context, name string) (s shown, err error) {
	if err := in.existing(); err != nil {
		return s, err
	}
	s.codec = in.st.Driver().Codec()
	s.Value, s.OK, err = in.st.Storage().Get(ctx, varPrefix+name)
	return s, err
}

// described is a variable of a run as the view vars shows it: its value if that is JSON, and
// otherwise the bytes that the host's codec has made of it.
type described struct {
	Name  string          `json:"name"`
	Value json.RawMessage `json:"value,omitempty"`
	Raw   []byte          `json:"raw,omitempty"`
}

// maxVariables and maxVariableBytes bound the view vars, because a run may set any number of
// variables, and each may be large. Its first variable is always shown.
const (
	maxVariables     = 1000
	maxVariableBytes = 1 << 20
)

// variables reads the variables of the run, in the order of their names.
func (in *instance) variables(ctx context.Context, _ none) (all []described, err error) {
	if err := in.existing(); err != nil {
		return nil, err
	}
	bytes := 0
	for item, err := range in.st.Storage().List(ctx, object.ListOptions{Prefix: varPrefix, Limit: maxVariables}) {
		if err != nil {
			return nil, err
		}
		if bytes += len(item.Value); bytes > maxVariableBytes && len(all) > 0 {
			break
		}
		v := described{Name: item.Key[len(varPrefix):]}
		if json.Valid(item.Value) {
			v.Value = item.Value
		} else {
			v.Raw = item.Value
		}
		all = append(all, v)
	}
	return all, nil
}
