package dashboard

import (
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/admin"
	"github.com/holdfast-dev/holdfast/admin/why"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// Jobs is a page of the jobs of all types, or of one.
type Jobs struct {
	Class, Label, Prefix string  // the filters
	Types                []Class // the job types of the host, with the counts of their labels
	Jobs                 []admin.Job
	Next                 string // the parameter after of the next page; empty: this is the last
}

func (Jobs) page() (name, title string) { return "jobs", "Jobs" }

// Labels are the labels that jobs of the host have now, and that of the filter, in order.
func (j Jobs) Labels() []string {
	all := map[string]bool{j.Label: true}
	for _, t := range j.Types {
		for _, l := range t.Labels {
			all[l.Label] = true
		}
	}
	delete(all, "")
	return slices.Sorted(maps.Keys(all))
}

// Job is the page of one job.
type Job struct {
	ID     storage.ID
	Meta   jobs.Meta
	Alarm  time.Time // when it next wakes up
	Why    why.Answer
	Events []object.EventInfo
	Dead   []object.DeadLetter
	Verbs  []Verb
	Views  []string // those that have a page, by name
	Run    *Run     // of a workflow, if the principal may see it
}

func (j Job) page() (name, title string) {
	return "job", Name(j.ID.Class) + "/" + Name(j.ID.Name)
}

// Run is the progress of a run of a workflow, as the run tells it.
type Run struct {
	Status  workflow.Status
	Error   string // why it has told nothing; the fields beside it are empty then
	Entries []Entry
	Next    string // the parameter after of the next page of entries; empty: this is the last
	Signals bool   // the principal may send it signals
}

// Entry is an entry of a history.
type Entry struct {
	workflow.Entry
	Took time.Duration // since the entry before, of the same scope; negative: there is none
}

// View is the page of a view of a job, in JSON.
type View struct {
	ID   storage.ID
	View string
	JSON string
}

func (v View) page() (name, title string) {
	return "view", v.View + " of " + Name(v.ID.Class) + "/" + Name(v.ID.Name)
}

// word returns the present state of work as one of three words, or its status: it is running; it is due
// and queued; or it is waiting for a time or an event. A stored job with the status running has no
// open run, so it is not called so.
func word(s jobs.Status, alarm time.Time) string {
	switch {
	case s == jobs.Executing:
		return "running"
	case s == jobs.Running && !alarm.IsZero() && !alarm.After(time.Now()):
		return "queued"
	case s == jobs.Running:
		return "waiting"
	}
	return string(s)
}

// maxPreview is how many bytes of a value a table shows.
const maxPreview = 200

// preview returns a value for a table: its text if it is short and can be read, and else its size.
func preview(b []byte) string {
	if len(b) > maxPreview || !utf8.Valid(b) {
		return size(len(b))
	}
	return string(b)
}
