package server

import (
	"context"
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
	"github.com/holdfast-dev/holdfast/object"
)

// bulkRoutes are the routes of verbs over many jobs or dead letters: a count, and a run with its
// token.
func (s *Server) bulkRoutes() []route {
	run := func(of string) func(*exchange) error { return func(x *exchange) error { return x.runBulk(of) } }
	const stream = " The answer is a line of JSON with the id of the run and its progress, at once and each second, and one at the end. The run ends neither with its client nor with the process: see /v1/bulk."
	return []route{
		{method: "POST", pattern: "/v1/jobs:count", access: operator, request: jobsBulk{}, answer: jobadmin.Count{}, handle: (*exchange).countJobs,
			help: "Count the jobs of a class with a label that a verb would act on, and get a token for jobs:run."},
		{method: "POST", pattern: "/v1/jobs:run", access: operator, request: bulkToken{}, answer: bulkLine{}, handle: run(jobsOf),
			help: "Run the verb that was counted, on at most 500 jobs in a second." + stream},
		{method: "POST", pattern: "/v1/dead:count", access: operator, request: deadBulk{}, answer: jobadmin.Count{}, handle: (*exchange).countDead,
			help: "Count the dead letters that a replay or a discard would act on, and get a token for dead:run."},
		{method: "POST", pattern: "/v1/dead:run", access: operator, request: bulkToken{}, answer: bulkLine{}, handle: run(deadOf),
			help: "Replay or discard the letters that were counted, at most 500 in a second." + stream},
		{method: "GET", pattern: "/v1/bulk", access: operator, answer: bulkPage{}, handle: (*exchange).listBulk, params: bulkParams,
			help: "List the runs of verbs over many, of all principals, the newest first. One that has ended is kept for seven days."},
		{method: "GET", pattern: "/v1/bulk/{id}", access: operator, answer: bulkStatus{}, handle: (*exchange).showBulk,
			help: "Show a run of a verb over many: how far it is, and how it has ended."},
		{method: "POST", pattern: "/v1/bulk/{id}/stop", access: operator, handle: (*exchange).stopBulk,
			help: "Stop a run of a verb over many. The rest stays as it is, to be counted anew. A run that has ended stays ended."},
	}
}

// bulkParams choose a page of runs.
var bulkParams = []param{{name: "running", kind: flag, help: "1: only those that have not ended"}, afterParam, limitParam}

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
	b.Arg = nil // a value of a user
	t := ticket{Right: right, Do: b.Verb, Matches: c.Matches, Filter: filterText(b)}
	x.noteCount(t, err)
	if err != nil {
		return err
	}
	return x.counted(jobsOf, c, t)
}

// ticket goes with the token of a count: the right, which is asked for again at the run, and the
// words of a page for it.
type ticket struct {
	Right   bulkRight
	Do      string // the verb; with dead letters: replay or discard
	Matches int
	Filter  json.RawMessage `json:",omitempty"` // for the audit
}

// entry is that of the audit.
func (t ticket) entry() auditEntry {
	return auditEntry{Verb: t.Do, Class: t.Right.Class, Filter: t.Filter}
}

// noteCount notes a count in the audit.
func (x *exchange) noteCount(t ticket, err error) {
	e := outcomeOf(t.entry(), err)
	e.DryRun, e.Count = true, t.Matches
	x.note(e)
}

func (x *exchange) countDead() error {
	var b deadBulk
	if err := x.decode(&b); err != nil {
		return err
	}
	if b.Do != replayVerb && b.Do != discardVerb {
		return badRequest(`do is replay or discard`)
	}
	o, err := b.options()
	if err != nil {
		return err
	}
	c, t, err := x.deadCount(b.Do, o)
	if err != nil {
		return err
	}
	return x.counted(deadOf, c, t)
}

// deadCount counts dead letters.
func (x *exchange) deadCount(do string, o object.DeadLettersOptions) (c jobadmin.Count, t ticket, err error) {
	ctx, cancel, err := x.within()
	if err != nil {
		return c, t, err
	}
	defer cancel()
	c, err = x.operations.admin.CountDead(ctx, do == replayVerb, o)
	t = ticket{Do: do, Matches: c.Matches, Filter: filterText(deadFilter{o.Class, o.Name, o.Kind, o.Reason, o.Error, o.DiedSince, o.DiedBefore})}
	x.noteCount(t, err)
	return c, t, err
}

// The kinds of tokens: a run of one kind takes none of the other.
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

// sealed is a count with its token bound to the principal, to the kind of run, and to a ticket.
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
	// Ended is true in the last line. Problem is the reason if the run has ended early; without Ended it tells why the
	// lines end before the run.
	Ended   bool     `json:"ended,omitempty"`
	Problem *problem `json:"problem,omitempty"`
	ID      string   `json:"id"` // of the run
}

// bulkStatus is a run.
type bulkStatus struct {
	ID string `json:"id"`
	// State is running, done, or stopped, also after an error, which is the Problem then. In a list it is unreadable if
	// the row of the run is damaged; the Problem says how, and the other fields are empty.
	State  string          `json:"state"`
	Of     string          `json:"of"` // jobs or dead
	Verb   string          `json:"verb"`
	Filter json.RawMessage `json:"filter,omitempty"`
	Who    string          `json:"who"` // the id of the principal, and its name
	Name   string          `json:"name,omitempty"`
	// Matches is how many were counted. Of those that Progress does not have, a crash has taken up to a second of the
	// numbers, others were changed since the count, and the rest is to come.
	Matches int `json:"matches"`
	jobadmin.Progress
	CountedAt time.Time `json:"countedAt"`
	Began     time.Time `json:"began"`
	Ended     time.Time `json:"ended,omitzero"`
	Problem   *problem  `json:"problem,omitempty"`
}

// bulkPage is a page of runs.
type bulkPage struct {
	Runs []bulkStatus `json:"runs"`
	Next string       `json:"next,omitempty"`
}

// statusOf is a run as it is shown.
func statusOf(id string, r bulkState) bulkStatus {
	s := bulkStatus{
		ID: id, State: bulkRunning, Of: r.Of, Verb: r.Bulk.Verb, Filter: r.Filter, Who: r.Who, Name: r.Name, Matches: r.Matches,
		Progress: r.Bulk.Progress, CountedAt: r.Bulk.At, Began: r.Began, Ended: r.Ended, Problem: r.Problem,
	}
	switch {
	case r.Ended.IsZero():
	case r.Problem == nil:
		s.State = done
	default:
		s.State = "stopped"
	}
	return s
}

// unreadable is a run that cannot be read. It ends no list.
func unreadable(id string, err error) bulkStatus {
	return bulkStatus{ID: id, State: "unreadable", Problem: &problem{
		Type: "unreadable", Title: "The run cannot be read.", Status: http.StatusInternalServerError, Detail: err.Error(), Outcome: none,
	}}
}

func (x *exchange) listBulk() error {
	page, err := x.runs()
	if err != nil {
		return err
	}
	return x.json(http.StatusOK, page)
}

// runs is the page of runs that the request asks for.
func (x *exchange) runs() (page bulkPage, err error) {
	o := object.ObjectsOptions{}
	if o.Limit, err = x.limit(); err != nil {
		return page, err
	}
	if o.After, err = x.after(); err != nil {
		return page, err
	}
	if x.flag("running") {
		o.Label = bulkRunning
	}
	ctx, cancel, err := x.within()
	if err != nil {
		return page, err
	}
	defer cancel()
	found, err := x.host.Objects(ctx, bulkClass, o)
	if err != nil {
		return page, err
	}
	page.Runs = []bulkStatus{}
	for _, info := range found {
		run, err := bulkShow.Call(ctx, x.host, info.ID.Name, struct{}{})
		switch {
		case errors.Is(err, object.ErrConstructor):
			page.Runs = append(page.Runs, unreadable(info.ID.Name, err))
		case err != nil:
			return page, err
		case !run.Began.IsZero(): // it is kept still
			page.Runs = append(page.Runs, statusOf(info.ID.Name, run))
		}
	}
	if len(found) == o.Limit {
		page.Next = cursor(found[len(found)-1].ID.Name)
	}
	return page, nil
}

// bulkOf is a run, or a problem if there is none.
func (x *exchange) bulkOf(id string) (bulkState, error) {
	ctx, cancel, err := x.within()
	if err != nil {
		return bulkState{}, err
	}
	defer cancel()
	run, err := bulkShow.Call(ctx, x.host, id, struct{}{})
	if err == nil && run.Began.IsZero() {
		err = notFound()
	}
	return run, err
}

func (x *exchange) showBulk() error {
	run, err := x.bulkOf(x.path("id"))
	if err != nil {
		return err
	}
	return x.json(http.StatusOK, statusOf(x.path("id"), run))
}

func (x *exchange) stopBulk() error {
	if err := x.stopRun(x.path("id")); err != nil {
		return err
	}
	return x.empty()
}

// stopRun stops a run. It returns when that is durable; the run ends soon after.
func (x *exchange) stopRun(id string) error {
	if _, err := x.bulkOf(id); err != nil {
		return err
	}
	ctx, cancel, err := x.bounded()
	if err != nil {
		return err
	}
	defer cancel()
	return x.audited(auditEntry{Verb: "stop", Class: bulkClass, Object: id}, func() error {
		_, err := bulkStop.Call(ctx, x.host, id, errRunStopped, object.Detached())
		return err
	})
}

// maxRuns bounds the runs under way in all, and runsEach those of one principal. lineEvery is the time between two lines
// of progress, and lineTime that for the client to take one.
const (
	maxRuns   = 100
	runsEach  = 4
	lineEvery = time.Second
	lineTime  = 10 * time.Second
)

// beginRun begins the run of a token, and returns its id and a channel that is closed at its end.
func (x *exchange) beginRun(of, text string) (id string, over <-chan struct{}, err error) {
	token, t, err := x.unsealed(of, text)
	if err != nil {
		return "", nil, err
	}
	if err := x.mayRun(t.Right); err != nil {
		return "", nil, err
	}
	if x.serving.ending.Err() != nil {
		return "", nil, object.ErrShutdown
	}
	x.bulk.one.Lock()
	defer x.bulk.one.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(x.r.Context()), x.config.Timeout)
	defer cancel()
	if err := x.roomForRun(ctx); err != nil {
		return "", nil, err
	}
	entry := t.entry()
	entry.ID = x.runID()
	audit, err := x.beginAudit(entry)
	if err != nil {
		return "", nil, err
	}
	b, err := x.operations.admin.Take(token)
	if err != nil {
		audit.end(err, 0)
		return "", nil, err
	}
	over = x.bulk.put(audit.id, x.mayStillRun(t.Right))
	run := bulkState{
		Of: of, Who: x.who.ID, Name: x.who.Name, Matches: t.Matches, Filter: t.Filter, Day: audit.day,
		Began: x.host.Seams().Clock.Now(), Bulk: b,
	}
	if _, err := bulkBegin.Call(ctx, x.host, audit.id, run, object.Detached()); err != nil {
		if !errors.Is(err, object.ErrUnknown) { // else the run may have begun, and tells of its end itself
			x.bulk.ended(audit.id)
			audit.end(err, 0)
		}
		return "", nil, err
	}
	return audit.id, over, nil
}

// runID is the id of a new run. It begins with the time in milliseconds, counted down, so that lists have the newest run
// first.
func (x *exchange) runID() string {
	return fmt.Sprintf("%012x", 1<<48-x.host.Seams().Clock.Now().UnixMilli()) + x.host.NewName()[:20]
}

// roomForRun refuses a run if too many are under way.
func (x *exchange) roomForRun(ctx context.Context) error {
	running, err := x.host.Objects(ctx, bulkClass, object.ObjectsOptions{Label: bulkRunning, Limit: maxRuns})
	if err != nil {
		return err
	}
	mine := 0
	for _, info := range running {
		run, err := bulkShow.Call(ctx, x.host, info.ID.Name, struct{}{})
		if err != nil && !errors.Is(err, object.ErrConstructor) { // that of an unreadable run, whose principal is unknown
			return err
		}
		if run.Who == x.who.ID {
			mine++
		}
	}
	if mine >= runsEach || len(running) >= maxRuns {
		return &problem{Type: "too-many-runs", Title: "Too many such verbs run.", Status: http.StatusTooManyRequests, Outcome: none, Retryable: true, retryAfter: 5}
	}
	return nil
}

// runBulk begins the run of a token, and tells of its progress until it ends, the client leaves, or Serve ends.
func (x *exchange) runBulk(of string) error {
	var b bulkToken
	if err := x.decode(&b); err != nil {
		return err
	}
	id, over, err := x.beginRun(of, b.Token)
	if err != nil {
		return err
	}
	x.line(bulkLine{ID: id})
	tick := time.NewTicker(lineEvery)
	defer tick.Stop()
	for {
		select {
		case <-over:
		case <-tick.C:
		case <-x.r.Context().Done():
			return nil
		case <-x.serving.ending.Done():
		}
		ctx, cancel := context.WithTimeout(x.r.Context(), x.config.Timeout)
		run, err := bulkShow.Call(ctx, x.host, id, struct{}{})
		cancel()
		l := bulkLine{ID: id, Progress: run.Bulk.Progress, Ended: !run.Ended.IsZero(), Problem: run.Problem}
		switch {
		case err != nil:
			l.Problem = problemOf(err)
		case !l.Ended && x.serving.ending.Err() != nil:
			l.Problem = problemOf(object.ErrShutdown)
		}
		if x.line(l); l.Ended || l.Problem != nil {
			return nil
		}
	}
}

// line writes one line of JSON. An error of the connection ends the context of the request.
func (x *exchange) line(l bulkLine) {
	raw, err := json.Marshal(l)
	if err != nil {
		panic("server: encode a line: " + err.Error()) // numbers and texts always encode
	}
	control := x.control()
	_ = control.SetWriteDeadline(time.Now().Add(lineTime)) // a test's writer may have none
	x.w.Header().Set("Content-Type", "application/x-ndjson")
	_, _ = x.w.Write(append(raw, '\n'))
	_ = control.Flush()
	if !l.Ended && l.Problem == nil { // net/http writes the end of the answer
		_ = control.SetWriteDeadline(time.Time{})
	}
}
