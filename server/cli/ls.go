package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// class is a class as ls lists it.
type class struct {
	Name string `json:"class"`
	// Objects is the count of its objects, and More says that there may be more than that.
	Objects int  `json:"objects"`
	More    bool `json:"more,omitempty"`
}

// ls is the verb that lists classes, or the objects of one.
func (s *session) ls() *cobra.Command {
	var o object.ObjectsOptions
	c := &cobra.Command{
		Use:   "ls [CLASS]",
		Short: "List the classes, or the objects of a class in the order of their names",
		Long: `List the classes of the store, or the objects of one class in the order of their names.

The next page begins --after the last name of a page. Sizes are shown with -o wide.`,
		Example: "  ls\n  ls cart --prefix eu/ --limit 20\n  ls report --label failed",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := page(o.Limit); err != nil {
				return err
			}
			if _, err := storage.NewLabel(o.Label); err != nil {
				return usage("--label: %v", err)
			}
			return s.look(c.Context(), func(src source) error {
				if len(args) == 0 {
					if objectFlags(c) {
						return usage("--prefix, --label, --after and --limit are for the objects of a class: write ls CLASS")
					}
					return s.listClasses(c.Context(), src)
				}
				return s.listObjects(c.Context(), src, args[0], o)
			})
		},
	}
	c.Flags().StringVar(&o.Prefix, "prefix", "", "only names that begin with this")
	c.Flags().StringVar(&o.Label, "label", "", "only objects with this label; jobs have their status as label, such as failed")
	c.Flags().StringVar(&o.After, "after", "", "begin behind this name")
	c.Flags().IntVar(&o.Limit, "limit", object.DefaultPage, fmt.Sprintf("at most so many, up to %d", object.MaxPage))
	return c
}

// objectFlags reports whether a flag was given that only the objects of a class have.
func objectFlags(c *cobra.Command) bool {
	for _, name := range []string{"prefix", "label", "after", "limit"} {
		if c.Flags().Changed(name) {
			return true
		}
	}
	return false
}

func (s *session) listClasses(ctx context.Context, src source) error {
	classes, err := src.classes(ctx)
	if err != nil {
		return err
	}
	rows := [][]string{}
	for _, of := range classes {
		count := fmt.Sprint(of.Objects)
		if of.More {
			count += " or more"
		}
		rows = append(rows, []string{shown(of.Name), count})
	}
	if len(classes) == 0 {
		s.note("the store has no objects")
	}
	return s.print(classes, []string{"CLASS", "OBJECTS"}, rows)
}

func (s *session) listObjects(ctx context.Context, src source, class string, o object.ObjectsOptions) error {
	o.Sizes = s.format != "table"
	infos, err := src.objects(ctx, class, o)
	if err != nil {
		return err
	}
	heads, rows := []string{"NAME", "LABEL", "ALARM"}, [][]string{}
	if s.format == "wide" {
		heads = append(heads, "SIZE")
	}
	for _, info := range infos {
		label := "-"
		if info.Label != "" {
			label = shown(info.Label)
		}
		row := []string{shown(info.ID.Name), label, at(info.Alarm)}
		if s.format == "wide" {
			row = append(row, sized(info.SizeBytes))
		}
		rows = append(rows, row)
	}
	if len(infos) == 0 {
		s.note("no such objects of class %s", shown(class))
		infos = []object.ObjectInfo{}
	}
	if err := s.print(infos, heads, rows); err != nil {
		return err
	}
	if len(infos) == o.Limit {
		s.note("more: --after %s", shown(infos[len(infos)-1].ID.Name))
	}
	return nil
}
