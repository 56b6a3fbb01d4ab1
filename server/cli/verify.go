package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/holdfast-dev/holdfast/recovery"
	"github.com/holdfast-dev/holdfast/storage"
)

// finding is something that verify has found, as JSON shows it.
type finding struct {
	File    string      `json:"file,omitempty"`
	Object  *storage.ID `json:"object,omitempty"`
	Promise string      `json:"promise,omitempty"`
	Text    string      `json:"text"`
}

// verify is the verb that checks every file and row of a store.
func (s *session) verify() *cobra.Command {
	return &cobra.Command{
		Use:   "verify",
		Short: "Check every file, block and row of the store",
		Long: fmt.Sprintf(`Check every file, block and row of the store, and change nothing: the format file, the logs and
the manifest against their sums, each block of each table against its checksum, each row
against the others, and each job against its own rows.

It exits with 1 if it finds something, and names the file or the object. After %d findings
it stops.`, storage.MaxFindings),
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := s.directoryOnly("verify"); err != nil {
				return err
			}
			return s.check(c.Context(), c.ErrOrStderr())
		},
	}
}

func (s *session) check(ctx context.Context, errs io.Writer) error {
	found := []finding{}
	began, bar := time.Now(), newProgress(errs)
	o := storage.Options{Dir: s.place.dir}
	_, err := storage.Verify(ctx, o, storage.Verification{
		Progress: bar.tell,
		Found: func(f storage.Finding) {
			found = append(found, finding{File: f.File, Object: idOrNone(f.Object), Text: f.Text})
		},
	})
	bar.done()
	many := errors.Is(err, storage.ErrManyFindings)
	if err != nil && !many {
		return s.unopened(err)
	}
	if len(found) == 0 {
		if found, err = s.scrub(ctx); err != nil {
			return err
		}
	}
	if err := s.printChecked(found, many, bar.total, time.Since(began)); err != nil {
		return err
	}
	if len(found) > 0 {
		return &exit{code: Found}
	}
	return nil
}

// scrub looks for jobs with rows that contradict one another. A job that may be idle by design
// is no finding.
func (s *session) scrub(ctx context.Context) (found []finding, err error) {
	store, err := storage.OpenReadOnly(storage.Options{Dir: s.place.dir})
	if err != nil {
		return nil, s.unopened(err)
	}
	p, err := recovery.LookAhead(ctx, store, time.Now())
	found = []finding{}
	for _, f := range p.Findings {
		if !f.Suspect {
			found = append(found, finding{Object: idOrNone(f.ID), Promise: f.Promise, Text: f.Problem})
		}
	}
	return found, unopened(errors.Join(err, store.Close()))
}

func (s *session) printChecked(found []finding, many bool, total int64, took time.Duration) error {
	rows := [][]string{}
	for _, f := range found {
		where := f.File
		if where == "" && f.Object != nil {
			where = shownID(*f.Object)
		}
		text := f.Text
		if f.Promise != "" {
			text += " (" + f.Promise + ")"
		}
		rows = append(rows, []string{where, text})
	}
	if err := s.print(found, []string{"WHERE", "WHAT"}, rows); err != nil {
		return err
	}
	switch {
	case many:
		s.note("stopped after %s", plural(len(found), "finding", "findings"))
	case len(found) == 0:
		s.note("%s checked in %s: nothing found", sized(uint64(total)), took.Round(time.Millisecond))
	default:
		s.note("%s checked in %s: %s", sized(uint64(total)), took.Round(time.Millisecond), plural(len(found), "finding", "findings"))
	}
	return nil
}

// idOrNone is a pointer to an object's name, and nil for none.
func idOrNone(id storage.ID) *storage.ID {
	if id == (storage.ID{}) {
		return nil
	}
	return &id
}

// progress writes how far a long work is to a terminal, at most ten times a second, and nothing
// elsewhere.
type progress struct {
	w     io.Writer // nil: no terminal
	last  time.Time
	total int64
}

// isTerminal reports whether a stream is a terminal.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

func newProgress(w io.Writer) *progress {
	if !isTerminal(w) {
		w = nil
	}
	return &progress{w: w}
}

func (p *progress) tell(done, total int64) {
	p.total = total
	if p.w == nil || total == 0 || time.Since(p.last) < 100*time.Millisecond {
		return
	}
	p.last = time.Now()
	fmt.Fprintf(p.w, "\r%3d %% of %s", 100*done/total, sized(uint64(total)))
}

// done clears the line.
func (p *progress) done() {
	if p.w != nil && !p.last.IsZero() {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
