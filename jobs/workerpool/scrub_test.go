package workerpool_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/recovery"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// raw removes rows from a partition that a correct runtime would never remove.
type raw struct{ st *object.State }

func (raw) Alarm(context.Context, object.AlarmInfo) error { return nil }

var (
	rawPool = object.Define("pool", func(_ context.Context, st *object.State) (*raw, error) { return &raw{st}, nil })
	disarm  = object.Handle(rawPool, "disarm", func(r *raw, ctx context.Context, _ int) (int, error) {
		return 0, r.st.DeleteAlarm(ctx)
	})
	loseExecutions = object.Handle(rawPool, "lose", func(r *raw, ctx context.Context, _ int) (int, error) {
		return 0, r.st.Storage().DeletePrefix(ctx, "x/")
	})
)

// damaged makes a store with a partition, changes it behind its back, and returns
// its directory.
func damaged(t *testing.T, p *pool, use func(*object.Host), damage *object.Method[int, int]) (dir string) {
	t.Helper()
	dir = t.TempDir()
	h := open(t, dir, p)
	use(h)
	shut(t, h)
	h = open(t, dir, rawPool)
	if damage != nil {
		must(damage.Call(ctx, h, "0", 0))
	}
	shut(t, h)
	return dir
}

func scrubCold(t *testing.T, dir string) recovery.Scrubbed {
	t.Helper()
	store, err := storage.Open(storage.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	return must(recovery.ScrubStore(store))
}

func later(t *testing.T, p *pool) func(*object.Host) {
	return func(h *object.Host) { must(p.Enqueue(ctx, h, "later", workerpool.Delay(time.Hour))) }
}

// Proves R3, R6. Case PL6. A partition has a pending task and no alarm. A scrub of a
// store at rest counts it as a suspect, and a scrub of a live store arms it from its
// schedule. A healthy partition is left alone.
func TestScrubArmsAPartition(t *testing.T) {
	p := workerpool.New(config{Name: "pool", Work: func(context.Context, *workerpool.Task[string]) (string, error) { return "", nil }})
	if seen := scrubCold(t, damaged(t, p, later(t, p), nil)); seen.Suspects != 0 || len(seen.Findings) != 0 {
		t.Errorf("a well partition: %+v", seen)
	}
	dir := damaged(t, p, later(t, p), disarm)
	if seen := scrubCold(t, dir); seen.Suspects != 1 || len(seen.Findings) != 0 {
		t.Errorf("at rest: %+v", seen)
	}
	h := open(t, dir, p)
	seen := must(recovery.Scrub(ctx, h, recovery.ScrubOptions{Repair: true, Pause: 1}))
	if len(seen.Findings) != 1 || !seen.Findings[0].Repaired || seen.Findings[0].Promise != "R3" {
		t.Fatalf("live: %+v", seen)
	}
	task := must(p.Status(ctx, h, workerpool.TaskID{Number: 1}))
	facts := must(h.Inspect(ctx, storage.ID{Class: "pool", Name: "0"}))
	if facts.Alarm == nil || !facts.Alarm.Due.Equal(task.NotBefore) {
		t.Errorf("the alarm is at %v, want %v", facts.Alarm, task.NotBefore)
	}
	if seen := must(recovery.Scrub(ctx, h, recovery.ScrubOptions{Repair: true, Pause: 1})); len(seen.Findings)+seen.Suspects != 0 {
		t.Errorf("a second scrub: %+v", seen)
	}
}

// Proves R6. A partition of claimed tasks waits for a claim and not for an alarm: a
// scrub asks it, and makes no finding of it.
func TestScrubLeavesIdleByDesign(t *testing.T) {
	p := workerpool.New(config{Name: "pool"})
	h := open(t, damaged(t, p, func(h *object.Host) { must(p.Enqueue(ctx, h, "a")) }, nil), p)
	if seen := must(recovery.Scrub(ctx, h, recovery.ScrubOptions{Repair: true, Pause: 1})); len(seen.Findings) != 0 || seen.Suspects != 1 {
		t.Errorf("scrub: %+v", seen)
	}
}

// Proves R6, W2. Case PL7. A running task without its execution is found at rest. A scrub
// makes it run again, and so does the next open, which looks at objects with an open
// execution.
func TestScrubFindsLostExecutions(t *testing.T) {
	p := workerpool.New(config{Name: "pool"})
	claims := func(h *object.Host) {
		must(p.EnqueueBatch(ctx, h, []workerpool.Item[string]{item("a", workerpool.Key("k")), item("b", workerpool.Key("k")), item("c")}))
		must(p.Claim(ctx, h, 1, time.Hour))
	}
	dir := damaged(t, p, claims, loseExecutions)
	seen := scrubCold(t, dir)
	if len(seen.Findings) != 1 || seen.Findings[0].Promise != "J5" || !strings.Contains(seen.Findings[0].Problem, "1 tasks are running and 0 have") {
		t.Fatalf("at rest: %+v", seen)
	}
	h := open(t, dir, p)
	seen = must(recovery.Scrub(ctx, h, recovery.ScrubOptions{Repair: true, Pause: 1}))
	if n := len(seen.Findings); n > 1 || n == 1 && !seen.Findings[0].Repaired { // 0: the open came first
		t.Fatalf("live: %+v", seen)
	}
	var got []string
	for _, c := range must(p.Claim(ctx, h, 10, 0)) {
		got = append(got, c.Task.In)
	}
	if strings.Join(got, " ") != "a c" {
		t.Errorf("the tasks that are claimed are %v, want a and c", got)
	}
	if s := must(p.Stats(ctx, h)); s.Check() != nil || s.Running != 2 || s.Lost != 1 {
		t.Errorf("stats %+v", s)
	}
}

// Proves R6, W1. A partition whose counters are damaged or gone is a finding, at rest and on a live
// store, where a repair cannot mend it. An object of a user with such a key or name is none.
func TestScrubFindsDamagedCounters(t *testing.T) {
	cut := func(all rows) { all["c"] = all["c"][:3] }
	for name, c := range map[string]struct {
		change func(rows)
		want   string // empty: no finding
	}{
		"well":                         {func(rows) {}, ""},
		"cut":                          {cut, "cannot be decoded"},
		"another sum":                  {func(all rows) { all["c"][4]++ }, "their sum is wrong"}, // one more is submitted
		"gone":                         {func(all rows) { delete(all, "c") }, "has tasks and no counters"},
		"cut, with an execution alone": {func(all rows) { cut(all); all.only("c", "x/") }, "cannot be decoded"},
		"cut, with a dead task alone":  {func(all rows) { cut(all); all.only("c", "z/") }, "cannot be decoded"},
		"cut, with no row of a task":   {func(all rows) { cut(all); all.only("c") }, ""},
		"keys of a user": {func(all rows) {
			cut(all)
			all.only("c")
			all["t/12345678"], all["t/1"], all["x/1"] = []byte(`"task"`), []byte("\x01\x00\x00"), []byte("\x01\x00\x06event/")
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			mem := memstore.New()
			p := workerpool.New(config{Name: "tasks"})
			quiet := object.Options{Storage: storage.Options{Engine: mem, Shards: 1}, Logger: slog.New(slog.DiscardHandler)}
			h := must(object.Open(quiet, p))
			must(p.EnqueueBatch(ctx, h, []workerpool.Item[string]{item("a"), item("b"), item("c")}))
			must(0, p.Nack(ctx, h, must(p.Claim(ctx, h, 2, time.Hour))[0].Lease, jobs.Permanent(errors.New("no"))))
			must(0, h.Shutdown(ctx))
			mem = rewrite(t, mem.Crash(0), c.change)
			found := func(seen recovery.Scrubbed) {
				t.Helper()
				for _, f := range seen.Findings { // without counters a letter, a mark or an alarm may be a finding too
					if f.Promise == "W1" && c.want != "" && strings.Contains(f.Problem, c.want) && !f.Repaired && !f.Suspect {
						return
					}
				}
				if c.want != "" || len(seen.Findings) > 0 {
					t.Errorf("found %+v, want %q", seen, c.want)
				}
			}
			store := must(storage.Open(storage.Options{Engine: mem, Shards: 1}))
			found(must(recovery.ScrubStore(store)))
			must(0, store.Close())
			quiet.Storage.Engine = mem.Crash(0)
			h = must(object.Open(quiet, object.Define("tasks", func(_ context.Context, st *object.State) (*raw, error) { return &raw{st}, nil })))
			found(must(recovery.Scrub(ctx, h, recovery.ScrubOptions{Repair: true, Pause: 1})))
			must(0, h.Shutdown(ctx))
		})
	}
}

// only removes all rows but those with keys that begin so.
func (all rows) only(begins ...string) {
	for key := range all {
		if !slices.ContainsFunc(begins, func(b string) bool { return strings.HasPrefix(key, b) }) {
			delete(all, key)
		}
	}
}
