package object_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// 10,000 callers of one busy object: as many as the limit says wait, in the order
// in which they came, and all others are refused at once. Proves O11 and O3's
// last sentence.
func TestFloodedMailbox(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.close()
		const callers, limit = 10_000, 1024
		gate := make(chan struct{})
		var order []int // owned by the turns
		var refused, other atomic.Int64
		var calls sync.WaitGroup
		send := func(i int) {
			calls.Go(func() {
				_, err := f.call("a", func(*thing, context.Context) (any, error) {
					if i == 0 {
						<-gate
					}
					order = append(order, i)
					return nil, nil
				})
				switch {
				case errors.Is(err, object.ErrOverloaded) && object.Retryable(err):
					refused.Add(1)
				case err != nil:
					other.Add(1)
				}
			})
		}
		for i := range limit + 1 { // one runs, and the others wait
			send(i)
			synctest.Wait()
		}
		for i := limit + 1; i < callers; i++ {
			send(i)
		}
		synctest.Wait()
		in, err := f.host.Inspect(context.Background(), f.id("a"))
		if err != nil || in.Waiting != limit || refused.Load() != callers-limit-1 {
			t.Errorf("%d wait, %d were refused, %v", in.Waiting, refused.Load(), err)
		}
		close(gate)
		calls.Wait()
		if len(order) != limit+1 || !slices.IsSorted(order) || other.Load() != 0 {
			t.Errorf("%d were answered, in order: %v; %d other errors", len(order), slices.IsSorted(order), other.Load())
		}
		f.must("a", nothing)
	})
}

// Callers with an ended context cost the object nothing: no handler runs for them, and
// none stays in the mailbox. Proves O11's last sentence.
func TestCallersWhoseContextHasEnded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.close()
		gate, ran := make(chan struct{}), atomic.Int64{}
		go f.call("a", func(*thing, context.Context) (any, error) { <-gate; return nil, nil })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		var ended atomic.Int64
		var calls sync.WaitGroup
		for i := range 5000 {
			by := ctx // it ends while the calls wait that the mailbox has room for
			if i%2 == 0 {
				by = endedOf(ctx)
			}
			calls.Go(func() {
				_, err := f.do.Call(by, f.host, "a", func(*thing, context.Context) (any, error) { ran.Add(1); return nil, nil })
				if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, object.ErrOverloaded) {
					ended.Add(1)
				}
			})
		}
		pass(2 * time.Second)
		calls.Wait()
		close(gate)
		f.must("a", nothing)
		in, err := f.host.Inspect(context.Background(), f.id("a"))
		if ran.Load() != 0 || ended.Load() != 5000 || in.Waiting != 0 || err != nil {
			t.Errorf("%d ran, %d were told, %d wait, %v", ran.Load(), ended.Load(), in.Waiting, err)
		}
	})
}

// endedOf is a child of ctx that is over.
func endedOf(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}

// A handler that never returns holds its own object and nothing else: its caller
// goes when the caller's context ends, and Shutdown names it. Proves O14.
func TestHandlerThatNeverReturns(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		forever := make(chan struct{})
		defer func() { close(forever); synctest.Wait() }()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_, err := f.do.Call(ctx, f.host, "stuck", func(*thing, context.Context) (any, error) { <-forever; return nil, nil })
		if !errors.Is(err, object.ErrUnknown) {
			t.Errorf("the caller gets %v", err)
		}
		if _, err := f.do.Call(endedOf(ctx), f.host, "stuck", nothing); !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
			t.Errorf("a caller that does not wait gets %v", err)
		}
		for i := range 100 {
			f.must(fmt.Sprint("other ", i), put("k", "v"))
		}
		shut, cancelShut := context.WithTimeout(context.Background(), time.Minute)
		defer cancelShut()
		if err := f.host.Shutdown(shut); err == nil || !strings.Contains(err.Error(), "thing/stuck") || strings.Contains(err.Error(), "other") {
			t.Errorf("Shutdown: %v", err)
		}
	})
}

// An object stays usable if its handlers panic, and their writes are gone. An alarm that
// panics ends as a dead letter with a text of bounded length. Proves O6 and A7.
func TestHandlersThatPanic(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.close()
		f.must("a", put("k", "kept"))
		for i := range 200 {
			_, err := f.call("a", func(th *thing, ctx context.Context) (any, error) {
				_ = th.st.Storage().PutBytes(ctx, "k", []byte("lost"))
				panic(fmt.Sprint("always ", i))
			})
			if !errors.Is(err, object.ErrPanic) {
				t.Fatalf("call %d: %v", i, err)
			}
		}
		if got := f.must("a", get("k")); got != "kept" {
			t.Errorf("stored is %q", got)
		}
		f.handleAlarm(func(*thing, context.Context, object.AlarmInfo) error { panic(strings.Repeat("x", 5<<20)) })
		f.must("a", setAlarm(time.Second))
		pass(time.Hour)
		dead, err := lettersOf(f.host.DeadLetters(context.Background(), object.DeadLettersOptions{Limit: object.MaxPage}))
		if err != nil || len(dead) != 1 || len(dead[0].LastError) > 1024 || dead[0].Attempts != 7 {
			t.Fatalf("%d dead letters, %v", len(dead), err)
		}
		if got := f.must("a", get("k")); got != "kept" {
			t.Errorf("after the alarm stored is %q", got)
		}
	})
}

// A handler that writes or answers without bound is refused where the limits are,
// and nothing of it is stored. Proves S7.
func TestHandlersThatWriteWithoutBound(t *testing.T) {
	f := newFixture(t)
	f.options.MaxBatchBytes = 1 << 20
	f.open()
	defer f.close()
	f.must("a", put("k", "kept"))
	for name, write := range map[string]func(th *thing, ctx context.Context, n int) error{
		"keys": func(th *thing, ctx context.Context, n int) error {
			return th.st.Storage().PutBytes(ctx, fmt.Sprint(n), make([]byte, 1000))
		},
		"events": func(th *thing, ctx context.Context, n int) error { return th.st.Emit(ctx, "e", make([]byte, 1000)) },
		"marks": func(th *thing, ctx context.Context, n int) error {
			return th.st.Mark(ctx, fmt.Sprint(n), make([]byte, 1000), time.Hour)
		},
		"deletes": func(th *thing, ctx context.Context, n int) error {
			return th.st.Storage().Remove(ctx, strings.Repeat("k", 1000)+fmt.Sprint(n))
		},
	} {
		writes := 0
		_, err := f.call("a", func(th *thing, ctx context.Context) (any, error) {
			for ; writes < 10_000; writes++ {
				if err := write(th, ctx, writes); err != nil {
					return nil, err
				}
			}
			return nil, nil
		})
		if !errors.Is(err, object.ErrBatchTooLarge) || writes > 2000 {
			t.Errorf("%s: after %d writes: %v", name, writes, err)
		}
	}
	if got := f.must("a", get("k")); got != "kept" {
		t.Errorf("stored is %q", got)
	}
}

// hostile names are allowed; refused ones are not.
var (
	hostile = []string{"\x00", "a\x00b", "..", ".", "/", "a/b/../c", "\n", "\r\n\x1b[2J", "%s%d%!", "\u202e", "'\"`;--", strings.Repeat("n", storage.MaxNameBytes), "\U0010ffff", " "}
	refused = []string{"", "\xff\xfe", "a\xc3", strings.Repeat("n", storage.MaxNameBytes+1)}
)

// A name that is allowed works in each place that takes a name, and stays apart from all
// others. Any other name is refused in each place. Proves O1, O15 and S1.
func TestHostileNames(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		ctx := context.Background()
		f.handleAlarm(func(*thing, context.Context, object.AlarmInfo) error { return object.Permanent(errors.New("no")) })
		for _, name := range hostile {
			f.must(name, put(name, name))
			f.must(name, func(th *thing, ctx context.Context) (any, error) { return nil, th.st.Emit(ctx, name, name) })
			f.must(name, setAlarm(time.Second))
		}
		pass(time.Minute)
		f.close()
		f.open()
		defer f.close()
		listed, after := map[string]bool{}, ""
		for {
			page, err := f.host.Objects(ctx, "thing", object.ObjectsOptions{After: after, Limit: 3})
			if err != nil {
				t.Fatal(err)
			}
			if len(page) == 0 {
				break
			}
			for _, o := range page {
				listed[o.ID.Name], after = true, o.ID.Name
			}
		}
		dead, err := lettersOf(f.host.DeadLetters(ctx, object.DeadLettersOptions{Limit: object.MaxPage}))
		if err != nil || len(dead) != len(hostile) || len(listed) != len(hostile) {
			t.Fatalf("%d dead letters and %d objects for %d names, %v", len(dead), len(listed), len(hostile), err)
		}
		for _, d := range dead {
			in, err := f.host.Inspect(ctx, d.ID)
			if err != nil || len(in.Keys) != 1 || in.Keys[0].Key != d.ID.Name || f.stored(d.ID.Name, d.ID.Name) != d.ID.Name || len(in.DeadLetters) != 1 {
				t.Errorf("%q holds %+v, %v", d.ID.Name, in, err)
			}
			for e, err := range f.host.Watch(ctx, d.ID, 0) {
				if err != nil || e.Kind != d.ID.Name {
					t.Errorf("%q has event %+v, %v", d.ID.Name, e, err)
				}
				break
			}
			if err := f.host.ReplayDeadLetter(ctx, d.ID, d.Seq); err != nil {
				t.Errorf("replay %q: %v", d.ID.Name, err)
			}
			if err := f.host.DiscardDeadLetter(ctx, d.ID, d.Seq); !errors.Is(err, object.ErrNoDeadLetter) {
				t.Errorf("discard %q: %v", d.ID.Name, err)
			}
			if err := f.host.Delete(ctx, d.ID); err != nil {
				t.Errorf("delete %q: %v", d.ID.Name, err)
			}
			if in, err := f.host.Inspect(ctx, d.ID); err != nil || in.Exists {
				t.Errorf("%q after its deletion: %+v, %v", d.ID.Name, in, err)
			}
		}
		for _, name := range refused {
			refusedEverywhere(t, f, f.id(name))
		}
		for _, class := range []string{"", "\x00", "a/b", "\xff", strings.Repeat("c", 129)} {
			refusedEverywhere(t, f, storage.ID{Class: class, Name: "a"})
			if _, err := f.host.Objects(ctx, class, object.ObjectsOptions{Limit: 1}); !errors.Is(err, object.ErrBadName) {
				t.Errorf("objects of %q: %v", class, err)
			}
		}
	})
}

// refusedEverywhere gives a bad name to all that takes one.
func refusedEverywhere(t *testing.T, f *fixture, id storage.ID) {
	t.Helper()
	ctx, h := context.Background(), f.host
	_, inspectErr := h.Inspect(ctx, id)
	_, eventsErr := h.Events(ctx, id, 0, 1)
	_, bytesErr := h.CallBytes(ctx, id.Class, id.Name, "do", nil)
	var watchErr error
	for _, err := range h.Watch(ctx, id, 0) {
		watchErr = err
	}
	errs := map[string]error{
		"inspect": inspectErr, "events": eventsErr, "watch": watchErr, "delete": h.Delete(ctx, id), "wake": h.Wake(ctx, id),
		"replay": h.ReplayDeadLetter(ctx, id, 1), "discard": h.DiscardDeadLetter(ctx, id, 1),
	}
	if id.Class == "thing" {
		errs["call"], errs["call of bytes"] = func() error { _, err := f.call(id.Name, nothing); return err }(), bytesErr
	} else if bytesErr == nil {
		t.Errorf("%q: a call succeeds", id)
	}
	for what, err := range errs {
		if !errors.Is(err, object.ErrBadName) {
			t.Errorf("%s %.20q: %v", what, id, err)
		}
	}
}

// Bytes that the codec cannot decode are an error that names the key, and the object
// stays as it is. A mistake in the codec ends in the same way.
func TestWrongCodec(t *testing.T) {
	f := newFixture(t).open()
	f.must("a", put("k", "{not JSON"))
	decode := func(th *thing, ctx context.Context) (any, error) {
		var v int
		_, err := th.st.Storage().GetInto(ctx, "k", &v)
		if err != nil {
			_ = th.st.Storage().PutBytes(ctx, "k", []byte("lost"))
		}
		return nil, err
	}
	if _, err := f.call("a", decode); err == nil || !strings.Contains(err.Error(), `thing/a: decode key "k"`) {
		t.Errorf("decode: %v", err)
	}
	if _, err := f.call("a", func(th *thing, ctx context.Context) (any, error) {
		return nil, th.st.Storage().Put(ctx, "k", make(chan int))
	}); err == nil || !strings.Contains(err.Error(), `thing/a: encode key "k"`) {
		t.Errorf("encode: %v", err)
	}
	f.close()
	f.options.Codec = panicking{}
	f.open()
	defer f.close()
	if _, err := f.call("a", decode); !errors.Is(err, object.ErrPanic) {
		t.Errorf("a codec that panics: %v", err)
	}
	if got := f.stored("a", "k"); got != "{not JSON" {
		t.Errorf("stored is %q", got)
	}
	if _, err := f.call("a", nothing, object.Idempotent("key", 0)); err == nil {
		t.Error("an answer that makes the codec panic is given")
	}
	f.must("a", nothing)
}

type panicking struct{}

func (panicking) Encode(any) ([]byte, error) { panic("encode") }
func (panicking) Decode([]byte, any) error   { panic("decode") }

// The longest times neither overflow nor come early. Regression: marks and events
// with such a life had expired when they were made.
func TestLongestTimes(t *testing.T) {
	const forever = time.Duration(1<<63 - 1)
	f := newFixture(t)
	f.options.EventRetention, f.options.IdleAfter = forever, forever
	f.open()
	defer f.close()
	fired := atomic.Bool{}
	f.handleAlarm(func(*thing, context.Context, object.AlarmInfo) error { fired.Store(true); return nil })
	f.must("a", func(th *thing, ctx context.Context) (any, error) {
		if err := th.st.Emit(ctx, "e", nil); err != nil {
			return nil, err
		}
		if err := th.st.SetAlarm(ctx, time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC)); err != nil {
			return nil, err
		}
		return nil, th.st.Mark(ctx, "m", nil, forever)
	})
	_, marked := f.must("a", func(th *thing, ctx context.Context) (any, error) {
		_, ok, err := th.st.Marked(ctx, "m")
		return ok, err
	}).(bool)
	events, err := f.host.Events(context.Background(), f.id("a"), 0, 10)
	if !marked || err != nil || len(events) != 1 {
		t.Errorf("marked: %v; %d events, %v", marked, len(events), err)
	}
	calls := 0
	count := func(*thing, context.Context) (any, error) { calls++; return calls, nil }
	f.must("a", count, object.Idempotent("key", forever))
	f.must("a", count, object.Idempotent("key", forever))
	in, err := f.host.Inspect(context.Background(), f.id("a"))
	if calls != 1 || err != nil || in.Alarm == nil || in.Alarm.Due.Year() < 2262 || fired.Load() {
		t.Errorf("%d calls; alarm %+v, %v", calls, in.Alarm, err)
	}
}
