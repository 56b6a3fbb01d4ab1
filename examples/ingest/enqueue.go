package main

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
)

// batchMax is how many tasks are enqueued in one commit.
const batchMax = 500

// feeder makes tasks of the files that are not as they are stored. It compares all
// before it sends the first task, because the progress begins with how many files
// are kept. A feeder that is killed half-way may begin again: the key of a task is
// the version that it will make, so a task that is there is not enqueued twice.
type feeder struct {
	p        *program
	from     object.Caller
	sent     func() error    // called after each batch
	seen     map[string]bool // names of the files that are there
	packages map[string]bool // of these, and of those that are stored
	compared int             // files: those that are there, and those that are gone
	unsent   []workerpool.Item[task]
}

func (p *program) feeder(from object.Caller, sent func() error) *feeder {
	return &feeder{p: p, from: from, sent: sent, seen: make(map[string]bool), packages: make(map[string]bool)}
}

// survey walks the source and finds the files that need a task. It returns the
// directories that could not be read.
func (f *feeder) survey(ctx context.Context, host *object.Host) (unread []string, err error) {
	unread, err = f.p.source.walk(ctx, func(file found) error {
		f.seen[nameOf(file.path)] = true
		return f.compare(ctx, nameOf(file.path), file.path, file.stamp)
	})
	if err == nil {
		err = f.missing(ctx, host, unread)
	}
	return unread, err
}

// kept is how many files are stored as they are.
func (f *feeder) kept() int { return f.compared - len(f.unsent) }

// all returns the packages of the walk and those that were known before, sorted.
func (f *feeder) all(before []string) []string {
	for _, name := range before {
		f.packages[name] = true
	}
	return slices.Sorted(maps.Keys(f.packages))
}

// compare makes a task of a file if its stamp is not the stored one. path may be
// empty: then it is the stored one.
func (f *feeder) compare(ctx context.Context, name, path string, now stamp) error {
	known, err := look.Call(ctx, f.from, name, now)
	if path == "" {
		path = known.Path
	}
	f.packages[packageOf(path)] = true
	if now.Exists || known.Changed { // one that was taken out before is none any more
		f.compared++
	}
	if err != nil || !known.Changed {
		return err
	}
	f.unsent = append(f.unsent, workerpool.Item[task]{In: task{path}, Options: []workerpool.Option{
		workerpool.Key(name),
		workerpool.Idempotent(fmt.Sprintf("%s#%d", name, known.Version), remembered),
	}})
	return nil
}

// send enqueues the tasks, each batch in one commit.
func (f *feeder) send(ctx context.Context) error {
	for len(f.unsent) > 0 {
		n := min(batchMax, len(f.unsent))
		if _, err := f.p.readers.EnqueueBatch(ctx, f.from, f.unsent[:n]); err != nil {
			return err
		}
		f.unsent = f.unsent[n:]
		if err := f.sent(); err != nil {
			return err
		}
	}
	return nil
}

// missing makes tasks of the files that are stored and were not seen. Files below a
// directory that could not be read are left as they are.
func (f *feeder) missing(ctx context.Context, host *object.Host, unread []string) error {
	const page = 1000
	after := ""
	for {
		infos, err := host.Objects(ctx, files.Name(), object.ObjectsOptions{After: after, Limit: page})
		if err != nil {
			return err
		}
		for _, info := range infos {
			after = info.ID.Name
			if f.seen[after] || below(after, unread) {
				continue
			}
			if err := f.compare(ctx, after, "", stamp{}); err != nil {
				return err
			}
		}
		if len(infos) < page {
			return nil
		}
	}
}

// below reports whether a file lies in one of the directories, or below.
func below(file string, dirs []string) bool {
	for _, dir := range dirs {
		if strings.HasPrefix(file, path.Clean(escape(dir))+"/") {
			return true
		}
	}
	return false
}

// again tries the dead letters again that may go better now, and returns how many.
func (p *program) again(ctx context.Context, host *object.Host) (int, error) {
	letters, err := p.dead(ctx, host)
	if err != nil {
		return 0, err
	}
	var ids []workerpool.TaskID
	for _, d := range letters {
		if p.worthAnother(d) {
			ids = append(ids, d.ID)
		}
	}
	if len(ids) == 0 {
		return 0, nil
	}
	return p.readers.Replay(ctx, host, ids...)
}

// dead lists the dead letters.
func (p *program) dead(ctx context.Context, host *object.Host) (all []workerpool.DeadLetter[task], err error) {
	const page = 1000
	var after workerpool.TaskID
	for {
		some, err := p.readers.DeadLetters(ctx, host, after, page)
		if all = append(all, some...); err != nil || len(some) < page {
			return all, err
		}
		after = some[page-1].ID
	}
}
