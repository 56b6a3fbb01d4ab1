package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/recovery"
	"github.com/holdfast-dev/holdfast/storage"
)

// recover is the verb for the work that a crash has left behind.
func (s *session) recover() *cobra.Command {
	var repair bool
	c := &cobra.Command{
		Use:   "recover",
		Short: "Tell what the next open of the store finds to do, or do it with --repair; of a server, what it has recovered",
		Long: `A server tells what it has recovered since its start: a line for each execution that was cut off.

Of a directory, tell what the next open of the store finds to do: executions that were cut off, alarms that
are due, and jobs with rows that contradict one another. Nothing changes.

With --repair the program opens the store with its own classes, recovers, wakes each job
that nothing else would wake, and ends in order. Its jobs and alarms run meanwhile.

It exits with 1 if there is something to recover.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if repair {
				return s.repair(c.Context())
			}
			return s.look(c.Context(), func(src source) error {
				if l, ok := src.(*live); ok {
					return s.recovered(c.Context(), l)
				}
				return s.lookAhead(c.Context(), src.(*cold).store)
			})
		},
	}
	c.Flags().BoolVar(&repair, "repair", false, "open the store with the classes of this program and recover")
	return c
}

// recovered prints what a server has recovered since its start.
func (s *session) recovered(ctx context.Context, l *live) error {
	report, err := l.recovered(ctx)
	if err != nil {
		return err
	}
	if s.format == "json" {
		err = printJSON(s.out, report)
	} else {
		err = report.Write(s.out, 0)
	}
	if err == nil && report.Total > 0 {
		err = &exit{code: Found}
	}
	return err
}

func (s *session) lookAhead(ctx context.Context, store *storage.Store) error {
	p, err := recovery.LookAhead(ctx, store, time.Now())
	many := errors.Is(err, storage.ErrManyFindings)
	if err != nil && !many {
		return err
	}
	if s.format == "json" {
		err = printJSON(s.out, p)
	} else {
		err = s.printPreview(p)
	}
	if many {
		s.note("the look ended after so many findings")
	}
	if err == nil && !p.Clean() {
		err = &exit{code: Found}
	}
	return err
}

func (s *session) printPreview(p recovery.Preview) error {
	switch {
	case p.Previous.Epoch == 0:
		s.note("no program has opened the store yet")
	case p.Previous.Clean:
		s.note("the last program (opening %d, %s) ended in order", p.Previous.Epoch, at(p.Previous.OpenedAt))
	default:
		s.note("the last program (opening %d, %s) did not end in order: %s in a row", p.Previous.Epoch, at(p.Previous.OpenedAt),
			plural(int(p.Previous.Crashes), "crash", "crashes"))
	}
	s.note("the next open is opening %d", p.Epoch)
	more := ""
	if p.DueMore {
		more = " or more"
	}
	s.note("it fires %d%s that are due now", p.Due, more+" alarms")
	s.note("it activates %s with an open execution", plural(p.Open, "object", "objects"))
	rows := [][]string{}
	for _, x := range p.Executions {
		rows = append(rows, []string{shownID(x.ID), at(x.Since), fmt.Sprint(x.Epoch)})
	}
	if err := s.print(nil, []string{"OBJECT", "OPEN SINCE", "OPENING"}, rows); err != nil {
		return err
	}
	if p.Open > len(p.Executions) {
		s.note("and %d more", p.Open-len(p.Executions))
	}
	return s.printFindings(p.Scrubbed)
}

// printFindings prints what a walk over all jobs has found.
func (s *session) printFindings(seen recovery.Scrubbed) error {
	s.note("of %s looked at, %d may be idle by design and %s", plural(seen.Objects, "object", "objects"), seen.Suspects,
		plural(len(seen.Findings), "is not as it should be", "are not as they should be"))
	rows := [][]string{}
	for _, f := range seen.Findings {
		problem := f.Problem
		if f.Repaired {
			problem += ", repaired"
		}
		where := "-"
		if f.ID != (storage.ID{}) {
			where = shownID(f.ID)
		}
		rows = append(rows, []string{where, f.Promise, problem})
	}
	return s.print(nil, []string{"OBJECT", "PROMISE", "PROBLEM"}, rows)
}

// repair opens the store with the classes of the program.
func (s *session) repair(ctx context.Context) error {
	var seen recovery.Scrubbed
	var report recovery.Report
	err := s.open(ctx, "recover --repair", func(host *object.Host) (err error) {
		seen, err = recovery.Scrub(ctx, host, recovery.ScrubOptions{Repair: true})
		return unopened(err)
	}, func(host *object.Host) { report = recovery.Recovered(host) })
	if err != nil {
		return err
	}
	if s.format == "json" {
		err = printJSON(s.out, struct {
			recovery.Report
			recovery.Scrubbed
		}{report, seen})
	} else if err = report.Write(s.out, 0); err == nil {
		err = s.printFindings(seen)
	}
	if err == nil && (report.Total > 0 || len(seen.Findings) > 0) {
		err = &exit{code: Found}
	}
	return err
}
