package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/admin"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/verbs"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// liveHelp says in the help of a verb where it runs.
const liveHelp = `A server runs it. Without one it is refused, unless --open is given.

`

// openHelp says in the help of a verb how it changes the store.
const openHelp = `With --open it opens the store as the program itself does, and ends in order: alarms that
are due fire, and jobs run meanwhile. Work that it cuts off goes on at the next open, at no
attempt.`

// openFlag adds the flag --open.
func openFlag(c *cobra.Command, open *bool) {
	c.Flags().BoolVar(open, "open", false, "open the store with the classes of this program; alarms fire and jobs run meanwhile")
}

// jobs is the verb for jobs.
func (s *session) jobs() *cobra.Command {
	c := &cobra.Command{
		Use:   "jobs",
		Short: "List jobs, view one, or run a verb on one",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(s.jobsList(), s.jobsView(), s.jobsDo(), s.jobsAll(), s.jobsVerbs())
	return c
}

// jobsList lists jobs.
func (s *session) jobsList() *cobra.Command {
	var o admin.JobsOptions
	c := &cobra.Command{
		Use:     "ls [CLASS]",
		Short:   "List the jobs of all types, or those of one definition",
		Example: "  jobs ls --label failed\n  jobs ls report --prefix eu/ --limit 20",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				o.Class = args[0]
			}
			if err := page(o.Limit); err != nil {
				return err
			}
			return s.look(c.Context(), func(src source) error { return s.listJobs(c.Context(), src, o) })
		},
	}
	c.Flags().StringVar(&o.Label, "label", "", "only those that are failed, paused, stuck, stopped, completed or cancelled")
	c.Flags().StringVar(&o.Prefix, "prefix", "", "only ids that begin with this")
	c.Flags().StringVar(&o.After, "after", "", "go on behind the page that printed this")
	c.Flags().IntVar(&o.Limit, "limit", object.DefaultPage, fmt.Sprintf("at most so many, up to %d", object.MaxPage))
	return c
}

func (s *session) listJobs(ctx context.Context, src source, o admin.JobsOptions) error {
	list, err := src.jobs(ctx, o)
	if err != nil {
		return err
	}
	rows := [][]string{}
	for _, j := range list.Jobs {
		rows = append(rows, []string{shownID(j.ID), shown(j.Kind), shown(string(j.Status)), at(j.Updated), at(j.Alarm), quoted(j.LastError), quoted(j.Reason)})
	}
	if len(rows) == 0 && list.Next == "" {
		s.note("no such jobs")
	}
	if list.Jobs == nil {
		list.Jobs = []admin.Job{}
	}
	if err := s.print(list, []string{"JOB", "TYPE", "STATUS", "UPDATED", "ALARM", "ERROR", "REASON"}, rows); err != nil {
		return err
	}
	if list.Next != "" {
		s.note("more: --after %s", list.Next)
	}
	return nil
}

// jobsView shows a view of a job.
func (s *session) jobsView() *cobra.Command {
	var open bool
	c := &cobra.Command{
		Use:   "view VIEW CLASS[/ID] [JSON]",
		Short: "Show a view of a job, or of a pool or task, as JSON",
		Long: `Show a view of a job, or of a pool or task, as JSON.

A server shows all views that jobs verbs lists, and of pools and tasks stats, status and wait. A
directory without --open shows those that rows tell: status, state of a continuous job, history of a
workflow, and tasks of a pool.

` + openHelp + " It has all views that jobs verbs lists.",
		Example: "  jobs view status report/daily\n  jobs view tasks thumbs '{\"states\": [\"dead\"]}'",
		Args:    cobra.RangeArgs(2, 3),
		RunE: func(c *cobra.Command, args []string) error {
			id, arg := target(args)
			if open {
				return s.onHost(c.Context(), "jobs view --open", func(a *admin.Admin) ([]byte, error) { return a.View(c.Context(), id, args[0], arg) })
			}
			return s.look(c.Context(), func(src source) error {
				raw, err := src.view(c.Context(), id, args[0], arg)
				if err != nil {
					return err
				}
				return s.answer(raw)
			})
		},
	}
	openFlag(c, &open)
	return c
}

// jobsDo runs a verb on a job.
func (s *session) jobsDo() *cobra.Command {
	var open bool
	var key string
	c := &cobra.Command{
		Use:     "do VERB CLASS[/ID] [JSON]",
		Short:   "Run a verb on a job, or on a pool or task; jobs verbs lists them",
		Long:    "Run a verb on a job, or on a pool or task. The verbs are those that jobs verbs lists.\n\n" + liveHelp + openHelp,
		Example: "  jobs do resume report/daily\n  jobs do stop report/daily '{\"reason\": \"no longer needed\"}'\n  jobs do pause thumbs",
		Args:    cobra.RangeArgs(2, 3),
		RunE: func(c *cobra.Command, args []string) error {
			id, arg := target(args)
			if key != "" && open {
				return usage("--key is for a server")
			}
			return s.do(c.Context(), open, "jobs do", id, verb{name: args[0], arg: arg, key: key})
		},
	}
	openFlag(c, &open)
	c.Flags().StringVar(&key, "key", "", "idempotency key of enqueue or signal: for a day a repeat with it adds nothing")
	return c
}

// verb is a verb, or a view, of a job, a pool or a task.
type verb struct {
	name string
	arg  []byte
	key  string // idempotency key; empty: none
	view bool
	pool bool // of a pool or a task, if the server does not tell
}

// do runs a verb on a server, or on the directory if that may be opened for it. command is how it was called.
func (s *session) do(ctx context.Context, open bool, command string, id storage.ID, v verb) error {
	if open {
		return s.onHost(ctx, command+" --open", func(a *admin.Admin) ([]byte, error) {
			if v.view {
				return a.View(ctx, id, v.name, v.arg)
			}
			return a.Do(ctx, id, v.name, v.arg)
		})
	}
	c, err := s.server()
	switch {
	case err != nil:
		return err
	case c == nil:
		return &exit{Refused, fmt.Errorf("%s runs code of the program on the store, and no server answers: start the program, or give --open to open the store, with which alarms fire and jobs run meanwhile", command)}
	}
	l := &live{c}
	run := func() ([]byte, error) { return l.do(ctx, id, v.name, v.arg, v.key, v.pool) }
	if v.view {
		run = func() ([]byte, error) { return l.wait(ctx, id) }
	}
	raw, err := run()
	if err != nil {
		return refused(err)
	}
	return s.answer(raw)
}

// onHost opens the store with the classes of the program and prints the answer of fn.
func (s *session) onHost(ctx context.Context, verb string, fn func(*admin.Admin) ([]byte, error)) error {
	return s.open(ctx, verb, func(host *object.Host) error {
		raw, err := fn(admin.Live(host, s.program.Definitions...))
		if err != nil {
			return asked(err)
		}
		return s.answer(raw)
	}, nil)
}

// jobsVerbs lists the verbs and views of the program's job types.
func (s *session) jobsVerbs() *cobra.Command {
	return &cobra.Command{
		Use:   "verbs [CLASS]",
		Short: "List the verbs and views of the job types of the server, or else of this program",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			class := ""
			if len(args) > 0 {
				class = args[0]
			}
			defines, all, err := s.tables(c.Context())
			if err != nil {
				return err
			}
			return s.listVerbs(defines, all, class)
		},
	}
}

// described is a verb or a view for a list.
type described struct {
	Class string `json:"class"`
	View  bool   `json:"view,omitempty"`
	verbs.Description
}

// tables are the job types of the server, or those of this program if none answers. defines names the one.
func (s *session) tables(ctx context.Context) (defines string, all []table, err error) {
	if s.place != (place{}) {
		c, err := s.server()
		if err != nil {
			return "", nil, err
		}
		if c != nil {
			all, err = (&live{c}).tables(ctx)
			return "the server", all, refused(err)
		}
	}
	for _, d := range s.program.Definitions {
		if d, ok := d.(verbs.Described); ok {
			t := d.Verbs()
			all = append(all, table{d.Name(), t.Kind(), t.Verbs(), t.Views()})
		}
	}
	return s.program.Name, all, nil
}

func (s *session) listVerbs(defines string, all []table, class string) error {
	found, rows := []described{}, [][]string{}
	for _, t := range all {
		if class != "" && class != t.Class {
			continue
		}
		for _, v := range t.Verbs {
			found = append(found, described{t.Class, false, v})
		}
		for _, v := range t.Views {
			found = append(found, described{t.Class, true, v})
		}
	}
	for _, v := range found {
		do, of := "do", shown(v.Class)+"/ID"
		if v.View {
			do = "view"
		}
		if v.Whole {
			of = shown(v.Class)
		}
		rows = append(rows, []string{do + " " + shown(v.Name), of, dash(string(v.Role)), value([]byte(v.Argument)), value([]byte(v.Help))})
	}
	if len(found) == 0 {
		s.note("%s defines no such job type", defines)
	}
	return s.print(found, []string{"VERB", "OF", "NEEDS", "ARGUMENT", "DOES"}, rows)
}

// target is the job, or the whole definition, that the second argument names, and the third
// argument.
func target(args []string) (id storage.ID, arg []byte) {
	id.Class, id.Name, _ = strings.Cut(args[1], "/")
	if len(args) > 2 {
		arg = []byte(args[2])
	}
	return id, arg
}

// asked gives the error of a verb or a view its code of exit: a name or an argument that is wrong
// is a usage error, and all else that the job answers means that it refuses.
func asked(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, object.ErrStorage), errors.Is(err, storage.ErrCorrupt):
		return &exit{Unopened, err}
	case errors.Is(err, verbs.ErrUnknown), errors.Is(err, jobs.ErrInvalid), errors.Is(err, object.ErrBadName), errors.Is(err, admin.ErrNoType):
		return &exit{Usage, err}
	}
	return &exit{Refused, err}
}

// answer prints the answer of a verb or a view.
func (s *session) answer(raw []byte) error {
	switch {
	case len(raw) == 0 && s.format == "json":
		raw = []byte("null")
	case len(raw) == 0:
		s.note("done")
		return nil
	}
	_, err := fmt.Fprintf(s.out, "%s\n", printable(raw))
	return err
}
