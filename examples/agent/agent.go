package main

import (
	"context"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/object/journal"
)

// filesPerTurn is how many files the agent looks at in one commit.
const filesPerTurn = 8

// agent is the object. It has nothing beside its journal.
type agent struct {
	st    *object.State
	j     *journal.Journal[state, event]
	queue *source
}

// agents is the class of agents over one queue, and its methods.
type agents struct {
	class  *object.Class[agent]
	begin  *object.Method[struct{}, status]
	look   *object.Method[struct{}, status]
	asOf   *object.Method[uint64, state]
	events *object.Method[uint64, []event]
}

// status is how far an agent is.
type status struct {
	State state
	Done  bool
}

func newAgents(queue *source) *agents {
	class := object.Define("agent", func(ctx context.Context, st *object.State) (*agent, error) {
		j, err := journal.Attach(ctx, st, journal.Options[state, event]{Apply: apply, Keep: -1})
		return &agent{st, j, queue}, err
	})
	return &agents{
		class: class,
		begin: object.Handle(class, "begin", (*agent).begin),
		look:  object.Handle(class, "look", func(a *agent, _ context.Context, _ struct{}) (status, error) { return a.status(), nil }),
		asOf:  object.Handle(class, "asOf", func(a *agent, ctx context.Context, seq uint64) (state, error) { return a.j.At(ctx, seq) }),
		events: object.Handle(class, "events", func(a *agent, ctx context.Context, seen uint64) (page []event, err error) {
			for e, err := range a.j.Since(ctx, seen) {
				if err != nil || len(page) == eventsPerPage {
					return page, err
				}
				page = append(page, e.Event)
			}
			return page, nil
		}),
	}
}

// eventsPerPage bounds an answer of the method events.
const eventsPerPage = 1000

func (a *agent) status() status {
	return status{a.j.State(), a.j.Seq() >= uint64(len(a.queue.paths))}
}

// begin sets the agent to work, unless it is or has ended. It returns where it goes on.
func (a *agent) begin(ctx context.Context, _ struct{}) (status, error) {
	s := a.status()
	if _, armed, err := a.st.Alarm(ctx); armed || err != nil || s.Done {
		return s, err
	}
	return s, a.st.SetAlarm(ctx, a.st.Now())
}

// Alarm looks at the next files. Events and the next alarm are one commit.
func (a *agent) Alarm(ctx context.Context, _ object.AlarmInfo) error {
	for range filesPerTurn {
		if a.status().Done {
			return nil
		}
		o := a.queue.observe(int(a.j.Seq()))
		if err := a.j.Append(ctx, event{o, decide(a.j.State(), o)}); err != nil {
			return err
		}
	}
	if a.status().Done {
		return nil
	}
	return a.st.SetAlarm(ctx, a.st.Now())
}
