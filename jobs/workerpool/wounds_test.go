package workerpool_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/internal/testing/loglines"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/engine"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// rows are those of a partition, by key.
type rows map[string][]byte

// rewrite changes the rows of partition 0 of the pool "tasks" behind its back.
func rewrite(t *testing.T, mem *memstore.Store, change func(rows)) *memstore.Store {
	t.Helper()
	c := object.Define("tasks", func(_ context.Context, st *object.State) (*raw, error) { return &raw{st}, nil })
	do := object.Handle(c, "do", func(r *raw, ctx context.Context, _ int) (int, error) {
		all := make(rows)
		for item, err := range r.st.Storage().List(ctx, object.ListOptions{}) {
			if err != nil {
				return 0, err
			}
			all[item.Key] = slices.Clone(item.Value)
		}
		before := make(rows)
		for key, value := range all {
			before[key] = slices.Clone(value)
		}
		change(all)
		for key := range before {
			if _, kept := all[key]; !kept {
				if err := r.st.Storage().Remove(ctx, key); err != nil {
					return 0, err
				}
			}
		}
		for key, value := range all {
			if err := r.st.Storage().PutBytes(ctx, key, value); err != nil {
				return 0, err
			}
		}
		return 0, nil
	})
	h, err := object.Open(object.Options{Storage: storage.Options{Engine: mem, Shards: 1}, Logger: slog.New(slog.DiscardHandler)}, c)
	if err != nil {
		t.Fatal(err)
	}
	must(do.Call(ctx, h, "0", 0))
	if err := h.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	return mem.Crash(0)
}

// numbered is the key of a task or a letter.
func numbered(prefix string, n uint64) string {
	return string(binary.BigEndian.AppendUint64([]byte(prefix), n))
}

// cut takes the last byte off the row of a number.
func cut(prefix string, n uint64) func(rows) {
	return func(all rows) {
		key := numbered(prefix, n)
		if len(all[key]) == 0 {
			panic(fmt.Sprintf("no row %q", key))
		}
		all[key] = all[key][:len(all[key])-1]
	}
}

// cutAll takes the last byte off the rows with a prefix.
func cutAll(prefix string) func(rows) {
	return func(all rows) {
		n := 0
		for key, value := range all {
			if strings.HasPrefix(key, prefix) {
				all[key] = value[:len(value)-1]
				n++
			}
		}
		if n == 0 {
			panic("no row " + prefix)
		}
	}
}

// added is a row that no partition writes.
func added(key string, value []byte) func(rows) { return func(all rows) { all[key] = value } }

// lost removes the executions.
func lost(all rows) {
	for key := range all {
		if strings.HasPrefix(key, "x/") {
			delete(all, key)
		}
	}
}

func both(changes ...func(rows)) func(rows) {
	return func(all rows) {
		for _, change := range changes {
			change(all)
		}
	}
}

// counter changes a counter of the partition by its place among them; see FORMAT.md.
func counter(place int, by int8) func(rows) {
	return func(all rows) { all["c"][4+place] += byte(by) }
}

// wounded is a pool without Config.Work. A test changed its rows while no process had the
// store open.
type wounded struct {
	p      *pool
	h      *object.Host
	log    loglines.Recorder
	leases map[string]workerpool.Lease
}

// The tasks of a wounded pool, by their numbers.
const (
	letterA, letterB         = 1, 2
	held, heldKeyed, next    = 3, 4, 5 // held are claimed; next waits for the key of heldKeyed
	head, tail               = 6, 7    // of another key
	unique, delayed          = 8, 9
	firstPlain, afterPlain   = 10, 95
	counterRunning           = 2
	woundedKey, woundedOther = "K", "L"
)

func taskID(n uint64) workerpool.TaskID { return workerpool.TaskID{Number: n} }

func newWounded(t *testing.T, change func(rows)) *wounded {
	t.Helper()
	w := &wounded{leases: make(map[string]workerpool.Lease)}
	w.p = workerpool.New(config{
		Name: "tasks", Version: "v1", Concurrency: 200, Retry: jobs.Retry{MaxAttempts: 2},
		OnDead: func(context.Context, workerpool.DeadLetter[string]) error { return nil },
	})
	mem := memstore.New()
	w.open(t, mem)
	add := func(in string, opts ...workerpool.Option) { must(w.p.Enqueue(ctx, w.h, in, opts...)) }
	add("a")
	add("b")
	for _, c := range must(w.p.Claim(ctx, w.h, 2, 0)) {
		if err := w.p.Nack(ctx, w.h, c.Lease, jobs.Permanent(errors.New("no"))); err != nil {
			t.Fatal(err)
		}
	}
	add("held")
	add("held keyed", workerpool.Key(woundedKey))
	for _, c := range must(w.p.Claim(ctx, w.h, 2, time.Hour)) {
		w.leases[c.Task.In] = c.Lease
	}
	add("next", workerpool.Key(woundedKey))
	add("head", workerpool.Key(woundedOther))
	add("tail", workerpool.Key(woundedOther))
	add("unique", workerpool.Unique("the only"))
	add("delayed", workerpool.Delay(time.Hour))
	for range afterPlain - firstPlain {
		add("plain")
	}
	synctest.Wait()
	if err := w.h.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	w.open(t, rewrite(t, mem.Crash(0), change))
	return w
}

func (w *wounded) open(t *testing.T, e engine.Engine) {
	t.Helper()
	h, err := object.Open(object.Options{Storage: storage.Options{Engine: e, Shards: 1}, Logger: w.log.Logger()}, w.p)
	if err != nil {
		t.Fatal(err)
	}
	w.h = h
}

// woundedVerbs are the calls of a wounded pool.
var woundedVerbs = map[string]func(w *wounded) error{
	"Stats":        func(w *wounded) error { _, err := w.p.Stats(ctx, w.h); return err },
	"Claim":        func(w *wounded) error { _, err := w.p.Claim(ctx, w.h, 1, 0); return err },
	"Claim of 65":  func(w *wounded) error { _, err := w.p.Claim(ctx, w.h, 65, 0); return err },
	"Claim of all": func(w *wounded) error { _, err := w.p.Claim(ctx, w.h, 100, 0); return err },
	"Claim after an hour": func(w *wounded) error {
		time.Sleep(time.Hour)
		_, err := w.p.Claim(ctx, w.h, 1, 0)
		return err
	},
	"Heartbeat":        func(w *wounded) error { _, err := w.p.Heartbeat(ctx, w.h, w.leases["held"]); return err },
	"Ack":              func(w *wounded) error { return w.p.Ack(ctx, w.h, w.leases["held"], "") },
	"Nack":             func(w *wounded) error { return w.p.Nack(ctx, w.h, w.leases["held"], errors.New("no")) },
	"Ack of the keyed": func(w *wounded) error { return w.p.Ack(ctx, w.h, w.leases["held keyed"], "") },
	"Nack for good": func(w *wounded) error {
		return w.p.Nack(ctx, w.h, w.leases["held keyed"], jobs.Permanent(errors.New("no")))
	},
	"Status of held":         func(w *wounded) error { _, err := w.p.Status(ctx, w.h, taskID(held)); return err },
	"Cancel of held":         func(w *wounded) error { _, err := w.p.Cancel(ctx, w.h, taskID(held)); return err },
	"Cancel of head":         func(w *wounded) error { _, err := w.p.Cancel(ctx, w.h, taskID(head)); return err },
	"Discard":                func(w *wounded) error { _, err := w.p.Discard(ctx, w.h); return err },
	"DeadLetters":            func(w *wounded) error { _, err := w.p.DeadLetters(ctx, w.h, workerpool.TaskID{}, 10); return err },
	"ReplayAll":              func(w *wounded) error { _, err := w.p.ReplayAll(ctx, w.h); return err },
	"Replay":                 func(w *wounded) error { _, err := w.p.Replay(ctx, w.h, taskID(letterA), taskID(letterB)); return err },
	"DiscardDead":            func(w *wounded) error { _, err := w.p.DiscardDead(ctx, w.h, taskID(letterB)); return err },
	"Enqueue with the key":   func(w *wounded) error { _, err := w.p.Enqueue(ctx, w.h, "in", workerpool.Key(woundedKey)); return err },
	"Enqueue with a new key": func(w *wounded) error { _, err := w.p.Enqueue(ctx, w.h, "in", workerpool.Key("M")); return err },
	"EnqueueBatch with the key": func(w *wounded) error {
		_, err := w.p.EnqueueBatch(ctx, w.h, []workerpool.Item[string]{item("in", workerpool.Key(woundedKey))})
		return err
	},
	"Enqueue of the unique": func(w *wounded) error {
		_, err := w.p.Enqueue(ctx, w.h, "in", workerpool.Unique("the only"))
		return err
	},
	"EnqueueBatch of the unique": func(w *wounded) error {
		_, err := w.p.EnqueueBatch(ctx, w.h, []workerpool.Item[string]{item("in", workerpool.Unique("the only"))})
		return err
	},
}

// Proves S9: when a row of a partition is damaged, each verb that reads the row returns
// an error. Without damage no verb does.
func TestWoundedRows(t *testing.T) {
	short := make([]byte, 9)
	cases := []struct {
		name   string
		change func(rows)
		verbs  []string
	}{
		{"a claimed task", cut("t/", held), []string{"Heartbeat", "Ack", "Nack", "Status of held", "Cancel of held"}},
		{"a claimed task with a key", cut("t/", heldKeyed), []string{"Ack of the keyed", "Nack for good"}},
		{"the next task of a key", cut("t/", next), []string{"Ack of the keyed", "Nack for good", "Discard"}},
		{"the tail of a key", cut("t/", tail), []string{"Cancel of head", "Discard"}},
		{"a task further on", cut("t/", firstPlain+5), []string{"Claim of all", "Discard"}},
		{"a task that is read with the 65th", cut("t/", firstPlain+70), []string{"Claim of 65", "Claim of all"}},
		{"a delayed task", cut("t/", delayed), []string{"Claim after an hour", "Discard"}},
		{"a delayed task that is missing", func(all rows) { delete(all, numbered("t/", delayed)) }, []string{"Claim after an hour"}},
		{"a task that is missing", func(all rows) { delete(all, numbered("t/", firstPlain+5)) }, []string{"Claim of all"}},
		{"the links of keys", cutAll("k/"), []string{"Ack of the keyed", "Cancel of head", "Enqueue with the key", "EnqueueBatch with the key", "Nack for good"}},
		{"the key of a link", added("k/\x01M\xff", short), []string{"Enqueue with a new key"}},
		{"the key of a ready row", added("r/\x00a", short[1:]), []string{"Stats"}},
		{"the key of a waiting row", added("w/a", short[1:]), []string{"Stats"}},
		{"the value of a ready row", cutAll("r/"), []string{"Stats", "Claim"}},
		{"the value of a waiting row", cutAll("w/"), []string{"Stats", "Claim"}},
		{"the key of a letter", added("z/a", short), []string{"DeadLetters"}},
		{"the second letter", cut("z/", letterB), []string{"DeadLetters", "ReplayAll", "Replay", "DiscardDead"}},
		{"the versions", cutAll("v"), []string{"Stats", "Claim"}},
		{"the counters", cutAll("c"), []string{"Stats"}},
		{"the version of the counters", func(all rows) { all["c"][0]++ }, []string{"Stats"}},
		{"an execution", func(all rows) {
			for key, value := range all {
				if strings.HasPrefix(key, "x/") {
					all[key] = value[:5]
				}
			}
		}, []string{"Stats"}},
		{"the unique key", cutAll("u/"), []string{"Enqueue of the unique", "EnqueueBatch of the unique"}},
		{"one running too many", counter(counterRunning, 1), []string{"Stats"}},
		{"one running too few", counter(counterRunning, -1), []string{"Stats"}},
		{"executions lost, and a link", both(lost, cutAll("k/")), []string{"Stats"}},
		{"executions lost, and a ready row", both(lost, cutAll("r/")), []string{"Stats"}},
		{"executions lost, and a task", both(lost, cut("t/", held)), []string{"Stats"}},
		{"executions lost, and the key of a task", both(lost, added("t/a", short)), []string{"Stats"}},
		{"executions lost, and one more counted", both(lost, counter(counterRunning, 1)), []string{"Stats"}},
	}
	for _, c := range cases {
		for _, name := range c.verbs {
			synctest.Test(t, func(t *testing.T) {
				w := newWounded(t, c.change)
				if err := woundedVerbs[name](w); !errors.Is(err, storage.ErrCorrupt) {
					t.Errorf("%s: %s says %v", c.name, name, err)
				}
				_ = w.h.Shutdown(ctx)
			})
		}
	}
	for name, verb := range woundedVerbs {
		synctest.Test(t, func(t *testing.T) {
			w := newWounded(t, func(rows) {})
			if err := verb(w); err != nil {
				t.Errorf("nothing is damaged, and %s says %v", name, err)
			}
			_ = w.h.Shutdown(ctx)
		})
	}
}

// Proves S9, W2: tasks that count as running and have no execution are pending again, in
// their places, and the log and the report of recoveries tell of each.
func TestWoundedExecutionsAreRepaired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWounded(t, lost)
		s := must(w.p.Stats(ctx, w.h))
		if s.Check() != nil || s.Running != 0 || s.Pending != afterPlain-held || s.Lost != 2 || s.Executions != 4 {
			t.Errorf("stats %+v", s)
		}
		lines, n := w.h.Recoveries()
		if n != 2 || lines[0].Cause != "damage" || lines[0].Action != "re-run" || lines[1].ID != w.p.ID("0") {
			t.Errorf("recoveries %+v", lines)
		}
		want := "ERROR workerpool: a running task had no execution and is pending again class=tasks object=0 task=0-3\n" +
			"ERROR workerpool: a running task had no execution and is pending again class=tasks object=0 task=0-4"
		if got := w.log.Text(slog.LevelWarn); !strings.HasSuffix(got, want) || strings.Count(got, "pending again") != 2 {
			t.Errorf("logged\n%s\nwant\n%s", got, want)
		}
		if err := workerpool.Audit(w.h.Store(), "tasks", 1, 200, 1); err != nil {
			t.Error(err)
		}
		var got []uint64
		for _, c := range must(w.p.Claim(ctx, w.h, 4, 0)) {
			got = append(got, c.Task.ID.Number)
		}
		if want := []uint64{held, heldKeyed, head, unique}; !slices.Equal(got, want) {
			t.Errorf("the tasks %v are claimed, want %v", got, want)
		}
		if err := w.h.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
}

// Proves W4: a key goes to the same partition in each version of the program, because its
// tasks are stored there.
func TestPartitionsOfKeysStay(t *testing.T) {
	p := workerpool.New(config{Name: "tasks", Partitions: 1000, Concurrency: 1000})
	h := inMemory(t, object.Options{}, p)
	var got []int
	for i := range 12 {
		got = append(got, must(p.Enqueue(ctx, h, "in", workerpool.Key(fmt.Sprint("key ", i)))).ID.Partition)
	}
	if want := []int{883, 905, 162, 862, 163, 30, 673, 199, 115, 958, 927, 936}; !slices.Equal(got, want) {
		t.Errorf("the keys go to %#v", got)
	}
}
