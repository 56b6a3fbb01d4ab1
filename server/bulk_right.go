package server

import (
	"context"
	"net/http"

	"github.com/holdfast-dev/holdfast/jobs/verbs"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/server/auth"
)

// bulkRight is the right that a principal needs to run a count: a verb on all jobs of a class with names that
// begin with the prefix. It is zero for dead letters, which need the role of the route alone.
type bulkRight struct{ Verb, Class, Prefix string }

// right is the right that a run needs.
func (r *bulkState) right() bulkRight {
	if r.Of != jobsOf {
		return bulkRight{}
	}
	return bulkRight{r.Bulk.Verb, r.Bulk.Jobs.Class, r.Bulk.Jobs.Prefix}
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

// mayStillRun returns how a run that the request begins asks for its right: nil, or why the run ends. The exchange of the
// request is over by then.
func (x *exchange) mayStillRun(right bulkRight) func() *problem {
	later := &exchange{Server: x.Server, r: x.r.Clone(context.WithoutCancel(x.r.Context())), route: x.route, who: x.who}
	return func() *problem {
		if !later.stillMay() || later.mayRun(right) != nil {
			return errRunRevoked
		}
		return nil
	}
}

// mayGoOn asks for the right of a run that an earlier process has begun, of whose request nothing is known but the id of
// the principal. One Server of the host that knows the principal is enough.
func mayGoOn(seams *seam.Seams, run *bulkState) *problem {
	why := errRunUnknown
	for _, s := range serversOf(seams) {
		who, ok, err := s.found(run.Who)
		if !ok {
			continue
		}
		x := &exchange{Server: s, route: &route{access: operator}, who: who}
		if err == nil && x.allowed() == nil && x.mayRun(run.right()) == nil {
			return nil
		}
		why = errRunRevoked
	}
	return why
}

// found returns the principal with an id. It returns false if the Authenticator cannot tell.
func (s *Server) found(id string) (who auth.Principal, ok bool, err error) {
	if who, ok := auth.FindPeer(id); ok {
		return who, true, nil
	}
	finder, ok := s.config.Auth.(auth.Finder)
	if !ok {
		return who, false, nil
	}
	who, err = finder.Find(id)
	return who, true, err
}

// The reasons for which a run ends early.
var (
	errRunStopped = &problem{Type: "stopped", Title: "Somebody has stopped it.", Status: http.StatusConflict, Outcome: unknown}
	errRunRevoked = &problem{Type: "revoked", Title: "Its principal may not do it any more.", Status: http.StatusForbidden, Outcome: unknown}
	errRunUnknown = &problem{Type: "unknown-principal", Title: "Nothing tells after the restart whether its principal may still do it.", Status: http.StatusForbidden, Outcome: unknown,
		Detail: "Config.Auth has no method Find"}
)
