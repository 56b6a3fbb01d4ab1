package object_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/engine"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// Objects of a class that is not registered can be listed, inspected and deleted. Nothing
// is left of a deleted one: no key, no alarm, no mark, no open execution.
//
// Case ST7. Proves O15.
func TestObjectsOfAParkedClass(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		for _, name := range []string{"gone", "kept"} {
			f.must(name, func(th *thing, ctx context.Context) (any, error) {
				err := errors.Join(th.st.Storage().PutBytes(ctx, "k", []byte("v")), th.st.Mark(ctx, "m", nil, time.Hour), th.st.Driver().OpenExecution(ctx, nil))
				return nil, errors.Join(err, th.st.SetAlarm(ctx, th.st.Now().Add(time.Hour)))
			})
		}
		f.close()
		ctx := context.Background()
		other := object.Define("other", func(context.Context, *object.State) (*struct{}, error) { return &struct{}{}, nil })
		f.options.Storage = storage.Options{Engine: f.mem, Shards: 2}
		h, err := object.Open(f.options, other)
		if err != nil {
			t.Fatal(err)
		}
		if all, err := h.Objects(ctx, "thing", object.ObjectsOptions{Limit: 10}); len(all) != 2 || err != nil {
			t.Errorf("listed: %v, %v", all, err)
		}
		for range 2 { // a second time it is not there, which is no error
			if err := h.Delete(ctx, f.id("gone")); err != nil {
				t.Errorf("Delete: %v", err)
			}
		}
		if in, err := h.Inspect(ctx, f.id("gone")); in.Exists || in.Alarm != nil || err != nil {
			t.Errorf("after Delete: %+v, %v", in, err)
		}
		if in, err := h.Inspect(ctx, f.id("kept")); !in.Exists || in.Alarm == nil || !in.Execution || len(in.Keys) != 1 || err != nil {
			t.Errorf("of the other object: %+v, %v", in, err)
		}
		if err := h.Store().Check(); err != nil {
			t.Error(err)
		}
		pass(2 * time.Hour) // its alarm, if it were there, would come due
		if err := h.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		if err := h.Delete(ctx, f.id("kept")); !errors.Is(err, object.ErrShutdown) {
			t.Errorf("Delete after Shutdown: %v", err)
		}
		f.mem, f.options.Storage = f.mem.Crash(0), storage.Options{}
		f.open()
		defer f.close()
		if v := f.must("gone", get("k")); v != "" {
			t.Errorf("the deleted object has %q", v)
		}
		if v := f.must("kept", get("k")); v != "v" {
			t.Errorf("the other object has %q", v)
		}
	})
}

// The known classes are those that are registered, also without an object, and those of which the store has held an object,
// whether it was there at the first look or an import has brought it.
//
// Proves O15.
func TestKnownClasses(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		f.must("a", put("k", "v"))
		f.close()
		ctx := context.Background()
		other := object.Define("other", func(context.Context, *object.State) (*struct{}, error) { return &struct{}{}, nil })
		f.options.Storage = storage.Options{Engine: f.mem, Shards: 2}
		h, err := object.Open(f.options, other)
		if err != nil {
			t.Fatal(err)
		}
		know := func(when string, want ...string) {
			t.Helper()
			if got, err := h.KnownClasses(ctx); !slices.Equal(got, want) || err != nil {
				t.Errorf("%s: %q, %v; want %q", when, got, err, want)
			}
		}
		bring := func(class string, rows error) error {
			return h.Import(ctx, object.Import{
				Copy: object.Copy{ID: storage.ID{Class: class, Name: "a"}},
				Rows: func(_ map[uint64]uint64, key func(string, []byte) error, _ func(string, time.Time, []byte) error) error {
					return errors.Join(key("k", []byte("v")), rows)
				},
			})
		}
		if err := bring("zebra", nil); err != nil {
			t.Fatal(err)
		}
		know("at first, after an import", "other", "thing", "zebra")
		if err := bring("ape", nil); err != nil {
			t.Fatal(err)
		}
		know("after the next import", "ape", "other", "thing", "zebra")
		if err := bring("bee", errors.New("torn")); err == nil {
			t.Fatal("an import without its rows")
		}
		know("after one that fails at once", "ape", "other", "thing", "zebra")
		if err := h.Delete(ctx, storage.ID{Class: "ape", Name: "a"}); err != nil {
			t.Fatal(err)
		}
		know("without its object", "ape", "other", "thing", "zebra")
		if got, err := h.StoredClasses(ctx); !slices.Equal(got, []string{"thing", "zebra"}) || err != nil {
			t.Errorf("stored: %q, %v", got, err)
		}
		if err := h.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
}

// A dead letter of a class that is not registered can be listed and discarded, and
// replayed once the class is back. Proves O15, A7.
func TestDeadLettersOfAParkedClass(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		f.handleAlarm(func(*thing, context.Context, object.AlarmInfo) error { return object.Permanent(errors.New("no")) })
		for _, name := range []string{"gone", "kept"} {
			f.must(name, setAlarm(time.Second))
		}
		pass(time.Minute)
		f.close()
		ctx := context.Background()
		other := object.Define("other", func(context.Context, *object.State) (*struct{}, error) { return &struct{}{}, nil })
		f.options.Storage = storage.Options{Engine: f.mem, Shards: 2}
		h, err := object.Open(f.options, other)
		if err != nil {
			t.Fatal(err)
		}
		letters, err := lettersOf(h.DeadLetters(ctx, object.DeadLettersOptions{Limit: object.MaxPage}))
		if len(letters) != 2 || err != nil {
			t.Fatalf("dead letters: %v, %v", letters, err)
		}
		for _, d := range letters {
			if err := h.ReplayDeadLetter(ctx, d.ID, d.Seq); !errors.Is(err, object.ErrUnknownClass) {
				t.Errorf("replay: %v", err)
			}
			if d.ID.Name == "kept" {
				continue
			}
			if err := h.DiscardDeadLetter(ctx, d.ID, d.Seq); err != nil {
				t.Errorf("discard: %v", err)
			}
			if err := h.DiscardDeadLetter(ctx, d.ID, d.Seq); !errors.Is(err, object.ErrNoDeadLetter) {
				t.Errorf("a second discard: %v", err)
			}
		}
		if letters, err = lettersOf(h.DeadLetters(ctx, object.DeadLettersOptions{Limit: object.MaxPage})); len(letters) != 1 || letters[0].ID.Name != "kept" || err != nil {
			t.Errorf("after the discard: %v, %v", letters, err)
		}
		if err := h.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
}

// closing counts how often an engine is closed.
type closing struct {
	engine.Engine
	closed int
}

func (e *closing) Close() error {
	e.closed++
	return e.Engine.Close()
}

// unreadable is an engine that fails to read a range.
type unreadable struct{ *closing }

var errUnreadable = errors.New("unreadable")

func (unreadable) NewIter(_, _ []byte) (engine.Iterator, error) { return nil, errUnreadable }

// An Open that fails closes the given engine, at whichever step it fails, so that its
// directory can be opened again. Shutdown closes it too, once.
//
// Case ST5. Proves O2.
func TestFailedOpenClosesItsEngine(t *testing.T) {
	good := object.Define("good", func(context.Context, *object.State) (*struct{}, error) { return &struct{}{}, nil })
	bad := object.Define[struct{}]("bad", nil)
	opened := func(wrap func(*closing) engine.Engine, o object.Options, defs ...object.Definition) (int, error) {
		e := &closing{Engine: memstore.New()}
		o.Storage.Engine = wrap(e)
		h, err := object.Open(o, defs...)
		if err == nil {
			err = h.Shutdown(context.Background())
		}
		return e.closed, err
	}
	plain := func(e *closing) engine.Engine { return e }
	for what, open := range map[string]func() (int, error){
		"options": func() (int, error) { return opened(plain, object.Options{MaxLive: -1}, good) },
		"class":   func() (int, error) { return opened(plain, object.Options{}, bad) },
		"shards":  func() (int, error) { return opened(plain, object.Options{Storage: storage.Options{Shards: -1}}, good) },
		"reads": func() (int, error) {
			return opened(func(e *closing) engine.Engine { return unreadable{e} }, object.Options{}, good)
		},
		"shutdown": func() (int, error) { return opened(plain, object.Options{}, good) },
	} {
		if n, err := open(); n != 1 || (err == nil) != (what == "shutdown") {
			t.Errorf("%s: the engine was closed %d times, %v", what, n, err)
		}
	}
}

// jobType stands for a job type, which embeds its class.
type jobType struct{ *object.Class[thing] }

// A nil definition of any type is an error that says which one it is.
//
// Case ST6. Proves J1.
func TestNilDefinitionIsAnError(t *testing.T) {
	good := object.Define("good", func(context.Context, *object.State) (*struct{}, error) { return &struct{}{}, nil })
	for what, d := range map[string]object.Definition{
		"nil":                 nil,
		"nil class":           (*object.Class[thing])(nil),
		"nil job type":        (*jobType)(nil),
		"job type of nothing": &jobType{},
		"empty class":         &object.Class[thing]{},
	} {
		_, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}}, good, d)
		if err == nil || !strings.Contains(err.Error(), "definition 2 of 2 is nil or empty") {
			t.Errorf("%s: %v", what, err)
		}
	}
}
