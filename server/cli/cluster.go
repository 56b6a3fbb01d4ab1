package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/cluster"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/move"
	"github.com/holdfast-dev/holdfast/storage/shardlog/pglog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/snapshot"
)

// dsnVariable is the variable with the connection string, because other users see the arguments of a process, and the string may have a password.
const dsnVariable = "HOLDFAST_DSN"

// logTimeout is pglog.Options.Timeout of all verbs: the default. Tests set it.
var logTimeout time.Duration

// clusterFlags are the flags of all verbs of cluster.
type clusterFlags struct {
	log   pglog.Options
	shard int
}

// cluster is the verb for a store that several machines keep.
func (s *session) cluster() *cobra.Command {
	var o clusterFlags
	c := &cobra.Command{
		Use:   "cluster",
		Short: "Set up, look at, drain and recover a cluster, and move a store into it or out of it",
		Long: `Set up, look at, drain and recover a cluster: a store that several machines keep in PostgreSQL, of which
one serves. The connection string is that of --dsn or, better, of ` + dsnVariable + `, because other users see the
arguments of a process.

Each verb may be interrupted and run again: it goes on, or finds that all is done. status changes nothing.`,
		Example: "  cluster init --schema shop\n  cluster status --schema shop\n  cluster import data --schema shop",
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	f := c.PersistentFlags()
	f.StringVar(&o.log.DSN, "dsn", "", "connection string of PostgreSQL, in place of "+dsnVariable)
	f.StringVar(&o.log.Schema, "schema", "holdfast", "schema of the cluster's tables")
	f.IntVar(&o.shard, "shard", 0, "number of the log of the store")
	f.BoolVar(&o.log.SingleMachine, "single-machine", false, "ask for no standby, so that the loss of PostgreSQL's machine may lose commits: for development")
	f.BoolVar(&o.log.ReplicatedStorage, "replicated-storage", false, "promise that the storage below PostgreSQL keeps each write, as managed services do")
	f.BoolVar(&o.log.AnyStandby, "any-standby", false, "allow * in synchronous_standby_names")
	c.AddCommand(s.clusterInit(&o), s.clusterStatus(&o), s.clusterDrain(&o), s.clusterImport(&o), s.clusterExport(&o), s.clusterRecover(&o))
	return c
}

// options are those of the log, with its lines on standard error.
func (o *clusterFlags) options(s *session) (pglog.Options, error) {
	l := o.log
	if l.DSN == "" {
		l.DSN = os.Getenv(dsnVariable)
	}
	switch {
	case l.DSN == "":
		return l, usage("set %s to the connection string of PostgreSQL, or give --dsn", dsnVariable)
	case l.Schema == "":
		return l, usage("--schema is empty")
	case o.shard < 0:
		return l, usage("--shard is %d: it must not be negative", o.shard)
	}
	l.Node, l.Log, l.Timeout = "command", s.lines(), logTimeout
	return l, nil
}

// lines are the log lines of long work, for people.
func (s *session) lines() *slog.Logger { return slog.New(slog.NewTextHandler(s.errs, nil)) }

// with opens the log, and gives it to do. open is pglog.Open or pglog.Inspect.
func (o *clusterFlags) with(ctx context.Context, s *session, open func(context.Context, pglog.Options) (*pglog.Log, error), do func(*pglog.Log) error) error {
	options, err := o.options(s)
	if err != nil {
		return err
	}
	log, err := open(ctx, options)
	if err != nil {
		return unopened(err)
	}
	defer log.Close()
	return clusterError(do(log))
}

// clusterError gives an error of a cluster its code of exit; nil stays nil.
func clusterError(err error) error {
	var e *exit
	if err == nil || errors.As(err, &e) {
		return err
	}
	for _, refusal := range []error{
		cluster.ErrNoNode, cluster.ErrNothingLost, cluster.ErrNotPutBack, storage.ErrMovedStore,
		shardlog.ErrRefused, shardlog.ErrFenced, shardlog.ErrExported,
	} {
		if errors.Is(err, refusal) {
			return &exit{Refused, err}
		}
	}
	if errors.Is(err, shardlog.ErrNotRescue) {
		return &exit{Usage, err}
	}
	return unopened(err)
}

func (s *session) clusterInit(o *clusterFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "init",
		Short: "Make the tables of a cluster, and check that PostgreSQL keeps what it acknowledges",
		Long: `Make the schema and the tables of a cluster, unless they are there, and check that PostgreSQL keeps what
it acknowledges. The role needs the right to create a schema in the database; nodes need only the
rights to its tables.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			options, err := o.options(s)
			if err != nil {
				return err
			}
			if err := pglog.Init(c.Context(), options); err != nil {
				return unopened(err)
			}
			return o.with(c.Context(), s, pglog.Open, func(log *pglog.Log) error {
				name, err := log.Cluster(c.Context())
				if err != nil {
					return err
				}
				return s.print(map[string]string{"cluster": name, "schema": options.Schema}, []string{"CLUSTER", "SCHEMA"}, [][]string{{name, shown(options.Schema)}})
			})
		},
	}
}

func (s *session) clusterDrain(o *clusterFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "drain NODE",
		Short: "Have a node leave the cluster in order, and wait until it has",
		Long: `Have a node leave the cluster in order, and wait until it has: it takes no more calls, ends those under way
within ten seconds, and another node takes over at once. The process of the node runs on; end it, and
start it again to have it join.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return o.with(c.Context(), s, pglog.Open, func(log *pglog.Log) error {
				if err := cluster.Drain(c.Context(), log, o.shard, args[0], seam.Seams{}); err != nil {
					return err
				}
				return s.print(map[string]string{"drained": args[0]}, []string{"DRAINED"}, [][]string{{shown(args[0])}})
			})
		},
	}
}

// move are the options of a move into the log or out of it.
func (o *clusterFlags) move(s *session, log *pglog.Log) move.Options {
	return move.Options{Snapshots: snapshot.Options{Directory: log, Blobs: log, Log: log, Shard: o.shard, Logger: s.lines()}}
}

func (s *session) clusterImport(o *clusterFlags) *cobra.Command {
	var undo bool
	c := &cobra.Command{
		Use:   "import DIR",
		Short: "Move the store in DIR into a cluster that has none",
		Long: `Move the store in DIR into a cluster that has none. No program may have it open. Its files go into the
cluster, and DIR is marked, so that no crash leaves two stores that open; afterwards DIR is an old copy.

An import that was cut off goes on when it is run again. --undo takes it back, if the cluster has not
begun with the store; the process of the import must have ended.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return o.with(c.Context(), s, pglog.Open, func(log *pglog.Log) error {
				if undo {
					return s.moved("back in", args[0], o.move(s, log).Undo(c.Context(), args[0]))
				}
				name, err := log.Cluster(c.Context())
				if err != nil {
					return err
				}
				return s.moved("in the cluster, from", args[0], o.move(s, log).Import(c.Context(), args[0], name))
			})
		},
	}
	c.Flags().BoolVar(&undo, "undo", false, "take back an import that was cut off, so that DIR opens again")
	return c
}

func (s *session) clusterExport(o *clusterFlags) *cobra.Command {
	var again bool
	c := &cobra.Command{
		Use:   "export DIR",
		Short: "Move the store of a cluster to DIR, and end its log for good",
		Long: `Move the store of a cluster to DIR, which is absent, empty, or a view of it, and end its log for good: no node
opens it again. A node that serves is fenced, so drain the nodes first. DIR opens as the store of one machine.

An export that was cut off goes on when it is run again with the same DIR. If that directory is lost, --again
takes another one.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return o.with(c.Context(), s, pglog.Open, func(log *pglog.Log) error {
				m := o.move(s, log)
				m.Again = again
				return s.moved("in", args[0], m.Export(c.Context(), args[0]))
			})
		},
	}
	c.Flags().BoolVar(&again, "again", false, "take over from an export to another directory, which is lost: if it is not, there are two stores")
	return c
}

// moved tells where the store is now, unless the move has failed.
func (s *session) moved(where, dir string, err error) error {
	if err != nil {
		return err
	}
	text := fmt.Sprintf("the store is %s %s", where, shown(dir))
	return s.print(map[string]string{"dir": dir, "done": text}, []string{"DONE"}, [][]string{{text}})
}
