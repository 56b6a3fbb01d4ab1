package pglog

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// headSQL returns the heads of several shards. It is an update, because a row that is only read may be one that no standby has: a
// commit that was waited for makes all before it durable.
const headSQL = `
with c as materialized (select set_config('synchronous_commit', $2, true) as commit),
l as materialized (select id from {shard} where id = any($1::int[]) order by id for update),
h as (update {shard} p set beat = p.beat + 1 from l where p.id = l.id returning p.id, ` + headColumns + `)
select ` + settingsSQL + `, h.* from c left join h on true`

// headColumns are the columns of a row of shard that head.places takes.
const headColumns = `p.term, p.owner, p.first, p.last, p.chain, p.written, coalesce(p.lost, '')`

// head is a row of the table shard.
type head struct {
	shardlog.State
	written uint64 // the term of the last record; 0 if there is none
}

// row is a head as it is scanned: all columns may be null, because a statement that finds no shard still returns the settings.
type row struct {
	id                                *int32
	term, first, last, chain, written *int64
	owner, lost                       *string
}

func (r *row) places() []any {
	return []any{&r.term, &r.owner, &r.first, &r.last, &r.chain, &r.written, &r.lost}
}

func (r *row) head() head {
	return head{
		State: shardlog.State{
			Term: uint64(*r.term), Owner: *r.owner, First: shardlog.Position(*r.first), Last: shardlog.Position(*r.last),
			Chain: uint64(*r.chain), Lost: *r.lost,
		},
		written: uint64(*r.written),
	}
}

// unclaimed is the head of a shard without a row.
func unclaimed() head { return head{State: shardlog.State{First: 1}} }

// asked is the shards with callers that wait for a head. One task asks for all of them at once.
type asked struct {
	mu      sync.Mutex
	waiting map[int32]*question
	running bool
}

// question is the next look at one shard, shared by all callers that came before it began.
type question struct {
	shard int32
	done  chan struct{} // closed once head and err are final
	head  head
	err   error
}

// headShards bounds the shards of one statement.
const headShards = 1024

// Head implements shardlog.Log. All that wait for a head at the same time share a statement. It waits for the standby as an append does.
func (l *Log) Head(ctx context.Context, shard int) (shardlog.State, error) {
	id, err := number(shard)
	if err != nil {
		return shardlog.State{}, err
	}
	h, err := l.head(ctx, id)
	if err != nil {
		return shardlog.State{}, fmt.Errorf("head of shard %d: %w", shard, err)
	}
	return h.State, nil
}

// head is Head for this package.
func (l *Log) head(ctx context.Context, shard int32) (head, error) {
	q, err := l.ask(shard)
	if err != nil {
		return head{}, err
	}
	if err := l.o.Seams.Executor.Wait(ctx, q.done); err != nil {
		return head{}, unknown(err)
	}
	return q.head, q.err
}

// ask joins the next look at a shard.
func (l *Log) ask(shard int32) (*question, error) {
	a := &l.asked
	a.mu.Lock()
	defer a.mu.Unlock()
	if q := a.waiting[shard]; q != nil {
		return q, nil
	}
	if !a.running && !l.tasks.start("pglog head", l.heads) {
		return nil, errClosed
	}
	a.running = true
	q := &question{shard: shard, done: make(chan struct{})}
	a.waiting[shard] = q
	return q, nil
}

// take returns the questions of the next statement, in the order of their shards.
func (a *asked) take() []*question {
	a.mu.Lock()
	defer a.mu.Unlock()
	next := make([]*question, 0, min(len(a.waiting), headShards))
	for shard, q := range a.waiting {
		if len(next) == headShards {
			break
		}
		next = append(next, q)
		delete(a.waiting, shard)
	}
	a.running = len(next) > 0
	slices.SortFunc(next, func(x, y *question) int { return int(x.shard) - int(y.shard) })
	return next
}

// heads is the task that answers questions until there are none.
func (l *Log) heads() {
	for {
		next := l.asked.take()
		if len(next) == 0 {
			return
		}
		err := l.control.do(l.running, func(ctx context.Context, c *conn) error { return l.look(ctx, c, next) })
		for _, q := range next {
			q.err = err
			close(q.done)
		}
	}
}

// look sets the heads of questions.
func (l *Log) look(ctx context.Context, c *conn, next []*question) error {
	ids, byID := make([]int32, len(next)), make(map[int32]*question, len(next))
	for i, q := range next {
		q.head = unclaimed()
		ids[i], byID[q.shard] = q.shard, q
	}
	rows, err := c.Query(ctx, l.sql.head, ids, l.commit)
	if err != nil {
		return err
	}
	var now settings
	var r row
	_, err = pgx.ForEachRow(rows, now.places(append([]any{&r.id}, r.places()...)...), func() error {
		if r.id != nil {
			byID[*r.id].head = r.head()
		}
		return nil
	})
	if err != nil {
		return err
	}
	return l.agreed(now)
}
