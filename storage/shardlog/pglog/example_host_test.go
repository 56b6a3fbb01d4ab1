package pglog_test

import (
	"context"
	"log"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
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

// A host keeps its store in PostgreSQL. The directory is a view of it: another machine with an empty one goes on from the last
// acknowledged commit.
func Example_host() {
	if err := serve(context.Background(), "postgres://holdfast@db1,db2/app", "view"); err != nil {
		log.Fatal(err)
	}
}

func serve(ctx context.Context, dsn, dir string) error {
	logs, err := pglog.Open(ctx, pglog.Options{DSN: dsn, Node: "node-1"})
	if err != nil {
		return err // it names the setting of PostgreSQL that could lose a commit
	}
	defer logs.Close()
	host, err := object.Open(object.Options{
		Storage: shardlog.Options{Log: logs, Owner: "node-1"}.Storage(storage.Options{Dir: dir}),
	}, counters)
	if err != nil {
		return err
	}
	defer func() { // with a limit, since a Shutdown without one waits for work that never ends
		limit, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := host.Shutdown(limit); err != nil {
			log.Print(err)
		}
	}()
	_, err = add.Call(ctx, host, "visits", 1) // it is on the disks of two machines now
	return err
}
