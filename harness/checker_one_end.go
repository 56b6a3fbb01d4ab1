package harness

import (
	"context"
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// OneEnd checks that each run of a workflow ends once (F12). It looks at a run after each of its
// commits, in each state that a crash leaves, and in the last. A run that has ended has exactly one
// event of its end since it was created, retried or begun anew, the label of its status, and an output
// if it has completed and no other. Its status, error, output and time of the end stay as they
// are until Retry, Restart or the end of its life. So no call sees two outcomes of one end. An end that
// was never durable may be lost with a crash and be another afterwards.
//
// It reads metadata as JSON, so it sees no run of a host with a codec of its own.
func OneEnd(c *Config) {
	c.endCheck = true
	checker(check{
		name:    "OneEnd",
		promise: promiseOneEnd.String(),
		stored:  func(s *Sim, view *storedState) error { return s.ends.compare(view, s.settling) },
	})(c)
}

// seenEnds is what OneEnd keeps: the ends of runs by object.
type seenEnds struct {
	stored map[string]runEnd // in the last state that a crash has left
	now    map[string]runEnd // after the newest commits
}

// runEnd is the end of a run.
type runEnd struct {
	life    string // CreationID of the run
	event   uint64 // of the end; 0: it has expired
	outcome string
}

// committed looks at the object of a commit.
func (s *Sim) committed(name string) {
	if !s.cfg.endCheck || s.problem != nil {
		return
	}
	class, id, _ := strings.Cut(name, "/")
	view := s.Store()
	o, err := view.Find(storage.ID{Class: class, Name: id})
	if err == nil && o.Number != 0 {
		err = s.ends.look(view, o, s.ends.now)
	}
	s.report("OneEnd", promiseOneEnd.String(), err)
}

// compare looks at all runs of a state. The last state of a scenario is compared with the newest
// commits; one that a crash leaves with the state that the crash before it has left, because
// commits may be lost.
func (e *seenEnds) compare(view *storedState, last bool) error {
	before := e.stored
	if last {
		before = e.now
	}
	e.stored, e.now = make(map[string]runEnd), make(map[string]runEnd)
	return eachObject(view, func(o storage.Object) error {
		if err := e.look(view, o, before); err != nil {
			return err
		}
		if end, ok := e.now[o.ID.String()]; ok {
			e.stored[o.ID.String()] = end
		}
		return nil
	})
}

// look checks the end of an object that is a run, compares it with the one before, and notes it.
func (e *seenEnds) look(view *storedState, o storage.Object, before map[string]runEnd) error {
	meta, ok, err := metaOf(view, o)
	if !ok || err != nil || meta.Type != "workflow" {
		return nil
	}
	name := o.ID.String()
	wrong := func(format string, args ...any) error {
		return concerning{fmt.Errorf("%s "+format, append([]any{name}, args...)...), name}
	}
	told, err := endsTold(view, o.ID)
	if err != nil {
		return wrong("%w", err)
	}
	end := runEnd{life: meta.CreationID, event: told.end.Seq}
	if end.outcome, err = outcomeOf(view, o, meta); err != nil {
		return wrong("%w", err)
	}
	was, ended := before[name]
	switch {
	case told.end.Kind == meta.Status.String(), !meta.Status.Ended() && told.end.Kind == "":
	case told.end.Kind != "":
		return wrong("is %s, and its newest event of an end or a begin is %q", meta.Status, told.end.Kind)
	case !told.oldest.At.IsZero() && !told.oldest.At.After(meta.EndedAt): // else it may have expired
		return wrong("is %s without an event of that end", meta.Status)
	}
	if ended && was.life == end.life && told.begun <= was.event && was.outcome != end.outcome {
		return wrong("had %s, and now has %s", was.outcome, end.outcome)
	}
	if e.now == nil {
		e.now = make(map[string]runEnd)
	}
	delete(e.now, name)
	if meta.Status.Ended() {
		e.now[name] = end
	}
	return nil
}

// outcomeOf tells the outcome of a run with its output, after a check of the rows that belong to it.
func outcomeOf(view *storedState, o storage.Object, meta jobs.Meta) (string, error) {
	output, ok, err := view.Data(nil, o, "out") // of a workflow, see FORMAT.md
	switch {
	case err != nil:
		return "", err
	case ok != (meta.Status == jobs.Completed):
		return "", fmt.Errorf("is %s, and whether it has an output is %t", meta.Status, ok)
	case !meta.Status.Ended():
		return "not ended", nil
	case o.Label.String() != meta.Status.Label():
		return "", fmt.Errorf("is %s with the label %q", meta.Status, o.Label)
	}
	text := fmt.Sprintf("%s at %s", meta.Status, sinceEpoch(meta.EndedAt))
	if ok {
		return fmt.Sprintf("%s with %s", text, printable(output)), nil
	}
	return fmt.Sprintf("%s with the error %q", text, meta.LastError), nil
}

// toldEnds is what the events of a run tell.
type toldEnds struct {
	oldest object.Event // of all; no Kind: there is none
	end    object.Event // since the last begin; no Kind: there is none
	begun  uint64       // the last begin; 0: it has expired
}

// endsTold reads the events of a run. Two ends without a begin between them are an error.
func endsTold(view *storedState, id storage.ID) (t toldEnds, err error) {
	reader := object.NewReader(view)
	for after, more := uint64(0), true; more; {
		events, err := reader.Events(context.Background(), id, after, object.MaxPage)
		if err != nil {
			return t, err
		}
		for _, e := range events {
			if after = e.Seq; t.oldest.Kind == "" {
				t.oldest = e
			}
			switch e.Kind {
			case jobs.EventCreated, jobs.EventResumed, jobs.EventTerminated:
				t.begun, t.end = e.Seq, object.Event{}
			case jobs.EventCompleted, jobs.EventFailed, jobs.EventCancelled:
				if t.end.Kind != "" {
					return t, fmt.Errorf("has ended twice: it was %s at %s, and %s at %s", t.end.Kind, sinceEpoch(t.end.At), e.Kind, sinceEpoch(e.At))
				}
				t.end = e
			}
		}
		more = len(events) == object.MaxPage
	}
	return t, nil
}
