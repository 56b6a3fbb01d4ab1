package harness

import (
	"fmt"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/storage"
)

// NoStuck checks at the end that no job rests as stuck (J20): a workflow that cannot go on
// with its code, for example, because its function does not repeat what its history holds.
// A stuck run breaks no other promise, so it passes every other checker: give NoStuck to each
// crash test of a workflow. The problem tells the cause and the place in the history.
func NoStuck(c *Config) {
	checker(check{
		name:    "NoStuck",
		promise: own("no job rests as stuck at the end", promiseStuck),
		end: func(s *Sim) error {
			view := s.Store()
			return eachObject(view, func(o storage.Object) error { return notStuck(view, o) })
		},
	})(c)
}

// notStuck returns the error of a job that rests as stuck. A host with a codec of its own
// stores metadata that are not JSON; the label of the object tells the status then (J18).
func notStuck(view *storedState, o storage.Object) error {
	meta, ok, err := metaOf(view, o)
	if err != nil || !ok {
		if o.Label.String() != jobs.Stuck.Label() {
			return nil
		}
		return concerning{fmt.Errorf("%s is stuck by its label: its Status tells the cause", o.ID), o.ID.String()}
	}
	if meta.Status != jobs.Stuck {
		return nil
	}
	text := fmt.Sprintf("%s is stuck: %s", o.ID, meta.LastError)
	if meta.StopReason != "" {
		text += fmt.Sprintf(" (it waits for Resume: %s)", meta.StopReason)
	}
	return concerning{fmt.Errorf("%s", text), o.ID.String()}
}
