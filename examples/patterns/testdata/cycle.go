package patterns

import (
	"context"

	"github.com/holdfast-dev/holdfast/object"
)

type folder struct {
	st      *object.State
	bytes   int
	folders []string
}

var (
	Folders = object.Define("folder", func(_ context.Context, st *object.State) (*folder, error) { return &folder{st: st}, nil })
	Size    = object.Handle(Folders, "size", (*folder).size)
)

func (f *folder) size(ctx context.Context, _ struct{}) (int, error) {
	total := f.bytes
	for _, name := range f.folders {
		n, err := Size.Call(ctx, f.st, name, struct{}{})
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}
