package judge

// Kind is the kind of a Line.
type Kind string

// The kinds of lines.
const (
	Call      Kind = "call"      // a call is about to be made
	Ack       Kind = "ack"       // it was answered
	Refused   Kind = "refused"   // it was refused, and has left nothing behind
	Effect    Kind = "effect"    // user code runs, and leaves this line outside the store
	Recovered Kind = "recovered" // the host recovered an execution
	Trouble   Kind = "trouble"   // the program saw an impossible answer
	Began     Kind = "began"     // the program has begun, and takes a SIGTERM
	Opened    Kind = "opened"    // its host is open
	Finished  Kind = "finished"  // nothing is left to do
)

// Verb is the action of a call or an effect.
type Verb string

// The verbs of calls.
const (
	Add     Verb = "add"     // counts 1 on a counter; answer: the count N
	Once    Verb = "once"    // the same under the idempotency key Key
	Tally   Verb = "tally"   // the same, called by a work
	Read    Verb = "read"    // answer: the count N of a counter
	Set     Verb = "set"     // sets the alarm of a timer for the token N
	Enqueue Verb = "enqueue" // a task for the pool On named Key, which is its idempotency key, in order with those of the same Text; answer: its id Key
	Event   Verb = "event"   // an event with id Key for a debounce job; answer: its generation N
	Finish  Verb = "finish"  // ends attempt N of the claimed task On
	Pause   Verb = "pause"   // a continuous job
	Resume  Verb = "resume"  // the same
	State   Verb = "state"   // of a continuous job; answer: its runs N
	Other   Verb = "other"   // any other call, of which only the answer counts
)

// The verbs of effects.
const (
	Alarm Verb = "alarm" // of the timer On for the token N; Key is "early" if it is
	Run   Verb = "run"   // number N of the continuous job On, under the outside key Key
	Flush Verb = "flush" // of generation N of the debounce job On, events IDs, outside key Key
	Work  Verb = "work"  // attempt N of the task with id On, named IDs[0], outside key Key, in order with those of the same Text
	Dead  Verb = "dead"  // the pool told of the dead letter of the task On
)

// Line is a line of the log.
type Line struct {
	Kind Kind     `json:"w"`
	Op   uint64   `json:"o,omitempty"` // number of the call; of lines about one call it is the same
	Verb Verb     `json:"v,omitempty"`
	On   string   `json:"on,omitempty"` // name of the object
	Key  string   `json:"k,omitempty"`
	N    uint64   `json:"n,omitempty"`
	IDs  []string `json:"ids,omitempty"`
	Text string   `json:"t,omitempty"`
	// At is when the line was written, in nanoseconds of the clock of the machine; 0 if the program does not say.
	At int64 `json:"at,omitempty"`
}
