// Package cli is the command line of Holdfast: lists, one object, events, jobs and tasks, dead
// letters, calls, a check of all files, the work that a crash has left behind, why something does not run,
// and the tokens of a server.
//
// The verbs speak to a server, or read a directory without changing a byte of it, so that a look leaves no
// trace for the next open. Both print the same. The command holdfast is Main without definitions, and it runs no user code. A
// program that calls Main with its definitions also has the verbs that run user code:
//
//	func main() { cli.Main(cli.Program{Name: "shop", Definitions: []object.Definition{Carts}}) }
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/object"
)

// Program is a program with the verbs of the command line.
type Program struct {
	// Name is how its messages and its help call it. Default: holdfast.
	Name string
	// Definitions are its classes, which the verbs that run user code need. Default: none.
	Definitions []object.Definition
	// Options are those with which these verbs open the store; its Dir is that of --dir.
	Options object.Options
}

// Codes of exit.
const (
	Fine        = 0 // nothing was found that is wrong
	Found       = 1 // a verb such as verify has found something
	Usage       = 2 // a wrong verb, flag or argument
	Unopened    = 3 // the store cannot be opened or read, or its server cannot be reached
	Refused     = 4 // the verb was refused, because it is not allowed or was not confirmed
	Interrupted = 130
)

// Main runs the verb that the arguments of the process name, and ends the process with a code
// of exit. Interrupt and SIGTERM end a verb in order, and the second of them ends the process at once.
func Main(p Program) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process at once
	code := Run(ctx, p, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// Run runs the verb that args name and returns a code of exit. It prints results to out and one
// line for an error to errs. ctx ends a verb early.
func Run(ctx context.Context, p Program, args []string, in io.Reader, out, errs io.Writer) int {
	if p.Name == "" {
		p.Name = "holdfast"
	}
	s := &session{program: p, in: in, out: out, errs: errs, asks: isTerminal(in)}
	return s.execute(ctx, args)
}

// execute runs the verb that args name and returns a code of exit.
func (s *session) execute(ctx context.Context, args []string) int {
	root := s.root()
	root.SetArgs(append([]string{}, args...)) // for nil it would take those of the process
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.errs)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return Fine
	}
	var e *exit
	switch {
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		e = &exit{Interrupted, errors.New("interrupted")}
	case errors.As(err, &e):
	default: // cobra's own errors are about flags and arguments
		e = &exit{Usage, fmt.Errorf("%w; see %s -h", err, s.program.Name)}
	}
	if e.err != nil {
		fmt.Fprintf(s.errs, "%s: %s\n", s.program.Name, oneLine(e.err))
	}
	return e.code
}

// exit is an error with its code of exit.
type exit struct {
	code int
	err  error // nil: the verb has printed what it found
}

func (e *exit) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit %d", e.code)
	}
	return e.err.Error()
}

func (e *exit) Unwrap() error { return e.err }

// usage is the error of a wrong argument.
func usage(format string, args ...any) error { return &exit{Usage, fmt.Errorf(format, args...)} }

// unopened is the error of a store that cannot be opened or read; nil stays nil.
func unopened(err error) error {
	if err == nil {
		return nil
	}
	return &exit{Unopened, err}
}

// session is one run of the command line.
type session struct {
	program Program
	in      io.Reader
	out     io.Writer
	errs    io.Writer // for notes beside a result that a program reads from out
	place   place
	format  string
	asks    bool // in is a terminal
}

// root is the command without a verb, with the flags of all verbs.
func (s *session) root() *cobra.Command {
	root := &cobra.Command{
		Use:   s.program.Name,
		Short: "Looks at a store of durable objects and operates it",
		Long: `Looks at a store of durable objects and operates it.

The store is that of a server: at --addr, at --sock, or at the socket in --dir if a process answers
there. Otherwise it is that of the directory, which no process has open, and standard error says so.
No byte of a directory changes, but by verbs with --open or --repair, which open the store as the
program itself does, and by restore and go. The verbs of token and backup change no store.
Exit codes: 0 fine, 1 found something, 2 usage, 3 cannot open or reach, 4 refused.`,
		Example:       fmt.Sprintf("  %s --dir data why\n  %[1]s --addr http://127.0.0.1:7070 jobs ls --label failed\n  %[1]s --dir data verify", s.program.Name),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
		PersistentPreRunE: func(*cobra.Command, []string) error {
			if s.format != "table" && s.format != "json" && s.format != "wide" {
				return usage("-o is %q: it must be table, wide or json", s.format)
			}
			return nil
		},
	}
	root.PersistentFlags().StringVar(&s.place.dir, "dir", "", "directory of the store; if the socket of its server answers, that server")
	root.PersistentFlags().StringVar(&s.place.sock, "sock", "", "Unix socket of a server")
	root.PersistentFlags().StringVar(&s.place.addr, "addr", "", "address of a server, such as http://127.0.0.1:7070; its token is in "+tokenVariable)
	root.PersistentFlags().StringVar(&s.place.tokenFile, "token-file", "", "file with the token for --addr, in place of "+tokenVariable)
	root.PersistentFlags().StringVarP(&s.format, "output", "o", "table", "table, wide or json")
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(s.ls(), s.inspect(), s.events(), s.jobs(), s.tasks(), s.dead(), s.bulk(), s.verify(), s.recover(), s.why(), s.call(), s.export(), s.imports(), s.token(), s.webhook(), s.backup(), s.restore(), s.goes(), s.cluster())
	return root
}
