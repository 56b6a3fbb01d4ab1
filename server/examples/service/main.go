// Service is a program with objects and jobs of each kind, under steady made-up load, behind
// the HTTP server. Try the server on it: it prints the address of its pages, a token and commands for curl.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast/admin/backup"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server"
	"github.com/holdfast-dev/holdfast/server/auth"
	"github.com/holdfast-dev/holdfast/storage"
)

const usage = `Service is a program with objects and jobs of each kind, under steady made-up load, behind
the HTTP server.

Usage:

  go run ./server/examples/service [flags]

Flags:

  -addr ADDR   listen there, on the loopback (default: 127.0.0.1:7070)
  -dir DIR     keep the store in DIR (default: a temporary one, which is removed at the end)
  -socket      listen on the Unix socket in the directory of the store too, for the command holdfast (Linux)
  -idle        make up no load
  -mended      take bad pictures too, as a program does whose mistake was mended
  -webhook URL send the events of deposits to URL, for example http://127.0.0.1:9000
  -backups DIR make backups in the repository DIR when an admin asks for one
  -h           print this help

Ctrl-C ends it in order.
`

const (
	exitError = 1
	exitUsage = 2
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is main with its surroundings as arguments.
func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("service", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() { fmt.Fprint(stderr, usage) }
	var o options
	flags.StringVar(&o.addr, "addr", "127.0.0.1:7070", "")
	flags.StringVar(&o.dir, "dir", "", "")
	flags.BoolVar(&o.socket, "socket", false, "")
	flags.BoolVar(&o.idle, "idle", false, "")
	flags.BoolVar(&mended, "mended", false, "")
	flags.StringVar(&o.webhook, "webhook", "", "")
	flags.StringVar(&o.backups, "backups", "", "")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return exitUsage
	case flags.NArg() > 0:
		fmt.Fprintf(stderr, "service: unexpected argument %q (-h helps)\n", flags.Arg(0))
		return exitUsage
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process at once
	if err := inPlace(ctx, o, stdout); err != nil {
		fmt.Fprintf(stderr, "service: %v\n", err)
		return exitError
	}
	fmt.Fprintln(stdout, "The service has ended in order.")
	return 0
}

// options are the flags.
type options struct {
	addr, dir    string
	socket, idle bool
	webhook      string // a URL
	backups      string // a directory
}

// inPlace serves with a temporary directory, which has the tokens, and the store if o.dir is
// empty.
func inPlace(ctx context.Context, o options, stdout io.Writer) (err error) {
	temporary, err := os.MkdirTemp("", "holdfast-service-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temporary)) }()
	if o.dir == "" {
		o.dir = filepath.Join(temporary, "store")
	}
	tokens, err := auth.Tokens(filepath.Join(temporary, "tokens.json"), auth.Options{Create: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tokens.Close()) }()
	_, token, err := tokens.Add(auth.Token{Name: "you", Role: auth.Admin, Grants: grants()})
	if err != nil {
		return err
	}
	hooks, err := hooksOf(o)
	if err != nil {
		return err
	}
	repository, err := repositoryOf(o.backups)
	if err != nil {
		return err
	}
	host, err := object.Open(object.Options{Dir: o.dir, WaitForLock: 5 * time.Second, Feed: true}, server.Definitions(append(hooks.Definitions(), definitions()...)...)...)
	if err != nil {
		return err
	}
	if err := subscribe(ctx, hooks, host, o.webhook, stdout); err != nil {
		return errors.Join(err, host.Shutdown(ctx))
	}
	return serve(ctx, host, o, server.Config{
		Auth:      tokens,
		Objects:   []server.Exposed{server.Class(Accounts, "deposit", "balance")},
		Jobs:      described(),
		Webhooks:  hooks,
		Backups:   repository,
		Listening: func(at []net.Addr) { greet(stdout, at[0].String(), o.dir, token) },
	})
}

// repositoryOf opens the repository for backups; nil without a directory.
func repositoryOf(dir string) (*backup.Repository, error) {
	if dir == "" {
		return nil, nil
	}
	return backup.Open(dir, storage.Options{})
}

// grants let a token call all that the service has.
func grants() []auth.Grant {
	all := []auth.Grant{{Class: Accounts.Name()}}
	for _, d := range described() {
		all = append(all, auth.Grant{Class: d.Name()})
	}
	return all
}

// serve serves the host, under load unless o.idle, until ctx ends, and ends the host.
func serve(ctx context.Context, host *object.Host, o options, c server.Config) error {
	srv, err := server.New(host, c)
	if err != nil {
		return errors.Join(err, host.Shutdown(ctx))
	}
	ctx, cancel := context.WithCancel(ctx)
	loaded := make(chan error, 1)
	go func() {
		defer cancel() // without load there is nothing to look at
		if o.idle {
			<-ctx.Done()
			loaded <- nil
			return
		}
		loaded <- load(ctx, host)
	}()
	addrs := []string{o.addr}
	if o.socket {
		addrs = append(addrs, "unix:"+filepath.Join(o.dir, ".run", "holdfast.sock"))
	}
	err = srv.Serve(ctx, addrs...)
	cancel()
	return errors.Join(err, <-loaded)
}

const greeting = `The service listens on http://%[1]s, with a store in %[2]s. Open its pages in a browser,
at http://%[1]s/ui, and sign in with the token %[3]s, or try:

  curl -H 'Authorization: Bearer %[3]s' -d 250 http://%[1]s/v1/objects/account/anna/call/deposit
  curl -H 'Authorization: Bearer %[3]s' 'http://%[1]s/v1/objects/account?limit=3'
  curl -H 'Authorization: Bearer %[3]s' -N http://%[1]s/v1/events

The token is that of an administrator. Ctrl-C ends the service.
`

func greet(w io.Writer, at, dir, token string) { fmt.Fprintf(w, greeting, at, dir, token) }
