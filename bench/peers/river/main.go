// Command river measures River on a PostgreSQL server.
package main

import (
	"context"
	"flag"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/holdfast-dev/holdfast/bench/peers/internal/figure"
	"github.com/holdfast-dev/holdfast/bench/peers/internal/queue"
)

// args are those of a job.
type args struct {
	Job int `json:"job"`
}

// Kind names the jobs.
func (args) Kind() string { return "bench" }

type worker struct {
	river.WorkerDefaults[args]
	*queue.Tracker
}

// Work does nothing but tell of it.
func (w *worker) Work(_ context.Context, job *river.Job[args]) error {
	w.Done(job.Args.Job)
	return nil
}

// jobs is River as a queue. Each Start makes a client, as one serves once.
type jobs struct {
	db     *pgxpool.Pool
	config river.Config
	client *river.Client[pgx.Tx] // that of the next Start
}

func main() {
	database := flag.String("database", "", "URL of an empty database")
	tuned := flag.Bool("tuned", false, "with the settings of River's own benchmark")
	queue.Main(func(ctx context.Context, l queue.Load, r *figure.Reporter) error {
		t := &queue.Tracker{}
		j, err := open(ctx, *database, config(*tuned, t))
		if err != nil {
			return err
		}
		defer j.db.Close()
		return queue.Measure(ctx, j, t, l, r)
	})
}

func config(tuned bool, t *queue.Tracker) river.Config {
	workers := river.NewWorkers()
	river.AddWorker(workers, &worker{Tracker: t})
	c := river.Config{
		Queues:  map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 100}},
		Workers: workers,
		Logger:  slog.New(slog.DiscardHandler),
	}
	if tuned {
		c.Queues[river.QueueDefault] = river.QueueConfig{MaxWorkers: 2000}
		c.FetchCooldown, c.FetchPollInterval = 2*time.Millisecond, 20*time.Millisecond
	}
	return c
}

func open(ctx context.Context, database string, c river.Config) (*jobs, error) {
	pc, err := pgxpool.ParseConfig(database)
	if err != nil {
		return nil, err
	}
	pc.MaxConns = 32
	db, err := pgxpool.NewWithConfig(ctx, pc)
	if err != nil {
		return nil, err
	}
	m, err := rivermigrate.New(riverpgxv5.New(db), nil)
	if err != nil {
		return nil, err
	}
	if _, err := m.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return nil, err
	}
	j := &jobs{db: db, config: c}
	return j, j.renew(ctx)
}

// renew empties the queue, so that no workload pays for the jobs of another.
func (j *jobs) renew(ctx context.Context) (err error) {
	if _, err := j.db.Exec(ctx, "TRUNCATE river_job"); err != nil {
		return err
	}
	c := j.config
	j.client, err = river.NewClient(riverpgxv5.New(j.db), &c)
	return err
}

func (j *jobs) Start(ctx context.Context) error { return j.client.Start(context.WithoutCancel(ctx)) }

func (j *jobs) Stop(ctx context.Context) error {
	if err := j.client.Stop(ctx); err != nil {
		return err
	}
	return j.renew(ctx)
}

func (j *jobs) Enqueue(ctx context.Context, job int) error {
	_, err := j.client.Insert(ctx, args{job}, nil)
	return err
}

func (j *jobs) Fill(ctx context.Context, n int, due time.Time) error {
	const each = 1000
	for done := 0; done < n; done += each {
		some := make([]river.InsertManyParams, min(each, n-done))
		for i := range some {
			some[i] = river.InsertManyParams{Args: args{-1}, InsertOpts: &river.InsertOpts{ScheduledAt: due}}
		}
		if _, err := j.client.InsertManyFast(ctx, some); err != nil {
			return err
		}
	}
	return nil
}
