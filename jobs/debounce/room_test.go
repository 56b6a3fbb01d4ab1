package debounce_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/debounce"
	"github.com/holdfast-dev/holdfast/object"
)

// Proves D1, D3, D5: a process has less room for keys, for values or for a batch than the
// one before. It refuses a write that does not fit, and the turn then changes nothing.
// Once there is room again, each acknowledged event is flushed in one generation.
func TestLessRoom(t *testing.T) {
	var limits []object.Options
	// Keys: b 1, meta 4, s 14, x 18, e 23, idempotency marks 122.
	for _, n := range []int{1, 3, 13, 17, 22, 100} {
		limits = append(limits, object.Options{MaxKeyBytes: n})
	}
	for n := 10; n < 700; n += 11 {
		limits = append(limits, object.Options{MaxValueBytes: n})
	}
	for n := 100; n < 2500; n += 17 {
		limits = append(limits, object.Options{MaxBatchBytes: n})
	}
	for _, limit := range limits {
		for _, folds := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				c := &cramped{
					t: t, folds: folds, disk: newDisk(t), acks: make(map[string]debounce.Ack),
					flushed: make(map[string]uint64), cleared: make(map[string]bool),
				}
				c.limit = fmt.Sprintf("keys of %d, values of %d, batches of %d, with Reduce: %t", limit.MaxKeyBytes, limit.MaxValueBytes, limit.MaxBatchBytes, folds)
				c.disk.about = c.limit + ": "
				c.lives(limit)
			})
		}
		if t.Failed() {
			break
		}
	}
}

// cramped is a debounce job over three processes, of which the second has little room.
type cramped struct {
	t       *testing.T
	limit   string
	folds   bool
	disk    *disk
	host    *object.Host
	job     *debounce.Job[string, []string]
	life    int
	acks    map[string]debounce.Ack // by id and event
	mu      sync.Mutex              // guards the others
	flushed map[string]uint64       // the generation, by id and event
	cleared map[string]bool         // by id and event
}

func (c *cramped) lives(limit object.Options) {
	config := debounce.Config[string, []string]{
		Name: "cramped", Quiet: 10 * time.Second, MaxEvents: 4, Dedup: 100 * time.Hour,
		Retry: jobs.Retry{MaxAttempts: 10, Backoff: jobs.Constant(5 * time.Second)}, Flush: c.flush,
	}
	if c.folds {
		config.Reduce = func(state []string, _ bool, ev string) ([]string, error) { return append(state, ev), nil }
	}
	c.job = debounce.New(config)
	for life, use := range []func(){c.fill, c.use, c.end} {
		o := object.Options{}
		if c.life = life; life == 1 {
			o = limit
		}
		c.host = c.disk.open(o, c.job)
		use()
		c.disk.shut(c.host)
	}
}

// flush fails in the first process.
func (c *cramped) flush(_ context.Context, f *debounce.Flush[string, []string]) error {
	if c.life == 0 {
		return errors.New("not yet")
	}
	events := f.Events
	if c.folds {
		events = f.State
	}
	if len(events) != f.Count {
		c.t.Errorf("D3: %s: the flush %d of %s has %d events of %d", c.limit, f.Generation, f.ID, len(events), f.Count)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, ev := range events {
		at := f.ID + "/" + ev
		if g := c.flushed[at]; g != 0 && g != f.Generation {
			c.t.Errorf("D3: %s: %s is in the generations %d and %d", c.limit, at, g, f.Generation)
		}
		if c.cleared[at] {
			c.t.Errorf("D5: %s: %s was cleared and is flushed", c.limit, at)
		}
		c.flushed[at] = f.Generation
	}
	return nil
}

func (c *cramped) add(id, ev string) {
	c.t.Helper()
	ctx, key := context.Background(), debounce.EventID(strings.Repeat("i", 110)+ev)
	ack, err := c.job.Add(ctx, c.host, id, ev, key)
	if err != nil {
		if c.life != 1 {
			c.t.Fatalf("%s: Add: %v", c.limit, err)
		}
		return
	}
	c.acks[id+"/"+ev] = ack
	if again, err := c.job.Add(ctx, c.host, id, ev, key); err != nil || again != ack {
		c.t.Errorf("D1: %s: Add of %s is %+v, and again %+v, %v", c.limit, ev, ack, again, err)
	}
	if p, err := c.job.Pending(ctx, c.host, id); err == nil && p.Generation == ack.Generation {
		if events := append(p.Events, p.State...); p.Count != ack.Events || len(events) != p.Count || !slices.Contains(events, ev) {
			c.t.Errorf("D1: %s: after Add of %s, which is %+v, these wait: %+v", c.limit, ev, ack, p)
		}
	}
}

func (c *cramped) fill() {
	ctx := context.Background()
	for _, ev := range []string{"1", "2", "3", "4"} { // a is closed and has failed
		c.add("a", ev)
	}
	time.Sleep(time.Second)
	c.add("a", "5")
	for _, id := range []string{"b", "c", "d", "e"} {
		c.add(id, "1")
		c.add(id, "2")
	}
	if err := c.job.Pause(ctx, c.host, "d"); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cramped) status(id string) debounce.Status {
	c.t.Helper()
	s, err := c.job.Status(context.Background(), c.host, id)
	if err != nil {
		c.t.Errorf("%s: the status of %s: %v", c.limit, id, err)
	}
	return s
}

func (c *cramped) use() {
	ctx, h := context.Background(), c.host
	c.add("b", "3")
	c.add("new", "1")
	if n, err := c.job.FlushNow(ctx, h, "b"); err == nil {
		if s := c.status("b"); n != 1 || s.Flushed < 1 && s.Flushing == 0 && s.Reason != debounce.ReasonManual {
			c.t.Errorf("D4: %s: FlushNow is %d, and the status %+v", c.limit, n, s)
		}
	}
	if n, err := c.job.FlushNow(ctx, h, "a"); err == nil && n != 2 {
		c.t.Errorf("D4: %s: FlushNow of two generations is %d", c.limit, n)
	}
	if n, err := c.job.Clear(ctx, h, "c"); err == nil {
		c.mu.Lock()
		c.cleared["c/1"], c.cleared["c/2"] = true, true
		c.mu.Unlock()
		if s := c.status("c"); n != 2 || s.Events != 0 || s.EventsDropped != 2 {
			c.t.Errorf("D5: %s: Clear is %d, and the status %+v", c.limit, n, s)
		}
	} else if s := c.status("c"); s.Events != 2 || s.EventsDropped != 0 {
		c.t.Errorf("D5: %s: Clear is refused (%v), and the status is %+v", c.limit, err, s)
	}
	if err := c.job.Resume(ctx, h, "d"); err == nil {
		if s := c.status("d"); s.Meta.Status == jobs.Paused {
			c.t.Errorf("J10: %s: after Resume: %+v", c.limit, s)
		}
	} else if s := c.status("d"); s.Meta.Status != jobs.Paused || s.Events != 2 {
		c.t.Errorf("J10: %s: Resume is refused (%v): %+v", c.limit, err, s)
	}
	if err := c.job.Pause(ctx, h, "e"); err == nil {
		if s := c.status("e"); s.Meta.Status != jobs.Paused {
			c.t.Errorf("J10: %s: after Pause: %+v", c.limit, s)
		}
	} else if s := c.status("e"); s.Meta.Status != jobs.Running {
		c.t.Errorf("J10: %s: Pause is refused (%v): %+v", c.limit, err, s)
	}
	time.Sleep(20 * time.Second)
}

// end lets all events be flushed, with room for them.
func (c *cramped) end() {
	ctx := context.Background()
	ids := make(map[string]int)
	for at := range c.acks {
		id, _, _ := strings.Cut(at, "/")
		ids[id]++
	}
	for id := range ids {
		if err := c.job.Resume(ctx, c.host, id); err != nil {
			c.t.Errorf("%s: Resume of %s at last: %v", c.limit, id, err)
		}
	}
	time.Sleep(time.Hour)
	synctest.Wait()
	for at := range c.acks {
		if !c.cleared[at] && c.flushed[at] == 0 {
			c.t.Errorf("D1: %s: %s was acknowledged and not flushed", c.limit, at)
		}
	}
	for id, n := range ids {
		if s := c.status(id); s.EventsFlushed+s.EventsDropped != int64(n) || s.Events+s.Flushing > 0 {
			c.t.Errorf("D5: %s: %d events of %s were acknowledged: %+v", c.limit, n, id, s)
		}
		kinds := make(map[string]int)
		events, err := c.host.Events(ctx, c.job.ID(id), 0, 100)
		for _, e := range events {
			kinds[e.Kind]++
		}
		want := int(c.status(id).Flushed)
		if cleared := c.cleared[id+"/1"]; err != nil || kinds[debounce.EventFlushed] != want || (kinds[debounce.EventCleared] == 1) != cleared {
			c.t.Errorf("D4: %s: the events of %s are %v, %v; %d generations were flushed", c.limit, id, kinds, err, want)
		}
	}
}
