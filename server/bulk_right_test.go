package server

import (
	"context"
	"maps"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	jobadmin "github.com/holdfast-dev/holdfast/admin"
	"github.com/holdfast-dev/holdfast/jobs/verbs"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server/auth"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// unfound is an Authenticator that is no Finder.
type unfound struct{ auth.Authenticator }

// Proves V11, V21: a run that an earlier process has begun goes on if its principal still has the right, and acts on
// nothing else: it ends when the token, the role, the names or the verb is gone, and when nothing can tell.
func TestAContinuedRunAsksForItsRight(t *testing.T) {
	own, _ := auth.Peer(&http.Request{})
	for name, c := range map[string]struct {
		who  string // of the run
		auth auth.Authenticator
		none bool   // the Config names no job type
		dead bool   // the run is of dead letters, of which there are none
		want string // the type of the problem; empty: the run is done
	}{
		"the role stays":           {who: "operator", auth: people{"operator": {Role: auth.Operator}}},
		"dead letters":             {who: "operator", auth: staff, dead: true},
		"dead letters, lower role": {who: "operator", auth: people{"operator": {Role: auth.Reader}}, dead: true, want: "revoked"},
		"the role has grown":       {who: "operator", auth: people{"operator": {Role: auth.Admin}}},
		"the role is lower":        {who: "operator", auth: people{"operator": {Role: auth.Reader}}, want: "revoked"},
		"the token is gone":        {who: "operator", auth: people{}, want: "revoked"},
		"a prefix was put on":      {who: "operator", auth: people{"operator": {Role: auth.Operator, Prefix: "acme/"}}, want: "revoked"},
		"the verb is not exposed":  {who: "operator", auth: staff, none: true, want: "revoked"},
		"no Finder":                {who: "operator", auth: unfound{staff}, want: "unknown-principal"},
		"over the socket":          {who: own.ID, auth: people{}},
		"of another user's socket": {who: own.ID + "1", auth: people{}, want: "revoked"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := memstore.New()
				s := shopOn(t, engine)
				s.stopped(3)
				run := bulkState{
					Of: jobsOf, Who: c.who, Matches: 3, Day: today(s.host), Began: time.Now(),
					Bulk: jobadmin.Bulk{Verb: "resume", Jobs: jobadmin.JobsOptions{Class: "report", Label: "stopped"}, At: time.Now()},
				}
				if c.dead {
					run.Of, run.Bulk = deadOf, jobadmin.Bulk{Verb: replayVerb, At: time.Now()}
				}
				s.srv.bulk.put("r", func() *problem { // the process ends before the first act
					time.Sleep(time.Minute)
					return nil
				})
				if _, err := bulkBegin.Call(t.Context(), s.host, "r", run); err != nil {
					t.Fatal(err)
				}
				left := engine.Crash(0)
				again := &shop{}
				host, err := object.Open(object.Options{Storage: storage.Options{Engine: left}}, Definitions(again.define()...)...)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = host.Shutdown(context.Background()) }()
				config := Config{Auth: c.auth, Jobs: again.types()}
				if c.none {
					config.Jobs = []verbs.Described{}
				}
				srv, err := New(host, config)
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				got, err := bulkShow.Call(t.Context(), host, "r", struct{}{})
				if err != nil || got.Ended.IsZero() {
					t.Fatalf("V21: %+v, %v", got, err)
				}
				why, acts := "", 3
				if got.Problem != nil {
					why = got.Problem.Type
				}
				if c.want != "" || c.dead {
					acts = 0
				}
				if why != c.want || got.Bulk.Progress.Done != acts || got.Bulk.Progress.Refused > 0 {
					t.Errorf("V11: the run has ended by %q, want %q: %+v", why, c.want, got)
				}
				if len(srv.bulk.all) != 0 {
					t.Errorf("V9: %d runs stay in memory", len(srv.bulk.all))
				}
			})
		})
	}
}

// Proves V11: a run that goes on after a restart ends soon after its token was revoked.
func TestAContinuedRunEndsWithItsToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := memstore.New()
		s := shopOn(t, engine)
		token := s.stopped(manyStopped)
		leaving, leave := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer leave()
		id := bulkLines(t, s.directIn(leaving, "operator", "POST", "/v1/jobs:run", token, 200))[0].ID
		left := engine.Crash(0)
		if err := s.host.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		again, who := shopOn(t, left), &guests{people: maps.Clone(staff)}
		again.srv.config.Auth, again.srv.limits.checkEvery = who, time.Second
		for again.bulkRun(id).Done == 0 {
			time.Sleep(100 * time.Millisecond)
		}
		who.set("operator", nil)
		time.Sleep(10 * time.Second)
		run, err := bulkShow.Call(t.Context(), again.host, id, struct{}{})
		if err != nil || run.Problem == nil || run.Problem.Type != "revoked" || run.Bulk.Progress.Done == 0 || run.Bulk.Progress.Done > 1000 {
			t.Errorf("V11: %+v, %v", run, err)
		}
	})
}
