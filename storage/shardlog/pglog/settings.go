package pglog

import (
	"fmt"
	"slices"
	"strings"
)

// settings are those of PostgreSQL that decide whether an acknowledged record is safe. Each statement that acknowledges
// returns those that hold in its own transaction, because they can change at any time.
type settings struct {
	commit string // synchronous_commit
	fsync  string
	pages  string // full_page_writes
	names  string // synchronous_standby_names
}

// settingsSQL are the columns of settings, for a statement with a row c that has set synchronous_commit for its own transaction.
const settingsSQL = `c.commit, current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_standby_names')`

// places is where the columns of settingsSQL are scanned, and then others.
func (s *settings) places(more ...any) []any {
	return append([]any{&s.commit, &s.fsync, &s.pages, &s.names}, more...)
}

// wrong says which setting breaks the promise of the log, and the remedy. It is "" if none does. commits are the values that
// synchronous_commit may have.
func (s settings) wrong(o Options, commits ...string) string {
	switch {
	case !slices.Contains(commits, s.commit):
		return fmt.Sprintf("synchronous_commit is %s: set it to on for the role and the database", s.commit)
	case o.ReplicatedStorage:
		return ""
	case s.fsync != "on":
		return "fsync is off, so a crash loses records: set it to on, or Options.ReplicatedStorage if the storage keeps each write by itself"
	case s.pages != "on":
		return "full_page_writes is off, so a crash may tear a page: set it to on, or Options.ReplicatedStorage if the storage keeps each write by itself"
	case s.names == "" && !o.SingleMachine:
		return "synchronous_standby_names is empty, so no standby has the records: name a standby, or set Options.ReplicatedStorage for a service that replicates its storage, or Options.SingleMachine for development"
	case strings.Contains(s.names, "*") && !o.AnyStandby:
		return fmt.Sprintf("synchronous_standby_names is %s, so a client that keeps no copy may be the standby: name the standbys, or set Options.AnyStandby", s.names)
	}
	return ""
}
