package server

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	jobadmin "github.com/holdfast-dev/holdfast/admin"
	"github.com/holdfast-dev/holdfast/jobs/verbs"
	"github.com/holdfast-dev/holdfast/object"
)

// bulkRoutes are the routes of verbs over many jobs or dead letters: a count, and a run with its
// token.
func (s *Server) bulkRoutes() []route {
	run := func(of string) func(*exchange) error { return func(x *exchange) error { return x.runBulk(of) } }
	const stream = " The answer is a line of JSON with the progress each second, and one at the end. It ends with the client, with Serve and after ten minutes: the rest stays as it is, to be counted anew."
	return []route{
		{method: "POST", pattern: "/v1/jobs:count", access: operator, request: jobsBulk{}, answer: jobadmin.Count{}, handle: (*exchange).countJobs,
			help: "Count the jobs of a class with a label that a verb would act on, and get a token for jobs:run."},
		{method: "POST", pattern: "/v1/jobs:run", access: operator, request: bulkToken{}, answer: bulkLine{}, handle: run(jobsOf),
			help: "Run the verb that was counted, on at most 500 jobs in a second." + stream},
		{method: "POST", pattern: "/v1/dead:count", access: operator, request: deadBulk{}, answer: jobadmin.Count{}, handle: (*exchange).countDead,
			help: "Count the dead letters that a replay or a discard would act on, and get a token for dead:run."},
		{method: "POST", pattern: "/v1/dead:run", access: operator, request: bulkToken{}, answer: bulkLine{}, handle: run(deadOf),
			help: "Replay or discard the letters that were counted, at most 500 in a second." + stream},
	}
}

// jobsBulk is a verb over many jobs.
type jobsBulk struct {
	Verb   string          `json:"verb"`
	Class  string          `json:"class"`
	Label  string          `json:"label"`
	Prefix string          `json:"prefix,omitempty"`
	Arg    json.RawMessage `json:"arg,omitempty"`
}

// deadBulk is a replay or a discard of many dead letters.
type deadBulk struct {
	Do string `json:"do"` // replay or discard
	deadFilter
}

// bulkToken is the token of a count.
type bulkToken struct {
	Token string `json:"token"`
}

func (x *exchange) countJobs() error {
	var b jobsBulk
	if err := x.decode(&b); err != nil {
		return err
	}
	right := bulkRight{b.Verb, b.Class, b.Prefix}
	if err := x.mayRun(right); err != nil {
		return err
	}
	ctx, cancel, err := x.within()
	if err != nil {
		return err
	}
	defer cancel()
	c, err := x.operations.admin.CountJobs(ctx, b.Verb, b.Arg, jobadmin.JobsOptions{Class: b.Class, Label: b.Label, Prefix: b.Prefix})
	if err != nil {
		return err
	}
	return x.counted(jobsOf, c, ticket{Right: right, Matches: c.Matches})
}

// bulkRight is the right that a principal needs to run a count: a verb on all jobs of a class with names that
// begin with the prefix. It is zero for dead letters, which need the role of the route alone.
type bulkRight struct{ Verb, Class, Prefix string }

// ticket goes with the token of a count: the right, which is asked for again at the run, and what a page tells of it.
type ticket struct {
	Right   bulkRight
	Do      string // with dead letters: replay or discard
	Matches int
}

// mayRun returns a problem unless the principal has the right now. A grant of a prefix covers all names
// that begin with a longer one.
func (x *exchange) mayRun(r bulkRight) error {
	if r == (bulkRight{}) {
		return nil
	}
	_, _, err := x.find((*verbs.Table).Verbs, r.Verb, false, r.Class, r.Prefix)
	return err
}

func (x *exchange) countDead() error {
	var b deadBulk
	if err := x.decode(&b); err != nil {
		return err
	}
	if b.Do != "replay" && b.Do != "discard" {
		return badRequest(`do is replay or discard`)
	}
	o, err := b.options()
	if err != nil {
		return err
	}
	c, err := x.deadCount(b.Do == "replay", o)
	if err != nil {
		return err
	}
	return x.counted(deadOf, c, ticket{Do: b.Do, Matches: c.Matches})
}

// deadCount counts dead letters.
func (x *exchange) deadCount(replay bool, o object.DeadLettersOptions) (c jobadmin.Count, err error) {
	ctx, cancel, err := x.within()
	if err != nil {
		return c, err
	}
	defer cancel()
	return x.operations.admin.CountDead(ctx, replay, o)
}

// Of what a token is: a run of one kind takes none of the other.
const (
	jobsOf = "jobs"
	deadOf = "dead"
)

// counted answers with a count, whose token only this principal can use, and only for this route.
func (x *exchange) counted(of string, c jobadmin.Count, t ticket) error {
	c, err := x.sealed(of, c, t)
	if err != nil {
		return err
	}
	return x.json(http.StatusOK, c)
}

// sealed is a count with its token bound to the principal, to what it is of, and to a ticket.
func (x *exchange) sealed(of string, c jobadmin.Count, t ticket) (jobadmin.Count, error) {
	raw, err := json.Marshal(t)
	if err != nil {
		return c, fmt.Errorf("answer: %w", err)
	}
	c.Token += "." + base64.RawURLEncoding.EncodeToString(raw)
	c.Token += "." + base64.RawURLEncoding.EncodeToString(x.seal(of, c.Token))
	return c, nil
}

// seal binds a token to the principal and to a route. The key is of this process, as the tokens are.
func (x *exchange) seal(of, token string) []byte {
	h := hmac.New(sha256.New, x.operations.key[:])
	fmt.Fprintf(h, "%q %q %q", of, token, x.who.ID)
	return h.Sum(nil)
}

// unsealed returns the token of a count of this principal and its ticket, or jobadmin.ErrNoToken.
func (x *exchange) unsealed(of, text string) (token string, t ticket, err error) {
	i := strings.LastIndexByte(text, '.')
	if i < 0 {
		return "", t, jobadmin.ErrNoToken
	}
	sum, err := base64.RawURLEncoding.DecodeString(text[i+1:])
	if err != nil || !hmac.Equal(sum, x.seal(of, text[:i])) {
		return "", t, jobadmin.ErrNoToken
	}
	token, encoded, _ := strings.Cut(text[:i], ".")
	raw, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil || json.Unmarshal(raw, &t) != nil {
		return "", t, jobadmin.ErrNoToken
	}
	return token, t, nil
}

// bulkLine is one line of the answer of a bulk verb.
type bulkLine struct {
	jobadmin.Progress
	// Ended is true in the last line. Problem is the reason if it has ended early.
	Ended   bool     `json:"ended,omitempty"`
	Problem *problem `json:"problem,omitempty"`
}

// maxRun bounds one run: 100,000 jobs, which a count counts at most, take 200 s if none waits for its turn.
// lineEvery is the time between two lines of progress, and lineTime that for the client to take one.
const (
	maxRun    = 10 * time.Minute
	lineEvery = time.Second
	lineTime  = 10 * time.Second
)

// runBulk runs the bulk verb of a token on this goroutine, and tells of the progress.
func (x *exchange) runBulk(of string) error {
	var b bulkToken
	if err := x.decode(&b); err != nil {
		return err
	}
	token, t, err := x.unsealed(of, b.Token)
	if err != nil {
		return err
	}
	if err := x.mayRun(t.Right); err != nil {
		return err
	}
	ctx, cancel := x.untilEnd(x.r.Context(), maxRun)
	defer cancel()
	seams := x.host.Seams()
	next := seams.Steady().Add(lineEvery)
	p, err := x.operations.admin.Run(ctx, token, func(p jobadmin.Progress) {
		if now := seams.Steady(); !now.Before(next) {
			next = now.Add(lineEvery)
			x.line(bulkLine{Progress: p})
		}
	})
	if errors.Is(err, jobadmin.ErrNoToken) {
		return err
	}
	last := bulkLine{Progress: p, Ended: true}
	if err != nil && x.serving.ending.Err() != nil {
		err = object.ErrShutdown
	}
	if err != nil {
		last.Problem = problemOf(err)
	}
	x.line(last)
	return nil
}

// line writes one line of JSON. An error of the connection ends the context of the request.
func (x *exchange) line(l bulkLine) {
	raw, err := json.Marshal(l)
	if err != nil {
		panic("server: encode a line: " + err.Error()) // numbers and texts always encode
	}
	control := http.NewResponseController(x.w)
	_ = control.SetWriteDeadline(time.Now().Add(lineTime)) // a test's writer may have none
	x.w.Header().Set("Content-Type", "application/x-ndjson")
	_, _ = x.w.Write(append(raw, '\n'))
	_ = control.Flush()
	if !l.Ended { // net/http writes the end of the answer
		_ = control.SetWriteDeadline(time.Time{})
	}
}
