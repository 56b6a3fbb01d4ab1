package server

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server/dashboard"
	"github.com/holdfast-dev/holdfast/storage"
)

// shownNext is how many alarms, and how many open executions, the first page lists.
const shownNext = 10

// upcoming are the alarms that are due next, the next first. It reads a few rows of each shard.
func upcoming(store *storage.Store, now time.Time) (all []dashboard.Due, err error) {
	for shard := range store.Shards() {
		entries, err := store.ScanAlarms(shard, now.UnixNano(), 0, 2*shownNext) // some may be those of the library
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			_, class, name, err := alarm.DecodeIndex(e.Value)
			if err != nil {
				return nil, err
			}
			if !system(class) {
				all = append(all, dashboard.Due{ID: storage.ID{Class: class, Name: name}, At: time.Unix(0, e.Due)})
			}
		}
	}
	slices.SortFunc(all, func(a, b dashboard.Due) int { return a.At.Compare(b.At) })
	return all[:min(len(all), shownNext)], nil
}

// executing are the open executions that began first, and how many there are. A mark that cannot be read is counted.
func executing(ctx context.Context, store *storage.Store) (all []dashboard.Due, total int, err error) {
	list, total, err := object.NewReader(store).Executions(ctx, math.MaxInt)
	if list == nil && err != nil {
		return nil, 0, err
	}
	slices.SortFunc(list, func(a, b object.ExecutionInfo) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.ID.Class, b.ID.Class), cmp.Compare(a.ID.Name, b.ID.Name))
	})
	for _, e := range list[:min(len(list), shownNext)] {
		all = append(all, dashboard.Due{ID: e.ID, At: e.Since})
	}
	return all, total, nil
}
