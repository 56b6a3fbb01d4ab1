package workerpool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	codec "github.com/holdfast-dev/holdfast/internal/row"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// given are the rows of the partitions of a pool, in the order of their keys.
type given struct {
	parts      [][]object.KeyInfo
	rows       int // task rows that were read
	executions int // rows of executions that were read
	bytes      int // of both
}

func (g *given) Objects(_ context.Context, class string, o object.ObjectsOptions) (all []object.ObjectInfo, err error) {
	for i := range g.parts {
		all = append(all, object.ObjectInfo{ID: storage.ID{Class: class, Name: fmt.Sprint(i)}})
	}
	return all, nil
}

func (g *given) Keys(_ context.Context, id storage.ID, o object.KeysOptions) (page object.KeyPage, err error) {
	var part int
	if _, err := fmt.Sscan(id.Name, &part); err != nil {
		return page, err
	}
	for _, k := range g.parts[part] {
		if k.Key < o.Start || !strings.HasPrefix(k.Key, o.Prefix) {
			continue
		}
		if len(page.Keys) == o.Limit {
			page.Next = k.Key
			break
		}
		page.Keys = append(page.Keys, k)
		switch {
		case o.Prefix == engine.ExecutionPrefix:
			g.executions, g.bytes = g.executions+1, g.bytes+len(k.Value)
		case o.Prefix != countersKey:
			g.rows, g.bytes = g.rows+1, g.bytes+len(k.Value)
		}
	}
	return page, nil
}

// put adds a partition.
func (g *given) put(rows []object.KeyInfo) {
	rows = append(rows, object.KeyInfo{Key: countersKey, Value: new(counters).append(nil, new(lines))})
	slices.SortFunc(rows, func(a, b object.KeyInfo) int { return strings.Compare(a.Key, b.Key) })
	g.parts = append(g.parts, rows)
}

// tasksOf are the rows of n tasks with numbers from first.
func tasksOf(t *testing.T, prefix string, first, n int, r row) (rows []object.KeyInfo) {
	t.Helper()
	value, err := r.append(nil) // one for all, because the number stands in the key alone
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		rows = append(rows, object.KeyInfo{Key: numbered(prefix, uint64(first+i)), Value: value})
	}
	return rows
}

// executionsOf are the rows of the open executions of n tasks with numbers from 1.
func executionsOf(n int) (rows []object.KeyInfo) {
	for i := range n {
		w := codec.Writer{}.Byte(1).Uint(0).Text(subject(taskSubject, uint64(i+1)))
		rows = append(rows, object.KeyInfo{Key: fmt.Sprintf("%s%06d", engine.ExecutionPrefix, i), Value: append(w, make([]byte, 12)...)})
	}
	return rows
}

// walk counts the pages of a list and the tasks in them. No page reads more rows or bytes than
// the given ones.
func (g *given) walk(t *testing.T, o TasksOptions, maxRows, maxBytes int) (pages int, ids []TaskID) {
	t.Helper()
	for {
		rows, executions, bytes := g.rows, g.executions, g.bytes
		page, err := Tasks(t.Context(), g, "chores", o)
		if err != nil {
			t.Fatal(err)
		}
		if read := g.rows - rows + g.executions - executions; read > maxRows {
			t.Errorf("the page behind %q reads %d rows", o.After, read)
		}
		if read := g.bytes - bytes; read > maxBytes {
			t.Errorf("the page behind %q reads %d bytes", o.After, read)
		}
		for _, info := range page.Tasks {
			ids = append(ids, info.ID)
		}
		if pages++; page.Next == "" {
			return pages, ids
		}
		if page.Next == o.After || pages > 1000 {
			t.Fatalf("the list does not go on behind %q", o.After)
		}
		o.After = page.Next
	}
}

// Proves W11: a page reads 4,096 rows at most, and those of one step, also if they are in many
// partitions of which each has a few.
func TestTasksOfManyPartitionsAreBounded(t *testing.T) {
	g := &given{}
	for range 40 {
		live, dead := tasksOf(t, taskPrefix, 1, 255, row{key: "k"}), tasksOf(t, deadPrefix, 256, 255, row{key: "k", state: Dead})
		g.put(append(live, dead...))
	}
	last, none := "last", "nobody"
	g.put(tasksOf(t, taskPrefix, 1, 1, row{queue: last}))
	if pages, ids := g.walk(t, TasksOptions{Queue: &last}, maxTasksRead+2*tasksAtOnce, 1<<20); pages != 5 || !slices.Equal(ids, []TaskID{{40, 1}}) {
		t.Errorf("%d pages with %v", pages, ids)
	}
	if pages, ids := g.walk(t, TasksOptions{Queue: &none}, maxTasksRead+2*tasksAtOnce, 1<<20); pages != 5 || len(ids) > 0 {
		t.Errorf("%d pages with %v", pages, ids)
	}
	if _, ids := g.walk(t, TasksOptions{Limit: object.MaxPage}, maxTasksRead+2*tasksAtOnce, 1<<20); len(ids) != 40*510+1 || !slices.IsSortedFunc(ids, func(a, b TaskID) int {
		return cmp.Or(cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Number, b.Number))
	}) {
		t.Errorf("%d tasks, or out of order", len(ids))
	}
}

// Proves W11: a page ends between two partitions at the bound of its rows and not before, and the
// last page has no next one.
func TestTasksEndBetweenPartitions(t *testing.T) {
	for _, c := range []struct {
		first   int
		follows bool
		pages   int
	}{{4095, true, 1}, {4096, true, 2}, {4096, false, 1}} {
		g := &given{}
		for range 16 { // each is one step, so that the bound is reached between them only
			g.put(tasksOf(t, taskPrefix, 1, min(c.first, 256), row{}))
			c.first -= min(c.first, 256)
		}
		want, last := 0, "last"
		if c.follows {
			g.put(tasksOf(t, taskPrefix, 1, 1, row{queue: last}))
			want = 1
		}
		if pages, ids := g.walk(t, TasksOptions{Queue: &last}, maxTasksRead+1, 1<<20); pages != c.pages || len(ids) != want {
			t.Errorf("%+v: %d pages with %v", c, pages, ids)
		}
	}
}

// Proves W11: the open executions that a page reads count among its rows, and it reads none if
// dead tasks alone are wanted.
func TestTasksCountExecutions(t *testing.T) {
	g := &given{}
	for range 8 {
		g.put(append(executionsOf(2000), tasksOf(t, deadPrefix, 3000, 1, row{state: Dead})...))
	}
	if pages, ids := g.walk(t, TasksOptions{}, maxTasksRead+2000, 1<<20); pages != 3 || len(ids) != 8 {
		t.Errorf("%d pages with %v", pages, ids)
	}
	g.executions = 0
	if pages, ids := g.walk(t, TasksOptions{States: []State{Dead}}, 8, 1<<20); pages != 1 || len(ids) != 8 || g.executions > 0 {
		t.Errorf("%d pages with %v, %d executions read", pages, ids, g.executions)
	}
}

// Proves W11: the tasks of a key are those of its chain, so a list of them reads no others that live; if the chain is
// longer than one read, it reads all.
func TestTasksOfAKeyAreThoseOfItsChain(t *testing.T) {
	for _, c := range []struct {
		tasks, rows int
	}{{0, 0}, {1, 2}, {object.MaxPage, 2 * object.MaxPage}, {object.MaxPage + 1, 3*object.MaxPage + 2}} {
		g := &given{}
		rows := slices.Concat(tasksOf(t, taskPrefix, 1, c.tasks, row{key: "k"}), tasksOf(t, taskPrefix, 5000, object.MaxPage, row{key: "other"}))
		for i := range c.tasks { // the orders are the other way round than the numbers
			l := link{num: uint64(i + 1), entered: i < 8}
			rows = append(rows, object.KeyInfo{Key: chainKey("k", uint64(5000-i)), Value: l.value()})
		}
		g.put(rows)
		page, err := Tasks(t.Context(), g, "chores", TasksOptions{Key: "k", States: []State{Pending}, Limit: object.MaxPage})
		if err != nil || len(page.Tasks) != min(c.tasks, object.MaxPage) || !slices.IsSortedFunc(page.Tasks, func(a, b TaskInfo) int { return cmp.Compare(a.ID.Number, b.ID.Number) }) {
			t.Errorf("%d tasks of the key: %d are listed: %v", c.tasks, len(page.Tasks), err)
		}
		if g.rows > c.rows {
			t.Errorf("%d tasks of the key: %d rows were read, at most %d are expected", c.tasks, g.rows, c.rows)
		}
		if _, ids := g.walk(t, TasksOptions{Key: "k", Limit: 7}, maxTasksRead+object.MaxPage, 1<<20); len(ids) != c.tasks {
			t.Errorf("%d tasks of the key: the pages have %d", c.tasks, len(ids))
		}
	}
	g := &given{}
	g.put([]object.KeyInfo{{Key: chainKey("k", 1), Value: []byte("short")}})
	if _, err := Tasks(t.Context(), g, "chores", TasksOptions{Key: "k"}); !errors.Is(err, storage.ErrCorrupt) || !strings.HasPrefix(err.Error(), "chores/0: ") {
		t.Errorf("a damaged link: %v", err)
	}
}

// Proves W11: a page of running tasks reads 16 MiB at most, and those of one step.
func TestTasksThatRunAreBoundedInBytes(t *testing.T) {
	g := &given{}
	g.put(append(executionsOf(40), tasksOf(t, taskPrefix, 1, 40, row{input: make([]byte, 1<<20)})...))
	g.put(append(executionsOf(1), tasksOf(t, taskPrefix, 1, 1, row{})...))
	pages, ids := g.walk(t, TasksOptions{States: []State{Running}}, 100, maxTaskBytesRead+2<<20)
	if pages != 3 || len(ids) != 41 {
		t.Errorf("%d pages with %v", pages, ids)
	}
	for i, id := range ids[:min(40, len(ids))] {
		if id != (TaskID{0, uint64(i + 1)}) {
			t.Errorf("at place %d: task %s", i, id)
		}
	}
	g = &given{}
	g.put(append(executionsOf(2), tasksOf(t, taskPrefix, 1, 2, row{input: make([]byte, 7<<20)})...))
	if pages, ids := g.walk(t, TasksOptions{States: []State{Running}}, 100, maxTaskBytesRead); pages != 1 || len(ids) != 2 {
		t.Errorf("less than 16 MiB: %d pages with %v", pages, ids)
	}
}

// A task row that cannot be read is named with its partition and number, however it is read.
func TestTasksNameADamagedRow(t *testing.T) {
	for _, prefix := range []string{taskPrefix, deadPrefix} {
		for _, states := range [][]State{nil, {Running, Dead}} {
			g := &given{}
			g.put(nil)
			g.put(append(executionsOf(7), object.KeyInfo{Key: numbered(prefix, 7), Value: []byte{rowVersion}}))
			_, err := Tasks(t.Context(), g, "chores", TasksOptions{States: states})
			if !errors.Is(err, storage.ErrCorrupt) || errors.Is(err, jobs.ErrInvalid) || !strings.HasPrefix(err.Error(), "chores/1: task 1-7: ") {
				t.Errorf("%q, %v: %v", prefix, states, err)
			}
		}
	}
	g := &given{}
	g.put([]object.KeyInfo{{Key: taskPrefix + "\xff"}})
	if _, err := Tasks(t.Context(), g, "chores", TasksOptions{}); !errors.Is(err, storage.ErrCorrupt) || !strings.HasPrefix(err.Error(), "chores/0: ") {
		t.Errorf("a key without a number: %v", err)
	}
}
