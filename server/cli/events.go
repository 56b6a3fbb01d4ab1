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
	c := &cobra.Command{
		Use:     "events CLASS/NAME",
		Short:   "List the events of an object, the oldest first",
		Long:    "List the events of an object that are kept, the oldest first, also of one that was deleted.",
		Example: "  events report/daily\n  events report/daily --after 4294967301 --limit 20",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := idOf(args[0])
			if err != nil {
				return err
			}
			if err := page(limit); err != nil {
				return err
			}
			return s.read(func(_ *storage.Store, r object.Reader) error { return s.listEvents(c.Context(), r, id, after, limit) })
		},
	}
	c.Flags().Uint64Var(&after, "after", 0, "begin behind the event with this number")
	c.Flags().IntVar(&limit, "limit", object.DefaultPage, fmt.Sprintf("at most so many, up to %d", object.MaxPage))
	return c
}

func (s *session) listEvents(ctx context.Context, r object.Reader, id storage.ID, after uint64, limit int) error {
	events, err := r.Events(ctx, id, after, limit)
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
