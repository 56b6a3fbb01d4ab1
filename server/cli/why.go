package cli

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/admin/why"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/storage"
)

// why is the verb that tells why something does not run.
func (s *session) why() *cobra.Command {
	c := &cobra.Command{
		Use:   "why [CLASS/NAME]",
		Short: "Tell why an object or a job does not run, or everything that is overdue or stuck",
		Long: `Tell why an object or a job does not run. Without one, tell of everything that is overdue, lost,
failed, paused or stuck, the worst first.

The first line of an answer is the reason, the lines below are other reasons that hold and the
tasks, children and objects that it waits for. docs/OPERATIONS.md has a table of the codes.

Without an argument it exits with 1 if it has found something.`,
		Example: "  why order/4711\n  why task thumbs/0-17\n  why",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return s.look(c.Context(), func(src source) error { return s.everything(c.Context(), src) })
			}
			id, err := idOf(args[0])
			if err != nil {
				return err
			}
			return s.explain(c.Context(), func(src source) (why.Answer, error) { return src.why(c.Context(), id) })
		},
	}
	c.AddCommand(&cobra.Command{
		Use:     "task POOL/ID",
		Short:   "Tell why a task of a worker pool does not run",
		Example: "  why task thumbs/0-17",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			pool, text, _ := strings.Cut(args[0], "/")
			id, err := workerpool.ParseTaskID(text)
			if err != nil {
				return usage("%q is no task: write POOL/ID, for example thumbs/0-17", args[0])
			}
			return s.explain(c.Context(), func(src source) (why.Answer, error) { return src.whyTask(c.Context(), pool, id) })
		},
	})
	return c
}

// explain prints one answer.
func (s *session) explain(ctx context.Context, ask func(source) (why.Answer, error)) error {
	return s.look(ctx, func(src source) error {
		a, err := ask(src)
		if err != nil {
			return err
		}
		if s.format == "json" {
			return printJSON(s.out, a)
		}
		s.tell("", a)
		for _, other := range a.Also {
			s.tell("  also ", other)
		}
		return nil
	})
}

// tell prints an answer and those that it leads to.
func (s *session) tell(indent string, a why.Answer) {
	s.note("%s%s  %s  %s", indent, shownAnswer(a), a.Code, a.Text)
	deeper := strings.Repeat(" ", len(indent)) + "  "
	for _, fact := range []struct{ name, text string }{
		{"name", quotedOrNone(a.Name)}, {"error", quotedOrNone(a.Error)}, {"since", atOrNone(a.Since)}, {"until", atOrNone(a.Until)},
		{"next", atOrNone(a.Next)}, {"do", strings.Join(a.Do, ", or ")},
	} {
		if fact.text != "" {
			s.note("%s%-6s %s", deeper, fact.name, fact.text)
		}
	}
	for _, b := range a.Because {
		s.tell(deeper+"because ", b)
	}
}

// shownAnswer names the subject of an answer; empty if it is about the whole store.
func shownAnswer(a why.Answer) string {
	switch {
	case a.ID == storage.ID{}:
		return "the store"
	case a.Task != "":
		return "task " + shown(a.ID.Class) + "/" + a.Task
	}
	return shownID(a.ID)
}

// atOrNone is a time; a zero time is empty.
func atOrNone(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return at(t)
}

// everything prints all that is overdue or stuck.
func (s *session) everything(ctx context.Context, src source) error {
	o, err := src.whyAll(ctx)
	if err != nil {
		return err
	}
	if s.format == "json" {
		err = printJSON(s.out, o)
	} else {
		err = s.printOverview(o)
	}
	if err == nil && len(o.Answers) > 0 {
		err = &exit{code: Found}
	}
	return err
}

func (s *session) printOverview(o why.Overview) error {
	for _, a := range o.Store {
		s.note("%s", a.Text)
	}
	if len(o.Answers) == 0 {
		s.note("nothing is overdue or stuck")
		return nil
	}
	rows := make([][]string, len(o.Answers))
	for i, a := range o.Answers {
		rows[i] = []string{shownAnswer(a), string(a.Code), at(a.Since), a.Text, quoted(a.Error)}
	}
	err := s.print(nil, []string{"OBJECT", "CODE", "SINCE", "WHY", "ERROR"}, rows)
	if o.More {
		s.note("and more: only %d were looked at", why.MaxOverview)
	}
	return err
}
