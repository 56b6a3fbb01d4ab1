package main

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/debounce"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/recovery"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// Each store of an earlier version. The bytes were written by the code of that time.
var stores = []string{"format-3"}

// unpack copies the files of a store into a directory of the test.
func unpack(t *testing.T, name string) (dir string) {
	t.Helper()
	r, err := zip.OpenReader(filepath.Join("testdata", name+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(t.TempDir(), "store")
	if err := errors.Join(os.CopyFS(dir, r), r.Close()); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Each row of an old store is read as it was read when the store was made, and no row
// contradicts another.
func TestRowsOfAnOldStore(t *testing.T) {
	for _, name := range stores {
		t.Run(name, func(t *testing.T) {
			want, err := os.ReadFile(filepath.Join("testdata", name+".txt"))
			if err != nil {
				t.Fatal(err)
			}
			store, err := storage.Open(storage.Options{Dir: unpack(t, name), MinFreeBytes: -1})
			if err != nil {
				t.Fatal(err)
			}
			if p := store.Previous(); p.Epoch != 1 || p.Clean || !p.OpenedAt.After(madeAt) {
				t.Errorf("the opening before is %+v", p)
			}
			rows, err := dump(store)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), rows); diff != "" {
				t.Errorf("rows (-made +read):\n%s", diff)
			}
			// The dead task has no letter yet in the list of all dead work.
			seen, err := recovery.ScrubStore(store)
			if err != nil || len(seen.Findings) != 1 || seen.Findings[0].String() != "mail/0: dead task 0-1 has no dead letter (W10)" {
				t.Errorf("scrubbed: %+v, %v", seen, err)
			}
			if err := store.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// The rows that are compared include messages, their states and the index by time.
func TestDumpHasMessages(t *testing.T) {
	store, err := storage.Open(storage.Options{Engine: memstore.New()})
	if err != nil {
		t.Fatal(err)
	}
	to := storage.ID{Class: "c", Name: "n"}
	send := func(change func(*storage.Batch)) *storage.Batch {
		var b storage.Batch
		change(&b)
		if _, err := store.Commit(&b); err != nil {
			t.Fatal(err)
		}
		return &b
	}
	sent := send(func(b *storage.Batch) {
		b.AddMessage(store.ShardOf(to), to, 1, []byte("late"))
		b.AddMessage(store.ShardOf(to), to, 0, []byte("urgent"))
	})
	store.HandedOver(sent.MessageSeq(0))
	late := storage.MessageID{To: to, Shard: store.ShardOf(to), Queue: 1, Seq: sent.MessageSeq(0)}
	send(func(b *storage.Batch) { b.SetMessageState(late, 0, 5, []byte("tried")) })
	rows, err := dump(store)
	if err = errors.Join(err, store.Close()); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf(`message c/n %[1]d 0 %[3]d "urgent"
message c/n %[1]d 1 %[2]d "late"
  state 5 "tried"
later %[1]d 5 c/n 1 %[2]d
`, late.Shard, sent.MessageSeq(0), sent.MessageSeq(1))
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Errorf("rows (-want +dumped):\n%s", diff)
	}
}

// A program of today goes on with an old store where the program before was killed.
func TestProgramOnAnOldStore(t *testing.T) {
	for _, name := range stores {
		t.Run(name, func(t *testing.T) {
			again := make(chan string, 2)
			p := newProgram(func(_ context.Context, name string) error {
				again <- name
				return nil
			})
			host, err := p.open(unpack(t, name), madeAt.Add(time.Hour))
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := host.Shutdown(t.Context()); err != nil {
					t.Error(err)
				}
			}()
			began := []string{<-again, <-again}
			slices.Sort(began)
			if diff := cmp.Diff([]string{"mail attempt=1", "poll recovering=true"}, began); diff != "" {
				t.Errorf("works that were cut off (-want +got):\n%s", diff)
			}
			p.wantObjects(t, host)
			p.wantJobs(t, host)
			p.wantTasks(t, host)
		})
	}
}

func (p *program) wantObjects(t *testing.T, host *object.Host) {
	ctx := t.Context()
	for name, want := range map[string]int{"alice": 100, "bob": 101} {
		// A repeat of the first deposit gets the answer that is stored.
		if got, err := p.deposit.Call(ctx, host, name, 1, object.Idempotent("first "+name, time.Hour)); got != want || err != nil {
			t.Errorf("deposit again for %s: %d, %v, want %d", name, got, err, want)
		}
		if got, err := p.read.Call(ctx, host, name, struct{}{}); got != want || err != nil {
			t.Errorf("balance of %s: %d, %v, want %d", name, got, err, want)
		}
		events, err := host.Events(ctx, p.accounts.ID(name), 0, 10)
		if err != nil || len(events) != 1 || events[0].Kind != "deposited" {
			t.Errorf("events of %s: %+v, %v", name, events, err)
		}
		seen, err := host.Inspect(ctx, p.accounts.ID(name))
		if err != nil || seen.Alarm == nil || !seen.Alarm.Due.Equal(madeAt.Add(24*time.Hour)) {
			t.Errorf("alarm of %s: %+v, %v", name, seen, err)
		}
	}
	letters, err := host.DeadLetters(ctx, object.DeadLettersOptions{})
	var got []string
	for _, d := range letters.Letters {
		got = append(got, fmt.Sprintf("%s %s: %s, %s", d.Kind, d.ID, d.LastError, d.Data))
	}
	slices.Sort(got)
	want := []string{"alarm bell/door: the bell is broken, ", `task mail/0: no such mailbox, {"task":"0-1"}`}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("dead letters, %v (-want +got):\n%s", err, diff)
	}
}

func (p *program) wantJobs(t *testing.T, host *object.Host) {
	ctx := t.Context()
	for e, err := range host.Watch(ctx, p.polls.ID("stuck"), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == jobs.EventSuccess {
			break
		}
	}
	for name, want := range map[string]int{"news": 7, "stuck": 42} {
		if got, err := p.polls.State(ctx, host, name); got != want || err != nil {
			t.Errorf("state of poll %s: %d, %v, want %d", name, got, err, want)
		}
		status, err := p.polls.Status(ctx, host, name)
		if err != nil || status.Meta.Status != jobs.Running || status.Meta.RunCount != 1 || status.Due.IsZero() {
			t.Errorf("status of poll %s: %+v, %v", name, status, err)
		}
	}
	waits, err := p.digests.Pending(ctx, host, "carol")
	if diff := cmp.Diff([]string{"one", "two", "three"}, waits.Events); diff != "" || err != nil {
		t.Errorf("events of digest carol (-want +got): %v\n%s", err, diff)
	}
	// The answer is the first one: the event was the second.
	if ack, err := p.digests.Add(ctx, host, "carol", "two", debounce.EventID("two")); err != nil || ack.Events != 2 {
		t.Errorf("an event of digest carol that was there: %+v, %v", ack, err)
	}
	if status, err := p.digests.Status(ctx, host, "carol"); err != nil || status.Events != 3 || status.Reason != debounce.ReasonQuiet {
		t.Errorf("status of digest carol: %+v, %v", status, err)
	}
}

func (p *program) wantTasks(t *testing.T, host *object.Host) {
	ctx := t.Context()
	hello, err := p.mails.Enqueue(ctx, host, "hello", workerpool.Idempotent("hello", time.Hour))
	if err != nil || !hello.Repeated {
		t.Errorf("a task that was there: %+v, %v", hello, err)
	}
	if out, err := p.mails.Wait(ctx, host, hello.ID); out != "sent hello" || err != nil {
		t.Errorf("a task that was done: %q, %v", out, err)
	}
	dead, err := p.mails.DeadLetters(ctx, host, workerpool.TaskID{}, 10)
	if err != nil || len(dead) != 1 || dead[0].In != "dead" || dead[0].Failures[0].Error != "no such mailbox" {
		t.Errorf("dead tasks: %+v, %v", dead, err)
	}
	if _, err := p.mails.Enqueue(ctx, host, "later", workerpool.Unique("later")); err != nil {
		t.Errorf("a task with a unique key: %v", err)
	}
	stuck := workerpool.TaskID{Partition: hello.ID.Partition, Number: hello.ID.Number + 3}
	if out, err := p.mails.Wait(ctx, host, stuck); out != "sent at last" || err != nil {
		t.Errorf("the task that was cut off: %q, %v", out, err)
	}
	stats, err := p.mails.Stats(ctx, host)
	if err != nil || stats.Check() != nil || stats.Submitted != 5 || stats.Pending != 2 || stats.Done != 2 || stats.Dead != 1 || stats.Lost != 1 {
		t.Errorf("tasks: %+v, %v", stats, err)
	}
}
