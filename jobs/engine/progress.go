package engine

import (
	"context"

	"github.com/holdfast-dev/holdfast/jobs"
)

// Progressed notes that the work of an open execution has stored something that a repeat does
// not do again. All crashes and losses of the run before it are forgotten, so that only those
// without progress between add up to the bound of its recoveries (R4). If the execution is a
// suspect, because crashes in a row have cut it off, it is cleared when the commit of the turn
// is durable, and the next suspects are tried.
//
// It needs a Turn, or the turn that stores the progress. It writes one row of about 100 bytes
// if there was something to forget, else nothing, so the work may call it with each step. It
// returns ErrStaleExecution if the execution is not open.
func (e *Engine) Progressed(ctx context.Context, t Token) error {
	x, ok := e.open[t]
	if !ok {
		return e.Stale(t)
	}
	run, clear := progressedRun(x.Run)
	if !clear {
		return nil
	}
	progressed := *x.Execution
	progressed.Run, progressed.Held = run, false
	after := *x
	after.Execution = &progressed
	if err := e.save(ctx, &after); err != nil {
		return err
	}
	if err := e.st.Driver().ClearSuspect(ctx, x.record()); err != nil {
		return err
	}
	x.Execution = &progressed
	if p, ok := e.p.(progresser); ok {
		p.progressed(progressed)
	}
	return nil
}

// progresser is a Policy that keeps a copy of the run of an open execution.
type progresser interface {
	progressed(x Execution)
}

// progressedRun returns r without the crashes and losses that came before its progress, and
// whether there were any.
func progressedRun(r jobs.Run) (cleared jobs.Run, some bool) {
	some = r.Recoveries != 0 || r.Losses != 0 || r.Cuts != 0 || r.CutEpoch != 0 || r.OwnersLost != 0 || r.Recovering
	r.Recoveries, r.Losses, r.Cuts, r.CutEpoch, r.OwnersLost, r.Recovering = 0, 0, 0, 0, 0, false
	return r, some
}

// progressed has the metadata tell of the progress when it is stored the next time.
func (l *Job) progressed(x Execution) {
	if !x.Hook && l.meta.ExecutionID == string(x.Token) {
		l.meta.Run = x.Run
	}
}
