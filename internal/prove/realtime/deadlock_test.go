package realtime

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/object"
)

// route is the rest of a chain of calls, by the names of the objects.
type route struct {
	names   []string
	release bool // each object lends its turn out while it calls the next
}

// chains is a class of objects that call one another along a route.
func chains() (*object.Class[object.State], *object.Method[route, int]) {
	class := object.Define("chain", func(_ context.Context, st *object.State) (*object.State, error) { return st, nil })
	var walk *object.Method[route, int]
	walk = object.Handle(class, "walk", func(st *object.State, ctx context.Context, r route) (n int, err error) {
		if len(r.names) == 0 {
			return 1, nil
		}
		next := func(ctx context.Context) error {
			if err := st.Driver().Seams().Sleep(ctx, time.Millisecond); err != nil { // so that others get in
				return err
			}
			n, err = walk.Call(ctx, st, r.names[0], route{r.names[1:], r.release})
			return err
		}
		if r.release {
			err = st.Release(ctx, next)
		} else {
			err = next(ctx)
		}
		return n + 1, err
	})
	return class, walk
}

// Proves O8: many calls at once would close circles, and none of them hangs: a call
// either comes back or is refused with ErrDeadlock. A bubble in which all wait for ever
// would end the test. Turns that are lent out close no circle.
func TestCirclesOfCalls(t *testing.T) {
	const objects, callers, longest = 6, 40, 5
	class, walk := chains()
	for seed := range uint64(30) {
		release := seed%3 == 0
		synctest.Test(t, func(t *testing.T) {
			m := newMachine(t, newMapDisk(), class)
			defer m.close()
			r := rand.New(rand.NewPCG(seed, 0))
			var all sync.WaitGroup
			var mu sync.Mutex
			through, refused := 0, 0
			for range callers {
				names := make([]string, 2+r.IntN(longest))
				for i := range names {
					names[i] = fmt.Sprint(r.IntN(objects))
				}
				all.Go(func() {
					n, err := walk.Call(context.Background(), m.host, names[0], route{names[1:], release})
					mu.Lock()
					defer mu.Unlock()
					switch {
					case err == nil && n == len(names):
						through++
					case errors.Is(err, object.ErrDeadlock) && !release:
						refused++
					default:
						t.Errorf("seed %d: the chain %v came back with %d: %v", seed, names, n, err)
					}
				})
			}
			all.Wait()
			if through == 0 || refused == 0 && !release {
				t.Errorf("seed %d: %d calls came through, %d were refused", seed, through, refused)
			}
		})
	}
}
