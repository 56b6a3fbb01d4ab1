package object_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/internal/testing/leaks"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// thing is an object that runs the function it is called with.
type thing struct {
	st  *object.State
	fix *fixture
	n   int // memory only
}

func (th *thing) Alarm(ctx context.Context, info object.AlarmInfo) error {
	return th.fix.alarm(th, ctx, info)
}

type action func(*thing, context.Context) (any, error)

// fixture is a class of things and a host for them, over a store in memory that
// can be crashed and opened again.
type fixture struct {
	t       testing.TB
	class   *object.Class[thing]
	do      *object.Method[action, any]
	host    *object.Host
	options object.Options
	mem     *memstore.Store

	mu        sync.Mutex
	construct func(ctx context.Context, th *thing) error
	onAlarm   func(th *thing, ctx context.Context, info object.AlarmInfo) error
}

func newFixture(t testing.TB, opts ...object.ClassOptions) *fixture {
	f := &fixture{t: t, mem: memstore.New()}
	f.class = object.Define("thing", func(ctx context.Context, st *object.State) (*thing, error) {
		th := &thing{st: st, fix: f}
		f.mu.Lock()
		construct := f.construct
		f.mu.Unlock()
		if construct != nil {
			return th, construct(ctx, th)
		}
		return th, nil
	}, opts...)
	f.do = object.Handle(f.class, "do", func(th *thing, ctx context.Context, fn action) (any, error) { return fn(th, ctx) })
	f.options = object.Options{Logger: slog.New(slog.DiscardHandler)}
	return f
}

func (f *fixture) alarm(th *thing, ctx context.Context, info object.AlarmInfo) error {
	f.mu.Lock()
	handle := f.onAlarm
	f.mu.Unlock()
	if handle == nil {
		return nil
	}
	return handle(th, ctx, info)
}

func (f *fixture) handleAlarm(fn func(th *thing, ctx context.Context, info object.AlarmInfo) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.onAlarm = fn
}

func (f *fixture) handleConstruct(fn func(ctx context.Context, th *thing) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.construct = fn
}

// open opens the host over the rows of the store.
func (f *fixture) open(more ...object.Definition) *fixture {
	f.t.Helper()
	o := f.options
	if o.Storage.Engine == nil {
		o.Storage.Engine = f.mem
	}
	o.Storage.Shards = 2
	h, err := object.Open(o, append([]object.Definition{f.class}, more...)...)
	if err != nil {
		f.t.Fatal(err)
	}
	f.host = h
	return f
}

// close shuts the host down in order.
func (f *fixture) close() {
	f.t.Helper()
	if err := f.host.Shutdown(context.Background()); err != nil {
		f.t.Fatal(err)
	}
	f.mem = f.mem.Crash(0)
	f.check(f.t)
}

// check looks for rows that contradict each other in the store that a crash would leave
// now.
func (f *fixture) check(t rapid.TB) {
	t.Helper()
	s, err := storage.Open(storage.Options{Engine: f.mem.Crash(0), Shards: 2})
	if err == nil {
		err = errors.Join(s.Check(), s.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// crash ends the host as a killed process would, and keeps the durable rows.
func (f *fixture) crash() {
	f.t.Helper()
	survives := f.mem.Crash(0)
	f.host.Shutdown(ended())
	f.mem = survives
}

// ended is a context that is over.
func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// call runs fn in a turn of the thing called name.
func (f *fixture) call(name string, fn action, opts ...object.CallOption) (any, error) {
	return f.do.Call(context.Background(), f.host, name, fn, opts...)
}

func (f *fixture) must(name string, fn action, opts ...object.CallOption) any {
	f.t.Helper()
	v, err := f.call(name, fn, opts...)
	if err != nil {
		f.t.Fatalf("%s: %v", name, err)
	}
	return v
}

func (f *fixture) id(name string) storage.ID { return f.class.ID(name) }

// stored is the value of a key as the store holds it, "" if it is absent.
func (f *fixture) stored(name, key string) string {
	f.t.Helper()
	page, err := f.host.Keys(context.Background(), f.id(name), object.KeysOptions{Start: key, Limit: 1, Values: true})
	if err != nil {
		f.t.Fatal(err)
	}
	if len(page.Keys) == 0 || page.Keys[0].Key != key {
		return ""
	}
	return string(page.Keys[0].Value)
}

func put(key, value string) action {
	return func(th *thing, ctx context.Context) (any, error) {
		return nil, th.st.Storage().PutBytes(ctx, key, []byte(value))
	}
}

func get(key string) action {
	return func(th *thing, ctx context.Context) (any, error) {
		v, _, err := th.st.Storage().Get(ctx, key)
		return string(v), err
	}
}

func setAlarm(after time.Duration) action {
	return func(th *thing, ctx context.Context) (any, error) {
		return nil, th.st.SetAlarm(ctx, th.st.Now().Add(after))
	}
}

func nothing(*thing, context.Context) (any, error) { return nil, nil }

// bubble runs a test on the real executor with time that jumps.
func bubble(t *testing.T, fn func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, fn)
}

// beat orders the test before the handlers that begin later, also those that a timer
// begins, so that they see its variables.
func beat() {
	beats.Lock()
	defer beats.Unlock()
}

var beats sync.Mutex

// pass lets time pass, and all that comes due in it happen.
func pass(d time.Duration) {
	beat()
	time.Sleep(d)
	synctest.Wait()
}
