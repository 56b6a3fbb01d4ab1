package workerpool_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
)

// Proves W9. Case PL13. A task holds its unique key while it is pending, runs, or waits
// for a retry. The key is free when the task has ended in any way.
func TestUniqueUntilDone(t *testing.T) {
	p := workerpool.New(config{Name: "unique", Retry: jobs.Retry{MaxAttempts: 2, Backoff: jobs.Constant(0)}})
	h := inMemory(t, object.Options{}, p)
	submit := func(in string) workerpool.TaskRef { return must(p.Enqueue(ctx, h, in, workerpool.Unique("report"))) }
	claim := func() workerpool.Lease {
		t.Helper()
		got := must(p.Claim(ctx, h, 1, 0))
		if len(got) != 1 {
			t.Fatalf("%d tasks are claimed, want 1", len(got))
		}
		return got[0].Lease
	}
	first := submit("first")
	same := func(when string) {
		t.Helper()
		if ref := submit("again"); ref.ID != first.ID || !ref.Repeated {
			t.Fatalf("%s: the submission is %+v, want task %s", when, ref, first.ID)
		}
	}
	fresh := func(when string) {
		t.Helper()
		ref := submit("next")
		if ref.ID == first.ID || ref.Repeated {
			t.Fatalf("%s: the submission is %+v, want a new task", when, ref)
		}
		first = ref
		same(when + ", again")
	}
	same("pending")
	lease := claim()
	same("running")
	if err := p.Nack(ctx, h, lease, nil); err != nil {
		t.Fatal(err)
	}
	same("waiting for a retry")
	if err := p.Ack(ctx, h, claim(), ""); err != nil {
		t.Fatal(err)
	}
	fresh("done")
	must(p.Cancel(ctx, h, first.ID))
	fresh("cancelled")
	for range 2 {
		if err := p.Nack(ctx, h, claim(), nil); err != nil {
			t.Fatal(err)
		}
	}
	dead := first
	fresh("dead")
	must(p.Discard(ctx, h))
	must(p.Replay(ctx, h, dead.ID))
	first = dead
	same("replayed")
}

// Proves W9. A dead letter that is replayed runs without its key if another task holds
// it. A batch makes one task of the submissions with one key.
func TestUniqueKeyThatIsTaken(t *testing.T) {
	p := workerpool.New(config{Name: "unique", Retry: jobs.Retry{MaxAttempts: 1}})
	h := inMemory(t, object.Options{}, p)
	key := workerpool.Unique("report")
	dead := must(p.Enqueue(ctx, h, "dead", key))
	if err := p.Nack(ctx, h, must(p.Claim(ctx, h, 1, 0))[0].Lease, nil); err != nil {
		t.Fatal(err)
	}
	refs := must(p.EnqueueBatch(ctx, h, []workerpool.Item[string]{item("a", key), item("b", key), item("c")}))
	if refs[0].Repeated || !refs[1].Repeated || refs[1].ID != refs[0].ID || refs[2].Repeated {
		t.Errorf("the batch is %+v", refs)
	}
	if n := must(p.ReplayAll(ctx, h)); n != 1 {
		t.Fatalf("%d replayed", n)
	}
	must(p.Cancel(ctx, h, dead.ID))
	if ref := must(p.Enqueue(ctx, h, "again", key)); ref.ID != refs[0].ID {
		t.Errorf("the end of the replayed task has freed the key: %+v", ref)
	}
}

// Proves W9. Under crashes a unique key has one task at a time, and is free afterwards.
func TestCrashUnique(t *testing.T) {
	exhaust(t, 2, func(s *harness.Sim) {
		p := newPool(s, config{Partitions: 2, Work: func(_ context.Context, t *workerpool.Task[string]) (string, error) {
			if t.Attempt == 1 {
				return "", errors.New("not yet")
			}
			return "", nil
		}})
		s.Host(p)
		submit := func(in string) workerpool.TaskRef {
			return ask(s, func() (workerpool.TaskRef, error) {
				return p.Enqueue(s.Context(), s, in, workerpool.Unique("key"), workerpool.Idempotent(in, time.Hour))
			})
		}
		first := submit("a")
		finally(s, func() {
			expect(s, p, first.ID, workerpool.Done)
			if second := submit("b"); second.ID == first.ID {
				s.Errorf("W9: the key is held by %s, which is done", first.ID)
			}
		})
	})
}
