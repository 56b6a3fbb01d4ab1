package server

import (
	"encoding/json"
	"net/http"

	jobadmin "github.com/holdfast-dev/holdfast/admin"
	"github.com/holdfast-dev/holdfast/admin/why"
	"github.com/holdfast-dev/holdfast/jobs/verbs"
	"github.com/holdfast-dev/holdfast/storage"
)

// Parameters that several lists have.
var (
	classParam  = param{name: "class", help: "only of this class"}
	prefixParam = param{name: "prefix", help: "only names that begin with it"}
	afterParam  = param{name: "after", help: "go on behind a page: its next"}
	limitParam  = param{name: "limit", kind: number, help: "at most so many, up to 1,000; 100 if it is 0 or not there"}
)

// jobRoutes are the routes of jobs: lists, verbs and views. Each route of one job is there twice, as those of
// objects are: with the id in the path, and with the id in the query.
func (s *Server) jobRoutes() []route {
	all := append(s.bulkRoutes(), []route{
		{method: "GET", pattern: "/v1/jobs", access: viewer, answer: jobadmin.JobPage{}, handle: (*exchange).listJobs,
			params: []param{classParam, {name: "label", help: "only failed, paused, stuck, stopped, completed or cancelled ones"}, prefixParam, afterParam, limitParam},
			help:   "List the jobs of all types, also of those that Config.Jobs does not name; below reader without errors and reasons."},
		{method: "GET", pattern: "/v1/verbs", access: viewer, answer: tableList{}, handle: (*exchange).listVerbs,
			help: "List the verbs and views of the job types that Config.Jobs names."},
	}...)
	for _, one := range []route{
		{method: "GET", access: viewer, answer: jobadmin.Found{}, handle: (*exchange).showJob,
			help: "Show the stored metadata of a job and its next alarm; below reader without errors and reasons."},
		{method: "GET", pattern: "/why", access: viewer, answer: why.Answer{}, handle: (*exchange).whyJob,
			help: "Tell why a job does not run now, or that it runs; the code is absent if there is no such job."},
		{method: "PUT", access: granted, request: json.RawMessage{}, answer: json.RawMessage{}, handle: (*exchange).startJob,
			help: "Start a job by the verb start of its type: 201 if it is new, 200 if it was there. The body is the argument."},
		{method: "POST", pattern: "/do/{verb}", access: tabled, request: json.RawMessage{}, answer: json.RawMessage{}, handle: (*exchange).doJob, headers: []param{verbKey},
			help: "Run a verb of the job type. The body is the argument; the answer is that of the verb, or empty with 204."},
		{method: "GET", pattern: "/view/{view}", access: tabled, answer: json.RawMessage{}, handle: (*exchange).viewJob,
			params: []param{{name: "arg", help: "the argument in JSON, if the view takes one"}},
			help:   "Show a view of a job."},
	} {
		one.single = true
		byPath, byQuery := one, one
		byPath.pattern = "/v1/jobs/{job}/{id}" + one.pattern
		byQuery.pattern = "/v1/job" + one.pattern
		byQuery.params = append([]param{{name: "job", help: "the job type"}, {name: "id", help: "of the job"}}, one.params...)
		all = append(all, byPath, byQuery)
	}
	return all
}

// job returns the job that the path or the query names.
func (x *exchange) job() storage.ID {
	if x.route.param("id") != nil {
		return storage.ID{Class: x.param("job"), Name: x.param("id")}
	}
	return x.target("job", "id")
}

func (x *exchange) listJobs() error {
	page, err := x.jobList()
	if err != nil {
		return err
	}
	if page.Jobs == nil {
		page.Jobs = []jobadmin.Job{}
	}
	return x.told(listedJobs{page.Jobs, page.Next})
}

// jobList returns the jobs that the parameters class, label, prefix, after and limit choose.
func (x *exchange) jobList() (jobadmin.JobPage, error) {
	return x.operations.admin.Jobs(x.r.Context(), jobadmin.JobsOptions{
		Class: x.param("class"), Label: x.param("label"), Prefix: x.param("prefix"), After: x.param("after"), Limit: x.rows(),
	})
}

// listedJobs is a jobadmin.JobPage with an empty list in place of none.
type listedJobs struct {
	Jobs []jobadmin.Job `json:"jobs"`
	Next string         `json:"next,omitempty"`
}

func (x *exchange) showJob() error {
	id := x.job()
	if err := x.sees(id.Name); err != nil {
		return err
	}
	found, err := x.operations.admin.Job(x.r.Context(), id)
	if err != nil {
		return err
	}
	return x.told(found)
}

func (x *exchange) whyJob() error {
	id := x.job()
	if err := x.sees(id.Name); err != nil {
		return err
	}
	a, err := why.Job(x.r.Context(), x.source, id)
	if err != nil {
		return err
	}
	return x.told(x.hide(a))
}

func (x *exchange) startJob() error {
	id := x.job()
	raw, err := x.run("start", false, id.Class, id.Name)
	if err != nil {
		return err
	}
	var started struct {
		Created bool `json:"created"`
	}
	if err := json.Unmarshal(raw, &started); err != nil {
		return err
	}
	status := http.StatusOK
	if started.Created {
		status = http.StatusCreated
	}
	return x.bytes(status, raw)
}

func (x *exchange) doJob() error {
	id := x.job()
	raw, err := x.run(x.path("verb"), false, id.Class, id.Name)
	if err != nil {
		return err
	}
	return x.answered(raw)
}

// run runs a verb with the body as its argument. The body is read when all else is known.
func (x *exchange) run(verb string, pool bool, class, id string) ([]byte, error) {
	t, d, err := x.find((*verbs.Table).Verbs, verb, pool, class, id)
	if err != nil {
		return nil, err
	}
	arg, err := x.body()
	if err != nil {
		return nil, err
	}
	if err := unchanged(arg); err != nil {
		return nil, err
	}
	return x.do(t, d, id, arg)
}

func (x *exchange) viewJob() error {
	id := x.job()
	t, d, err := x.find((*verbs.Table).Views, x.path("view"), false, id.Class, id.Name)
	if err != nil {
		return err
	}
	raw, err := x.view(t, d, id.Name, []byte(x.param("arg")))
	if err != nil {
		return err
	}
	return x.answered(raw)
}

// answered answers with the answer of a verb or a view, which may be empty.
func (x *exchange) answered(raw []byte) error {
	if len(raw) == 0 {
		return x.empty()
	}
	return x.bytes(http.StatusOK, raw)
}

// tableList is the answer of a list of verbs.
type tableList struct {
	Types []listedTable `json:"types"`
}

// listedTable is a table of a job type.
type listedTable struct {
	Class string              `json:"class"`
	Kind  string              `json:"kind"`
	Verbs []verbs.Description `json:"verbs"`
	Views []verbs.Description `json:"views"`
}

func (x *exchange) listVerbs() error {
	list := tableList{Types: []listedTable{}}
	for _, t := range x.operations.admin.Types() {
		list.Types = append(list.Types, listedTable{t.Class(), t.Kind(), t.Verbs(), t.Views()})
	}
	return x.json(http.StatusOK, list)
}
