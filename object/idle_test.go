package object_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/object"
)

// An object stays in memory for IdleAfter after its last turn, and leaves it at most half
// as long after that, at whichever moment between two sweeps the turn was.
//
// Proves O10.
func TestIdleObjectStaysForItsTime(t *testing.T) {
	const idle = time.Minute
	for last := time.Duration(0); last < idle; last += idle / 12 {
		bubble(t, func(t *testing.T) {
			f := newFixture(t, object.ClassOptions{IdleAfter: idle}).open()
			defer f.close()
			live := func() bool {
				synctest.Wait() // until a sweep that has begun is over
				in, err := f.host.Inspect(context.Background(), f.id("a"))
				if err != nil {
					t.Fatal(err)
				}
				return in.Live
			}
			f.must("a", nothing)
			time.Sleep(last)
			f.must("a", nothing)
			time.Sleep(idle - time.Millisecond)
			if !live() {
				t.Errorf("used after %v, it left memory before %v more", last, idle)
			}
			time.Sleep(idle/2 + 2*time.Millisecond)
			if live() {
				t.Errorf("used after %v, it is in memory %v after that", last, idle*3/2)
			}
		})
	}
}

// Beyond MaxLive the object that was used least recently goes.
//
// Proves O10.
func TestLeastRecentlyUsedGoes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t)
		f.options.MaxLive = 3
		f.open()
		defer f.close()
		for _, name := range []string{"a", "b", "c", "a", "d"} {
			f.must(name, nothing)
			synctest.Wait() // a member of the crew has given the turn up
		}
		for name, want := range map[string]bool{"a": true, "b": false, "c": true, "d": true} {
			if in, _ := f.host.Inspect(context.Background(), f.id(name)); in.Live != want {
				t.Errorf("%s is in memory: %v, want %v", name, in.Live, want)
			}
		}
	})
}

// Objects that were busy when room was needed go when others come after them, until
// there are no more than MaxLive.
func TestBusyObjectsGoLater(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t)
		f.options.MaxLive = 3
		f.open()
		defer f.close()
		var names []string
		busy, over := sync.WaitGroup{}, make(chan struct{})
		for i := range 8 {
			name := fmt.Sprint("busy ", i)
			names = append(names, name)
			busy.Go(func() { f.must(name, func(*thing, context.Context) (any, error) { <-over; return nil, nil }) })
		}
		synctest.Wait()
		close(over)
		busy.Wait()
		for i := range 8 {
			synctest.Wait()
			name := fmt.Sprint("late ", i)
			names = append(names, name)
			f.must(name, nothing)
		}
		live := 0
		for _, name := range names {
			if in, _ := f.host.Inspect(context.Background(), f.id(name)); in.Live {
				live++
			}
		}
		if live > 3 {
			t.Errorf("%d objects are in memory, of 3 at most", live)
		}
	})
}
