package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/jobs/verbs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// Errors of the methods of an Admin. A call that returns one has changed nothing.
var (
	// ErrNoType says that the program defines no job type with that class.
	ErrNoType = errors.New("admin: no such job type")
	// ErrNoProgram refuses a verb on a directory, because a verb runs the code of a program.
	ErrNoProgram = errors.New("admin: a directory is only read: open it with the program that defines its jobs")
)

// rows reads a store: a *object.Host or an object.Reader.
type rows interface {
	workerpool.Rows
	StoredClasses(ctx context.Context) ([]string, error)
	DeadLetters(ctx context.Context, o object.DeadLettersOptions) (object.DeadLetterPage, error)
}

// Admin operates the jobs of a host, or looks at those of a directory. Its methods may be called
// from any goroutine, as long as the host or the store is open.
type Admin struct {
	rows   rows
	host   *object.Host  // nil: of a directory
	reader object.Reader // of a directory
	tables map[string]*verbs.Table
	tokens tokens
}

// Live returns an Admin of a host with the job types among its definitions. Others of the
// definitions are passed over, so that a program gives all that it has.
func Live(host *object.Host, definitions ...object.Definition) *Admin {
	a := &Admin{rows: host, host: host, tables: make(map[string]*verbs.Table)}
	for _, d := range definitions {
		if d, ok := d.(verbs.Described); ok {
			a.tables[d.Name()] = d.Verbs()
		}
	}
	return a
}

// Cold returns an Admin of a store that no host has open, for example of a directory. It lists,
// and has the views that stored rows tell.
func Cold(r object.Reader) *Admin { return &Admin{rows: r, reader: r} }

// read lets f read the rows. Those of a host are durable when it returns, after one wait for the disk.
func (a *Admin) read(ctx context.Context, f func(object.Reader) error) error {
	if a.host == nil {
		return f(a.reader)
	}
	return a.host.Read(ctx, f)
}

// Types returns the tables of the job types, in the order of their classes. There are none for a
// directory.
func (a *Admin) Types() []*verbs.Table {
	return slices.SortedFunc(maps.Values(a.tables), func(x, y *verbs.Table) int { return cmp.Compare(x.Class(), y.Class()) })
}

// Do runs a verb on the job, or the task, with an id: see verbs.Table.Do. The name in the id is
// empty for a verb of a whole definition. It returns ErrNoType, ErrNoProgram, and the errors of
// Table.Do.
func (a *Admin) Do(ctx context.Context, id storage.ID, verb string, arg []byte) ([]byte, error) {
	if a.host == nil {
		return nil, fmt.Errorf("%w: %s %s", ErrNoProgram, verb, id.Class)
	}
	table, err := a.table(id.Class)
	if err != nil {
		return nil, err
	}
	return table.Do(ctx, a.host, id.Name, verb, arg)
}

// View asks a view of a job, or a task, as Do runs a verb. A directory has the views that rows
// tell: status of a job, state of a continuous one, history of a run of a workflow, and tasks of a
// pool. Their JSON is that of the rows, so it differs from that of the program.
func (a *Admin) View(ctx context.Context, id storage.ID, view string, arg []byte) ([]byte, error) {
	if a.host == nil {
		return a.cold(ctx, id, view, arg)
	}
	table, err := a.table(id.Class)
	if err != nil {
		return nil, err
	}
	return table.View(ctx, a.host, id.Name, view, arg)
}

// Tasks lists tasks of a pool, see workerpool.Tasks.
func (a *Admin) Tasks(ctx context.Context, pool string, o workerpool.TasksOptions) (workerpool.TaskPage, error) {
	return workerpool.Tasks(ctx, a.rows, pool, o)
}

// table is the table of a class.
func (a *Admin) table(class string) (*verbs.Table, error) {
	if t := a.tables[class]; t != nil {
		return t, nil
	}
	if len(a.tables) == 0 {
		return nil, fmt.Errorf("%w: %q; the program defines none", ErrNoType, class)
	}
	return nil, fmt.Errorf("%w: %q; the program defines %s", ErrNoType, class, strings.Join(slices.Sorted(maps.Keys(a.tables)), ", "))
}
