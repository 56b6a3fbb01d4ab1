package dashboard

import (
	"time"

	"github.com/holdfast-dev/holdfast/admin/why"
	"github.com/holdfast-dev/holdfast/object"
)

// Overview is the first page: the program, its store, and the objects that need attention.
type Overview struct {
	Program Program
	Store   Store
	// Host are the reasons that hold for the whole store.
	Host []why.Answer
	// Reasons count the objects that need attention by their reasons, the worst first; Worst are the first of them.
	// More says that there are more than could be looked at.
	Reasons []ReasonCount
	Worst   []why.Answer
	// Unread says that the look has ended at a row of an index that cannot be read, and LastError is its error.
	Unread    bool
	LastError string
	More      bool
	// Dead are the dead letters, those with the newest first; MoreDead says that there are more groups. LookedAt is how many letters
	// they are of; AllDead says that these are all, and Damaged that one behind them cannot be read.
	Dead             []DeadCount
	MoreDead         bool
	LookedAt         int
	AllDead, Damaged bool
	Classes          []Class
	// Executing are the first of Open executions that are open, the oldest first; Next the alarms that are due next.
	Executing, Next []Due
	Open            int
	// Waits are the calls in mailboxes as they were at WaitsAt, the longest wait first.
	Waits   []Waits
	WaitsAt time.Time
	// Throughput is that of executions since the server began, and at most of an hour.
	Throughput Throughput
	// Recovered is how many executions were recovered since the opening.
	Recovered int
	// NoBackup says that the newest verified backup was begun over a day ago, at LastBackup, or that there is none.
	NoBackup   bool
	LastBackup time.Time
}

func (Overview) page() (name, title string) { return "overview", "Overview" }

// Program is the program that has the host.
type Program struct{ Path, Version, Commit, Go string }

// Store is the state of the host's store.
type Store struct {
	Epoch    uint64
	OpenedAt time.Time
	New      bool   // no process had it open before
	Crashes  uint64 // how many processes in a row, up to the one before, ended without closing it
	Failed   string // the error of the store that has ended the host
	NoSpace  string // why turns that write are refused
	Closing  bool
	// Free and Floor are bytes of the disk: free ones, and those below which turns that write are refused. Watched is
	// false if they are not known.
	Free, Floor uint64
	Watched     bool
}

// ReasonCount is how many objects have a reason.
type ReasonCount struct {
	Code  why.Code
	Text  string
	Count int
}

// DeadCount is how many dead letters of a kind a class has with one error. Below the role reader the error is left out.
type DeadCount struct {
	Class, Kind, Error string
	Count, Hour, Day   int       // all, and those that died in the last hour and day
	Newest             time.Time // when the newest of them died
}

// Recoveries is the page of the recoveries since the host was opened.
type Recoveries struct {
	Total  int
	Groups []RecoveryCount
	// Lines are the newest ones, the newest first. Names says that the principal may see them.
	Lines []object.Recovery
	Names bool
}

func (Recoveries) page() (name, title string) { return "recoveries", "Recoveries" }

// RecoveryCount is how many recoveries in a class had a cause.
type RecoveryCount struct {
	Class, Cause string
	Count        int
}
