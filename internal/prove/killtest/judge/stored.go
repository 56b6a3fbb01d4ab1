package judge

// Stored has the program's objects as a store holds them, by their names.
type Stored struct {
	Counters map[string]Counter
	Timers   map[string]Timer
	Loops    map[string]Loop
	Batches  map[string]Batch
	Pools    map[string]Pool // by pool/partition
	Tasks    map[string]Task // by pool/task id
}

// Counter counts calls.
type Counter struct {
	N      uint64            // all
	Adds   uint64            // those without a key
	Keys   map[string]uint64 // how often each key was counted
	Events uint64            // one for each call
}

// Timer is an object that sets its alarm again and again.
type Timer struct {
	Pending  uint64            // the token that the alarm is for; 0: none
	Alarm    bool              // an alarm is stored
	Tokens   map[uint64]string // TokenPending, TokenFired or TokenReplaced
	Spurious uint64            // alarms that came without a pending token
}

// The states of a token.
const (
	TokenPending  = "pending"
	TokenFired    = "fired"
	TokenReplaced = "replaced"
)

// Loop is a continuous job.
type Loop struct {
	Status string
	Runs   uint64 // that were committed
	State  uint64 // the user's: counts them too
}

// Batch is a debounce job.
type Batch struct {
	Open, Closed     uint64              // generations that collect and that are being flushed; 0: none
	Count            map[uint64]int      // of events, by generation, as the job counts them
	Rows             map[uint64][]string // ids of the events that are stored, by generation
	Flushed, Dropped int64
}

// Pool is a partition of a worker pool by its counters.
type Pool struct {
	Submitted, Pending, Running, Done, Dead, Cancelled uint64
}

// Task is a task of a pool.
type Task struct {
	Name  string
	State string // StateQueued, which may run, StateDone, StateDead or StateCancelled
}

// Where a task is.
const (
	StateQueued    = "queued"
	StateDone      = "done"
	StateDead      = "dead"
	StateCancelled = "cancelled"
)

// tallies are the keys that some counter holds.
func (s *Stored) tallies() map[string]bool {
	keys := make(map[string]bool)
	for _, c := range s.Counters {
		for k := range c.Keys {
			keys[k] = true
		}
	}
	return keys
}
