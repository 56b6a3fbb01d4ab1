package workerpool

import (
	"context"

	"github.com/holdfast-dev/holdfast/object"
)

// repair makes running tasks pending again that have no open execution. A crash
// cannot cause that, because one batch stores both or neither; a damaged store
// can. The constructor calls repair when it counts fewer executions than
// running tasks.
func (p *partition) repair(ctx context.Context) error {
	lost, err := p.placeless(ctx)
	if err != nil {
		return err
	}
	for _, num := range lost {
		r, err := p.mustTask(ctx, num)
		if err != nil {
			return err
		}
		p.running--
		p.pending++
		p.lost++
		p.dirty = true
		if err := p.enter(ctx, r); err != nil {
			return err
		}
		if err := p.st.Driver().Recovered(ctx, object.Recovery{Cause: "damage", Action: "re-run", Attempt: r.rare.Run.Attempt}); err != nil {
			return err
		}
		p.st.Log().Error("workerpool: a running task had no execution and is pending again", "task", p.id(num))
	}
	if err := p.Settle(ctx, p.st.Now()); err != nil {
		return err
	}
	return p.engine.Reload(ctx)
}

// placeless lists the unfinished tasks that nothing would ever begin: they have
// no row in r/ or w/, wait for no earlier task of their key, and have no open
// execution.
func (p *partition) placeless(ctx context.Context) (lost []uint64, err error) {
	placed := make(map[uint64]bool)
	for _, prefix := range []string{readyPrefix, waitPrefix, chainPrefix} {
		for item, err := range p.st.Storage().List(ctx, object.ListOptions{Prefix: prefix}) {
			if err != nil {
				return nil, err
			}
			value := item.Value
			if prefix == chainPrefix && len(value) == 9 {
				if value[0] == 1 {
					continue // an entered link needs another place
				}
				value = value[1:]
			}
			num, err := decodeNumber(value)
			if err != nil {
				return nil, err
			}
			placed[num] = true
		}
	}
	for item, err := range p.st.Storage().List(ctx, object.ListOptions{Prefix: taskPrefix}) {
		if err != nil {
			return nil, err
		}
		num, err := numberOf(item.Key)
		if err != nil {
			return nil, err
		}
		if _, runs := p.executing[num]; !runs && !placed[num] {
			lost = append(lost, num)
		}
	}
	return lost, nil
}
