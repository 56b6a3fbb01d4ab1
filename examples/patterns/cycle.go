package patterns

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/object"
)

// folder is a folder: the size of its files, and the names of the folders in it.
type folder struct {
	st       *object.State
	contents Contents
}

// Contents is the list of a folder.
type Contents struct {
	Bytes   int
	Folders []string
}

// Folders and the calls to them.
var (
	Folders = object.Define("folder", loadFolder)
	Keep    = object.Handle(Folders, "keep", (*folder).keep)
	Size    *object.Method[none, int]
)

func init() { Size = object.Handle(Folders, "size", (*folder).size) }

// size is that of a folder with all folders in it.
func (f *folder) size(ctx context.Context, _ none) (int, error) {
	total := f.contents.Bytes
	for _, name := range f.contents.Folders {
		n, err := Size.Call(ctx, f.st, name, none{})
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

func (f *folder) keep(ctx context.Context, c Contents) (int, error) {
	c.Folders = slices.Clone(c.Folders)
	err := f.st.Storage().Put(ctx, "contents", c)
	if err == nil {
		f.contents = c
	}
	return c.Bytes, err
}

func loadFolder(ctx context.Context, st *object.State) (*folder, error) {
	f := &folder{st: st}
	_, err := st.Storage().GetInto(ctx, "contents", &f.contents)
	return f, err
}

// Steps takes one step of a list in each run, and triggers itself for the next.
var Steps = continuous.New(continuous.Config[[]string]{
	Name: "steps", Schedule: jobs.Every(24 * time.Hour),
	Run: func(ctx context.Context, run *continuous.Run[[]string]) error {
		if len(run.State) == 0 {
			return nil
		}
		run.State = run.State[1:]
		return run.Job().Trigger(ctx, run, run.ID) // runs when this run has ended
	},
})

// Probes pauses a probe that was given up, so that it does not fail again each hour.
var Probes *continuous.Job[Feed]

func init() {
	Probes = continuous.New(continuous.Config[Feed]{
		Name: "probe", Schedule: jobs.Every(time.Hour),
		Run:         func(context.Context, *continuous.Run[Feed]) error { return errors.New("no answer") },
		OnExhausted: func(ctx context.Context, x *jobs.Exhaustion) error { return Probes.Pause(ctx, x, x.ID) },
	})
}
