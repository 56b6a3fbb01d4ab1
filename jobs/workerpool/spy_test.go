package workerpool_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/engine"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// spy is an engine that notes the calls of it.
type spy struct {
	engine.Engine
	mu      sync.Mutex
	gets    [][]byte
	ranges  [][]byte // where iterators begin
	commits int
}

func (s *spy) Get(key []byte) ([]byte, io.Closer, error) {
	s.mu.Lock()
	s.gets = append(s.gets, bytes.Clone(key))
	s.mu.Unlock()
	return s.Engine.Get(key)
}

func (s *spy) NewIter(lower, upper []byte) (engine.Iterator, error) {
	s.mu.Lock()
	s.ranges = append(s.ranges, bytes.Clone(lower))
	s.mu.Unlock()
	return s.Engine.NewIter(lower, upper)
}

func (s *spy) Apply(repr []byte) error {
	s.mu.Lock()
	s.commits++
	s.mu.Unlock()
	return s.Engine.Apply(repr)
}

// reads is how many single rows with the prefix were read.
func (s *spy) reads(prefix string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range s.gets {
		if i := len(key) - len(prefix) - 8; i >= 0 && strings.HasPrefix(string(key[i:]), prefix) {
			n++
		}
	}
	return n
}

// last is where the last iterator over rows with a prefix begins, from the prefix on.
func (s *spy) last(prefix string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.ranges) - 1; i >= 0; i-- {
		if at := bytes.LastIndex(s.ranges[i], []byte(prefix)); at >= 0 {
			return string(s.ranges[i][at:])
		}
	}
	return ""
}

// during counts the commits of f and of the turns that it sets off.
func (s *spy) during(f func()) int {
	synctest.Wait()
	before := s.commits
	f()
	synctest.Wait()
	return s.commits - before
}

// spied opens a host over a spy. It is shut down with the test.
func spied(t *testing.T, mem *memstore.Store, o object.Options, p *pool) (*object.Host, *spy) {
	t.Helper()
	s := &spy{Engine: mem}
	o.Storage, o.Logger = storage.Options{Engine: s, Shards: 1}, slog.New(slog.DiscardHandler)
	h, err := object.Open(o, p)
	if err != nil {
		t.Fatal(err)
	}
	return h, s
}

// Tasks with rows that are not in memory are read several at a time if at least 8 of them
// lie within 128 numbers: at most 64 tasks, and 64 KiB. A task with an input of more than
// 512 bytes is read again when it begins. The first task is also read for the metrics.
func TestTasksAreReadAhead(t *testing.T) {
	first := func(n int) func(i int) bool { return func(i int) bool { return i <= n } }
	also := func(n, more int) func(i int) bool { return func(i int) bool { return i <= n || i == more } }
	from := func(n int) func(i int) bool { return func(i int) bool { return i > n } }
	small := func(int) int { return 4 }
	for _, c := range []struct {
		name  string
		tasks int
		keep  func(i int) bool // of the tasks from 1
		size  func(i int) int  // of their inputs, as they are stored
		reads int
	}{
		{"7 tasks", 7, first(7), small, 8},
		{"8 tasks", 8, first(8), small, 0},
		{"64 tasks", 64, first(64), small, 0},
		{"65 tasks", 65, first(65), small, 1},
		{"71 tasks", 71, first(71), small, 7},
		{"72 tasks", 72, first(72), small, 0},
		{"the 128th number", 130, also(7, 128), small, 0},
		{"the 129th number", 130, also(7, 129), small, 9},
		{"high numbers", 308, from(300), small, 0},
		{"inputs of 512 bytes", 8, first(8), func(int) int { return 512 }, 0},
		{"inputs of 513 bytes", 8, first(8), func(int) int { return 513 }, 9},
		{"one input of 513 bytes", 8, first(8), func(i int) int { return 4 + i/8*509 }, 1},
		{"64 KiB", 8, first(8), func(i int) int { return []int{0, 65338, 4, 4, 4, 4, 4, 4, 4}[i] }, 2},
		{"a byte more", 8, first(8), func(i int) int { return []int{0, 65339, 4, 4, 4, 4, 4, 4, 4}[i] }, 3},
	} {
		synctest.Test(t, func(t *testing.T) {
			mem := memstore.New()
			p := workerpool.New(config{Name: "tasks", Concurrency: 1000, Retention: jobs.Retention{Completed: workerpool.AtOnce, Cancelled: workerpool.AtOnce}})
			h, _ := spied(t, mem, object.Options{}, p)
			total, kept := 0, 0
			for i := 1; i <= c.tasks; i++ {
				id := must(p.Enqueue(ctx, h, strings.Repeat("x", c.size(i)-2))).ID
				if !c.keep(i) {
					must(p.Cancel(ctx, h, id))
				} else {
					kept++
				}
			}
			if err := h.Shutdown(ctx); err != nil {
				t.Fatal(err)
			}
			mem = rewrite(t, mem.Crash(0), func(all rows) {
				for key, value := range all {
					if strings.HasPrefix(key, "t/") {
						total += len(value)
					}
				}
			})
			h, s := spied(t, mem, object.Options{}, p)
			got := must(p.Claim(ctx, h, 1000, 0))
			if reads := s.reads("t/"); len(got) != kept || reads != c.reads {
				t.Errorf("%s, %d bytes: %d are claimed with %d single reads, want %d with %d", c.name, total, len(got), reads, kept, c.reads)
			}
			if err := h.Shutdown(ctx); err != nil {
				t.Error(err)
			}
		})
	}
}

// A look at a key begins at the first task of the key, so as not to pass by ended tasks.
// The partition remembers that place for 4,096 keys, and then begins anew.
func TestLooksAtKeysBeginAtTheFirstTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := workerpool.New(config{Name: "tasks", Retention: jobs.Retention{Completed: workerpool.AtOnce, Cancelled: workerpool.AtOnce}})
		h, s := spied(t, memstore.New(), object.Options{}, p)
		add := func(key string) workerpool.TaskID { return must(p.Enqueue(ctx, h, "", workerpool.Key(key))).ID }
		look := func(key string) string {
			add(key)
			return s.last("k/" + string(rune(len(key))) + key)
		}
		a := add("a")
		add("a")
		if got := look("a"); got != numbered("k/\x01a", 1) {
			t.Errorf("a look at a key with tasks from 1 begins at %q", got)
		}
		must(p.Cancel(ctx, h, a))
		if got := look("a"); got != numbered("k/\x01a", 2) {
			t.Errorf("a look at a key with tasks from 2 begins at %q", got)
		}
		var items []workerpool.Item[string]
		for i := range 4094 {
			items = append(items, item("", workerpool.Key(fmt.Sprint(i))))
		}
		zero := must(p.EnqueueBatch(ctx, h, items))[0].ID.Number
		if got := look("a"); got != numbered("k/\x01a", 2) {
			t.Errorf("of 4,095 keys a look at the first begins at %q", got)
		}
		add("b")
		if got := look("0"); got != numbered("k/\x010", zero-1) { // the last task before its first
			t.Errorf("of 4,096 keys a look at the second begins at %q", got)
		}
		if got := look("a"); got != numbered("k/\x01a", 0) {
			t.Errorf("after a further look a look at the first begins at %q", got)
		}
		if got := look("0"); got != numbered("k/\x010", zero) {
			t.Errorf("the key that was looked at last is forgotten too: %q", got)
		}
		if err := h.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
}

// dead makes dead letters. It returns the bytes of each: those that a call by name
// reckons with, and those that are stored.
func dead(t *testing.T, mem *memstore.Store, n int) (after *memstore.Store, ids []workerpool.TaskID, named, stored int) {
	t.Helper()
	const cause = "a cause of twenty-one"
	p := workerpool.New(config{Name: "tasks", Concurrency: 100, Queues: map[string]int{"queue": 1}, Retry: jobs.Retry{MaxAttempts: 2, Backoff: jobs.Constant(0)}})
	h, _ := spied(t, mem, object.Options{}, p)
	input := strings.Repeat("x", 700)
	for i := range n {
		ids = append(ids, must(p.Enqueue(ctx, h, input, workerpool.Queue("queue"), workerpool.Key(fmt.Sprint("key", i)), workerpool.Unique(fmt.Sprint("unique", i)))).ID)
	}
	for range 2 {
		for _, c := range must(p.Claim(ctx, h, 100, 0)) {
			if err := p.Nack(ctx, h, c.Lease, errors.New(cause)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := h.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	after = rewrite(t, mem.Crash(0), func(all rows) {
		for key, value := range all {
			if strings.HasPrefix(key, "z/") {
				stored = len(value)
			}
		}
	})
	return after, ids, len(input) + 2 + len("queue") + len("key0") + 2*len("unique0") + 2*len(cause), stored
}

// Proves W6: dead letters are replayed and discarded in as few turns as fit. A turn takes
// named letters until they are more than a quarter of a batch. If all letters are meant,
// a turn takes as many as are at most a quarter of a batch.
func TestTurnsOfDeadLetters(t *testing.T) {
	const letters = 6
	replay := func(p *pool, h *object.Host, ids []workerpool.TaskID) (int, error) { return p.Replay(ctx, h, ids...) }
	replayAll := func(p *pool, h *object.Host, _ []workerpool.TaskID) (int, error) { return p.ReplayAll(ctx, h) }
	discard := func(p *pool, h *object.Host, ids []workerpool.TaskID) (int, error) {
		return p.DiscardDead(ctx, h, ids...)
	}
	for _, c := range []struct {
		name  string
		limit func(named, stored int) int
		use   func(p *pool, h *object.Host, ids []workerpool.TaskID) (int, error)
		turns int
	}{
		{"Replay of two and one", func(n, _ int) int { return 2 * n }, replay, 2},
		{"Replay of two", func(n, _ int) int { return 2*n - 1 }, replay, 3},
		{"DiscardDead of two and one", func(n, _ int) int { return 2 * n }, discard, 2},
		{"DiscardDead of two", func(n, _ int) int { return 2*n - 1 }, discard, 3},
		{"ReplayAll of two", func(_, s int) int { return 2 * s }, replayAll, 3},
		{"ReplayAll of one", func(_, s int) int { return 2*s - 1 }, replayAll, 6},
		{"ReplayAll of three", func(_, s int) int { return 3 * s }, replayAll, 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			mem, ids, named, stored := dead(t, memstore.New(), letters)
			p := workerpool.New(config{Name: "tasks", Queues: map[string]int{"queue": 1}})
			h, s := spied(t, mem, object.Options{MaxBatchBytes: 4 * c.limit(named, stored)}, p)
			must(p.Stats(ctx, h))
			turns := s.during(func() {
				if n, err := c.use(p, h, ids); n != letters || err != nil {
					t.Errorf("%s: %d letters, %v", c.name, n, err)
				}
			})
			if turns != c.turns {
				t.Errorf("%s: %d letters of %d (%d stored) bytes are taken in %d turns, want %d", c.name, letters, named, stored, turns, c.turns)
			}
			if err := h.Shutdown(ctx); err != nil {
				t.Error(err)
			}
		})
	}
}

// Proves W7: tasks are discarded in as few turns as fit. A turn drops tasks up to a
// quarter of a batch, and reckons with 400 bytes for the other rows of each task.
func TestTurnsOfDiscard(t *testing.T) {
	for _, c := range []struct {
		name  string
		limit func(stored int) int
		turns int
	}{
		{"two", func(s int) int { return 2 * (400 + s) }, 3},
		{"one", func(s int) int { return 2*(400+s) - 1 }, 6},
		{"three", func(s int) int { return 3 * (400 + s) }, 2},
		{"six", func(s int) int { return 6 * (400 + s) }, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			mem, stored := memstore.New(), 0
			p := workerpool.New(config{Name: "tasks"})
			h, _ := spied(t, mem, object.Options{}, p)
			for range 6 {
				must(p.Enqueue(ctx, h, strings.Repeat("x", 900)))
			}
			if err := h.Shutdown(ctx); err != nil {
				t.Fatal(err)
			}
			mem = rewrite(t, mem.Crash(0), func(all rows) { stored = len(all[numbered("t/", 1)]) })
			h, s := spied(t, mem, object.Options{MaxBatchBytes: 4 * c.limit(stored)}, p)
			must(p.Stats(ctx, h))
			turns := s.during(func() {
				if n := must(p.Discard(ctx, h)); n != 6 {
					t.Errorf("%d are discarded", n)
				}
			})
			if turns != c.turns {
				t.Errorf("%s at a time: %d turns, want %d", c.name, turns, c.turns)
			}
			if err := h.Shutdown(ctx); err != nil {
				t.Error(err)
			}
		})
	}
}
