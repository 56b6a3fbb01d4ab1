package workerpool

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/holdfast-dev/holdfast/jobs/verbs"
	"github.com/holdfast-dev/holdfast/object"
)

// Verbs describes the methods of the pool by name, for callers that have no Go types (G1). The id
// of a verb of a task is that of TaskID.String; those of the whole pool take none.
func (p *Pool[In, Out]) Verbs() *verbs.Table {
	none := reflect.TypeFor[verbs.None]()
	return p.pool.verbs(typedVerbs{
		enqueue: verbs.NewUntyped("enqueue", verbs.Call, "add a task with an input", reflect.TypeFor[described[In]](), reflect.TypeFor[TaskRef](),
			func(ctx context.Context, from object.Caller, _ string, read func(arg any) error) (any, error) {
				var a described[In]
				if err := read(&a); err != nil {
					return nil, err
				}
				return p.Enqueue(ctx, from, a.In, a.option)
			}),
		batch: verbs.NewUntyped("enqueueBatch", verbs.Call, "add up to 10,000 tasks; those of one partition all or none", reflect.TypeFor[describedBatch[In]](), reflect.TypeFor[[]TaskRef](),
			func(ctx context.Context, from object.Caller, _ string, read func(arg any) error) (any, error) {
				var all describedBatch[In]
				if err := read(&all); err != nil {
					return nil, err
				}
				items := make([]Item[In], len(all))
				for i := range all {
					items[i] = Item[In]{all[i].In, []Option{all[i].option}}
				}
				return p.EnqueueBatch(ctx, from, items)
			}),
		claim: verbs.NewUntyped("claim", verbs.Call, "give ready tasks to an outside worker, which ends each within its lease", reflect.TypeFor[claimArg](), reflect.TypeFor[[]Claim[In]](),
			func(ctx context.Context, from object.Caller, _ string, read func(arg any) error) (any, error) {
				var a claimArg
				if err := a.read(read); err != nil {
					return nil, err
				}
				claims, err := p.Claim(ctx, from, a.N, time.Duration(a.Lease))
				if len(claims) > 0 { // their leases run, also if a partition has failed since
					return claims, nil
				}
				return []Claim[In]{}, err
			}),
		ack: verbs.NewUntyped("ack", verbs.Call, "end a claimed task as done, with its output", reflect.TypeFor[ackArg[Out]](), none,
			func(ctx context.Context, from object.Caller, id string, read func(arg any) error) (any, error) {
				var a ackArg[Out]
				if err := read(&a); err != nil {
					return nil, err
				}
				if err := leaseOf(a.Lease, id); err != nil {
					return nil, err
				}
				return verbs.None{}, p.Ack(ctx, from, a.Lease, a.Out)
			}),
		status: verbs.NewUntyped("status", verbs.Reader, "show the state of a task, its failures and its result", none, reflect.TypeFor[Status[Out]](),
			func(ctx context.Context, from object.Caller, id string, read func(arg any) error) (any, error) {
				task, err := idOf(id, read)
				if err != nil {
					return nil, err
				}
				return p.Status(ctx, from, task)
			}),
		wait: verbs.NewUntyped("wait", verbs.Reader, "wait until a task has ended and show its result", none, reflect.TypeFor[Out](),
			func(ctx context.Context, from object.Caller, id string, read func(arg any) error) (any, error) {
				task, err := idOf(id, read)
				if err != nil {
					return nil, err
				}
				return p.Wait(ctx, from, task)
			}),
	})
}

// idOf is the id of the task of a verb that has no argument.
func idOf(id string, read func(arg any) error) (TaskID, error) {
	if err := read(new(verbs.None)); err != nil {
		return TaskID{}, err
	}
	return ParseTaskID(id)
}

// typedVerbs are the verbs that have types of the pool.
type typedVerbs struct{ enqueue, batch, claim, ack, status, wait verbs.Verb }

// verbs describes the methods of the pool by name.
func (p *pool) verbs(typed typedVerbs) *verbs.Table {
	c := &control{p}
	return verbs.NewTable(p.set.name, "workerpool", []verbs.Verb{
		typed.enqueue.OfWhole().As(verbs.Lasting),
		typed.batch.OfWhole().As(verbs.Lasting),
		verbs.New("cancel", verbs.Call, "cancel a pending task, or ask a running one to end", ofTask(c.Cancel)).As(verbs.Final),
		typed.claim.OfWhole().Optional().As(verbs.Lasting),
		verbs.New("heartbeat", verbs.Call, "extend the lease of a claimed task by its length, from now on", p.heartbeatDescribed).As(verbs.Harmless),
		typed.ack.As(verbs.Lasting),
		verbs.New("nack", verbs.Call, "end the attempt at a claimed task as failed, or snooze it", p.nackDescribed).As(verbs.Lasting),
		verbs.New("replay", verbs.Operator, "make a dead task pending again, with fresh attempts", ofTask(oneOf(c.Replay))).As(verbs.Harmless),
		verbs.New("discardDead", verbs.Operator, "remove a dead task, which counts as cancelled then", ofTask(oneOf(c.DiscardDead))).As(verbs.Final),
		verbs.New("pause", verbs.Operator, "begin no task until resume", verbs.Plain(whole(c.Pause))).OfWhole().As(verbs.Harmless),
		verbs.New("resume", verbs.Operator, "end a pause or a drain", verbs.Plain(whole(c.Resume))).OfWhole().As(verbs.Harmless),
		verbs.New("drain", verbs.Operator, "take no task, and wait until those that there are have ended", verbs.Plain(whole(c.Drain))).OfWhole().As(verbs.Harmless),
		verbs.New("discard", verbs.Operator, "cancel all pending tasks", verbs.Ask(ofPool(c.Discard))).OfWhole().As(verbs.Final),
		verbs.New("replayAll", verbs.Operator, "replay all dead tasks", verbs.Ask(ofPool(c.ReplayAll))).OfWhole().As(verbs.Lasting),
	}, []verbs.Verb{
		verbs.New("stats", verbs.Viewer, "count the tasks of the pool and of each partition", verbs.Ask(ofPool(c.Stats))).OfWhole(),
		verbs.New("tasks", verbs.Reader, "list pending, running and dead tasks, page by page", p.tasksDescribed).OfWhole().Optional(),
		typed.status,
		verbs.New("phases", verbs.Reader, "show the stored results of the phases of a task", ofTask(c.PhaseResults)),
		typed.wait,
	}).WithDead(verbs.Dead{Kind: DeadTask, ID: deadID, Replay: "replay", Discard: "discardDead"})
}

// deadID is the id of the task that a dead letter is of.
func deadID(d object.DeadLetter) (string, error) {
	var data letterData
	if err := json.Unmarshal(d.Data, &data); err != nil {
		return "", fmt.Errorf("dead letter %d of %s: %w", d.Seq, d.ID, err)
	}
	return data.Task.String(), nil
}

// described is the argument of the verb enqueue: the input and the options of Enqueue.
type described[In any] struct {
	In       In        `json:"in"`
	Key      string    `json:"key,omitempty"`
	Queue    string    `json:"queue,omitempty"`
	Priority int       `json:"priority,omitempty"`
	At       time.Time `json:"at,omitzero"`
	Unique   string    `json:"unique,omitempty"`
	Webhook  string    `json:"webhook,omitempty"`
	// Idempotent is an idempotency key for a day; empty: there is none.
	Idempotent string `json:"idempotent,omitempty"`
}

// IdempotencyKeys is how package verbs sees the key of the task.
func (a *described[In]) IdempotencyKeys() []*string { return []*string{&a.Idempotent} }

// describedBatch is the argument of the verb enqueueBatch.
type describedBatch[In any] []described[In]

// IdempotencyKeys is how package verbs sees the keys of the tasks.
func (all *describedBatch[In]) IdempotencyKeys() []*string {
	keys := make([]*string, len(*all))
	for i := range *all {
		keys[i] = &(*all)[i].Idempotent
	}
	return keys
}

// option is all options of the task.
func (a *described[In]) option(o *options) {
	*o = options{Key: a.Key, Queue: a.Queue, Priority: a.Priority, At: a.At, Unique: a.Unique, Webhook: a.Webhook, Once: a.Idempotent}
}

// oneOf adapts a method of any number of tasks.
func oneOf(call func(ctx context.Context, from object.Caller, ids ...TaskID) (int, error)) func(context.Context, object.Caller, TaskID) (int, error) {
	return func(ctx context.Context, from object.Caller, id TaskID) (int, error) { return call(ctx, from, id) }
}

// ofTask adapts a method of a task.
func ofTask[R any](call func(ctx context.Context, from object.Caller, id TaskID) (R, error)) func(context.Context, object.Caller, string, verbs.None) (R, error) {
	return verbs.Ask(func(ctx context.Context, from object.Caller, id string) (R, error) {
		task, err := ParseTaskID(id)
		if err != nil {
			var none R
			return none, err
		}
		return call(ctx, from, task)
	})
}

// ofPool adapts a method of the whole pool.
func ofPool[R any](call func(ctx context.Context, from object.Caller) (R, error)) func(context.Context, object.Caller, string) (R, error) {
	return func(ctx context.Context, from object.Caller, _ string) (R, error) { return call(ctx, from) }
}

// whole adapts a method of the whole pool that has no answer.
func whole(call func(ctx context.Context, from object.Caller) error) func(context.Context, object.Caller, string) error {
	return func(ctx context.Context, from object.Caller, _ string) error { return call(ctx, from) }
}
