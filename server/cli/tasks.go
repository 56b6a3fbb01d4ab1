package cli

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// tasks is the verb for the tasks of worker pools.
func (s *session) tasks() *cobra.Command {
	c := &cobra.Command{
		Use:   "tasks",
		Short: "List the tasks of a worker pool, or enqueue, await or cancel one",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(s.tasksList(), s.tasksEnqueue(),
		s.taskVerb("cancel", "Cancel a pending task, or ask a running one to end", false),
		s.taskVerb("wait", "Wait until a task has ended, and print its result", true))
	return c
}

// tasksList lists tasks.
func (s *session) tasksList() *cobra.Command {
	var o workerpool.TasksOptions
	var states []string
	var queue string
	c := &cobra.Command{
		Use:     "ls POOL",
		Short:   "List the pending, running and dead tasks of a pool",
		Example: "  tasks ls thumbs\n  tasks ls thumbs --state dead --queue mail\n  tasks ls thumbs --key anna",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			for _, name := range states {
				var state workerpool.State
				if err := state.UnmarshalText([]byte(name)); err != nil {
					return usage("--state is %q: write pending, running or dead", name)
				}
				o.States = append(o.States, state)
			}
			if c.Flags().Changed("queue") {
				o.Queue = &queue
			}
			if err := page(o.Limit); err != nil {
				return err
			}
			return s.look(c.Context(), func(src source) error { return s.listTasks(c.Context(), src, args[0], o) })
		},
	}
	c.Flags().StringSliceVar(&states, "state", nil, "only those that are pending, running or dead")
	c.Flags().StringVar(&queue, "queue", "", "only those of this queue; the default queue has the empty name")
	c.Flags().StringVar(&o.Key, "key", "", "only those with this key")
	c.Flags().StringVar(&o.After, "after", "", "go on behind the page that printed this")
	c.Flags().IntVar(&o.Limit, "limit", object.DefaultPage, fmt.Sprintf("at most so many, up to %d", object.MaxPage))
	return c
}

func (s *session) listTasks(ctx context.Context, src source, pool string, o workerpool.TasksOptions) error {
	list, err := src.tasks(ctx, pool, o)
	if err != nil {
		return err
	}
	rows := [][]string{}
	for _, t := range list.Tasks {
		rows = append(rows, []string{t.ID.String(), t.State.String(), shown(t.Key), shown(t.Queue), fmt.Sprint(t.Priority), at(t.Enqueued), at(t.NotBefore), fmt.Sprint(t.Attempt), quoted(t.LastError)})
	}
	if len(rows) == 0 && list.Next == "" {
		s.note("no such tasks")
	}
	if list.Tasks == nil {
		list.Tasks = []workerpool.TaskInfo{}
	}
	if err := s.print(list, []string{"TASK", "STATE", "KEY", "QUEUE", "PRIORITY", "ENQUEUED", "NOT BEFORE", "ATTEMPT", "ERROR"}, rows); err != nil {
		return err
	}
	if list.Next != "" {
		s.note("more: --after %s", list.Next)
	}
	return nil
}

// tasksEnqueue adds a task.
func (s *session) tasksEnqueue() *cobra.Command {
	var open bool
	o := struct {
		In         json.RawMessage `json:"in"`
		Key        string          `json:"key,omitempty"`
		Queue      string          `json:"queue,omitempty"`
		Priority   int             `json:"priority,omitempty"`
		Unique     string          `json:"unique,omitempty"`
		Idempotent string          `json:"idempotent,omitempty"`
	}{}
	c := &cobra.Command{
		Use:     "enqueue POOL JSON",
		Short:   "Add a task with an input",
		Long:    "Add a task with an input, as JSON.\n\n" + liveHelp + openHelp,
		Example: "  tasks enqueue thumbs '{\"image\": \"a.png\"}' --key anna",
		Args:    cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			if o.In = json.RawMessage(args[1]); !json.Valid(o.In) {
				return usage("the input is not JSON: %s", value(o.In))
			}
			arg, err := json.Marshal(o)
			if err != nil {
				return err
			}
			return s.do(c.Context(), open, "tasks enqueue", storage.ID{Class: args[0]}, verb{name: "enqueue", arg: arg, pool: true})
		},
	}
	f := c.Flags()
	f.StringVar(&o.Key, "key", "", "tasks with one key run in order")
	f.StringVar(&o.Queue, "queue", "", "the queue of the task")
	f.IntVar(&o.Priority, "priority", 0, "from -1000 to 1000; higher ones run first")
	f.StringVar(&o.Unique, "unique", "", "add nothing while a task with this key has not ended")
	f.StringVar(&o.Idempotent, "idempotent", "", "add nothing if this key was used in the last day")
	openFlag(c, &open)
	return c
}

// taskVerb is a verb, or a view, of one task.
func (s *session) taskVerb(name, short string, view bool) *cobra.Command {
	var open bool
	c := &cobra.Command{
		Use:     name + " POOL/TASK",
		Short:   short,
		Long:    short + ".\n\n" + liveHelp + openHelp,
		Example: "  tasks " + name + " thumbs/0-17",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := idOf(args[0])
			if err != nil {
				return err
			}
			return s.do(c.Context(), open, "tasks "+name, id, verb{name: name, view: view, pool: true})
		},
	}
	openFlag(c, &open)
	return c
}
