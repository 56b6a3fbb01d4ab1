package cli

import (
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/admin"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server/internal/client"
)

// bulk is the verb for the runs of verbs over many jobs or dead letters.
func (s *session) bulk() *cobra.Command {
	c := &cobra.Command{
		Use:   "bulk",
		Short: "List or stop the runs of verbs over many jobs or dead letters",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(s.bulkList(), s.bulkStop())
	return c
}

// bulkRun is a run as a server tells of it.
type bulkRun struct {
	ID      string `json:"id"`
	State   string `json:"state"`
	Verb    string `json:"verb"`
	Who     string `json:"who"`
	Matches int    `json:"matches"`
	admin.Progress
	Began   time.Time       `json:"began"`
	Ended   time.Time       `json:"ended,omitzero"`
	Problem *client.Problem `json:"problem,omitempty"`
}

// bulkList lists runs.
func (s *session) bulkList() *cobra.Command {
	var after string
	var limit int
	var running bool
	c := &cobra.Command{
		Use:     "ls",
		Short:   "List the runs of a server, also those that have ended in the last seven days",
		Example: "  bulk ls\n  bulk ls --running",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := page(limit); err != nil {
				return err
			}
			l, err := s.served("bulk ls")
			if err != nil {
				return err
			}
			query := client.Query("after", after, "limit", fmt.Sprint(limit))
			if running {
				query.Set("running", "1")
			}
			list := struct {
				Runs []bulkRun `json:"runs"`
				Next string    `json:"next,omitempty"`
			}{}
			if err := l.api.Get(c.Context(), "/v1/bulk", query, &list); err != nil {
				return refused(err)
			}
			rows := [][]string{}
			for _, r := range list.Runs {
				why := ""
				if r.Problem != nil {
					why = r.Problem.Title
				}
				rows = append(rows, []string{shown(r.ID), shown(r.State), shown(r.Verb), shown(r.Who), fmt.Sprint(r.Matches), fmt.Sprint(r.Done), fmt.Sprint(r.Skipped), fmt.Sprint(r.Refused), at(r.Began), at(r.Ended), quoted(why)})
			}
			if len(rows) == 0 {
				s.note("no such runs")
			}
			if err := s.print(list, []string{"ID", "STATE", "VERB", "BY", "MATCHES", "DONE", "SKIPPED", "REFUSED", "BEGAN", "ENDED", "PROBLEM"}, rows); err != nil {
				return err
			}
			if list.Next != "" {
				s.note("more: --after %s", list.Next)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&running, "running", false, "only those that have not ended")
	c.Flags().StringVar(&after, "after", "", "go on behind the page that printed this")
	c.Flags().IntVar(&limit, "limit", object.DefaultPage, fmt.Sprintf("at most so many, up to %d", object.MaxPage))
	return c
}

// bulkStop stops a run.
func (s *session) bulkStop() *cobra.Command {
	return &cobra.Command{
		Use:     "stop ID",
		Short:   "Stop a run of a server; the rest stays as it is, to be counted again",
		Example: "  bulk stop 5f2c9a0b7d3e41685f2c9a0b7d3e4168",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			l, err := s.served("bulk stop")
			if err != nil {
				return err
			}
			_, err = l.api.Do(c.Context(), client.Request{Method: http.MethodPost, Path: client.Path("v1", "bulk", args[0], "stop")})
			return refused(err)
		},
	}
}
