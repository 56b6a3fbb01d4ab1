package workerpool_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// pagesOf walks over all pages of a list with a limit.
func pagesOf(t *testing.T, from workerpool.Rows, o workerpool.TasksOptions) (all []workerpool.TaskInfo) {
	t.Helper()
	for {
		page, err := workerpool.Tasks(t.Context(), from, "chores", o)
		if err != nil {
			t.Fatal(err)
		}
		if most := o.Limit; most > 0 && len(page.Tasks) > most {
			t.Errorf("a page of %d tasks has %d", most, len(page.Tasks))
		}
		all = append(all, page.Tasks...)
		if page.Next == "" {
			return all
		}
		o.After = page.Next
	}
}

// ids are the ids of tasks with their states.
func ids(tasks []workerpool.TaskInfo) (out []string) {
	for _, t := range tasks {
		out = append(out, fmt.Sprint(t.ID, " ", t.State))
	}
	return out
}

// chores are a pool with tasks in each state, in a directory of its own.
func chores(t *testing.T) (dir string, pool *workerpool.Pool[int, int], host *object.Host) {
	t.Helper()
	dir = t.TempDir()
	pool = workerpool.New(workerpool.Config[int, int]{
		Name: "chores", Partitions: 3, Concurrency: 30, Queues: map[string]int{"mail": 2}, Retry: jobs.Retry{MaxAttempts: 2, Backoff: jobs.Constant(time.Hour)},
	}) // without Work: outside workers claim its tasks
	host, err := object.Open(object.Options{Dir: dir}, pool)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	for i := range 40 {
		opts := []workerpool.Option{workerpool.Key(fmt.Sprintf("k%d", i%10)), workerpool.Priority(i % 3)}
		if i%4 == 0 {
			opts = append(opts, workerpool.Queue("mail"))
		}
		if i%9 == 8 {
			opts = append(opts, workerpool.Delay(time.Hour))
		}
		if _, err := pool.Enqueue(ctx, host, i, opts...); err != nil {
			t.Fatal(err)
		}
	}
	claimed, err := pool.Claim(ctx, host, 9, time.Hour)
	if err != nil || len(claimed) < 5 {
		t.Fatalf("%d claimed, %v", len(claimed), err)
	}
	for i, c := range claimed[:5] {
		switch {
		case i < 2:
			err = pool.Nack(ctx, host, c.Lease, jobs.Permanent(errors.New("broken")))
		case i == 2:
			err = pool.Nack(ctx, host, c.Lease, errors.New("later"))
		default:
			err = pool.Ack(ctx, host, c.Lease, 1)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir, pool, host
}

// Proves W11: for each filter and each length of the page the pages have the tasks that Status
// tells of, in order and once each; and those of a directory are those of its host.
func TestTasks(t *testing.T) {
	dir, pool, host := chores(t)
	var all []workerpool.TaskInfo
	for part := range 3 {
		for n := uint64(1); ; n++ {
			id := workerpool.TaskID{Partition: part, Number: n}
			st, err := pool.Status(t.Context(), host, id)
			if errors.Is(err, jobs.ErrNotFound) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			info := workerpool.TaskInfo{ID: id, State: st.State, Key: st.Key, Queue: st.Queue, Priority: st.Priority, Enqueued: st.Enqueued, NotBefore: st.NotBefore, Attempt: st.Attempt, Died: st.Ended}
			if n := len(st.Failures); n > 0 {
				info.LastError = st.Failures[n-1].Error
			}
			if st.State == workerpool.Dead {
				info.Reason = jobs.ReasonPermanent
			}
			if st.State != workerpool.Done {
				all = append(all, info)
			}
		}
	}
	if len(all) != 38 {
		t.Fatalf("%d tasks", len(all))
	}
	mail, none := "mail", ""
	filters := []workerpool.TasksOptions{
		{}, {Queue: &mail}, {Queue: &none}, {Key: "k3"}, {Key: "nobody"}, {Queue: &mail, Key: "k4", States: []workerpool.State{workerpool.Pending}},
		{States: []workerpool.State{workerpool.Pending}}, {States: []workerpool.State{workerpool.Running}}, {States: []workerpool.State{workerpool.Dead}},
		{States: []workerpool.State{workerpool.Running, workerpool.Dead}}, {States: []workerpool.State{workerpool.Pending, workerpool.Dead}},
	}
	check := func(from workerpool.Rows) {
		t.Helper()
		for _, o := range filters {
			var want []workerpool.TaskInfo
			for _, info := range all {
				if (len(o.States) == 0 || slices.Contains(o.States, info.State)) && (o.Queue == nil || *o.Queue == info.Queue) && (o.Key == "" || o.Key == info.Key) {
					want = append(want, info)
				}
			}
			for _, limit := range []int{0, 1, 2, 7, len(all), object.MaxPage} {
				o.Limit = limit
				if got := pagesOf(t, from, o); !slices.Equal(got, want) {
					t.Fatalf("%+v:\n%v\nwant\n%v", o, got, want)
				}
			}
		}
	}
	check(host)
	if err := host.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	store, err := storage.OpenReadOnly(storage.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	check(object.NewReader(store))
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}

// Proves W11: while tasks die, are replayed, end and come between the pages, no task is in two
// pages, and one that stays is in one.
func TestTasksThatMove(t *testing.T) {
	_, pool, host := chores(t)
	ctx := t.Context()
	stay := pagesOf(t, host, workerpool.TasksOptions{Key: "k7"})
	seen := map[workerpool.TaskID]int{}
	steps := 0
	for o := (workerpool.TasksOptions{Limit: 1}); ; steps++ {
		page, err := pool.Tasks(ctx, host, o)
		if err != nil {
			t.Fatal(err)
		}
		for _, task := range page.Tasks {
			seen[task.ID]++
		}
		if o.After = page.Next; page.Next == "" {
			break
		}
		switch steps % 3 {
		case 0:
			_, err = pool.ReplayAll(ctx, host)
		case 1:
			_, err = pool.Enqueue(ctx, host, 7)
		default:
			err = killOne(ctx, pool, host, "k7")
		}
		if err != nil {
			t.Fatal(err)
		}
		if steps > 200 {
			t.Fatal("the list does not end")
		}
	}
	for id, n := range seen {
		if n > 1 {
			t.Errorf("task %s is in %d pages", id, n)
		}
	}
	for _, task := range stay {
		if seen[task.ID] != 1 {
			t.Errorf("task %s, which stays, is in %d pages", task.ID, seen[task.ID])
		}
	}
	if err := host.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
}

// killOne lets a task die that has another key than the given one.
func killOne(ctx context.Context, pool *workerpool.Pool[int, int], host *object.Host, but string) error {
	claimed, err := pool.Claim(ctx, host, 1, time.Hour)
	for _, c := range claimed {
		if c.Task.Key != but {
			err = errors.Join(err, pool.Nack(ctx, host, c.Lease, jobs.Permanent(errors.New("broken"))))
		}
	}
	return err
}

// Proves W11: a page reads 4,096 rows at most, so one that finds nothing until then is not the
// last.
func TestTasksReadsABoundedNumberOfRows(t *testing.T) {
	for _, c := range []struct{ before, pages int }{{4095, 1}, {4096, 2}} {
		pool := workerpool.New(workerpool.Config[int, int]{Name: "chores", Partitions: 1, MaxQueued: 10_000, Queues: map[string]int{"mail": 1}})
		host, err := object.Open(object.Options{Dir: t.TempDir()}, pool)
		if err != nil {
			t.Fatal(err)
		}
		items := make([]workerpool.Item[int], c.before)
		if _, err := pool.EnqueueBatch(t.Context(), host, items); err != nil {
			t.Fatal(err)
		}
		last, err := pool.Enqueue(t.Context(), host, 1, workerpool.Queue("mail"))
		if err != nil {
			t.Fatal(err)
		}
		mail, pages := "mail", 0
		for o := (workerpool.TasksOptions{Queue: &mail}); ; {
			page, err := pool.Tasks(t.Context(), host, o)
			if err != nil {
				t.Fatal(err)
			}
			pages++
			if len(page.Tasks) > 0 && page.Tasks[0].ID != last.ID || len(page.Tasks) > 0 != (pages == c.pages) {
				t.Errorf("page %d behind %d tasks: %v", pages, c.before, ids(page.Tasks))
			}
			if o.After = page.Next; page.Next == "" {
				break
			}
		}
		if pages != c.pages {
			t.Errorf("behind %d tasks: %d pages, want %d", c.before, pages, c.pages)
		}
		if err := host.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// Proves W11: options that do not fit, and a class that is no pool, are errors that say so.
func TestTasksMistakes(t *testing.T) {
	pool := workerpool.New(workerpool.Config[int, int]{Name: "chores"})
	carts := object.Define("cart", func(_ context.Context, st *object.State) (*object.State, error) { return st, nil })
	put := object.Handle(carts, "put", func(st *object.State, ctx context.Context, key string) (int, error) {
		return 0, st.Storage().Put(ctx, key, 1)
	})
	host, err := object.Open(object.Options{Dir: t.TempDir()}, pool, carts)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []workerpool.TasksOptions{
		{Limit: -1}, {Limit: object.MaxPage + 1}, {After: "x"}, {After: "1"}, {After: "-1-2"}, {After: "01-2"},
		{States: []workerpool.State{workerpool.Done}}, {States: []workerpool.State{workerpool.Cancelled}}, {States: []workerpool.State{99}},
	} {
		if _, err := pool.Tasks(t.Context(), host, o); !errors.Is(err, jobs.ErrInvalid) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if page, err := pool.Tasks(t.Context(), host, workerpool.TasksOptions{Limit: object.MaxPage}); err != nil || len(page.Tasks) != 0 || page.Next != "" {
		t.Errorf("an empty pool: %+v, %v", page, err)
	}
	for _, c := range []struct{ name, key string }{{"alice", "x"}, {"0", "c"}} {
		if _, err := put.Call(t.Context(), host, c.name, c.key); err != nil {
			t.Fatal(err)
		}
		if _, err := workerpool.Tasks(t.Context(), host, "cart", workerpool.TasksOptions{}); !errors.Is(err, jobs.ErrInvalid) {
			t.Errorf("a class with the object %s: %v", c.name, err)
		}
		if err := host.Delete(t.Context(), carts.ID(c.name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := host.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Proves W11: dead tasks stand in their places among many others, of which a step reads 256.
func TestTasksInSeveralSteps(t *testing.T) {
	pool := workerpool.New(workerpool.Config[int, int]{Name: "chores", Partitions: 1, Concurrency: 10})
	host, err := object.Open(object.Options{Dir: t.TempDir()}, pool)
	if err != nil {
		t.Fatal(err)
	}
	items := make([]workerpool.Item[int], 900)
	for i := range items {
		if i%300 == 290 {
			items[i].Options = []workerpool.Option{workerpool.Priority(1)} // claimed first
		}
	}
	if _, err := pool.EnqueueBatch(t.Context(), host, items); err != nil {
		t.Fatal(err)
	}
	claimed, err := pool.Claim(t.Context(), host, 3, time.Hour)
	if err != nil || len(claimed) != 3 {
		t.Fatalf("%d claimed, %v", len(claimed), err)
	}
	for _, c := range claimed {
		if err := pool.Nack(t.Context(), host, c.Lease, jobs.Permanent(errors.New("broken"))); err != nil {
			t.Fatal(err)
		}
	}
	for _, limit := range []int{100, 1000} {
		all := pagesOf(t, host, workerpool.TasksOptions{Limit: limit})
		if len(all) != len(items) {
			t.Fatalf("%d tasks of %d", len(all), len(items))
		}
		for i, task := range all {
			want := workerpool.Pending
			if i%300 == 290 {
				want = workerpool.Dead
			}
			if task.ID.Number != uint64(i+1) || task.State != want {
				t.Errorf("at place %d: task %s, %s", i, task.ID, task.State)
			}
		}
	}
	if err := host.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
}
