package server

import (
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"log/slog"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server/auth"
)

// Definitions returns defs with the classes of the server itself, for object.Open: those of the
// audit and of verbs over many. New refuses a host without them.
//
//	host, err := object.Open(object.Options{Dir: "data"}, server.Definitions(Carts, Refresh)...)
func Definitions(defs ...object.Definition) []object.Definition {
	return append([]object.Definition{audits, bulks}, defs...)
}

// The audit is the events of one object for each day of UTC. They are kept for auditKept, and no generic route
// reaches them.
const (
	auditClass = "holdfast.audit"
	auditKept  = 90 * 24 * time.Hour
	dayForm    = time.DateOnly
)

// The kinds of its events. A verb has two: begun is durable before the verb runs, and ended has its outcome.
// All else is one event of the kind noted.
const (
	auditBegun = "begun"
	auditEnded = "ended"
	auditNoted = "noted"
)

// auditEntry tells of one act.
type auditEntry struct {
	// ID is that of an act with an event at its begin and one at its end.
	ID string `json:"id,omitempty"`
	// Who and Name are the id and the name of the principal, and From is the address of the request.
	Who  string `json:"who,omitempty"`
	Name string `json:"name,omitempty"`
	From string `json:"from,omitempty"`
	Verb string `json:"verb,omitempty"`
	// Class and Object are the target; Part is the task of a pool, or the number of a dead letter. Filter is that
	// of a verb over many, and Route that of a request that was refused.
	Class  string          `json:"class,omitempty"`
	Object string          `json:"object,omitempty"`
	Part   string          `json:"part,omitempty"`
	Filter json.RawMessage `json:"filter,omitempty"`
	Route  string          `json:"route,omitempty"`
	// DryRun says that it was a count, which changes nothing.
	DryRun bool `json:"dryRun,omitempty"`
	// Outcome is done; none, if the act has failed and left nothing behind; or unknown. Problem is the type of its
	// problem.
	Outcome string `json:"outcome,omitempty"`
	Problem string `json:"problem,omitempty"`
	// Count is how many matches a count has found, how many a verb over many has acted on, how many refusals
	// one entry stands for, and how many executions were recovered.
	Count int `json:"count,omitempty"`
	// Recoveries and Recovered are of an opening: counts, and the names of the first.
	Recoveries []auditRecoveries `json:"recoveries,omitempty"`
	Recovered  []string          `json:"recovered,omitempty"`
	// Added, Edited and Revoked are the ids of the tokens that a change of their file has changed, at most
	// maxRecovered each. Count has all.
	Added   []string `json:"added,omitempty"`
	Edited  []string `json:"edited,omitempty"`
	Revoked []string `json:"revoked,omitempty"`
}

// tokens gives the ids of tokens with the word for their change.
func (e *auditEntry) tokens() iter.Seq2[string, []string] {
	return func(yield func(string, []string) bool) {
		_ = yield("added", e.Added) && yield("edited", e.Edited) && yield("revoked", e.Revoked)
	}
}

// done is the outcome of an act without an error. The others are those of a problem.
const done = "done"

// auditDay is the object with the entries of a day.
type auditDay struct{ st *object.State }

// auditEvent is an event to store.
type auditEvent struct {
	kind  string
	entry auditEntry
}

var (
	audits = object.Define(auditClass, func(_ context.Context, st *object.State) (*auditDay, error) { return &auditDay{st}, nil },
		object.ClassOptions{Internal: true})
	auditWrite = object.Handle(audits, "write", func(d *auditDay, ctx context.Context, e auditEvent) (struct{}, error) {
		return struct{}{}, d.st.Emit(ctx, e.kind, e.entry, object.KeepFor(auditKept))
	})
)

func init() { audits.AtOpen(auditRecovery) }

// today is the name of the object with the entries of now.
func today(h *object.Host) string { return h.Seams().Clock.Now().UTC().Format(dayForm) }

// auditError is the error of a verb that has not run, because its entry cannot be written.
type auditError struct{ error }

func (e *auditError) Unwrap() error { return e.error }

// problem is that of the error of the entry. Nothing of the verb was done.
func (e *auditError) problem() *problem {
	p := *problemOf(e.error)
	p.Outcome, p.Detail = none, "the entry of the audit cannot be written, so the verb has not run"
	return &p
}

// by fills in the principal and the address of the request.
func (x *exchange) by(e auditEntry) auditEntry {
	e.Who, e.Name, e.From = x.who.ID, x.who.Name, x.r.RemoteAddr
	return e
}

// audited runs a verb between its two entries. Without the first, which is durable before, the verb does not run.
func (x *exchange) audited(e auditEntry, act func() error) error {
	begun, err := x.beginAudit(e)
	if err != nil {
		return err
	}
	err = act()
	begun.end(err, 0)
	return err
}

// begunAudit is a verb with its first entry. Its second is in the object of the same day. It does not end with the
// request.
type begunAudit struct {
	s       *Server
	ctx     context.Context // of the request, without its end
	id, day string
}

// beginAudit writes the first entry of a verb, under the id of e if it has one.
func (x *exchange) beginAudit(e auditEntry) (begunAudit, error) {
	e = x.by(e)
	e.ID = cmp.Or(e.ID, x.host.NewName())
	begun := begunAudit{x.Server, context.WithoutCancel(x.r.Context()), e.ID, today(x.host)} // a verb goes on when its client has left, so its entry does too
	if err := x.writeAudit(begun.ctx, begun.day, auditEvent{auditBegun, e}); err != nil {
		return begun, &auditError{err}
	}
	return begun, nil
}

// end writes the second entry.
func (a begunAudit) end(err error, count int) {
	a.s.noteAudit(a.ctx, a.day, auditEvent{auditEnded, outcomeOf(auditEntry{ID: a.id, Count: count}, err)})
}

// outcomeOf fills in the outcome of an act.
func outcomeOf(e auditEntry, err error) auditEntry {
	e.Outcome = done
	if err != nil {
		p := problemOf(err)
		e.Outcome, e.Problem = string(p.Outcome), p.Type
	}
	return e
}

// note writes the only entry of an act that an audit which cannot be written does not stop: of a count or a
// sign-in. The log has a line then.
func (x *exchange) note(e auditEntry) {
	x.noteAudit(context.WithoutCancel(x.r.Context()), today(x.host), auditEvent{auditNoted, x.by(e)})
}

// noteAudit is note for any event.
func (s *Server) noteAudit(ctx context.Context, day string, e auditEvent) {
	if err := s.writeAudit(ctx, day, e); err != nil {
		s.config.Logger.Error("server: audit: an entry cannot be written", slog.String("day", day), slog.String("verb", e.entry.Verb), slog.String("id", e.entry.ID), slog.Any("error", err))
	}
}

// noteTokens notes a change of the file of tokens, unless a newer Server of the host does. It does not wait for the disk.
func (s *Server) noteTokens(c auth.Change) {
	if serversOf(s.host.Seams())[0] != s {
		return
	}
	few := func(ids []string) []string { return ids[:min(len(ids), maxRecovered)] }
	e := auditEntry{
		Verb: "tokens", Outcome: done, Count: len(c.Added) + len(c.Edited) + len(c.Revoked),
		Added: few(c.Added), Edited: few(c.Edited), Revoked: few(c.Revoked),
	}
	s.spawn(func() {
		if err := s.writeAudit(context.Background(), today(s.host), auditEvent{auditNoted, e}); err != nil {
			s.config.Logger.Error("server: audit: a change of tokens cannot be written", slog.Any("added", e.Added), slog.Any("edited", e.Edited), slog.Any("revoked", e.Revoked), slog.Any("error", err))
		}
	})
}

// writeAudit stores an event, and returns when it is durable.
func (s *Server) writeAudit(ctx context.Context, day string, e auditEvent) error {
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	_, err := auditWrite.Call(ctx, s.host, day, e, object.Detached())
	return err
}

// maxAuditText bounds a text of a request in an entry.
const maxAuditText = 4 << 10

// filterText is a filter for an entry; nil if it is too long.
func filterText(filter any) json.RawMessage {
	raw, err := json.Marshal(filter)
	if err != nil || len(raw) > maxAuditText {
		return nil
	}
	return raw
}

// audits reports whether the principal may see the audit.
func (x *exchange) audits() bool { return x.can(auth.Admin) && x.who.Prefix == "" }
