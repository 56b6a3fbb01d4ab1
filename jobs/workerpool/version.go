package workerpool

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object"
)

// Inputs and the versions that they were stored under. The number of a task tells
// the version of its input, which never changes: a retry and a replay keep both.

// loadVersions reads the versions of the inputs that are stored.
func (p *partition) loadVersions(ctx context.Context) error {
	b, ok, err := p.st.Storage().Get(ctx, versionsKey)
	if err != nil || !ok {
		return err
	}
	if p.versions, err = jobs.ParseVersions(b); err != nil {
		return fmt.Errorf("%s: %w", p.st.ID(), err)
	}
	p.version = p.versions.Last()
	return nil
}

// versioned makes sure that tasks from num on count as stored by this definition. It
// writes only where the definition before it had another version, and forgets
// versions of which no input is left.
func (p *partition) versioned(ctx context.Context, num uint64) error {
	if p.version == p.set.version {
		return nil
	}
	oldest, err := p.oldest(ctx, num)
	if err != nil {
		return err
	}
	all := p.versions.From(num, p.set.version).Since(oldest)
	if err := p.st.Storage().PutBytes(ctx, versionsKey, []byte(all)); err != nil {
		return err
	}
	p.versions, p.version = all, p.set.version
	return nil
}

// oldest is the least number of a task with a stored input, or num if there is none
// below it.
func (p *partition) oldest(ctx context.Context, num uint64) (uint64, error) {
	for _, prefix := range [...]string{taskPrefix, deadPrefix} {
		for item, err := range p.st.Storage().List(ctx, object.ListOptions{Prefix: prefix, Limit: 1}) {
			if err != nil {
				return 0, err
			}
			first, err := numberOf(item.Key)
			if err != nil {
				return 0, err
			}
			num = min(num, first)
		}
	}
	return num, nil
}

// inputVersion is the version that the input of a task was stored under. It needs a
// turn: work beside the turns gets it as an argument.
func (p *partition) inputVersion(num uint64) string { return p.versions.At(num) }
