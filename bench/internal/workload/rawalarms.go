package workload

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/bench/internal/raw"
	"github.com/holdfast-dev/holdfast/storage"
)

// RawAlarms is the reference of Alarms: the rows of sleepers in bare Pebble.
type RawAlarms struct {
	DB  *pebble.DB
	due int64
}

// object is where the rows of sleeper i lie.
func (r *RawAlarms) object(i int) storage.Object {
	id := storage.ID{Class: SleeperClass, Name: Name(i)}
	return storage.Object{ID: id, Shard: storage.ShardOf(id, storage.DefaultShards), Number: storage.Number(1<<32 | (i + 1)), Epoch: 1}
}

// Fill writes the rows of n alarms due at one moment, as Arm does.
func (r *RawAlarms) Fill(n int) error {
	due := time.Now()
	r.due = alarm.Nanos(due)
	var b storage.Batch
	for i := range n {
		o, gen := r.object(i), uint64(1<<32|i)
		row := alarm.AppendRow(nil, alarm.Row{Due: due, Gen: gen, Scheduled: due})
		b.SetHeader(o)
		b.MoveAlarm(o, nil, &r.due, row, alarm.AppendIndex(nil, gen, o.ID.Class, o.ID.Name))
		if b.Len() > 4<<20 || i == n-1 {
			if err := raw.Commit(r.DB, &b, pebble.NoSync); err != nil {
				return err
			}
			b.Reset()
		}
	}
	return r.DB.LogData(nil, pebble.Sync)
}

// Steady removes the rows of n alarms, so many of them due each second, each in a batch
// of its own when it is due, and returns how late the batches were applied and the
// costs of each.
func (r *RawAlarms) Steady(ctx context.Context, n int, perSecond float64) (measure.Quantiles, measure.Costs, error) {
	if err := r.Fill(n); err != nil {
		return measure.Quantiles{}, nil, err
	}
	meters := measure.Start(nil)
	p, late, start := raw.NewPipeline(r.DB, 1024), measure.NewLatencies(), time.Now()
	var b storage.Batch
	for i := 0; i < n && ctx.Err() == nil; i++ {
		due := start.Add(nth(i, perSecond))
		if wait := time.Until(due); wait > 0 {
			time.Sleep(wait)
		}
		b.Reset()
		b.DeleteEmpty(r.object(i), &r.due)
		if err := p.Apply(&b); err != nil {
			return measure.Quantiles{}, nil, join(err, p.Wait)
		}
		late.Record(time.Since(due))
	}
	err := p.Wait()
	return late.Quantiles(), meters.PerOp(int64(n)), err
}

// Drain reads the index in order and removes the rows of each alarm in a batch of
// its own, as its turn does, with many batches under way. It returns how many.
func (r *RawAlarms) Drain() (int, error) {
	p := raw.NewPipeline(r.DB, 2048) // as many as a host has under way
	n := 0
	for shard := range storage.DefaultShards {
		done, err := r.drainShard(p, shard)
		if err != nil {
			return 0, join(err, p.Wait)
		}
		n += done
	}
	return n, p.Wait()
}

func (r *RawAlarms) drainShard(p *raw.Pipeline, shard int) (n int, err error) {
	const kindIndex = 3
	it, err := r.DB.NewIter(&pebble.IterOptions{
		LowerBound: []byte{0, byte(shard), kindIndex}, UpperBound: []byte{0, byte(shard), kindIndex + 1},
	})
	if err != nil {
		return 0, err
	}
	var b storage.Batch
	for it.First(); it.Valid(); it.Next() {
		_, class, name, err := alarm.DecodeIndex(it.Value())
		if err != nil {
			return n, join(err, it.Close)
		}
		number := storage.Number(binary.BigEndian.Uint64(it.Key()[11:]))
		b.Reset()
		b.DeleteEmpty(storage.Object{ID: storage.ID{Class: class, Name: name}, Shard: shard, Number: number}, &r.due)
		if err := p.Apply(&b); err != nil {
			return n, join(err, it.Close)
		}
		n++
	}
	return n, it.Close()
}
