package workerpool

import (
	"context"

	"github.com/holdfast-dev/holdfast/jobs"
)

// Kinds of the events of a partition beside those of the engine, which tell of
// executions. Of one task jobs.Event.Subject is "task/" and its number; of a call
// of OnDead "dead/" and the number, of OnEmpty "empty".
const (
	EventCancelled = "cancelled" // a task, for good
	EventReplayed  = "replayed"  // a dead letter is pending again
	EventMode      = "mode"      // of the partition, to Event.Reason
)

func (p *partition) emit(ctx context.Context, kind string, r *row) error {
	return p.st.Emit(ctx, kind, jobs.Event{Subject: subject(taskSubject, r.num), Run: 1, Attempt: r.rare.Run.Attempt})
}
