package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/admin/transfer"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server/internal/client"
	"github.com/holdfast-dev/holdfast/storage"
)

// export is the verb that writes an object as lines of JSON.
func (s *session) export() *cobra.Command {
	var o transfer.ExportOptions
	c := &cobra.Command{
		Use:   "export CLASS/NAME [FILE]",
		Short: "Write an object to a file, from which import stores it elsewhere",
		Long: `Write all that is stored of an object, as it is at one moment, as lines of JSON to a new file that its owner
alone can read, or without FILE to standard output. Its last line has the SHA-256 of those before, so that no part is
taken for the whole. A server exports plain objects, to an admin.`,
		Example: "  export cart/alice alice.ndjson",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := idOf(args[0])
			if err != nil {
				return err
			}
			return s.look(c.Context(), func(src source) error {
				if len(args) == 1 {
					return src.export(c.Context(), id, o, s.out)
				}
				return s.exportTo(c.Context(), src, id, o, args[1])
			})
		},
	}
	c.Flags().BoolVar(&o.LeaveMessages, "leave-messages", false, "also while messages to the object wait, which the file does not have")
	return c
}

// exportTo writes an object to a new file, and leaves none after an error.
func (s *session) exportTo(ctx context.Context, src source, id storage.ID, o transfer.ExportOptions, path string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return &exit{Refused, fmt.Errorf("%s exists: name a new file", shown(path))}
	}
	if err != nil {
		return unopened(err)
	}
	err = src.export(ctx, id, o, file)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	_, err = fmt.Fprintf(s.out, "%s is in %s\n", shownID(id), shown(path))
	return err
}

func (l *live) export(ctx context.Context, id storage.ID, o transfer.ExportOptions, w io.Writer) error {
	query := client.Query(of(id)...)
	if o.LeaveMessages {
		query.Set("leaveMessages", "1")
	}
	return l.api.Copy(ctx, "/v1/object/export", query, w)
}

func (c *cold) export(ctx context.Context, id storage.ID, o transfer.ExportOptions, w io.Writer) error {
	return transfer.Export(ctx, c.rows, id, w, o)
}

// imports is the verb that stores the object of a file.
func (s *session) imports() *cobra.Command {
	var o transfer.ImportOptions
	var open bool
	c := &cobra.Command{
		Use:   "import FILE",
		Short: "Store the object of a file that export has written",
		Long: `Store the object of a file that export has written, under the class and the name in it, whole or not at all.

Without --alarms the object rests: it has no alarm until its code sets one. To move an object, stop all that calls it,
export it, import it elsewhere with --alarms, and delete it where it was; in between both stores have it, and both
alarms fire. A server imports plain objects of its classes, from an admin.`,
		Example: "  import alice.ndjson --alarms",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			file, err := os.Open(args[0])
			if err != nil {
				return unopened(err)
			}
			defer file.Close()
			return s.importFrom(c.Context(), file, o, open)
		},
	}
	c.Flags().BoolVar(&o.Alarms, "alarms", false, "with the alarm of the file")
	c.Flags().BoolVar(&o.Replace, "replace", false, "in the place of the object that has the name, which is removed")
	c.Flags().BoolVar(&o.LeaveMessages, "leave-messages", false, "also if messages to the object waited when the file was made")
	c.Flags().BoolVar(&open, "open", false, "open the store of --dir as the program does; alarms fire and jobs run meanwhile")
	return c
}

// importFrom stores the object of a file by a server, or in the directory if that may be opened for it.
func (s *session) importFrom(ctx context.Context, file *os.File, o transfer.ImportOptions, open bool) error {
	if open {
		return s.open(ctx, "import --open", func(host *object.Host) error {
			id, err := transfer.Import(ctx, host, file, o)
			if err != nil {
				return &exit{Refused, err}
			}
			return s.imported(id)
		}, nil)
	}
	l, err := s.served("import")
	if err != nil {
		return err
	}
	id, err := l.importFile(ctx, file, o)
	if err != nil {
		return refused(err)
	}
	return s.imported(id)
}

// imported tells which object is stored.
func (s *session) imported(id storage.ID) error {
	return s.print(id, []string{"CLASS", "NAME"}, [][]string{{shown(id.Class), shown(id.Name)}})
}

func (l *live) importFile(ctx context.Context, file io.Reader, o transfer.ImportOptions) (id storage.ID, err error) {
	query := client.Query()
	for name, set := range map[string]bool{"alarms": o.Alarms, "replace": o.Replace, "leaveMessages": o.LeaveMessages} {
		if set {
			query.Set(name, "1")
		}
	}
	raw, err := l.api.Do(ctx, client.Request{Method: http.MethodPost, Path: "/v1/import", Query: query, Lines: file})
	if err != nil {
		return id, err
	}
	return id, client.Decode(raw, &id)
}
