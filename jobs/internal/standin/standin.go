// Package standin lets tests replace steps of a workflow. The functions that stand in for
// steps belong to one host and come with the probe of its seams, because a host of production
// has no probe: there a step costs one branch more. So two tests of one workflow may run
// beside each other.
package standin

import "github.com/holdfast-dev/holdfast/seam"

// Probe is a seam.Probe with functions that stand in for steps.
type Probe struct {
	seam.Probe
	// Step returns the function in the place of the step with that name, or nil.
	Step func(name string) any
}

// For returns the function that stands in for a step, or nil.
func For(p seam.Probe, name string) any {
	if s, ok := p.(Probe); ok {
		return s.Step(name)
	}
	return nil
}
