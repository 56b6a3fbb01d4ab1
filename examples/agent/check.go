package main

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast/object"
)

// plain decides about all files in a loop, without an object, a store or a journal.
func plain(queue *source) (events []event, s state, err error) {
	for place := range queue.paths {
		o := queue.observe(place)
		e := event{o, decide(s, o)}
		events = append(events, e)
		if s, err = apply(s, e); err != nil {
			return nil, s, err
		}
	}
	return events, s, nil
}

// check compares each event of an agent, and its state, with those of a plain loop.
func (a *agents) check(ctx context.Context, from object.Caller, name string, queue *source, got state) (differences []string, err error) {
	want, end, err := plain(queue)
	if err != nil {
		return nil, err
	}
	differ := func(place string, got, want any) {
		if got != want {
			differences = append(differences, fmt.Sprintf("%s: %+v, and in the plain loop %+v", place, got, want))
		}
	}
	seen := 0
	for {
		page, err := a.events.Call(ctx, from, name, uint64(seen))
		if err != nil {
			return nil, err
		}
		if len(page) == 0 {
			break
		}
		for _, e := range page {
			if seen < len(want) {
				differ(fmt.Sprint("event ", seen+1), e, want[seen])
			}
			seen++
		}
	}
	differ("events", seen, len(want))
	differ("state", got, end)
	return differences, nil
}
