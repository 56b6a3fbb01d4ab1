package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/cluster"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/pglog"
)

func (s *session) clusterRecover(o *clusterFlags) *cobra.Command {
	var file, scratch string
	var accept bool
	c := &cobra.Command{
		Use:   "recover (--append FILE | --accept-loss)",
		Short: "End the quarantine of a log that has lost commits: put them back, or go on without them",
		Long: `End the quarantine of a log that has lost acknowledged commits, because PostgreSQL failed over to a server
that lacked them. First look for the server that has them, and promote it.

--append puts the records of a rescue file back, exactly as they were. An owner leaves such a file in the directory
rescue of its node. If they cannot go back, it tells why and what is in them.

--accept-loss goes on without them. It restores the store in --scratch to learn its epoch, and sets that 2^20
ahead, so that no number or token of the lost part is given out again.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if accept == (file != "") {
				return usage("give one of --append FILE and --accept-loss")
			}
			if file != "" {
				return s.putBack(c.Context(), o, file)
			}
			return s.acceptLoss(c.Context(), o, scratch)
		},
	}
	c.Flags().StringVar(&file, "append", "", "rescue file with the records to put back")
	c.Flags().BoolVar(&accept, "accept-loss", false, "go on without the lost records")
	c.Flags().StringVar(&scratch, "scratch", "", "directory with room for the store (default: one in the system's directory for temporary files)")
	return c
}

// putBack puts the records of a rescue file back, or tells what is in them.
func (s *session) putBack(ctx context.Context, o *clusterFlags, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return usage("--append: %v", err)
	}
	rescue, err := shardlog.ReadRescue(f)
	_ = f.Close() // it was read to its end
	if err != nil {
		return clusterError(fmt.Errorf("%s: %w", shown(file), err))
	}
	return o.with(ctx, s, pglog.Open, func(log *pglog.Log) error {
		done, err := cluster.PutBack(ctx, cluster.Recovery{Log: log, Shard: o.shard}, rescue)
		if errors.Is(err, cluster.ErrNotPutBack) {
			return errors.Join(err, s.printLost(rescue))
		}
		if err != nil {
			return err
		}
		return s.clusterRecovered(done, fmt.Sprintf("records %d to %d are back in the log", done.From, done.To))
	})
}

// printLost prints what is in the records of a rescue file.
func (s *session) printLost(rescue shardlog.Rescue) error {
	all, err := cluster.Contents(rescue)
	if err != nil {
		return err
	}
	rows := [][]string{}
	for _, l := range all {
		names := []string{}
		for _, id := range l.Objects {
			names = append(names, shownID(id))
		}
		rows = append(rows, []string{fmt.Sprint(l.At), fmt.Sprint(l.Term), fmt.Sprint(l.Commits), fmt.Sprint(l.Sets), fmt.Sprint(l.Deletes), strings.Join(names, " ")})
	}
	return s.print(all, []string{"RECORD", "TERM", "COMMITS", "SETS", "DELETES", "OBJECTS"}, rows)
}

// acceptLoss goes on without the lost records.
func (s *session) acceptLoss(ctx context.Context, o *clusterFlags, scratch string) (err error) {
	if scratch == "" {
		if scratch, err = os.MkdirTemp("", "holdfast-recover"); err != nil {
			return unopened(err)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	}
	return o.with(ctx, s, pglog.Open, func(log *pglog.Log) error {
		done, err := cluster.AcceptLoss(ctx, cluster.Recovery{Log: log, Shard: o.shard, Dir: scratch, Logger: s.lines()})
		switch {
		case err != nil:
			return err
		case done.Quarantine == "":
			return s.clusterRecovered(done, "the note of the late loss is taken off")
		}
		return s.clusterRecovered(done, "the loss is accepted: remove the directories of nodes that are refused because they have lost records")
	})
}

// clusterRecovered prints what a recovery has done.
func (s *session) clusterRecovered(done cluster.Recovered, text string) error {
	loss := done.Quarantine
	if loss == "" {
		loss = done.Late
	}
	return s.print(done, []string{"DONE", "LOSS"}, [][]string{{text, quoted(loss)}})
}
