package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// letter is a dead letter as JSON shows it. Its object and number are fields too, which the
// stored form has in its key.
type letter struct {
	ID  storage.ID `json:"id"`
	Seq uint64     `json:"seq"`
	object.DeadLetter
}

// letters is a page of dead letters as JSON shows it.
type letters struct {
	Letters []letter `json:"letters"`
	Next    string   `json:"next,omitempty"` // for --after
	// LastError is that of a letter that cannot be read, before which the page of a server ends.
	LastError string `json:"lastError,omitempty"`
}

// dead is the verb for work that is not tried any more.
func (s *session) dead() *cobra.Command {
	c := &cobra.Command{
		Use:   "dead",
		Short: "List, show, replay or discard the work that is not tried any more",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(s.deadList(), s.deadShow(),
		s.deadTake("replay", "Make dead work due again, with all its attempts", true),
		s.deadTake("discard", "Give dead work up for good; the runs of workflows are terminated", false))
	return c
}

// deadFilter is the flags that choose dead letters.
type deadFilter struct {
	o             object.DeadLettersOptions
	since, before string
}

// add adds the flags to a verb.
func (d *deadFilter) add(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&d.o.Class, "class", "", "only of objects of this class")
	f.StringVar(&d.o.Name, "name", "", "only of the object with this name in --class")
	f.StringVar(&d.o.Kind, "kind", "", "only of this kind, for example task")
	f.StringVar(&d.o.Reason, "reason", "", "only those with a reason that begins with this")
	f.StringVar(&d.o.Error, "error", "", "only those with a last error that begins with this")
	f.StringVar(&d.since, "since", "", "only those that died at that time or later, or so long ago, such as 24h")
	f.StringVar(&d.before, "before", "", "only those that died before that time, or longer ago")
}

// options are the options that the flags give, or the first mistake in them.
func (d *deadFilter) options() (o object.DeadLettersOptions, err error) {
	o = d.o
	if o.DiedSince, err = timeOf("--since", d.since); err != nil {
		return o, err
	}
	if o.DiedBefore, err = timeOf("--before", d.before); err != nil {
		return o, err
	}
	if o.Name != "" && o.Class == "" {
		return o, usage("--name is %q without --class: name the class of the object too", o.Name)
	}
	if !o.DiedBefore.IsZero() && !o.DiedSince.Before(o.DiedBefore) {
		return o, usage("--since must be an earlier time than --before")
	}
	return o, nil
}

func (s *session) deadList() *cobra.Command {
	var filter deadFilter
	var after string
	var limit int
	c := &cobra.Command{
		Use:     "ls",
		Short:   "List dead letters",
		Example: "  dead ls\n  dead ls --kind task --error \"connection refused\" --since 24h",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			o, err := filter.options()
			if err != nil {
				return err
			}
			if err := page(limit); err != nil {
				return err
			}
			o.Limit = limit
			return s.look(c.Context(), func(src source) error { return s.listDead(c.Context(), src, o, after) })
		},
	}
	filter.add(c)
	c.Flags().StringVar(&after, "after", "", "go on behind the page that printed this")
	c.Flags().IntVar(&limit, "limit", object.DefaultPage, fmt.Sprintf("at most so many, up to %d", object.MaxPage))
	return c
}

func (s *session) listDead(ctx context.Context, src source, o object.DeadLettersOptions, after string) error {
	found, err := src.letters(ctx, o, after)
	if err != nil {
		return err
	}
	rows := [][]string{}
	if found.Letters == nil {
		found.Letters = []letter{}
	}
	for _, d := range found.Letters {
		rows = append(rows, []string{shownID(d.ID), fmt.Sprint(d.Seq), shown(d.Kind), at(d.Died), fmt.Sprint(d.Attempts), shown(d.Reason), quoted(d.LastError)})
	}
	if len(rows) == 0 && found.Next == "" {
		s.note("no such dead letters")
	}
	if err := s.print(found, []string{"OBJECT", "SEQ", "KIND", "DIED", "FAILED", "REASON", "ERROR"}, rows); err != nil {
		return err
	}
	if found.LastError != "" {
		s.note("a letter cannot be read: %s", value([]byte(found.LastError)))
	}
	if found.Next != "" {
		s.note("more: --after %s", found.Next)
	}
	return nil
}

func (s *session) deadShow() *cobra.Command {
	return &cobra.Command{
		Use:     "show CLASS/NAME SEQ",
		Short:   "Show one dead letter with its error, stack, argument and data",
		Example: "  dead show mails/7 4294967301",
		Args:    cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := idOf(args[0])
			if err != nil {
				return err
			}
			seq, err := strconv.ParseUint(args[1], 10, 64)
			if err != nil {
				return usage("%q is no number of a dead letter: take one of dead ls", args[1])
			}
			return s.look(c.Context(), func(src source) error {
				d, err := src.letter(c.Context(), id, seq)
				if err != nil {
					return err
				}
				return s.showDead(d)
			})
		},
	}
}

func (s *session) showDead(d object.DeadLetter) error {
	if s.format == "json" {
		return printJSON(s.out, letter{d.ID, d.Seq, d})
	}
	rows := [][2]string{
		{"object", shownID(d.ID)}, {"number", fmt.Sprint(d.Seq)}, {"kind", shown(d.Kind)},
		{"due", at(d.Scheduled)}, {"died", at(d.Died)},
		{"attempts", fmt.Sprint(d.Attempts)}, {"crashes", fmt.Sprint(d.Crashes)},
		{"reason", value([]byte(d.Reason))}, {"error", quoted(d.LastError)},
	}
	if d.Method != "" {
		rows = append(rows, [2]string{"method", shown(d.Method)}, [2]string{"from", shownID(d.From)}, [2]string{"argument", value(d.Arg)})
	}
	if len(d.Data) > 0 {
		rows = append(rows, [2]string{"data", value(d.Data)})
	}
	if d.Verb != "" {
		rows = append(rows, [2]string{"replay by", value([]byte(d.Verb))})
	}
	for _, row := range rows {
		s.note("%-10s %s", row[0], row[1])
	}
	if d.Stack != "" {
		s.note("")
		for line := range strings.Lines(d.Stack) {
			s.note("%s", strings.ReplaceAll(value([]byte(strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "\t", "    "))), "\n", " "))
		}
	}
	return nil
}
