package cli

import (
	"context"
	"encoding/hex"
	"time"

	"github.com/holdfast-dev/holdfast/admin"
	"github.com/holdfast-dev/holdfast/admin/why"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// cold is the source of a directory that no process has open.
type cold struct {
	store       *storage.Store
	rows        object.Reader
	definitions []object.Definition
}

func (c *cold) classes(ctx context.Context) ([]class, error) {
	names, err := c.rows.StoredClasses(ctx)
	if err != nil {
		return nil, err
	}
	return counted(ctx, names, c.objects)
}

// counted counts the objects of classes.
func counted(ctx context.Context, names []string, list func(context.Context, string, object.ObjectsOptions) ([]object.ObjectInfo, error)) ([]class, error) {
	classes := []class{}
	for _, name := range names {
		infos, err := list(ctx, name, object.ObjectsOptions{Limit: object.MaxPage})
		if err != nil {
			return nil, err
		}
		classes = append(classes, class{Name: name, Objects: len(infos), More: len(infos) == object.MaxPage})
	}
	return classes, nil
}

func (c *cold) objects(ctx context.Context, class string, o object.ObjectsOptions) ([]object.ObjectInfo, error) {
	return c.rows.Objects(ctx, class, o)
}

func (c *cold) inspect(ctx context.Context, id storage.ID, o object.KeysOptions) (object.Inspection, error) {
	in, err := c.rows.Inspect(ctx, id)
	if err != nil {
		return in, err
	}
	keys, err := c.rows.Keys(ctx, id, o)
	in.Keys, in.NextKey, in.NextKeyBytes = keys.Keys, keys.Next, keys.NextBytes
	return in, err
}

func (c *cold) events(ctx context.Context, id storage.ID, after uint64, limit int) ([]object.Event, error) {
	return c.rows.Events(ctx, id, after, limit)
}

func (c *cold) jobs(ctx context.Context, o admin.JobsOptions) (admin.JobPage, error) {
	page, err := admin.Cold(c.rows).Jobs(ctx, o)
	return page, asked(err)
}

func (c *cold) tasks(ctx context.Context, pool string, o workerpool.TasksOptions) (workerpool.TaskPage, error) {
	page, err := admin.Cold(c.rows).Tasks(ctx, pool, o)
	return page, asked(err)
}

func (c *cold) view(ctx context.Context, id storage.ID, view string, arg []byte) ([]byte, error) {
	raw, err := admin.Cold(c.rows).View(ctx, id, view, arg)
	return raw, asked(err)
}

func (c *cold) letters(ctx context.Context, o object.DeadLettersOptions, after string) (found letters, err error) {
	if o.After, err = hex.DecodeString(after); err != nil {
		return found, usage("--after is %q: write what the page before has printed", after)
	}
	list, err := c.rows.DeadLetters(ctx, o)
	if err != nil {
		return found, err
	}
	found.Next = hex.EncodeToString(list.Next)
	for _, d := range list.Letters {
		found.Letters = append(found.Letters, letter{d.ID, d.Seq, d})
	}
	return found, nil
}

func (c *cold) letter(ctx context.Context, id storage.ID, seq uint64) (object.DeadLetter, error) {
	return c.rows.DeadLetter(ctx, id, seq)
}

// reasons is the store as it is asked why.
func (c *cold) reasons() why.Source { return why.Cold(c.store, time.Now(), c.definitions...) }

func (c *cold) why(ctx context.Context, id storage.ID) (why.Answer, error) {
	return why.Object(ctx, c.reasons(), id)
}

func (c *cold) whyTask(ctx context.Context, pool string, id workerpool.TaskID) (why.Answer, error) {
	return why.Task(ctx, c.reasons(), pool, id)
}

func (c *cold) whyAll(ctx context.Context) (why.Overview, error) { return why.All(ctx, c.reasons()) }
