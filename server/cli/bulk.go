package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/admin"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server/internal/client"
	"github.com/holdfast-dev/holdfast/storage"
)

// many is a verb over many jobs or dead letters.
type many struct {
	verb string // as it is written, for errors
	noun [2]string
	// count counts them. A host gives the token with which they are run.
	count     func(ctx context.Context, a *admin.Admin) (admin.Count, error)
	of        string // the routes of a server: dead or jobs
	asks      any    // the body with which a server counts them
	open, yes bool
}

// flags adds the flags that let the verb act.
func (m *many) flags(c *cobra.Command) {
	openFlag(c, &m.open)
	c.Flags().BoolVar(&m.yes, "yes", false, "act on all that were counted")
}

// manyHelp says in the help of a verb how it is confirmed.
const manyHelp = `It counts first. On a server it asks then, if there is a terminal; without one it exits with 4 unless
--yes is given. On a directory it exits with 4 unless both --open and --yes are given. Until then nothing
changes.

On a server the run goes on when the verb is interrupted: see bulk.

` + openHelp

// run counts, and acts if both flags are given.
func (s *session) run(ctx context.Context, m *many) error {
	if m.open && m.yes {
		return s.open(ctx, m.verb+" --open", func(host *object.Host) error { return s.runMany(ctx, m, admin.Live(host, s.program.Definitions...)) }, nil)
	}
	if !m.open {
		c, err := s.server()
		if err != nil {
			return err
		}
		if c != nil {
			return refused(s.runServed(ctx, m, &live{c}))
		}
	}
	if err := s.directoryOnly(m.verb + " --open"); err != nil {
		return err
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
		text += fmt.Sprintf(" (beside %s that cannot be read: %s)", plural(c.Damaged, m.noun[0], m.noun[1]), value([]byte(c.LastError)))
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
	if bad := s.ran(m, count, p); bad != nil {
		return bad
	}
	if err != nil {
		return asked(err)
	}
	return m.refused(p)
}

// runServed counts on a server, and acts if that is confirmed.
func (s *session) runServed(ctx context.Context, m *many, l *live) error {
	var count admin.Count
	if err := l.api.Post(ctx, "/v1/"+m.of+":count", m.asks, &count); err != nil {
		return err
	}
	if err := s.confirmed(ctx, m, count); err != nil {
		return err
	}
	p, on, err := l.run(ctx, m.of, count.Token)
	if on != "" {
		fmt.Fprintf(s.errs, "%s: the run goes on at the server: bulk ls shows it, and bulk stop %s ends it\n", s.program.Name, shown(on))
	}
	if bad := s.ran(m, count, p); bad != nil {
		return bad
	}
	if err != nil {
		return fmt.Errorf("%s: it has ended early: %w", m.verb, err)
	}
	return m.refused(p)
}

// run runs the verb that a server has counted. The progress is the last that the server has told, and on is the id of
// the run if it has not ended.
func (l *live) run(ctx context.Context, of, token string) (p admin.Progress, on string, err error) {
	ended := false
	err = l.api.Lines(ctx, "/v1/"+of+":run", map[string]string{"token": token}, func(raw []byte) error {
		var line struct {
			admin.Progress
			Ended   bool            `json:"ended"`
			Problem *client.Problem `json:"problem"`
			ID      string          `json:"id"`
		}
		if err := json.Unmarshal(raw, &line); err != nil {
			return fmt.Errorf("%w: a line of progress: %w", client.ErrUnreachable, err)
		}
		p, ended, on = line.Progress, line.Ended, line.ID
		if line.Problem != nil {
			return line.Problem
		}
		return nil
	})
	if ended {
		return p, "", err
	}
	if err == nil {
		err = fmt.Errorf("%w: it has not told the end", client.ErrUnreachable)
	}
	return p, on, err
}

// confirmed returns an error unless --yes is given or the person at the terminal says yes.
func (s *session) confirmed(ctx context.Context, m *many, count admin.Count) error {
	if m.yes {
		return nil
	}
	if s.asks {
		fmt.Fprintf(s.errs, "%s acts on %s. Write yes to go on: ", m.verb, m.counted(count))
		said := make(chan string, 1) // a slot, so that the goroutine ends when the verb was interrupted
		go func() {
			line, _ := bufio.NewReader(s.in).ReadString('\n') // its end is a no
			said <- line
		}()
		select {
		case line := <-said:
			if strings.TrimSpace(line) == "yes" {
				return nil
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return &exit{Refused, fmt.Errorf("%s: nothing was changed: give --yes to act on %s", m.verb, m.counted(count))}
}

// ran prints how far a verb over many has come.
func (s *session) ran(m *many, count admin.Count, p admin.Progress) error {
	if s.format == "json" {
		return printJSON(s.out, struct {
			Matches int `json:"matches"`
			admin.Progress
		}{count.Matches, p})
	}
	s.note("%s: %d done, %d skipped, %d refused", m.counted(count), p.Done, p.Skipped, p.Refused)
	return nil
}

// refused is the error of a verb that some have refused.
func (m *many) refused(p admin.Progress) error {
	if p.Refused == 0 {
		return nil
	}
	return &exit{Refused, fmt.Errorf("%s: %d refused, the last: %s", m.verb, p.Refused, value([]byte(p.LastError)))}
}

// deadBulk is the body with which a server counts dead letters.
type deadBulk struct {
	Do     string    `json:"do"`
	Class  string    `json:"class,omitempty"`
	Name   string    `json:"name,omitempty"`
	Kind   string    `json:"kind,omitempty"`
	Reason string    `json:"reason,omitempty"`
	Error  string    `json:"error,omitempty"`
	Since  time.Time `json:"since,omitzero"`
	Before time.Time `json:"before,omitzero"`
}

// jobsBulk is the body with which a server counts jobs.
type jobsBulk struct {
	Verb   string          `json:"verb"`
	Class  string          `json:"class"`
	Label  string          `json:"label"`
	Prefix string          `json:"prefix,omitempty"`
	Arg    json.RawMessage `json:"arg,omitempty"`
}

// deadTake replays or discards the dead letters that the flags choose.
func (s *session) deadTake(name, short string, replay bool) *cobra.Command {
	var filter deadFilter
	m := &many{verb: "dead " + name, of: "dead", noun: [2]string{"dead letter", "dead letters"}}
	c := &cobra.Command{
		Use:     name,
		Short:   short,
		Long:    short + ".\n\nIt acts on what died before it began. " + manyHelp,
		Example: "  dead " + name + " --kind task --error \"connection refused\"\n  dead " + name + " --kind task --error \"connection refused\" --yes",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			o, err := filter.options()
			if err != nil {
				return err
			}
			m.asks = deadBulk{name, o.Class, o.Name, o.Kind, o.Reason, o.Error, o.DiedSince, o.DiedBefore}
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
	m := &many{verb: "jobs all", of: "jobs", noun: [2]string{"job", "jobs"}}
	c := &cobra.Command{
		Use:     "all VERB CLASS [JSON] --label LABEL",
		Short:   "Run a verb on all jobs of a definition with a label, such as failed",
		Long:    "Run a verb on all jobs of a definition with a label, such as failed.\n\n" + manyHelp,
		Example: "  jobs all resume report --label failed\n  jobs all resume report --label failed --yes",
		Args:    cobra.RangeArgs(2, 3),
		RunE: func(c *cobra.Command, args []string) error {
			id, arg := target(args)
			if id.Name != "" || o.Label == "" {
				return usage("write jobs all VERB CLASS --label LABEL")
			}
			if len(arg) > 0 && !json.Valid(arg) {
				return usage("the argument is not JSON: %s", value(arg))
			}
			o.Class = id.Class
			m.asks = jobsBulk{args[0], o.Class, o.Label, o.Prefix, arg}
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
