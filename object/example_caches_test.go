package object_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// Tags are the rows under "tag/" and their number, which a package keeps for its users.
type Tags struct {
	state *object.State
	count int
}

// attach reads the tags, and has them read again when a Transaction of the user is undone.
func attach(ctx context.Context, state *object.State) (*Tags, error) {
	t := &Tags{state: state}
	return t, errors.Join(state.Driver().CacheRows(ctx, "tag/", t.load), t.load(ctx))
}

func (t *Tags) load(ctx context.Context) error {
	t.count = 0
	for _, err := range t.state.Storage().List(ctx, object.ListOptions{Prefix: "tag/"}) {
		if err != nil {
			return err
		}
		t.count++
	}
	return nil
}

func (t *Tags) add(ctx context.Context, tag string) error {
	if err := t.state.Storage().PutBytes(ctx, "tag/"+tag, nil); err != nil {
		return err
	}
	t.count++
	return nil
}

// A package that keeps rows in memory stays right when its user undoes a Transaction.
func ExampleDriver_CacheRows() {
	photos := object.Define("photo", attach)
	tag := object.Handle(photos, "tag", func(t *Tags, ctx context.Context, tags []string) (int, error) {
		for _, tag := range tags {
			err := t.state.Storage().Transaction(ctx, func(ctx context.Context, _ *object.Storage) error {
				if err := t.add(ctx, tag); err != nil {
					return err
				}
				if t.count > 2 {
					return errors.New("too many")
				}
				return nil
			})
			if err != nil {
				fmt.Println(tag, err)
			}
		}
		return t.count, nil
	})
	ctx := context.Background()
	host, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}}, photos)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(tag.Call(ctx, host, "cat.jpg", []string{"cat", "sofa", "sun"}))
	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// sun too many
	// 2 <nil>
}
