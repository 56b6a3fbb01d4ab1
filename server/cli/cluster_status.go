package cli

import (
	"cmp"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/cluster"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/pglog"
)

// clusterState is all that status tells.
type clusterState struct {
	Cluster string `json:"cluster"`
	cluster.Status
	PostgreSQL pglog.Health `json:"postgresql"`
	// Warnings are all that an operator should see to, the most urgent first.
	Warnings []string `json:"warnings"`
}

func (s *session) clusterStatus(o *clusterFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Tell which node serves, which wait, how long the log is, and what is wrong",
		Long: `Tell which node serves, which wait, how long the log is, and what is wrong. It only reads, waits for no lock,
and takes about two seconds, in which nodes are seen to beat. It exits with 1 if there is a warning.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return o.with(c.Context(), s, pglog.Inspect, func(log *pglog.Log) (err error) {
				var state clusterState
				if state.Cluster, err = log.Cluster(c.Context()); err != nil {
					return err
				}
				if state.Status, err = cluster.ReadStatus(c.Context(), log, o.shard, seam.Seams{}); err != nil {
					return err
				}
				if state.PostgreSQL, err = log.Health(c.Context()); err != nil {
					return err
				}
				state.Warnings = state.warnings()
				return s.printCluster(state)
			})
		},
	}
}

// warnings are what an operator should see to.
func (c clusterState) warnings() []string {
	found := []string{}
	warn := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	if c.Quarantine != "" {
		warn("the log is in quarantine and no node serves: %s: see cluster recover", quoted(c.Quarantine))
	}
	if (shardlog.State{Owner: c.Owner}).Exported() {
		warn("the log has ended, because its store was exported to a directory: no node opens it again")
	}
	if c.PostgreSQL.Unsafe != "" {
		warn("nothing is acknowledged: %s", c.PostgreSQL.Unsafe)
	}
	if c.Late != "" {
		warn("records were lost, which was found too late to stop for it: %s: cluster recover --accept-loss takes the note off", quoted(c.Late))
	}
	for _, n := range c.Nodes {
		if n.Owner && !n.Away && n.Quiet >= time.Second {
			warn("node %s owns the log and does not beat", shown(n.ID))
		}
	}
	if c.ClockIsOff() {
		warn("the clock of this machine is %v off the clock of PostgreSQL", c.Skew.Round(time.Millisecond))
	}
	for _, h := range c.PostgreSQL.Holds {
		h.Name = shown(h.Name)
		warn("%v", h)
	}
	return found
}

// printCluster prints a state. It is an exit with Found if there is a warning.
func (s *session) printCluster(c clusterState) error {
	owner := "-"
	if c.Owner != "" {
		owner = shown(c.Owner)
	}
	records := fmt.Sprintf("%d to %d", c.First, c.Last)
	err := s.print(c, []string{"CLUSTER", "TERM", "OWNER", "RECORDS", "LOG", "SNAPSHOTS", "POSTGRESQL"}, [][]string{{
		c.Cluster, fmt.Sprint(c.Term), owner, records, sized(uint64(c.PostgreSQL.LogBytes)),
		fmt.Sprintf("%d, %s", len(c.Snapshots), sized(uint64(c.BlobBytes))), shown(c.PostgreSQL.Version),
	}})
	if s.format != "json" && err == nil {
		rows := [][]string{}
		for _, n := range c.Nodes {
			rows = append(rows, []string{shown(n.ID), shown(cmp.Or(n.Addr, "-")), n.Does(), n.Quiet.Round(100 * time.Millisecond).String()})
		}
		err = s.print(nil, []string{"NODE", "ADDRESS", "DOES", "QUIET FOR"}, rows)
		for _, w := range c.Warnings {
			s.note("warning: %s", w)
		}
	}
	if err == nil && len(c.Warnings) > 0 {
		err = &exit{code: Found}
	}
	return err
}
