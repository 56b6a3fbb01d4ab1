package workerpool

import (
	"context"

	"github.com/holdfast-dev/holdfast/object"
)

// phaseName names a phase of a task.
type phaseName struct {
	Number uint64 `json:"number"`
	Phase  string `json:"phase"`
}

// phaseValue is the stored result of a phase.
type phaseValue struct {
	Value []byte `json:"value,omitempty"`
	OK    bool   `json:"ok,omitempty"`

	codec object.Codec
}

// phaseResult reads the result of a phase.
func (p *partition) phaseResult(ctx context.Context, n phaseName) (v phaseValue, err error) {
	if _, err := p.look(ctx, n.Number); err != nil {
		return v, err
	}
	r, err := p.phases(ctx, n.Number)
	if err != nil {
		return v, err
	}
	for _, d := range r.Done {
		if d.Name == n.Phase {
			v = phaseValue{OK: true, codec: p.st.Driver().Codec()}
			v.Value, err = p.resultOf(ctx, n.Number, d.Index)
		}
	}
	return v, err
}

// phaseResults reads the results of a task's phases.
func (p *partition) phaseResults(ctx context.Context, num uint64) (all []PhaseResult, err error) {
	if _, err := p.look(ctx, num); err != nil {
		return nil, err
	}
	r, err := p.phases(ctx, num)
	if err != nil {
		return nil, err
	}
	for _, d := range r.Done {
		raw, err := p.resultOf(ctx, num, d.Index)
		if err != nil {
			return nil, err
		}
		all = append(all, PhaseResult{Name: d.Name, Raw: raw})
	}
	return all, nil
}
