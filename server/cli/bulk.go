package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/admin"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// many is a verb over many jobs or dead letters.
type many struct {
	verb string // as it is written, for errors
	noun [2]string
	// count counts them. A host gives the token with which they are run.
	count     func(ctx context.Context, a *admin.Admin) (admin.Count, error)
	open, yes bool
}

// flags adds the flags that let the verb act.
func (m *many) flags(c *cobra.Command) {
	openFlag(c, &m.open)
	c.Flags().BoolVar(&m.yes, "yes", false, "act on all that were counted")
}

// manyHelp says in the help of a verb how it is confirmed.
const manyHelp = `Without --open and --yes it counts, changes nothing and exits with 4.

` + openHelp

// run counts, and acts if both flags are given.
func (s *session) run(ctx context.Context, m *many) error {
	if m.open && m.yes {
		return s.open(ctx, m.verb+" --open", func(host *object.Host) error { return s.runMany(ctx, m, admin.Live(host, s.program.Definitions...)) }, nil)
	}
	return s.read(func(_ *storage.Store, r object.Reader) error {
		count, err := m.count(ctx, admin.Cold(r))
		if err != nil {
			return asked(err)
		}
		return &exit{Refused, fmt.Errorf("%s: give --open and --yes to act on %s", m.verb, m.counted(count))}
	})
}

// counted is a count with its noun.
func (m *many) counted(c admin.Count) string {
	text := plural(c.Matches, m.noun[0], m.noun[1])
	if c.More {
		text += " and more"
	}
	if c.Damaged > 0 {
		text += fmt.Sprintf(" (beside %s that cannot be read: %s)", plural(c.Damaged, m.noun[0], m.noun[1]), c.LastError)
	}
	return text
}

// runMany counts again, because the store was opened meanwhile, and acts.
func (s *session) runMany(ctx context.Context, m *many, a *admin.Admin) error {
	count, err := m.count(ctx, a)
	if err != nil {
		return asked(err)
	}
	p, err := a.Run(ctx, count.Token, nil)
	if s.format == "json" {
		if bad := printJSON(s.out, struct {
			Matches int `json:"matches"`
			admin.Progress
		}{count.Matches, p}); bad != nil {
			return bad
		}
	}
	s.note("%s: %d done, %d skipped, %d refused", m.counted(count), p.Done, p.Skipped, p.Refused)
	switch {
	case err != nil:
		return asked(err)
	case p.Refused > 0:
		return &exit{Refused, fmt.Errorf("%s: %d refused, the last: %s", m.verb, p.Refused, p.LastError)}
	}
	return nil
}

// deadTake replays or discards the dead letters that the flags choose.
func (s *session) deadTake(name, short string, replay bool) *cobra.Command {
	var filter deadFilter
	m := &many{verb: "dead " + name, noun: [2]string{"dead letter", "dead letters"}}
	c := &cobra.Command{
		Use:     name + " [flags] --open --yes",
		Short:   short,
		Long:    short + ".\n\nIt acts on what died before it began. " + manyHelp,
		Example: "  dead " + name + " --kind task --error \"connection refused\"\n  dead " + name + " --kind task --error \"connection refused\" --open --yes",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			o, err := filter.options()
			if err != nil {
				return err
			}
			if now := time.Now(); o.DiedBefore.IsZero() || o.DiedBefore.After(now) {
				o.DiedBefore = now // not those that die when the store is opened
			}
			m.count = func(ctx context.Context, a *admin.Admin) (admin.Count, error) { return a.CountDead(ctx, replay, o) }
			return s.run(c.Context(), m)
		},
	}
	filter.add(c)
	m.flags(c)
	return c
}

// jobsAll runs a verb on all jobs of a definition with a label.
func (s *session) jobsAll() *cobra.Command {
	var o admin.JobsOptions
	m := &many{verb: "jobs all", noun: [2]string{"job", "jobs"}}
	c := &cobra.Command{
		Use:     "all VERB CLASS [JSON] --label LABEL --open --yes",
		Short:   "Run a verb on all jobs of a definition with a label, such as failed",
		Long:    "Run a verb on all jobs of a definition with a label, such as failed.\n\n" + manyHelp,
		Example: "  jobs all resume report --label failed\n  jobs all resume report --label failed --open --yes",
		Args:    cobra.RangeArgs(2, 3),
		RunE: func(c *cobra.Command, args []string) error {
			id, arg := target(args)
			if id.Name != "" || o.Label == "" {
				return usage("write jobs all VERB CLASS --label LABEL")
			}
			o.Class = id.Class
			m.count = func(ctx context.Context, a *admin.Admin) (admin.Count, error) {
				return a.CountJobs(ctx, args[0], arg, o)
			}
			return s.run(c.Context(), m)
		},
	}
	c.Flags().StringVar(&o.Label, "label", "", "those that are failed, paused, stuck, stopped, completed or cancelled")
	c.Flags().StringVar(&o.Prefix, "prefix", "", "only ids that begin with this")
	m.flags(c)
	return c
}
