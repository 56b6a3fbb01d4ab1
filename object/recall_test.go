package object_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
)

// movedClock is the real clock, moved ahead by hand.
type movedClock struct {
	seam.Clock
	by atomic.Int64
}

func (c *movedClock) Now() time.Time { return c.Clock.Now().Add(time.Duration(c.by.Load())) }

// memories is an object and a model of the answers and marks that it must remember.
type memories struct {
	f     *fixture
	clock *movedClock
	bytes int64          // of the host's filters
	marks map[string]int // the value of each
	calls map[string]int // the answer under each idempotency key
	runs  int            // handlers that gave an answer
}

func newMemories(t *testing.T, bytes int64) *memories {
	m := &memories{f: newFixture(t), clock: &movedClock{Clock: seam.Seams{}.WithDefaults().Clock}, bytes: bytes}
	m.f.options.Seams.Clock = m.clock
	m.forget()
	m.open()
	return m
}

func (m *memories) open() {
	m.f.open()
	object.SetRecallBytes(m.f.host, m.bytes)
}

func (m *memories) forget() { m.marks, m.calls = map[string]int{}, map[string]int{} }

// check compares a mark, as a turn sees it, with the model.
func check(th *thing, ctx context.Context, want map[string]int, key string) error {
	v, ok, err := th.st.Marked(ctx, key)
	if err != nil {
		return err
	}
	if n, must := want[key]; ok != must || ok && string(v) != strconv.Itoa(n) {
		return fmt.Errorf("O16: mark %s is %q, %t, want %d, %t", key, v, ok, n, must)
	}
	return nil
}

var (
	errOnPurpose = errors.New("on purpose")
	markKeys     = rapid.Custom(func(t *rapid.T) string { return fmt.Sprint("m", rapid.IntRange(0, 150).Draw(t, "key")) })
)

// turn sets, removes and looks at marks, which stay if the turn ends well.
func (m *memories) turn(t *rapid.T) {
	end := rapid.SampledFrom([]string{"well", "well", "well", "error", "purge"}).Draw(t, "end")
	steps := rapid.SliceOfN(rapid.SampledFrom([]string{"mark", "mark", "many", "look", "look", "undone", "sync"}), 1, 8).Draw(t, "steps")
	keys := rapid.SliceOfN(markKeys, len(steps), len(steps)).Draw(t, "keys")
	ttls := rapid.SliceOfN(rapid.SampledFrom([]time.Duration{10 * time.Minute, 40 * time.Minute, time.Hour}), len(steps), len(steps)).Draw(t, "ttls")
	marks, kept := maps.Clone(m.marks), m.marks
	_, err := m.f.call("a", func(th *thing, ctx context.Context) (any, error) {
		set := func(key string, n int) error {
			set := th.st.Mark
			if _, ok := marks[key]; !ok && n%2 == 0 {
				set = th.st.Driver().MarkNew
			}
			marks[key] = n
			return set(ctx, key, []byte(strconv.Itoa(n)), ttls[n%len(ttls)])
		}
		for i, step := range steps {
			var err error
			switch key := keys[i]; step {
			case "mark":
				err = set(key, i)
			case "many":
				for n := range 50 {
					err = errors.Join(err, set(fmt.Sprint("m", n), i))
				}
			case "look":
				err = check(th, ctx, marks, key)
			case "undone":
				before := maps.Clone(marks)
				err = th.st.Storage().Transaction(ctx, func(ctx context.Context, _ *object.Storage) error {
					return errors.Join(set(key, 77), errOnPurpose)
				})
				marks = before
				if !errors.Is(err, errOnPurpose) {
					return nil, fmt.Errorf("undone: %v", err)
				}
				err = nil
			case "sync":
				err = th.st.Sync(ctx)
				kept = maps.Clone(marks)
			}
			if err != nil {
				return nil, err
			}
		}
		switch end {
		case "error":
			return nil, errOnPurpose
		case "purge":
			return nil, th.st.Driver().Purge(ctx)
		}
		return nil, nil
	})
	switch {
	case end == "error" && errors.Is(err, errOnPurpose):
		m.marks = kept
	case err != nil:
		t.Fatal(err)
	case end == "purge":
		m.forget()
	default:
		m.marks = marks
	}
}

// call makes a call with an idempotency key, which may be a repeat.
func (m *memories) call(t *rapid.T) {
	key := rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "key")
	lend := rapid.Bool().Draw(t, "lend")
	got, err := m.f.call("a", func(th *thing, ctx context.Context) (any, error) {
		if lend {
			if err := th.st.Release(ctx, func(context.Context) error { return nil }); err != nil {
				return 0, err
			}
		}
		m.runs++
		return float64(m.runs), nil
	}, object.Idempotent(key, time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	want, repeat := m.calls[key]
	if !repeat {
		want = m.runs
	}
	m.calls[key] = want
	if got != float64(want) {
		t.Fatalf("O16: call %s was answered with %v, want %d", key, got, want)
	}
}

// all looks at all marks in one turn.
func (m *memories) all(t *rapid.T) {
	_, err := m.f.call("a", func(th *thing, ctx context.Context) (any, error) {
		for n := range 151 {
			if err := check(th, ctx, m.marks, fmt.Sprint("m", n)); err != nil {
				return nil, err
			}
		}
		return nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Proves O16 beside a model: a mark or an answer is found exactly while it is stored,
// with and without memory for the filter, and whether the filter of its object is
// complete or not. That holds through failed turns, undone transactions, ends of the
// object, restarts, crashes and the end of its time.
func TestMarksFollowTheModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := newMemories(t, rapid.SampledFrom([]int64{0, 300, 2000, 1 << 20}).Draw(rt, "bytes"))
		defer func() { m.f.host.Shutdown(ended()) }()
		rt.Repeat(map[string]func(*rapid.T){
			"turn":  m.turn,
			"call":  m.call,
			"all":   m.all,
			"crash": func(*rapid.T) { m.f.crash(); m.open() },
			"close": func(*rapid.T) { m.f.close(); m.open() },
			"":      func(rt *rapid.T) { m.f.check(rt) },
			"late": func(*rapid.T) {
				m.clock.by.Add(int64(2 * time.Hour))
				m.forget()
			},
		})
	})
}

// The filters stay within their memory, and give it back when objects leave it.
func TestRecallBudget(t *testing.T) {
	const bytes, each = 64 << 10, 5000
	f := newFixture(t).open()
	object.SetRecallBytes(f.host, bytes)
	look := func(name string, n int) {
		f.must(name, func(th *thing, ctx context.Context) (any, error) {
			key := fmt.Sprint(n)
			_, ok, err := th.st.Marked(ctx, key)
			if ok {
				err = errors.Join(err, fmt.Errorf("mark %s of %s is there before it was set", key, name))
			}
			return nil, errors.Join(err, th.st.Mark(ctx, key, nil, time.Hour))
		})
	}
	most := int64(0)
	for n := range each {
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			look(name, n)
		}
		used := object.RecallBytes(f.host)
		most = max(most, used)
		if used < 0 || used > bytes {
			t.Fatalf("the filters take %d bytes of %d", used, bytes)
		}
	}
	if most < bytes/4 {
		t.Errorf("the filters took %d bytes of %d at most", most, bytes)
	}
	host := f.host
	f.close()
	if used := object.RecallBytes(host); used != 0 {
		t.Errorf("%d bytes are taken when no object is in memory", used)
	}
}

// Proves O16: an activation that finds more marks than it reads at once knows all
// of them, from the first look on.
func TestManyMarksAfterARestart(t *testing.T) {
	m := newMemories(t, 1<<20)
	for n := range 150 {
		m.marks[fmt.Sprint("m", n)] = n
	}
	m.f.must("a", func(th *thing, ctx context.Context) (any, error) {
		for key, n := range m.marks {
			if err := th.st.Mark(ctx, key, []byte(strconv.Itoa(n)), time.Hour); err != nil {
				return nil, err
			}
		}
		return nil, nil
	})
	m.f.crash()
	m.open()
	m.f.must("a", func(th *thing, ctx context.Context) (any, error) {
		keys := slices.Sorted(maps.Keys(m.marks))
		for _, key := range slices.Backward(keys) { // the host reads them from the first on, in pieces
			if err := check(th, ctx, m.marks, key); err != nil {
				return nil, err
			}
		}
		return nil, check(th, ctx, m.marks, "m150")
	})
	m.f.close()
}

// A mark that a turn has set is found by the turn, also if it is the first look
// at any.
func TestMarkIsFoundByItsTurn(t *testing.T) {
	f := newFixture(t).open()
	defer f.close()
	for _, name := range []string{"a", "a"} { // fresh, then stored
		f.must(name, func(th *thing, ctx context.Context) (any, error) {
			for _, key := range []string{"x", "y"} {
				if err := th.st.Mark(ctx, key, []byte("v"), time.Hour); err != nil {
					return nil, err
				}
				for range 3 {
					if v, ok, err := th.st.Marked(ctx, key); !ok || err != nil || !slices.Equal(v, []byte("v")) {
						return nil, fmt.Errorf("mark %s is %q, %t, %v", key, v, ok, err)
					}
				}
			}
			return nil, nil
		})
	}
}

// Proves O16: a mark that is set again for a shorter time, and so in an earlier
// bucket, takes the place of the old one.
func TestMarkSetAgainForAShorterTime(t *testing.T) {
	f := newFixture(t).open()
	defer f.close()
	for _, ttl := range []time.Duration{10 * time.Hour, 10 * time.Minute} {
		f.must("a", func(th *thing, ctx context.Context) (any, error) {
			return nil, th.st.Mark(ctx, "m", []byte(ttl.String()), ttl)
		})
	}
	f.must("a", func(th *thing, ctx context.Context) (any, error) {
		v, ok, err := th.st.Marked(ctx, "m")
		if string(v) != "10m0s" || !ok {
			t.Errorf("O16: the mark is %q, %t, %v", v, ok, err)
		}
		return nil, err
	})
}

// Proves O16: after a turn that failed, the object does not take the bucket of the turn's
// mark for one in the expiry index. Closing checks the store.
func TestMarkAfterATurnThatFailed(t *testing.T) {
	f := newFixture(t).open()
	defer f.close()
	f.must("a", func(th *thing, ctx context.Context) (any, error) { return nil, th.st.Storage().Put(ctx, "k", 1) })
	f.call("a", func(th *thing, ctx context.Context) (any, error) {
		return nil, errors.Join(th.st.Mark(ctx, "x", nil, time.Hour), errOnPurpose)
	})
	f.must("a", func(th *thing, ctx context.Context) (any, error) { return nil, th.st.Mark(ctx, "y", nil, time.Hour) })
}

// A call ends its goroutine while a repeat waits for it. The repeat then runs in its
// place.
func TestRepeatOfACallThatNeverEnds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		var wg sync.WaitGroup
		key, ended := object.Idempotent("k", time.Hour), make(chan struct{})
		f.must("a", func(*thing, context.Context) (any, error) { return nil, nil }) // constructed: a caller runs its turn itself
		wg.Go(func() {
			f.call("a", func(th *thing, ctx context.Context) (any, error) {
				return nil, th.st.Release(ctx, func(context.Context) error {
					<-ended
					runtime.Goexit()
					return nil
				})
			}, key)
		})
		synctest.Wait()
		var got any
		wg.Go(func() {
			got = f.must("a", func(*thing, context.Context) (any, error) { return "second", nil }, key)
		})
		synctest.Wait()
		close(ended)
		wg.Wait()
		if got != "second" {
			t.Errorf("the repeat got %v", got)
		}
		f.close()
	})
}
