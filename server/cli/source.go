package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/holdfast-dev/holdfast/admin"
	"github.com/holdfast-dev/holdfast/admin/transfer"
	"github.com/holdfast-dev/holdfast/admin/why"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server/internal/client"
	"github.com/holdfast-dev/holdfast/server/internal/socket"
	"github.com/holdfast-dev/holdfast/storage"
)

// source is a store as the verbs that look at it see it: that of a directory, or that of a server.
type source interface {
	classes(ctx context.Context) ([]class, error)
	objects(ctx context.Context, class string, o object.ObjectsOptions) ([]object.ObjectInfo, error)
	// inspect has the keys that the options choose.
	inspect(ctx context.Context, id storage.ID, o object.KeysOptions) (object.Inspection, error)
	events(ctx context.Context, id storage.ID, after uint64, limit int) ([]object.Event, error)
	export(ctx context.Context, id storage.ID, o transfer.ExportOptions, w io.Writer) error
	jobs(ctx context.Context, o admin.JobsOptions) (admin.JobPage, error)
	tasks(ctx context.Context, pool string, o workerpool.TasksOptions) (workerpool.TaskPage, error)
	view(ctx context.Context, id storage.ID, view string, arg []byte) ([]byte, error)
	letters(ctx context.Context, o object.DeadLettersOptions, after string) (letters, error)
	letter(ctx context.Context, id storage.ID, seq uint64) (object.DeadLetter, error)
	why(ctx context.Context, id storage.ID) (why.Answer, error)
	whyTask(ctx context.Context, pool string, id workerpool.TaskID) (why.Answer, error)
	whyAll(ctx context.Context) (why.Overview, error)
}

// place is the flags that name a server or a directory.
type place struct{ addr, sock, tokenFile, dir string }

// tokenVariable is the variable of the environment with the token for --addr.
const tokenVariable = "HOLDFAST_TOKEN"

// server is the server of --addr, of --sock, or of the socket of --dir if that answers; nil: there is none.
func (s *session) server() (*client.Client, error) {
	p := &s.place
	switch {
	case p.addr != "" && p.sock != "":
		return nil, usage("--addr and --sock are both given: take one")
	case p.tokenFile != "" && p.addr == "":
		return nil, usage("--token-file is for --addr")
	case p.addr != "":
		token, err := p.token()
		if err != nil {
			return nil, err
		}
		c, err := client.New(p.addr, token)
		if err != nil {
			return nil, usage("--addr: %v", err)
		}
		return c, nil
	case p.sock != "":
		at, err := socket.Place(p.sock)
		if err != nil {
			return nil, usage("--sock: %v", err)
		}
		return client.OverSocket(at), nil
	case p.dir == "":
		return nil, usage("--dir is missing: name the directory of the store, or a server by --addr or --sock")
	}
	if at, err := socket.Place(socket.Of(p.dir)); err == nil && socket.Answers(at) {
		return client.OverSocket(at), nil
	}
	return nil, nil
}

// token is the token for --addr. It is no flag, because other users see the arguments of a process.
func (p *place) token() (string, error) {
	if p.tokenFile == "" {
		return strings.TrimSpace(os.Getenv(tokenVariable)), nil
	}
	text, err := os.ReadFile(p.tokenFile)
	if err != nil {
		return "", &exit{Unopened, fmt.Errorf("--token-file: %w", err)}
	}
	return strings.TrimSpace(string(text)), nil
}

// look gives fn the store of the server, or else that of the directory, which a line of errs says.
func (s *session) look(ctx context.Context, fn func(source) error) error {
	c, err := s.server()
	if err != nil {
		return err
	}
	if c != nil {
		return refused(fn(&live{c}))
	}
	return s.read(func(store *storage.Store, r object.Reader) error {
		s.out = &noted{s.out, func() {
			fmt.Fprintf(s.errs, "%s: no server answers for %s: this is its directory, read as it is\n", s.program.Name, shown(s.place.dir))
		}}
		return fn(&cold{store, r, s.program.Definitions})
	})
}

// noted calls note before the first byte of a result, so that an error stays one line.
type noted struct {
	io.Writer
	note func()
}

func (n *noted) Write(b []byte) (int, error) {
	if n.note != nil {
		n.note()
		n.note = nil
	}
	return n.Writer.Write(b)
}

// directoryOnly refuses a server for a verb that reads files.
func (s *session) directoryOnly(verb string) error {
	switch {
	case s.place.addr != "" || s.place.sock != "":
		return usage("%s is of a directory: give --dir, and no --addr and no --sock", verb)
	case s.place.dir == "":
		return usage("--dir is missing: name the directory of the store")
	}
	return nil
}

// served is the server for a verb that only a server has.
func (s *session) served(verb string) (*live, error) {
	c, err := s.server()
	if err == nil && c == nil {
		err = &exit{Refused, fmt.Errorf("%s needs a server, and none answers for %s: start the program, or name its server by --addr or --sock", verb, shown(s.place.dir))}
	}
	return &live{c}, err
}

// usageProblems are the types of problems that a wrong argument has; those with the status 400 are too.
var usageProblems = []string{"unknown-verb", "unknown-type", "unknown-letter", "unknown-path", "unknown-class", "bad-method"}

// codeOf is the code of exit for an error of a server; ok is false for another error.
func codeOf(err error) (code int, ok bool) {
	var p *client.Problem
	switch {
	case errors.Is(err, client.ErrUnreachable):
		return Unopened, true
	case !errors.As(err, &p):
		return 0, false
	case p.Status == 400:
		return Usage, true
	case p.Status >= 500:
		return Unopened, true
	}
	for _, t := range usageProblems {
		if p.Type == t {
			return Usage, true
		}
	}
	return Refused, true
}
