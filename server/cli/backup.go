package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/admin/backup"
	"github.com/holdfast-dev/holdfast/server/internal/client"
	"github.com/holdfast-dev/holdfast/storage"
)

// repository opens a repository that a flag names.
func repository(flag, dir string) (*backup.Repository, error) {
	if dir == "" {
		return nil, usage("%s is missing: name the directory of the repository", flag)
	}
	return backup.Open(dir, storage.Options{})
}

// backupError gives an error of a repository its code of exit; nil stays nil.
func (s *session) backupError(err error) error {
	switch {
	case errors.Is(err, backup.ErrNoSnapshot), errors.Is(err, backup.ErrNotEmpty):
		return &exit{Usage, err}
	case errors.Is(err, backup.ErrDamaged):
		return &exit{Found, err}
	}
	return s.unopened(err)
}

// backup is the verb for the snapshots of a repository.
func (s *session) backup() *cobra.Command {
	var from string
	c := &cobra.Command{
		Use:   "backup",
		Short: "Make, list, verify and remove backups of a store",
		Long: `Make, list, verify and remove backups of a store, in a repository: a directory, best on another disk.

A snapshot counts as a backup once it was verified. A program makes one of its open store by package
admin/backup; create is for a store that no program has open.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.PersistentFlags().StringVar(&from, "from", "", "directory of the repository")
	c.AddCommand(s.backupCreate(), s.backupLs(&from), s.backupVerify(&from), s.backupRm(&from), s.backupGc(&from))
	return c
}

func (s *session) backupCreate() *cobra.Command {
	var to string
	c := &cobra.Command{
		Use:   "create",
		Short: "Make a snapshot of the store and verify it",
		Long: `Make a snapshot of the store and verify it.

If a server answers, it makes the snapshot while calls go on, in its own repository. It goes on with that when the
command is interrupted. Else the snapshot is that of the directory --dir, in the repository --to.`,
		Example: "  backup create                  # of a server\n  backup create --to /backup    # of a directory that no program has open",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			api, err := s.server()
			if err != nil {
				return err
			}
			if api != nil {
				return s.backupLive(c.Context(), &live{api}, to)
			}
			r, err := repository("--to", to)
			if err != nil {
				return err
			}
			made, err := r.CreateFrom(c.Context(), s.place.dir)
			if err != nil {
				return s.backupError(err)
			}
			return s.verifySnapshot(c.Context(), r, made.Name)
		},
	}
	c.Flags().StringVar(&to, "to", "", "directory of the repository, made if it is absent")
	return c
}

// liveBackup is a backup of a server.
type liveBackup struct {
	ID       string    `json:"id"`
	State    string    `json:"state"` // copying, verifying, verified or failed
	Snapshot string    `json:"snapshot"`
	Bytes    int64     `json:"bytes"`
	Began    time.Time `json:"began"`
	Seconds  float64   `json:"seconds"`
	Error    string    `json:"error,omitempty"`
	Findings []string  `json:"findings,omitempty"`
}

// liveLook is how often a backup of a server is looked at.
const liveLook = 200 * time.Millisecond

// backupLive has a server make a backup, and waits for its end.
func (s *session) backupLive(ctx context.Context, l *live, to string) error {
	if to != "" {
		return usage("--to is for a store that no program has open: the server has a repository of its own")
	}
	var begun liveBackup
	if err := l.api.Post(ctx, "/v1/backups", struct{}{}, &begun); err != nil {
		return refused(err)
	}
	for state := ""; ; {
		var page struct{ Running, Last *liveBackup }
		if err := l.api.Get(ctx, "/v1/backups", client.Query("limit", "1"), &page); err != nil {
			return refused(err)
		}
		switch {
		case page.Last != nil && page.Last.ID == begun.ID:
			return s.backupEnded(page.Last)
		case page.Running == nil || page.Running.ID != begun.ID:
			return &exit{Refused, fmt.Errorf("the server does not know the backup %s any more, because it was started anew", begun.ID)}
		case page.Running.State != state:
			state = page.Running.State
			s.note("%s", shown(state))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(liveLook):
		}
	}
}

// backupEnded prints a backup that a server has made.
func (s *session) backupEnded(b *liveBackup) error {
	for _, f := range b.Findings {
		s.note("%s", shown(f))
	}
	if b.Error != "" {
		return &exit{Found, fmt.Errorf("the backup has failed: %s", b.Error)}
	}
	took := time.Duration(b.Seconds * float64(time.Second)).Round(time.Millisecond)
	return s.print(b, []string{"SNAPSHOT", "BEGUN", "STATE", "SIZE", "TOOK"}, [][]string{{shown(b.Snapshot), at(b.Began), shown(b.State), sized(uint64(b.Bytes)), took.String()}})
}

// verifySnapshot verifies a snapshot and prints it.
func (s *session) verifySnapshot(ctx context.Context, r *backup.Repository, name string) error {
	verified, err := r.Verify(ctx, name, func(f storage.Finding) {
		fmt.Fprintf(s.errs, "%s: %s %s: %s\n", s.program.Name, shown(f.File), shown(f.Object.String()), f.Text)
	})
	if err != nil {
		return s.backupError(err)
	}
	return s.printSnapshots([]backup.Snapshot{verified})
}

// printSnapshots prints a list of snapshots.
func (s *session) printSnapshots(list []backup.Snapshot) error {
	rows := [][]string{}
	for _, b := range list {
		verified := "never"
		if !b.Verified.IsZero() {
			verified = at(b.Verified)
		}
		rows = append(rows, []string{b.Name, at(b.Begun), verified, sized(uint64(b.Bytes)), shown(b.Store)})
	}
	return s.print(list, []string{"SNAPSHOT", "BEGUN", "VERIFIED", "SIZE", "STORE"}, rows)
}

func (s *session) backupLs(from *string) *cobra.Command {
	return &cobra.Command{
		Use:   "ls",
		Short: "List the snapshots, oldest first, with the time at which each was verified",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			r, err := repository("--from", *from)
			if err != nil {
				return err
			}
			list, err := r.List()
			if list == nil {
				list = []backup.Snapshot{}
			}
			if errors.Is(err, backup.ErrNoRepository) {
				return s.backupError(err)
			}
			return errors.Join(s.printSnapshots(list), s.backupError(err))
		},
	}
}

func (s *session) backupVerify(from *string) *cobra.Command {
	return &cobra.Command{
		Use:   "verify [SNAPSHOT]",
		Short: "Read a snapshot again, the newest without a name, put it together and check it",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			r, err := repository("--from", *from)
			if err != nil {
				return err
			}
			if len(args) == 1 {
				return s.verifySnapshot(c.Context(), r, args[0])
			}
			list, err := r.List()
			if err != nil {
				return s.backupError(err)
			}
			if len(list) == 0 {
				return s.backupError(fmt.Errorf("%w: %s holds none", backup.ErrNoSnapshot, *from))
			}
			return s.verifySnapshot(c.Context(), r, list[len(list)-1].Name)
		},
	}
}

func (s *session) backupRm(from *string) *cobra.Command {
	return &cobra.Command{
		Use:   "rm SNAPSHOT",
		Short: "Remove a snapshot; the next gc removes its content",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			r, err := repository("--from", *from)
			if err == nil {
				err = s.backupError(r.Remove(args[0]))
			}
			return err
		},
	}
}

func (s *session) backupGc(from *string) *cobra.Command {
	var keep backup.Keep
	c := &cobra.Command{
		Use:   "gc",
		Short: "Remove old snapshots, and all content that no snapshot names",
		Long: `Remove the snapshots that neither flag keeps, and all content that no snapshot names. Without flags
all snapshots stay. The newest snapshot that is verified stays in any case.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			r, err := repository("--from", *from)
			if err != nil {
				return err
			}
			removed, freed, err := r.Clean(keep)
			rows := [][]string{}
			for _, name := range removed {
				rows = append(rows, []string{name})
			}
			if err := errors.Join(s.backupError(err), s.print(append([]string{}, removed...), []string{"REMOVED"}, rows)); err != nil {
				return err
			}
			s.note("%s of content removed", sized(uint64(freed)))
			return nil
		},
	}
	c.Flags().IntVar(&keep.Last, "keep-last", 0, "keep so many of the newest")
	c.Flags().IntVar(&keep.Days, "keep-days", 0, "keep those of so many days")
	return c
}

// restore is the verb that makes a store of a snapshot.
func (s *session) restore() *cobra.Command {
	var from string
	var wake, link bool
	c := &cobra.Command{
		Use:   "restore [SNAPSHOT]",
		Short: "Make a store of a snapshot in the empty directory --dir",
		Long: `Make a store of a snapshot in the empty directory --dir: of the newest that is verified without a name.

Each file is compared with its hash, and the store of a snapshot that is not verified is verified. The
store has an id of its own and sleeps: nothing in it runs until go. Wake it once the original is gone
for good, because work that both do is done twice.

With --link the tables are links to those of the repository, so a look at an old snapshot takes little
time and space. Repository and store then have one copy of them on the disk.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := s.directoryOnly("restore"); err != nil {
				return err
			}
			r, err := repository("--from", from)
			if err != nil {
				return err
			}
			restore := r.Restore
			if link {
				restore = r.RestoreLinked
			}
			made, err := restore(c.Context(), append(args, "")[0], s.place.dir)
			if err != nil {
				return s.backupError(err)
			}
			if wake {
				return s.wake()
			}
			s.note("%s is restored and sleeps: %s --dir %s go wakes it", made.Name, s.program.Name, shown(s.place.dir))
			return nil
		},
	}
	c.Flags().StringVar(&from, "from", "", "directory of the repository")
	c.Flags().BoolVar(&wake, "go", false, "wake the store at once")
	c.Flags().BoolVar(&link, "link", false, "link the tables to those of the repository, where the file system has links between both")
	return c
}

// goes is the verb that wakes a restored store.
func (s *session) goes() *cobra.Command {
	return &cobra.Command{
		Use:   "go",
		Short: "Wake the restored store in --dir",
		Long: `Wake the restored store in --dir: the next program that opens it recovers what was running, fires
alarms and delivers messages. It does nothing to a store that is awake.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := s.directoryOnly("go"); err != nil {
				return err
			}
			return s.wake()
		},
	}
}

func (s *session) wake() error {
	if err := storage.Wake(storage.Options{Dir: s.place.dir}); err != nil {
		return s.unopened(err)
	}
	s.note("the store in %s is awake", shown(s.place.dir))
	return nil
}
