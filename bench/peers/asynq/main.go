// Command asynq measures asynq on a Redis server.
package main

import (
	"context"
	"encoding/binary"
	"flag"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/bench/peers/internal/figure"
	"github.com/holdfast-dev/holdfast/bench/peers/internal/queue"
)

// jobs is asynq as a queue. Each Start makes a server, as one serves once.
type jobs struct {
	redis   asynq.RedisClientOpt
	client  *asynq.Client
	server  *asynq.Server
	tracker *queue.Tracker
}

func main() {
	address := flag.String("address", "", "of the Redis server")
	queue.Main(func(ctx context.Context, l queue.Load, r *figure.Reporter) error {
		redis := asynq.RedisClientOpt{Addr: *address, PoolSize: queue.Callers}
		j := &jobs{redis: redis, client: asynq.NewClient(redis), tracker: &queue.Tracker{}}
		defer j.client.Close() // nothing is under way
		return queue.Measure(ctx, j, j.tracker, l, r)
	})
}

// ProcessTask does nothing but tell of it.
func (j *jobs) ProcessTask(_ context.Context, t *asynq.Task) error {
	j.tracker.Done(int(int64(binary.BigEndian.Uint64(t.Payload()))))
	return nil
}

func (j *jobs) Start(context.Context) error {
	j.server = asynq.NewServer(j.redis, asynq.Config{Concurrency: queue.Callers, LogLevel: asynq.FatalLevel})
	return j.server.Start(j)
}

func (j *jobs) Stop(context.Context) error {
	j.server.Shutdown()
	return nil
}

func (j *jobs) Enqueue(ctx context.Context, job int) error { return j.add(ctx, job) }

func (j *jobs) Fill(ctx context.Context, n int, due time.Time) error {
	var options []asynq.Option
	if !due.IsZero() {
		options = append(options, asynq.ProcessAt(due))
	}
	return measure.Each(ctx, queue.Callers, n, func(int) error { return j.add(ctx, -1, options...) })
}

func (j *jobs) add(ctx context.Context, job int, options ...asynq.Option) error {
	payload := binary.BigEndian.AppendUint64(nil, uint64(job))
	_, err := j.client.EnqueueContext(ctx, asynq.NewTask("bench", payload), options...)
	return err
}
