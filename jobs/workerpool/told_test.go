package workerpool_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/internal/testing/loglines"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// The answers of a pool about its tasks, field by field.

func same(t *testing.T, name string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s:\n%+v\nwant\n%+v", name, got, want)
	}
}

// Proves W1, W6: the status of a task tells all of it in each state, and no more.
func TestStatusInEachState(t *testing.T) {
	p := workerpool.New(config{Name: "tasks", Concurrency: 1, Queues: map[string]int{"q": 1}, Retry: jobs.Retry{MaxAttempts: 2, Backoff: jobs.Constant(time.Minute)}})
	inBubble(t, p, func(t *testing.T, h *object.Host, log *loglines.Recorder) {
		begin := time.Now()
		id := must(p.Enqueue(ctx, h, "a", workerpool.Key("k"), workerpool.Queue("q"), workerpool.Priority(-7), workerpool.Delay(time.Minute))).ID
		later := must(p.Enqueue(ctx, h, "b")).ID
		look := func(name string, want workerpool.Status[string]) {
			t.Helper()
			want.ID, want.Key, want.Queue, want.Priority, want.Enqueued = id, "k", "q", -7, begin
			same(t, name, must(p.Status(ctx, h, id)), want)
		}
		claim := func(n int) workerpool.Claim[string] {
			t.Helper()
			got := must(p.Claim(ctx, h, 9, 0))
			if len(got) != n {
				t.Fatalf("%d are claimed, want %d", len(got), n)
			}
			return got[0]
		}
		same(t, "plain", must(p.Status(ctx, h, later)), workerpool.Status[string]{ID: later, Enqueued: begin})
		look("delayed", workerpool.Status[string]{NotBefore: begin.Add(time.Minute)})
		first := claim(1)
		same(t, "the only claim", first.Task.In, "b")
		same(t, "its lease", first.Lease, workerpool.Lease{ID: later, Token: first.Token, Until: begin.Add(30 * time.Second).UTC()})
		if got := must(p.Claim(ctx, h, 9, 0)); len(got) != 0 {
			t.Errorf("W3: one more is claimed: %+v", got)
		}
		if err := p.Ack(ctx, h, first.Lease, "out"); err != nil {
			t.Error(err)
		}
		same(t, "done", must(p.Status(ctx, h, later)), workerpool.Status[string]{ID: later, State: workerpool.Done, Enqueued: begin, Attempt: 1, Ended: begin, Result: "out"})

		time.Sleep(time.Minute)
		lease := claim(1)
		task := lease.Task
		same(t, "the task", []any{task.ID, task.Key, task.Queue, task.Priority, task.Attempt, task.OutsideKey, task.Enqueued, task.In},
			[]any{id, "k", "q", -7, 1, "tasks/0-1", begin, "a"})
		look("running", workerpool.Status[string]{State: workerpool.Running, Attempt: 1})
		failed := time.Now()
		if err := p.Nack(ctx, h, lease.Lease, errors.New("no")); err != nil {
			t.Error(err)
		}
		failures := []workerpool.Failure{{Attempt: 1, At: failed.UTC(), Error: "no"}}
		look("waits for its retry", workerpool.Status[string]{NotBefore: failed.Add(time.Minute), Attempt: 1, Failures: failures})
		time.Sleep(time.Minute)
		lease = claim(1)
		same(t, "the second attempt", []any{lease.Task.Attempt, lease.Task.OutsideKey}, []any{2, "tasks/0-1"})
		if s := must(p.Cancel(ctx, h, id)); s != workerpool.Running {
			t.Errorf("Cancel says %v", s)
		}
		look("cancelling", workerpool.Status[string]{State: workerpool.Running, Attempt: 2, Failures: failures, Cancelling: true})
		if err := p.Nack(ctx, h, lease.Lease, errors.New("never")); err != nil {
			t.Error(err)
		}
		ended := time.Now()
		failures = append(failures, workerpool.Failure{Attempt: 2, At: ended.UTC(), Error: "never"})
		look("cancelled", workerpool.Status[string]{State: workerpool.Cancelled, NotBefore: failed.Add(time.Minute), Attempt: 2, Failures: failures, Cancelling: true, Ended: ended})
		same(t, "stats", must(p.Stats(ctx, h)), workerpool.Stats{
			Submitted: 2, Done: 1, Cancelled: 1, Executions: 3, Partitions: []workerpool.Stats{{Submitted: 2, Done: 1, Cancelled: 1, Executions: 3}},
		})
	})
}

// Proves W6: a dead letter has all fields of its task. After a replay the attempts count
// on, in the log too.
func TestDeadLetterInFull(t *testing.T) {
	p := workerpool.New(config{Name: "tasks", Queues: map[string]int{"q": 1}, Retry: jobs.Retry{MaxAttempts: 1}})
	inBubble(t, p, func(t *testing.T, h *object.Host, log *loglines.Recorder) {
		id := must(p.Enqueue(ctx, h, "a", workerpool.Key("k"), workerpool.Queue("q"), workerpool.Priority(7))).ID
		begin := time.Now()
		fail := func() {
			t.Helper()
			for _, c := range must(p.Claim(ctx, h, 9, 0)) {
				if err := p.Nack(ctx, h, c.Lease, errors.New("no")); err != nil {
					t.Error(err)
				}
			}
		}
		fail()
		letter := workerpool.DeadLetter[string]{
			ID: id, Key: "k", Queue: "q", Priority: 7, In: "a", Failures: []workerpool.Failure{{Attempt: 1, At: begin.UTC(), Error: "no"}}, Reason: jobs.ReasonAttempts, Died: begin,
		}
		same(t, "the letter", must(p.DeadLetters(ctx, h, workerpool.TaskID{}, 10)), []workerpool.DeadLetter[string]{letter})
		time.Sleep(time.Minute)
		must(p.Replay(ctx, h, id))
		info := must(p.Status(ctx, h, id))
		same(t, "replayed", info, workerpool.Status[string]{ID: id, Key: "k", Queue: "q", Priority: 7, Enqueued: begin, Attempt: 1, Failures: letter.Failures})
		fail()
		letter.Died = time.Now()
		letter.Failures = append(letter.Failures, workerpool.Failure{Attempt: 2, At: letter.Died.UTC(), Error: "no"})
		same(t, "the second letter", must(p.DeadLetters(ctx, h, workerpool.TaskID{}, 10)), []workerpool.DeadLetter[string]{letter})
		equal(t, "log", log.Text(slog.LevelInfo), "ERROR run given up class=tasks object=0 task=0-1 run=1 attempt=1 error=no reason=attempts\n"+
			"ERROR run given up class=tasks object=0 task=0-1 run=1 attempt=2 error=no reason=attempts")
	})
}

// Proves W6: the events of a partition tell which task they are about, and when.
func TestEventsInFull(t *testing.T) {
	p := workerpool.New(config{Name: "tasks", Retry: jobs.Retry{MaxAttempts: 1}})
	inBubble(t, p, func(t *testing.T, h *object.Host, _ *loglines.Recorder) {
		if err := p.Pause(ctx, h); err != nil {
			t.Fatal(err)
		}
		if err := p.Resume(ctx, h); err != nil {
			t.Fatal(err)
		}
		ids := must(p.EnqueueBatch(ctx, h, []workerpool.Item[string]{item("a"), item("b")}))
		if err := p.Nack(ctx, h, must(p.Claim(ctx, h, 1, 0))[0].Lease, errors.New("no")); err != nil {
			t.Fatal(err)
		}
		must(p.Replay(ctx, h, ids[0].ID))
		must(p.Discard(ctx, h))
		var got []string
		for _, e := range must(h.Events(ctx, p.ID("0"), 0, 100)) {
			got = append(got, e.Kind+" "+string(e.Data))
		}
		same(t, "events", got, []string{
			`mode {"reason":"paused"}`, `mode {"reason":"open"}`,
			`failure {"subject":"task/1","run":1,"attempt":1,"error":"no"}`,
			`exhausted {"subject":"task/1","run":1,"attempt":1,"error":"no","reason":"attempts"}`,
			`replayed {"subject":"task/1","run":1,"attempt":1}`,
			`cancelled {"subject":"task/1","run":1,"attempt":1}`, `cancelled {"subject":"task/2","run":1}`,
		})
	})
}

// Proves W6: OnDead is called for at most 4 tasks at a time, also after a crash, and for
// each letter.
func TestCallsOfOnDeadAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // guards told, running and most while calls begin and end
		told, running, most := make(map[string]int), 0, 0
		free := make(chan bool)
		p := workerpool.New(config{
			Name: "tasks", Concurrency: 20, Retry: jobs.Retry{MaxAttempts: 1},
			OnDead: func(ctx context.Context, d workerpool.DeadLetter[string]) error {
				mu.Lock()
				running++
				most = max(most, running)
				mu.Unlock()
				select {
				case <-free:
				case <-ctx.Done():
				}
				mu.Lock()
				defer mu.Unlock()
				running--
				if ctx.Err() == nil {
					told[d.In]++
				}
				return ctx.Err()
			},
		})
		mem := memstore.New()
		open := func() *object.Host {
			return must(object.Open(object.Options{Storage: storage.Options{Engine: mem, Shards: 1}, Logger: slog.New(slog.DiscardHandler)}, p))
		}
		h := open()
		var items []workerpool.Item[string]
		for i := range 13 {
			items = append(items, item(fmt.Sprint(i)))
		}
		must(p.EnqueueBatch(ctx, h, items))
		for _, c := range must(p.Claim(ctx, h, 20, 0)) {
			if err := p.Nack(ctx, h, c.Lease, errors.New("no")); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		same(t, "calls under way", running, 4)
		left := mem.Crash(0)
		_ = h.Shutdown(ended())
		synctest.Wait()
		mem, most = left, 0
		h = open()
		time.Sleep(time.Second)
		synctest.Wait()
		same(t, "calls under way after a crash", []int{running, most}, []int{4, 4})
		for n := range 13 {
			free <- true
			time.Sleep(time.Second)
			synctest.Wait()
			same(t, fmt.Sprintf("calls under way after %d", n+1), running, min(4, 12-n))
		}
		for i := range items {
			same(t, fmt.Sprintf("calls for letter %d", i), told[fmt.Sprint(i)], 1)
		}
		if most != 4 {
			t.Errorf("%d calls at a time", most)
		}
		shut(t, h)
	})
}

// OnEmpty is called when no task is left, and not before, even while as many tasks run as
// wait.
func TestOnEmptyIsNotEarly(t *testing.T) {
	calls := 0
	p := workerpool.New(config{Name: "tasks", Concurrency: 2, OnEmpty: func(context.Context, int) error { calls++; return nil }})
	inBubble(t, p, func(t *testing.T, h *object.Host, _ *loglines.Recorder) {
		must(p.EnqueueBatch(ctx, h, []workerpool.Item[string]{item("a"), item("b"), item("c")}))
		for n := range 3 {
			got := must(p.Claim(ctx, h, 2, 0))
			synctest.Wait()
			same(t, fmt.Sprintf("calls of OnEmpty after %d ends", n), calls, 0)
			if err := p.Ack(ctx, h, got[0].Lease, ""); err != nil {
				t.Fatal(err)
			}
			for _, c := range got[1:] {
				synctest.Wait()
				same(t, "calls of OnEmpty while one waits", calls, 0)
				if err := p.Nack(ctx, h, c.Lease, jobs.Snooze(0)); err != nil {
					t.Fatal(err)
				}
			}
		}
		synctest.Wait()
		same(t, "calls of OnEmpty", calls, 1)
	})
}

// Proves W3: a pool is opened with another PerKey. From the next end of a task on, as
// many tasks of a key run as the new PerKey allows.
func TestPerKeyChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := memstore.New()
		for life, perKey := range []int{1, 3} {
			p := workerpool.New(config{Name: "tasks", PerKey: perKey})
			h, _ := spied(t, mem, object.Options{}, p)
			if life == 0 {
				for i := range 9 {
					must(p.Enqueue(ctx, h, fmt.Sprint(i), workerpool.Key("k")))
				}
			}
			got := must(p.Claim(ctx, h, 9, 0))
			same(t, fmt.Sprintf("claimed at first of %d a key", perKey), len(got), 1)
			for _, c := range got {
				if err := p.Ack(ctx, h, c.Lease, ""); err != nil {
					t.Fatal(err)
				}
			}
			if life > 0 {
				for range 2 {
					got = must(p.Claim(ctx, h, 9, 0))
					same(t, fmt.Sprintf("claimed of %d a key", perKey), len(got), min(perKey, int(must(p.Stats(ctx, h)).Pending)+len(got)))
					for _, c := range got[:1] {
						if err := p.Ack(ctx, h, c.Lease, ""); err != nil {
							t.Fatal(err)
						}
					}
					for _, c := range got[1:] {
						if err := p.Nack(ctx, h, c.Lease, jobs.Snooze(0)); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
			if err := h.Shutdown(ctx); err != nil {
				t.Error(err)
			}
			mem = mem.Crash(0)
		}
	})
}

// From the first turn on a window holds no more tasks than its limit. The others are read
// when it is empty.
func TestWindowAfterAnOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := memstore.New()
		p := workerpool.New(config{Name: "tasks"})
		p.SetWindow(3)
		h, _ := spied(t, mem, object.Options{}, p)
		for range 10 {
			must(p.Enqueue(ctx, h, ""))
		}
		if err := h.Shutdown(ctx); err != nil {
			t.Fatal(err)
		}
		h, s := spied(t, mem.Crash(0), object.Options{}, p)
		for i, want := range []uint64{0, 3, 6, 9} {
			if i > 0 {
				must(p.Claim(ctx, h, 3, 0))
			} else {
				must(p.Stats(ctx, h))
			}
			got := s.last("r/\x00")
			if want == 0 && got != "r/\x00" || want > 0 && !strings.HasPrefix(got, string(append([]byte("r/\x00"), numbered("", 1000)+numbered("", want)...))) {
				t.Errorf("after %d claims the tasks are read from %q", 3*i, got)
			}
		}
		if err := h.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
}

// The names of states and modes are read as they are written, and others are refused.
func TestNamesOfStatesAndModes(t *testing.T) {
	for i, name := range []string{"pending", "running", "done", "dead", "cancelled", "sent"} {
		s, back := workerpool.State(i), workerpool.State(9)
		if text := string(must(s.MarshalText())); text != name || s.String() != name {
			t.Errorf("state %d is %q and %q", i, text, s)
		}
		if err := back.UnmarshalText([]byte(name)); err != nil || back != s || s.Ended() != (i >= 2 && s != workerpool.Sent) {
			t.Errorf("%s is read as %v, %v; it has ended: %v", name, back, err, s.Ended())
		}
	}
	for i, name := range []string{"open", "paused", "draining"} {
		m, back := workerpool.Mode(i), workerpool.Mode(9)
		if text := string(must(m.MarshalText())); text != name || m.String() != name {
			t.Errorf("mode %d is %q and %q", i, text, m)
		}
		if err := back.UnmarshalText([]byte(name)); err != nil || back != m {
			t.Errorf("%s is read as %v, %v", name, back, err)
		}
	}
	s, m := workerpool.Done, workerpool.Paused
	if err := s.UnmarshalText([]byte("paused")); !errors.Is(err, jobs.ErrInvalid) || s != workerpool.Done {
		t.Errorf("paused is the state %v, %v", s, err)
	}
	if err := m.UnmarshalText([]byte("done")); !errors.Is(err, jobs.ErrInvalid) || m != workerpool.Paused {
		t.Errorf("done is the mode %v, %v", m, err)
	}
	if a, b := workerpool.State(6).String(), workerpool.Mode(3).String(); a != "state 6" || b != "mode 3" {
		t.Errorf("others are %q and %q", a, b)
	}
}

// The ids of tasks: partitions from 0 to 1023, numbers from 1.
func TestBoundsOfTaskIDs(t *testing.T) {
	for text, want := range map[string]workerpool.TaskID{
		"0-1": {Partition: 0, Number: 1}, "1023-1": {Partition: 1023, Number: 1}, "0-18446744073709551615": {Number: 1<<64 - 1},
	} {
		var id workerpool.TaskID
		if got, err := workerpool.ParseTaskID(text); err != nil || got != want {
			t.Errorf("%s is %v, %v", text, got, err)
		}
		if err := id.UnmarshalText([]byte(text)); err != nil || id != want || string(must(id.MarshalText())) != text {
			t.Errorf("%s is read as %v, %v", text, id, err)
		}
	}
	for _, text := range []string{"0-0", "1024-1", "-1-1", "0-18446744073709551616", "a-1", "1-a"} {
		if id, err := workerpool.ParseTaskID(text); !errors.Is(err, jobs.ErrInvalid) || id != (workerpool.TaskID{}) {
			t.Errorf("%s is %v, %v", text, id, err)
		}
		id := workerpool.TaskID{Number: 7}
		if err := id.UnmarshalText([]byte(text)); !errors.Is(err, jobs.ErrInvalid) {
			t.Errorf("%s is read as %v, %v", text, id, err)
		}
	}
}

// Proves W4: a new partition takes no task before the first partition has noted it. If
// the first cannot note it, or is damaged, calls of the others fail.
func TestPartitionsNeedTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := memstore.New()
		pool := func(partitions int) *pool {
			return workerpool.New(config{Name: "tasks", Partitions: partitions, Retention: jobs.Retention{Completed: workerpool.AtOnce, Cancelled: workerpool.AtOnce}, Concurrency: 300})
		}
		one, two := pool(1), pool(2)
		h, _ := spied(t, mem, object.Options{}, one)
		for range 200 {
			must(one.Enqueue(ctx, h, ""))
		}
		if err := h.Shutdown(ctx); err != nil {
			t.Fatal(err)
		}
		counters := 0
		mem = rewrite(t, mem.Crash(0), func(all rows) { counters = len(all["c"]) })
		key, other := "", must(object.Open(object.Options{Storage: storage.Options{Engine: memstore.New(), Shards: 1}}, two))
		for i := 0; key == ""; i++ { // one of the second partition
			if must(two.Enqueue(ctx, other, "", workerpool.Key(fmt.Sprint(i)))).ID.Partition == 1 {
				key = fmt.Sprint(i)
			}
		}
		shut(t, other)
		h, _ = spied(t, mem, object.Options{MaxValueBytes: counters - 1}, two)
		if ref, err := two.Enqueue(ctx, h, "", workerpool.Key(key)); !errors.Is(err, object.ErrValueTooLarge) {
			t.Errorf("the first partition cannot note that there is a second, which takes %v: %v", ref, err)
		}
		if _, err := two.EnqueueBatch(ctx, h, []workerpool.Item[string]{item("", workerpool.Key(key))}); !errors.Is(err, object.ErrValueTooLarge) {
			t.Errorf("the first partition cannot note that there is a second, which takes a batch: %v", err)
		}
		if err := h.Shutdown(ctx); err != nil {
			t.Fatal(err)
		}
		mem = mem.Crash(0)
		h, _ = spied(t, mem, object.Options{}, two)
		id := must(two.Enqueue(ctx, h, "", workerpool.Key(key))).ID
		if err := h.Shutdown(ctx); err != nil {
			t.Fatal(err)
		}
		h, _ = spied(t, rewrite(t, mem.Crash(0), cutAll("c")), object.Options{}, two)
		if info, err := two.Status(ctx, h, id); !errors.Is(err, storage.ErrCorrupt) {
			t.Errorf("the first partition is damaged, and the second says %+v, %v", info, err)
		}
		_ = h.Shutdown(ctx)
	})
}

// Proves W8, W9: a submission with a known idempotency key returns the task of that key,
// also when another task holds its unique key.
func TestIdempotencyKeyComesFirst(t *testing.T) {
	p := workerpool.New(config{Name: "tasks"})
	h := inMemory(t, object.Options{}, p)
	once, unique := workerpool.Idempotent("once", 0), workerpool.Unique("unique")
	a := must(p.Enqueue(ctx, h, "a", once)).ID
	b := must(p.Enqueue(ctx, h, "b", unique)).ID
	if ref := must(p.Enqueue(ctx, h, "c", once, unique)); ref.ID != a || !ref.Repeated {
		t.Errorf("with both keys the task is %+v, want %v", ref, a)
	}
	if ref := must(p.Enqueue(ctx, h, "c", workerpool.Idempotent("other", 0), unique)); ref.ID != b || !ref.Repeated {
		t.Errorf("with the unique key the task is %+v, want %v", ref, b)
	}
	refs := must(p.EnqueueBatch(ctx, h, []workerpool.Item[string]{item("d", once, unique), item("e", workerpool.Idempotent("new", 0), unique), item("f", workerpool.Idempotent("new", 0))}))
	if refs[0].ID != a || refs[1].ID != b || refs[2].Repeated {
		t.Errorf("the batch is %+v, want %v, %v and a new task", refs, a, b)
	}
}

// Proves W4: queues take turns by weight, and in the order of their names if they have
// had equal shares.
func TestTurnsOfQueues(t *testing.T) {
	p, log := ordered(config{Queues: map[string]int{"a": 2, "b": 1}})
	var items []workerpool.Item[string]
	for _, queue := range []string{"b", "a", ""} {
		for range 4 {
			items = append(items, item("."+queue, workerpool.Queue(queue)))
		}
	}
	runAll(t, p, items)
	if got := strings.Join(log.list, " "); got != ". .a .b .a . .a .b .a . .b . .b" {
		t.Errorf("the queues take turns so: %s", got)
	}
}

// Partitions have the numbers from 0 to 1023 as their names, and nothing else is one.
func TestNamesOfPartitions(t *testing.T) {
	p := workerpool.New(config{Name: "tasks"})
	h := inMemory(t, object.Options{}, p)
	for name, is := range map[string]bool{"0": true, "1": true, "1023": true, "1024": false, "-1": false, "01": false, "x": false, "": false} {
		_, err := p.CallBytes(ctx, h, name, "stats", []byte("{}"))
		if is != (err == nil) || !is && name != "" && (!errors.Is(err, jobs.ErrNotFound) || !strings.Contains(err.Error(), "is not the number of a partition")) {
			t.Errorf("partition %q: %v", name, err)
		}
	}
}
