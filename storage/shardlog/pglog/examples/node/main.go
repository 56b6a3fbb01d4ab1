// Node is one node of a cluster: a program that counts, on as many machines as you like, of which one serves. It needs a cluster, which
// "holdfast cluster init" makes in PostgreSQL:
//
//	export HOLDFAST_DSN='host=db1,db2 user=app dbname=app'
//	node -id a -addr 10.0.0.1:7070 -dir /var/lib/counter
//
// POST /add/NAME adds one to a counter and answers with its value. A node that waits redirects to the one that serves. With -call NAME the
// program makes such a call, and goes on for a minute while no node serves. SIGTERM drains a node, so that another takes over at once.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast/cluster"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage/shardlog/pglog"
)

type counter struct {
	st *object.State
	n  int
}

var (
	counters = object.Define("counter", func(ctx context.Context, st *object.State) (*counter, error) {
		c := &counter{st: st}
		_, err := st.Storage().GetInto(ctx, "n", &c.n)
		return c, err
	})
	add = object.Handle(counters, "add", func(c *counter, ctx context.Context, by int) (int, error) {
		n := c.n + by
		if err := c.st.Storage().Put(ctx, "n", n); err != nil {
			return 0, err
		}
		c.n = n
		return n, nil
	})
)

func main() {
	var o cluster.Options
	var p pglog.Options
	flag.StringVar(&o.ID, "id", "", "name of this node, the same after each restart")
	flag.StringVar(&o.Addr, "addr", "127.0.0.1:7070", "address for clients and for the other nodes")
	flag.StringVar(&o.Dir, "dir", "node", "directory of this node alone")
	flag.StringVar(&p.Schema, "schema", "holdfast", "schema of the cluster")
	name := flag.String("call", "", "add one to the counter of this name at -addr, and be no node")
	flag.Parse()
	p.DSN, p.Node = os.Getenv("HOLDFAST_DSN"), o.ID
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process at once
	defer stop()
	var err error
	if *name != "" {
		err = call(ctx, o.Addr, *name)
	} else {
		err = run(ctx, o, p)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "node:", err)
		os.Exit(1)
	}
}

// run is a node until ctx ends, or until it is drained.
func run(ctx context.Context, o cluster.Options, p pglog.Options) (err error) {
	log, err := pglog.Open(ctx, p)
	if err != nil {
		return err // it names the setting of PostgreSQL that could lose a commit
	}
	defer log.Close()
	door, err := net.Listen("tcp", o.Addr) // before Join, because a node that waits connects to the address
	if err != nil {
		return err
	}
	o.Log, o.Addr = log, door.Addr().String()
	node, err := cluster.Join(ctx, o, counters)
	if err != nil {
		return errors.Join(err, door.Close())
	}
	server := &http.Server{Handler: handler(node), ReadHeaderTimeout: 10 * time.Second}
	go func() {
		if err := server.Serve(door); !errors.Is(err, http.ErrServerClosed) {
			slog.Error("the door is closed", "error", err)
			stopped, end := context.WithTimeout(context.Background(), 20*time.Second)
			defer end()
			_ = node.Drain(stopped) // its error is that of the Drain below
		}
	}()
	select {
	case <-ctx.Done():
	case <-node.Done(): // holdfast cluster drain, or another process has this id
	}
	limit, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	err = node.Drain(limit) // first, so that another node takes over before this address refuses
	if left := node.Err(); !errors.Is(left, cluster.ErrClosed) {
		err = errors.Join(err, left)
	}
	return errors.Join(err, server.Shutdown(limit))
}

// handler adds to counters through the node, or names the one that serves.
func handler(node *cluster.Node) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /add/{name}", func(w http.ResponseWriter, r *http.Request) {
		n, err := add.Call(r.Context(), node, r.PathValue("name"), 1)
		var moved *cluster.ErrMoved
		switch {
		case errors.As(err, &moved) && moved.Addr != "":
			http.Redirect(w, r, "http://"+moved.Addr+r.URL.Path, http.StatusTemporaryRedirect)
		case err != nil:
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		default:
			fmt.Fprintln(w, n)
		}
	})
	return mux
}

// call adds one to a counter. It is made again while no node serves, until Ctrl-C ends ctx. A call without an answer has perhaps counted, so a program that
// must not count twice gives its calls a key (object.Idempotent).
func call(ctx context.Context, addr, name string) error {
	for {
		answer, err := post(ctx, "http://"+addr+"/add/"+url.PathEscape(name))
		if err == nil {
			fmt.Print(answer)
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// post makes one request, and follows it to the node that serves.
func post(ctx context.Context, at string) (answer string, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, at, nil)
	if err != nil {
		return "", err
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer a.Body.Close()
	b, err := io.ReadAll(io.LimitReader(a.Body, 1<<10))
	if err == nil && a.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", a.Status, b)
	}
	return string(b), err
}
