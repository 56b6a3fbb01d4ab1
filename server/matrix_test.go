package server

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/jobs/verbs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server/auth"
	"github.com/holdfast-dev/holdfast/server/webhook"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// A use is how the matrix makes a request of a route. NAME stands for the name of the object or
// the id of the job, encoded.
type use struct {
	path, body string
	// needs is the role of a route that takes it from the table of a job type, or call.
	needs string
	// whole says that a call is of a whole definition, so that a grant with a prefix does not
	// cover it.
	whole bool
	// nothing says that the route has nothing to show to anyone.
	nothing bool
}

// uses has a use of each route.
var uses = map[string]use{
	"GET /livez":        {path: "/livez"},
	"GET /readyz":       {path: "/readyz"},
	"POST /signin":      {path: "/signin", body: `{"token":"x"}`},
	"POST /signout":     {path: "/signout"},
	"GET /v1/health":    {path: "/v1/health"},
	"GET /metrics":      {path: "/metrics"},
	"GET /openapi.json": {path: "/openapi.json"},

	"GET /v1/why":                                   {path: "/v1/why"},
	"GET /v1/classes":                               {path: "/v1/classes"},
	"GET /v1/objects/{class}":                       {path: "/v1/objects/cart"},
	"GET /v1/objects/{class}/{name}":                {path: "/v1/objects/cart/NAME"},
	"GET /v1/objects/{class}/{name}/keys":           {path: "/v1/objects/cart/NAME/keys"},
	"GET /v1/objects/{class}/{name}/why":            {path: "/v1/objects/cart/NAME/why"},
	"POST /v1/objects/{class}/{name}/wake":          {path: "/v1/objects/cart/NAME/wake"},
	"DELETE /v1/objects/{class}/{name}":             {path: "/v1/objects/cart/NAME"},
	"GET /v1/object":                                {path: "/v1/object?class=cart&name=NAME"},
	"GET /v1/object/keys":                           {path: "/v1/object/keys?class=cart&name=NAME"},
	"GET /v1/object/why":                            {path: "/v1/object/why?class=cart&name=NAME"},
	"POST /v1/object/wake":                          {path: "/v1/object/wake?class=cart&name=NAME"},
	"DELETE /v1/object":                             {path: "/v1/object?class=cart&name=NAME"},
	"POST /v1/objects/{class}/{name}/call/{method}": {path: "/v1/objects/cart/NAME/call/add", body: "1"},
	"POST /v1/call":                                 {path: "/v1/call", body: `{"class":"cart","name":"NAME","method":"add","argument":1}`},

	"GET /v1/jobs":                            {path: "/v1/jobs"},
	"GET /v1/verbs":                           {path: "/v1/verbs"},
	"GET /v1/jobs/{job}/{id}":                 {path: "/v1/jobs/report/NAME"},
	"GET /v1/jobs/{job}/{id}/why":             {path: "/v1/jobs/report/NAME/why"},
	"PUT /v1/jobs/{job}/{id}":                 {path: "/v1/jobs/report/NAME", body: `"x"`},
	"POST /v1/jobs/{job}/{id}/do/{verb}":      {path: "/v1/jobs/report/NAME/do/pause", needs: "operator"},
	"GET /v1/jobs/{job}/{id}/view/{view}":     {path: "/v1/jobs/report/NAME/view/state", needs: "reader"},
	"GET /v1/job":                             {path: "/v1/job?job=report&id=NAME"},
	"GET /v1/job/why":                         {path: "/v1/job/why?job=report&id=NAME"},
	"PUT /v1/job":                             {path: "/v1/job?job=report&id=NAME", body: `"x"`},
	"POST /v1/job/do/{verb}":                  {path: "/v1/job/do/pause?job=report&id=NAME", needs: "operator"},
	"GET /v1/job/view/{view}":                 {path: "/v1/job/view/state?job=report&id=NAME", needs: "reader"},
	"POST /v1/jobs:count":                     {path: "/v1/jobs:count", body: `{"verb":"pause","class":"report"}`},
	"POST /v1/jobs:run":                       {path: "/v1/jobs:run", body: `{"token":"x"}`},
	"GET /v1/bulk":                            {path: "/v1/bulk"},
	"GET /v1/bulk/{id}":                       {path: "/v1/bulk/x", nothing: true},
	"POST /v1/bulk/{id}/stop":                 {path: "/v1/bulk/x/stop", nothing: true},
	"GET /v1/pools":                           {path: "/v1/pools"},
	"GET /v1/pools/{pool}/stats":              {path: "/v1/pools/print/stats"},
	"GET /v1/pools/{pool}/tasks":              {path: "/v1/pools/print/tasks"},
	"GET /v1/pools/{pool}/tasks/{id}":         {path: "/v1/pools/print/tasks/0-99"},
	"GET /v1/pools/{pool}/tasks/{id}/why":     {path: "/v1/pools/print/tasks/0-99/why"},
	"GET /v1/pools/{pool}/tasks/{id}/wait":    {path: "/v1/pools/print/tasks/0-99/wait"},
	"POST /v1/pools/{pool}/tasks":             {path: "/v1/pools/print/tasks", body: `{"in":"x"}`, whole: true},
	"POST /v1/pools/{pool}/tasks:batch":       {path: "/v1/pools/print/tasks:batch", body: `[{"in":"x"}]`, whole: true},
	"POST /v1/pools/{pool}/tasks/{id}/{verb}": {path: "/v1/pools/print/tasks/0-99/heartbeat", body: `{}`, needs: "call", whole: true},
	"POST /v1/pools/{pool}/{verb}":            {path: "/v1/pools/print/pause", needs: "operator", whole: true},

	"GET /v1/dead":                      {path: "/v1/dead"},
	"GET /v1/dead/{class}/{name}/{seq}": {path: "/v1/dead/cart/NAME/1"},
	"GET /v1/letter":                    {path: "/v1/letter?class=cart&name=NAME&seq=1"},
	"POST /v1/dead/replay":              {path: "/v1/dead/replay", body: `{"class":"cart","name":"NAME","seq":1}`},
	"POST /v1/dead/discard":             {path: "/v1/dead/discard", body: `{"class":"cart","name":"NAME","seq":1}`},
	"POST /v1/dead:count":               {path: "/v1/dead:count", body: `{"verb":"replay"}`},
	"POST /v1/dead:run":                 {path: "/v1/dead:run", body: `{"token":"x"}`},
	"GET /v1/recoveries":                {path: "/v1/recoveries"},
	"GET /v1/audit":                     {path: "/v1/audit"},

	"GET /v1/backups":                       {path: "/v1/backups"},
	"POST /v1/backups":                      {path: "/v1/backups"},
	"GET /v1/webhooks":                      {path: "/v1/webhooks"},
	"POST /v1/webhooks":                     {path: "/v1/webhooks", body: `{"url":"https://example.com","kinds":["never"]}`},
	"GET /v1/webhooks/{id}":                 {path: "/v1/webhooks/x", nothing: true},
	"GET /v1/webhooks/{id}/attempts":        {path: "/v1/webhooks/x/attempts", nothing: true},
	"POST /v1/webhooks/{id}/enable":         {path: "/v1/webhooks/x/enable", nothing: true},
	"POST /v1/webhooks/{id}/disable":        {path: "/v1/webhooks/x/disable", nothing: true},
	"POST /v1/webhooks/{id}/rotate":         {path: "/v1/webhooks/x/rotate", body: `{}`, nothing: true},
	"POST /v1/webhooks/{id}/replay":         {path: "/v1/webhooks/x/replay", body: `{"since":"2026-01-01T00:00:00Z"}`, nothing: true},
	"POST /v1/webhooks/{id}/resend":         {path: "/v1/webhooks/x/resend", body: `{"delivery":"x"}`, nothing: true},
	"DELETE /v1/webhooks/{id}":              {path: "/v1/webhooks/x", nothing: true},
	"GET /v1/objects/{class}/{name}/export": {path: "/v1/objects/cart/NAME/export"},
	"GET /v1/object/export":                 {path: "/v1/object/export?class=cart&name=NAME"},
	"POST /v1/import":                       {path: "/v1/import", body: "x"},

	"GET /v1/events":                        {path: "/v1/events"},
	"GET /v1/events/{class}":                {path: "/v1/events/cart"},
	"GET /v1/objects/{class}/{name}/events": {path: "/v1/objects/cart/NAME/events"},
	"GET /v1/object/events":                 {path: "/v1/object/events?class=cart&name=NAME"},

	"GET /ui":                {path: "/ui"},
	"GET /ui/{$}":            {path: "/ui/"},
	"GET /ui/signin":         {path: "/ui/signin"},
	"POST /ui/signin":        {path: "/ui/signin", body: "token=x"},
	"POST /ui/signout":       {path: "/ui/signout"},
	"GET /ui/asset/{file}":   {path: "/ui/asset/page.css"},
	"GET /ui/go":             {path: "/ui/go?class=cart&name=NAME"},
	"GET /ui/filter":         {path: "/ui/filter?of=object%3Fclass%3Dcart%26name%3Dx"},
	"GET /ui/live":           {path: "/ui/live"},
	"GET /ui/{page}":         {path: "/ui/wat", nothing: true},
	"GET /ui/overview":       {path: "/ui/overview"},
	"GET /ui/recoveries":     {path: "/ui/recoveries"},
	"GET /ui/classes":        {path: "/ui/classes"},
	"GET /ui/objects":        {path: "/ui/objects?class=cart"},
	"GET /ui/object":         {path: "/ui/object?class=cart&name=NAME"},
	"GET /ui/value":          {path: "/ui/value?class=cart&name=NAME&key=x"},
	"POST /ui/wake":          {path: "/ui/wake?class=cart&name=NAME"},
	"GET /ui/delete":         {path: "/ui/delete?class=cart&name=NAME"},
	"POST /ui/delete":        {path: "/ui/delete?class=cart&name=NAME"},
	"GET /ui/jobs":           {path: "/ui/jobs"},
	"GET /ui/job":            {path: "/ui/job?class=report&name=NAME"},
	"GET /ui/view":           {path: "/ui/view?class=report&name=NAME&view=state", needs: "reader"},
	"GET /ui/ask":            {path: "/ui/ask?class=report&name=NAME&verb=stop", needs: "operator"},
	"POST /ui/do":            {path: "/ui/do?class=report&name=NAME&verb=pause", needs: "operator"},
	"GET /ui/pools":          {path: "/ui/pools"},
	"GET /ui/pool":           {path: "/ui/pool?pool=print"},
	"GET /ui/task":           {path: "/ui/task?pool=print&task=0-99"},
	"GET /ui/askpool":        {path: "/ui/askpool?pool=print&verb=discard", needs: "operator", whole: true},
	"POST /ui/dopool":        {path: "/ui/dopool?pool=print&verb=pause", needs: "operator", whole: true},
	"GET /ui/dead":           {path: "/ui/dead"},
	"GET /ui/letter":         {path: "/ui/letter?class=cart&name=NAME&seq=1"},
	"GET /ui/replay":         {path: "/ui/replay?class=cart&name=NAME&seq=1"},
	"POST /ui/replay":        {path: "/ui/replay?class=cart&name=NAME&seq=1"},
	"GET /ui/discard":        {path: "/ui/discard?class=cart&name=NAME&seq=1"},
	"POST /ui/discard":       {path: "/ui/discard?class=cart&name=NAME&seq=1"},
	"GET /ui/bulk":           {path: "/ui/bulk?do=replay"},
	"POST /ui/bulk":          {path: "/ui/bulk", body: "token=x"},
	"GET /ui/bulkruns":       {path: "/ui/bulkruns"},
	"GET /ui/bulkrun":        {path: "/ui/bulkrun?id=x", nothing: true},
	"POST /ui/bulkstop":      {path: "/ui/bulkstop?id=x", nothing: true},
	"GET /ui/audit":          {path: "/ui/audit"},
	"GET /ui/backups":        {path: "/ui/backups"},
	"POST /ui/backup":        {path: "/ui/backup"},
	"GET /ui/webhooks":       {path: "/ui/webhooks"},
	"GET /ui/webhook":        {path: "/ui/webhook?id=x", nothing: true},
	"POST /ui/webhookadd":    {path: "/ui/webhookadd", body: "url=https://example.com&kinds=never"},
	"POST /ui/webhookset":    {path: "/ui/webhookset?id=x&verb=enable", nothing: true},
	"POST /ui/webhookrotate": {path: "/ui/webhookrotate?id=x", body: "keep=1h"},
	"POST /ui/webhookreplay": {path: "/ui/webhookreplay?id=x", body: "last=1h"},
	"POST /ui/webhookresend": {path: "/ui/webhookresend?id=x", body: "delivery=x"},
}

// crowd has a principal of each kind.
var crowd = people{
	"nobody": {}, "viewer": {Role: auth.Viewer}, "reader": {Role: auth.Reader}, "operator": {Role: auth.Operator}, "admin": {Role: auth.Admin},
	"caller": {Grants: []auth.Grant{{Class: "cart"}, {Class: "report"}, {Class: "print"}}},
	"acme": {Role: auth.Admin, Prefix: "acme/", Grants: []auth.Grant{
		{Class: "cart", Prefix: "acme/"}, {Class: "report", Prefix: "acme/"}, {Class: "print", Prefix: "acme/"},
	}},
}

// Outcomes of a cell of the matrix.
const (
	allowed       = "allowed"
	noCredentials = "no-credentials"
	forbidden     = "forbidden"
	hidden        = "not-found"
)

// expect is the answer that a principal gets on a route.
func (u use) expect(rt route, who, name string) string {
	p, need, isRole := crowd[who], auth.None, false
	if rt.access == tabled && u.needs != "call" {
		need, _ = auth.ParseRole(u.needs)
		isRole = true
	} else if need, isRole = rt.access.role(); rt.access == open {
		return allowed
	}
	switch {
	case who == "":
		return noCredentials
	case !isRole && slices.ContainsFunc(p.Grants, func(g auth.Grant) bool { return strings.HasPrefix(name, g.Prefix) && !(u.whole && g.Prefix != "") }):
		return allowed
	case !isRole:
		return hidden
	case rt.access == tabled && p.Role == auth.None && len(p.Grants) == 0:
		return hidden // it may not know which verbs there are
	case p.Role < need:
		return forbidden
	case p.Prefix != "" && (!rt.single || !p.Sees(name)), u.nothing:
		return hidden
	}
	return allowed
}

// Proves V6: each route refuses each principal that lacks the role or the grant, before it reads
// anything, and shows nothing of objects that the principal's prefix hides.
func TestMatrix(t *testing.T) {
	carts := cartClass(newGates())
	reports := continuous.New(continuous.Config[string]{Name: "report", StartLater: true, Run: func(context.Context, *continuous.Run[string]) error { return nil }})
	prints := workerpool.New(workerpool.Config[string, int]{Name: "print", Partitions: 1})
	hooks, err := webhook.New(webhook.Config{Key: make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	f := startOn(t, object.Options{Storage: storage.Options{Engine: memstore.New()}, Feed: true}, func(c *Config) {
		c.Auth, c.Objects, c.Jobs, c.Webhooks = crowd, []Exposed{Class(carts, "add")}, []verbs.Described{reports, prints}, hooks
	}, append(hooks.Definitions(), carts, reports, prints)...)
	for _, name := range []string{"acme/1", "other"} {
		if _, err := reports.Start(t.Context(), f.host, name, ""); err != nil {
			t.Fatal(err)
		}
	}
	used := map[string]bool{}
	for _, rt := range f.srv.routes() {
		u, ok := uses[rt.method+" "+rt.pattern]
		if !ok {
			t.Errorf("V6: %s %s has no use in the matrix: add one to uses", rt.method, rt.pattern)
			continue
		}
		used[rt.method+" "+rt.pattern] = true
		for _, who := range []string{"", "nobody", "viewer", "reader", "operator", "admin", "caller", "acme"} {
			for _, name := range []string{"acme/1", "other"} {
				f.cell(rt, u, who, name)
			}
		}
	}
	for name := range uses {
		if !used[name] {
			t.Errorf("V6: there is no route %s", name)
		}
	}
}

// problemType is the type of a problem, which a page shows as a page.
func (f *fixture) problemType(rt route, a reply) string {
	f.t.Helper()
	if rt.page {
		return pageProblem(f.t, a)
	}
	return a.problem(f.t).Type
}

// cell makes one request of the matrix.
func (f *fixture) cell(rt route, u use, who, name string) {
	f.t.Helper()
	path := strings.ReplaceAll(u.path, "NAME", strings.ReplaceAll(name, "/", "%2F"))
	ask := f.ask
	if _, ok := rt.answer.(eventStream); ok {
		ask = f.askStream
	}
	a := ask(who, rt.method, path, strings.ReplaceAll(u.body, "NAME", name))
	got := allowed
	if a.status >= 400 {
		switch kind := f.problemType(rt, a); kind {
		case "unknown-method":
			got = hidden
		case noCredentials, forbidden, hidden:
			got = kind
		}
	}
	if want := u.expect(rt, who, name); got != want || a.status >= 500 {
		f.t.Errorf("V6: %q on %s %s: %d %s, want %s", who, rt.method, path, a.status, a.body, want)
	}
}
