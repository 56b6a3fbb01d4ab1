package object_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/object"
)

// say emits events that are numbered from a number on.
func say(from, n int) action {
	return func(th *thing, ctx context.Context) (any, error) {
		for i := range n {
			if err := th.st.Emit(ctx, "said", from+i); err != nil {
				return nil, err
			}
		}
		return nil, nil
	}
}

// listen begins a tap, which ends with the test.
func (f *fixture) listen(o object.TapOptions) *object.Tap {
	f.t.Helper()
	tap, err := f.host.Tap(o)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(tap.Close)
	return tap
}

// hear takes n events, and returns them as object=payload.
func hear(t *testing.T, tap *object.Tap, n int) (said []string, cursors []uint64) {
	t.Helper()
	for len(said) < n {
		events, err := tap.Next(context.Background())
		if err != nil {
			t.Fatalf("after %q: %v", said, err)
		}
		for _, e := range events {
			said = append(said, fmt.Sprintf("%s=%s", e.ID.Name, e.Data))
			cursors = append(cursors, e.Cursor)
		}
	}
	return said, cursors
}

func wantSaid(t *testing.T, got []string, want ...string) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("V7: got %q, want %q", got, want)
	}
}

// A tap gives the events of all objects, of a class or of one object, each once and in order,
// and a later one goes on where it was. Proves V7.
func TestTap(t *testing.T) { bubble(t, testTap) }

func testTap(t *testing.T) {
	f := newFixture(t).open()
	defer f.close()
	f.must("a", say(1, 1)) // before anyone listens
	all, class := f.listen(object.TapOptions{}), f.listen(object.TapOptions{Class: "thing"})
	one, none := f.listen(object.TapOptions{Class: "thing", Name: "a"}), f.listen(object.TapOptions{Class: "other"})
	f.must("a", say(2, 2))
	f.must("b", say(1, 1))
	f.must("a", say(4, 1))
	for _, tap := range []*object.Tap{all, class} {
		said, cursors := hear(t, tap, 4)
		wantSaid(t, said, "a=2", "a=3", "b=1", "a=4")
		if tap.Cursor() != cursors[3] {
			t.Errorf("the cursor is %d, that of the last event %d", tap.Cursor(), cursors[3])
		}
		back := f.listen(object.TapOptions{Class: "thing", After: cursors[1]})
		said, _ = hear(t, back, 2)
		wantSaid(t, said, "b=1", "a=4")
	}
	said, cursors := hear(t, one, 4)
	wantSaid(t, said, "a=1", "a=2", "a=3", "a=4")
	stored, err := f.host.Events(t.Context(), f.id("a"), cursors[0], 10)
	if err != nil || len(stored) != 3 || stored[0].Seq != cursors[1] || one.Cursor() != stored[2].Seq {
		t.Errorf("the cursors %d are not the sequence numbers of %+v, %v", cursors, stored, err)
	}
	said, _ = hear(t, f.listen(object.TapOptions{Class: "thing", Name: "a", After: cursors[1]}), 2)
	wantSaid(t, said, "a=3", "a=4")
	f.must("a", say(5, 1))
	said, _ = hear(t, one, 1)
	wantSaid(t, said, "a=5")

	// A wait that has ended leaves the tap as it was.
	ended, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if got, err := none.Next(ended); len(got) > 0 || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the tap to another class got %v, %v", got, err)
	}
	if got, err := one.Next(ended); len(got) > 0 || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a context that has ended: %v, %v", got, err)
	}
	f.must("a", say(6, 1))
	said, _ = hear(t, one, 1)
	wantSaid(t, said, "a=6")
	if _, err := f.call("a", func(th *thing, ctx context.Context) (any, error) {
		return nil, errors.Join(th.st.Emit(ctx, "said", 7), errors.New("no"))
	}); err == nil {
		t.Error("the turn has not failed")
	}
	f.must("a", func(th *thing, ctx context.Context) (any, error) {
		_ = th.st.Storage().Transaction(ctx, func(ctx context.Context, _ *object.Storage) error {
			return errors.Join(th.st.Emit(ctx, "said", 8), errors.New("no"))
		})
		return nil, th.st.Emit(ctx, "said", 9)
	})
	said, _ = hear(t, one, 1)
	wantSaid(t, said, "a=9")
}

// A tap to one object that is behind reads the store, for as long as the store has the event at
// its cursor, and says so if not. Proves V7.
func TestTapOfAnObjectThatIsBehind(t *testing.T) { bubble(t, testTapBehind) }

func testTapBehind(t *testing.T) {
	f := newFixture(t)
	f.options.EventRetention = time.Hour
	f.open()
	defer f.close()
	id := object.TapOptions{Class: "thing", Name: "a"}
	f.must("a", say(1, 1))
	tap := f.listen(id)
	_, cursors := hear(t, tap, 1)
	const many = 3000 // more than memory keeps for taps to objects
	for from := 2; from <= many; from += 100 {
		f.must("a", say(from, min(100, many-from+1)))
	}
	said, more := hear(t, tap, many-1)
	for i, s := range said {
		if s != fmt.Sprintf("a=%d", i+2) {
			t.Fatalf("V7: event %d is %q", i+2, s)
		}
	}
	id.After = more[len(more)-1]
	time.Sleep(time.Hour - time.Minute)
	if _, err := f.listen(id).Next(ctxOf(t, time.Second)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("V7: the event at the cursor is stored, and Next returns %v", err)
	}
	time.Sleep(10 * time.Minute) // the events expire
	f.must("a", say(many+1, 1))
	for _, after := range []uint64{cursors[0], id.After, 1} {
		id.After = after
		if _, err := f.listen(id).Next(ctxOf(t, time.Second)); !errors.Is(err, object.ErrEventsMissed) {
			t.Errorf("V7: behind %d, which has expired: %v", after, err)
		}
	}
	said, _ = hear(t, tap, 1) // it is there all the time
	wantSaid(t, said, fmt.Sprintf("a=%d", many+1))
	for e, err := range f.host.Watch(t.Context(), f.id("a"), cursors[0]) { // Watch goes on with what there is
		if err != nil || string(e.Data) != fmt.Sprint(many+1) {
			t.Errorf("Watch: %+v, %v", e, err)
		}
		break
	}
}

func ctxOf(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// A cursor of an earlier process, of a ring that has ended, or of another tap is told of a gap.
// Proves V7.
func TestTapCursorOfAnotherProcess(t *testing.T) { bubble(t, testTapOther) }

func testTapOther(t *testing.T) {
	f := newFixture(t).open()
	tap := f.listen(object.TapOptions{})
	f.must("a", say(1, 1))
	hear(t, tap, 1)
	place := tap.Cursor()
	f.close()
	f.open()
	defer f.close()
	missed := func(after uint64) {
		t.Helper()
		tap := f.listen(object.TapOptions{After: after})
		for range 2 {
			if _, err := tap.Next(ctxOf(t, time.Second)); !errors.Is(err, object.ErrEventsMissed) {
				t.Errorf("V7: the cursor %d: %v", after, err)
			}
		}
		tap.Close()
	}
	missed(place)
	tap = f.listen(object.TapOptions{})
	place = tap.Cursor()
	f.must("a", say(2, 1))
	tap.Close()
	time.Sleep(30 * time.Second)
	f.must("a", say(3, 1))
	tap = f.listen(object.TapOptions{After: place})
	said, _ := hear(t, tap, 2)
	wantSaid(t, said, "a=2", "a=3")
	tap.Close()
	time.Sleep(time.Minute + time.Second)
	f.must("a", say(4, 1))
	missed(place)
	missed(^uint64(0))
}

// Proves V8: no tap gives an event before its commit is durable.
func TestTapWaitsForTheDisk(t *testing.T) { bubble(t, testTapWaits) }

func testTapWaits(t *testing.T) {
	f := newFixture(t)
	d := f.slow()
	f.open()
	defer f.close()
	taps := []*object.Tap{f.listen(object.TapOptions{}), f.listen(object.TapOptions{Class: "thing", Name: "a"})}
	f.must("a", say(1, 1))
	for _, tap := range taps {
		hear(t, tap, 1)
	}
	d.hold.Store(true)
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { f.must("a", say(2, 1)) })
	synctest.Wait()
	var early sync.WaitGroup
	for _, tap := range append(taps, f.listen(object.TapOptions{Class: "thing", Name: "a"})) {
		early.Go(func() {
			for ctx := ctxOf(t, 2*time.Second); ctx.Err() == nil; {
				if events, _ := tap.Next(ctx); len(events) > 0 && d.hold.Load() {
					t.Errorf("V8: the tap gave %s before its commit was durable", events[0].Data)
				}
			}
		})
	}
	time.Sleep(3 * time.Second)
	d.hold.Store(false)
	close(d.gate)
	early.Wait()
}

// A tap ends with its host, and refuses names that no object has. Close leaves nothing. Proves V9.
func TestTapEnds(t *testing.T) { bubble(t, testTapEnds) }

func testTapEnds(t *testing.T) {
	f := newFixture(t).open()
	for _, o := range []object.TapOptions{{Name: "a"}, {Class: "a/b"}, {Class: "thing", Name: "\xff"}} {
		if _, err := f.host.Tap(o); !errors.Is(err, object.ErrBadName) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	before := object.Watched(f.host)
	for _, o := range []object.TapOptions{{}, {Class: "thing"}, {Class: "thing", Name: "a"}} {
		tap := f.listen(o)
		tap.Close()
		tap.Close()
	}
	if n := object.Watched(f.host); n != before {
		t.Errorf("V9: %d objects and classes have listeners, %d before", n, before)
	}
	var wg sync.WaitGroup
	for _, o := range []object.TapOptions{{}, {Class: "thing"}, {Class: "thing", Name: "a"}} {
		tap := f.listen(o)
		wg.Go(func() {
			if _, err := tap.Next(context.Background()); !errors.Is(err, object.ErrShutdown) {
				t.Errorf("%+v: %v", o, err)
			}
		})
	}
	synctest.Wait()
	f.close()
	wg.Wait()
	tap, err := f.host.Tap(object.TapOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tap.Next(context.Background()); !errors.Is(err, object.ErrShutdown) {
		t.Errorf("after Shutdown: %v", err)
	}
}

// A batch ends with the event that reaches BatchBytes, from the store and from memory, and no event
// is missed. An event that is larger than the bound is a batch too, and a place to come back to. Proves V7.
func TestTapBatchBytes(t *testing.T) { bubble(t, testTapBatchBytes) }

func testTapBatchBytes(t *testing.T) {
	f := newFixture(t).open()
	defer f.close()
	const n, bytes = 7, 5000
	all := f.listen(object.TapOptions{BatchBytes: bytes})
	f.must("a", func(th *thing, ctx context.Context) (any, error) {
		for i := range n {
			size := []int{2 * bytes, 10, bytes, 10, 10, 2 * bytes, 10}[i]
			if err := th.st.Emit(ctx, "said", strings.Repeat(fmt.Sprint(i), size-2)); err != nil { // JSON has two quotes
				return nil, err
			}
		}
		return nil, nil
	})
	drain := func(tap *object.Tap, from int) (batches []string, cursors []uint64) {
		for len(cursors) < n-from {
			events, err := tap.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			batch := ""
			for _, e := range events {
				batch += string(e.Data[1])
				cursors = append(cursors, e.Cursor)
			}
			batches = append(batches, batch)
		}
		return batches, cursors
	}
	memory, _ := drain(all, 0)
	wantSaid(t, memory, "0", "12", "345", "6")
	one := object.TapOptions{Class: "thing", Name: "a", BatchBytes: bytes}
	stored, cursors := drain(f.listen(one), 0)
	wantSaid(t, stored, "012", "345", "6")
	one.After = cursors[0]
	stored, _ = drain(f.listen(one), 1)
	wantSaid(t, stored, "12", "345", "6")
	one.After, one.BatchBytes = 0, 0
	stored, _ = drain(f.listen(one), 0)
	wantSaid(t, stored, "0123456")
	one.BatchBytes = -1
	if _, err := f.host.Tap(one); err == nil || !strings.Contains(err.Error(), "BatchBytes") {
		t.Errorf("BatchBytes below 0: %v", err)
	}
}
