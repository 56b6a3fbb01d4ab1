package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// events is the verb that lists the events of an object.
func (s *session) events() *cobra.Command {
	var after uint64
	var limit int
	var follow bool
	c := &cobra.Command{
		Use:   "events CLASS/NAME",
		Short: "List the events of an object, the oldest first",
		Long: `List the events of an object that are kept, the oldest first, also of one that was deleted.

With -f a server goes on with each new event until the verb is interrupted, and the verb comes back to
its place when the server was started anew. Of a job a server tells the
newest 20 without their data, and with -f those from now on with it.`,
		Example: "  events cart/alice\n  events cart/alice --after 4294967301 --limit 20\n  events report/daily -f",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := idOf(args[0])
			if err != nil {
				return err
			}
			if err := page(limit); err != nil {
				return err
			}
			if follow {
				return s.followEvents(c.Context(), id, after)
			}
			return s.look(c.Context(), func(src source) error { return s.listEvents(c.Context(), src, id, after, limit) })
		},
	}
	c.Flags().Uint64Var(&after, "after", 0, "begin behind the event with this number")
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on with the events as they happen")
	c.Flags().IntVar(&limit, "limit", object.DefaultPage, fmt.Sprintf("at most so many, up to %d", object.MaxPage))
	return c
}

// followEvents prints events of an object until ctx ends, each on a line of its own.
func (s *session) followEvents(ctx context.Context, id storage.ID, after uint64) error {
	l, err := s.served("events -f")
	if err != nil {
		return err
	}
	return refused(l.follow(ctx, id, after, func(e object.Event) error {
		if s.format == "json" {
			return printJSONLine(s.out, e)
		}
		_, err := fmt.Fprintf(s.out, "%d  %s  %s  %s\n", e.Seq, at(e.At), shown(e.Kind), value(e.Data))
		return err
	}, func(err error) { fmt.Fprintf(s.errs, "%s: %s; it is tried again\n", s.program.Name, oneLine(err)) }))
}

func (s *session) listEvents(ctx context.Context, src source, id storage.ID, after uint64, limit int) error {
	events, err := src.events(ctx, id, after, limit)
	if err != nil {
		return err
	}
	rows := [][]string{}
	for _, e := range events {
		rows = append(rows, []string{fmt.Sprint(e.Seq), at(e.At), shown(e.Kind), value(e.Data)})
	}
	if len(events) == 0 {
		s.note("%s has no such events", shownID(id))
		events = []object.Event{}
	}
	if err := s.print(events, []string{"SEQ", "AT", "KIND", "DATA"}, rows); err != nil {
		return err
	}
	if len(events) == limit {
		s.note("more: --after %d", events[len(events)-1].Seq)
	}
	return nil
}
