package continuous

import "github.com/holdfast-dev/holdfast/jobs/verbs"

// Verbs describes the methods of the job by name, for callers that have no Go types (G1).
func (j *Job[S]) Verbs() *verbs.Table {
	return verbs.NewTable(j.Name(), "continuous", []verbs.Verb{
		verbs.New("start", verbs.Call, "create the job with its first state, or leave one that exists as it is", j.Start).As(verbs.Lasting),
		verbs.New("trigger", verbs.Operator, "begin a run now; the schedule counts from now on", verbs.Plain(j.Trigger)).As(verbs.Harmless),
		verbs.New("pause", verbs.Operator, "begin no run until resume; a run that executes ends first", verbs.Plain(j.Pause)).As(verbs.Harmless),
		verbs.New("resume", verbs.Operator, "let a paused, stopped or failed job go on", verbs.Plain(j.Resume)).As(verbs.Harmless),
		verbs.New("stop", verbs.Operator, "end the job, keep its state, and cancel a run that executes", verbs.Because(j.Stop)).Optional().As(verbs.Final),
		verbs.New("terminate", verbs.Operator, "delete the job with its state", verbs.Because(j.Terminate)).Optional().As(verbs.Final),
	}, []verbs.Verb{
		verbs.New("status", verbs.Reader, "show the metadata and when the next run is due", verbs.Ask(j.Status)),
		verbs.New("state", verbs.Reader, "show the state that the last successful run left", verbs.Ask(j.State)),
	})
}
