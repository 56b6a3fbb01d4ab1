package server

// problem is an error of the API as RFC 9457 has it.
type problem struct {
	Type      string  `json:"type"`  // for programs, for example "unknown-class"; it never changes
	Title     string  `json:"title"` // for people: the same for each problem of the type
	Status    int     `json:"status"`
	Detail    string  `json:"detail,omitempty"` // what happened here, and what to do
	Outcome   outcome `json:"outcome"`
	Retryable bool    `json:"retryable"`

	retryAfter int // seconds; zero: no header
}

// outcome is what a request that failed has left behind.
type outcome string

const (
	none    outcome = "none"    // nothing
	unknown outcome = "unknown" // perhaps what it asked for
)

// Error returns the title and the detail.
func (p *problem) Error() string {
	if p.Detail == "" {
		return p.Title
	}
	return p.Title + ": " + p.Detail
}
