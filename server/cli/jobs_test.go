package cli

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// shop is a program with jobs, whose work fails until the paper is there.
func shop(paper bool) (Program, *continuous.Job[int], *workerpool.Pool[int, int]) {
	reports := continuous.New(continuous.Config[int]{
		Name: "report", StartLater: true, Exhausted: jobs.Fail,
		Run: func(context.Context, *continuous.Run[int]) error {
			if !paper {
				return errors.New("no paper\x1b[2J")
			}
			return nil
		},
	})
	thumbs := workerpool.New(workerpool.Config[int, int]{
		Name: "thumbs", Partitions: 1, Queues: map[string]int{"mail": 1},
		Work: func(_ context.Context, t *workerpool.Task[int]) (int, error) {
			if t.In < 0 {
				return 0, object.Permanent(errors.New("torn"))
			}
			return 2 * t.In, nil
		},
	})
	return Program{Name: "shop", Definitions: []object.Definition{reports, thumbs, carts}}, reports, thumbs
}

// jobsIn is a directory with the jobs of shop: daily is running, weekly has failed, and the pool
// has a dead task and, being paused, two pending ones.
func jobsIn(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	p, reports, thumbs := shop(false)
	host, err := object.Open(object.Options{Dir: dir}, p.Definitions...)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	check := func(errs ...error) {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"daily", "weekly", hostile} {
		_, err := reports.Start(ctx, host, id, 7)
		check(err)
	}
	check(reports.Trigger(ctx, host, "weekly"))
	for e, err := range host.Watch(ctx, reports.ID("weekly"), 0) {
		if check(err); e.Kind == jobs.EventFailed {
			break
		}
	}
	ref, err := thumbs.Enqueue(ctx, host, -1)
	check(err)
	_, err = thumbs.Wait(ctx, host, ref.ID)
	if !errors.Is(err, workerpool.ErrFailed) {
		t.Fatal(err)
	}
	check(thumbs.Pause(ctx, host))
	for _, queue := range []string{"", "mail"} {
		_, err = thumbs.Enqueue(ctx, host, 4, workerpool.Key("anna"), workerpool.Queue(queue))
		check(err)
	}
	_, err = put.Call(ctx, host, "alice", order{Key: "total", Value: "1"})
	check(err, host.Shutdown(ctx))
	return dir
}

// Proves G2 and W11: the lists and views of jobs and tasks read a directory and change no byte.
func TestJobsOnADirectory(t *testing.T) {
	dir := jobsIn(t)
	before := sum(t, dir)
	for _, c := range []struct {
		args  string
		code  int
		texts []string
	}{
		{"jobs ls", Fine, []string{"report/daily", "running", "report/weekly", `"no paper\x1b[2J"`, `report/"../../jobs/pay/\x1b[2J`}},
		{"jobs ls --label failed", Fine, []string{"report/weekly"}},
		{"jobs ls report --label paused", Fine, []string{"no such jobs"}},
		{"jobs ls --limit 1", Fine, []string{"more: --after "}},
		{"jobs ls --label torn", Usage, []string{`label "torn"`}},
		{"jobs ls --limit 0", Usage, []string{"--limit is 0"}},
		{"jobs view status report/daily", Fine, []string{`"status":"running"`}},
		{"jobs view state report/daily", Fine, []string{"7\n"}},
		{"jobs view state report/none", Refused, []string{"no such job"}},
		{"jobs view wings report/daily", Usage, []string{`no view "wings"; it has status, state, history, tasks`}},
		{"jobs view tasks thumbs {\"states\":[\"dead\"]}", Fine, []string{`"id":"0-1","state":"dead"`}},
		{"tasks ls thumbs", Fine, []string{"0-1", "dead", `"torn"`, "0-2", "pending", "0-3", "mail"}},
		{"tasks ls thumbs --state pending --queue mail", Fine, []string{"0-3"}},
		{"tasks ls thumbs --key nobody", Fine, []string{"no such tasks"}},
		{"tasks ls thumbs --limit 2", Fine, []string{"more: --after 0-2"}},
		{"tasks ls thumbs --state done", Usage, []string{"pending, running or dead"}},
		{"tasks ls thumbs --state wings", Usage, []string{"pending, running or dead"}},
		{"tasks ls thumbs --after x", Usage, []string{"end of no page"}},
		{"tasks ls cart", Usage, []string{"no worker pool"}},
		{"jobs do resume report/weekly", Refused, []string{"give --open"}},
		{"jobs do resume report/weekly --open", Refused, []string{"holdfast knows no classes", "jobs do --open"}},
		{"tasks cancel thumbs/0-2", Refused, []string{"give --open"}},
		{"tasks wait thumbs/0-2", Refused, []string{"give --open"}},
		{"tasks enqueue thumbs 1", Refused, []string{"give --open"}},
		{"tasks enqueue thumbs {", Usage, []string{"not JSON"}},
		{"tasks cancel thumbs", Usage, []string{"write CLASS/NAME"}},
		{"jobs verbs", Fine, []string{"holdfast defines no such job type"}},
	} {
		t.Run(c.args, func(t *testing.T) {
			o := run(t, Program{}, append([]string{"--dir", dir}, strings.Fields(c.args)...)...)
			o.must(t, c.code, c.texts...)
			if strings.ContainsAny(o.out+o.errs, "\x1b\t") {
				t.Errorf("a raw control byte in %q, %q", o.out, o.errs)
			}
			if asJSON := run(t, Program{}, append([]string{"--dir", dir, "-o", "json"}, strings.Fields(c.args)...)...); c.code == Fine && !json.Valid([]byte(asJSON.out)) {
				t.Errorf("not one JSON value: %s", asJSON.out)
			}
		})
	}
	if sum(t, dir) != before {
		t.Error("the verbs have changed the directory")
	}
}

// Proves G2: with --open a program runs the verbs and the views of its own job types, and ends in
// order.
func TestVerbsOfAProgram(t *testing.T) {
	dir := jobsIn(t)
	p, _, _ := shop(true)
	for _, c := range []struct {
		args  string
		code  int
		texts []string
	}{
		{"jobs verbs", Fine, []string{"do start", "report/ID", "do pause", "view state", "do enqueue", "view tasks"}},
		{"jobs verbs report", Fine, []string{"do stop", `{"reason": "text"}`}},
		{"jobs do resume report/weekly --open", Fine, []string{"done"}},
		{"jobs ls --label failed", Fine, []string{"no such jobs"}},
		{"jobs do resume report/none --open", Refused, []string{"no such job: report/none"}},
		{"jobs do fly report/weekly --open", Usage, []string{`no verb "fly"`}},
		{"jobs do resume cart/alice --open", Usage, []string{"defines report, thumbs"}},
		{"jobs do stop report/weekly {\"reason\":\"enough\"} --open", Fine, []string{"done"}},
		{"jobs do stop report/weekly --open", Refused, []string{"illegal move"}},
		{"jobs view status report/weekly --open", Fine, []string{`"stopReason":"enough"`}},
		{"tasks cancel thumbs/0-2 --open", Fine, []string{`"cancelled"`}},
		{"jobs do resume thumbs --open", Fine, []string{"done"}},
		{"tasks enqueue thumbs 21 --key bob --idempotent once --open", Fine, []string{`{"id":"0-4"}`}},
		{"tasks enqueue thumbs 21 --key bob --idempotent once --open", Fine, []string{`"repeated":true`}},
		{"tasks wait thumbs/0-4 --open", Fine, []string{"42\n"}},
		{"tasks wait thumbs/0-1 --open", Refused, []string{"task is dead: torn"}},
		{"tasks enqueue thumbs true --open", Usage, []string{"the argument is"}},
		{"jobs view stats thumbs --open", Fine, []string{`"submitted":4`}},
	} {
		run(t, p, append([]string{"--dir", dir}, strings.Fields(c.args)...)...).must(t, c.code, c.texts...)
	}
	run(t, p, "--dir", dir, "recover").must(t, Fine, "ended in order")
	run(t, p, "--dir", filepath.Join(dir, "none"), "jobs", "do", "pause", "thumbs", "--open").must(t, Unopened, "no such directory")
}

// Proves G3: verbs over many count and change nothing without --open and --yes, and act on all that
// they have counted with both.
func TestVerbsOverMany(t *testing.T) {
	dir := jobsIn(t)
	before := sum(t, dir)
	p, _, _ := shop(true)
	on := func(args string) outcome {
		return run(t, p, append([]string{"--dir", dir}, strings.Fields(args)...)...)
	}
	for _, c := range []struct {
		args string
		code int
		text string
	}{
		{"dead replay", Refused, "act on 1 dead letter"},
		{"dead replay --open", Refused, "act on 1 dead letter"},
		{"dead discard --yes --kind task", Refused, "act on 1 dead letter"},
		{"dead discard --kind alarm", Refused, "act on 0 dead letters"},
		{"dead replay --before 1h", Refused, "act on 0 dead letters"},
		{"dead replay --name x", Usage, "--class"},
		{"dead replay --since soon", Usage, "24h"},
		{"jobs all resume report --label failed", Refused, "act on 1 job"},
		{"jobs all resume report", Usage, "--label LABEL"},
		{"jobs all resume report/a --label failed", Usage, "write jobs all"},
		{"jobs all resume report --label torn", Usage, "torn"},
	} {
		on(c.args).must(t, c.code, c.text)
	}
	if sum(t, dir) != before {
		t.Error("a count has changed the directory")
	}
	run(t, Program{}, "--dir", dir, "dead", "replay", "--open", "--yes").must(t, Refused, "knows no classes")
	on("dead replay --error torn --open --yes").must(t, Fine, "1 dead letter: 1 done, 0 skipped, 0 refused")
	on("tasks ls thumbs --state dead").must(t, Fine, "no such tasks") // the pool is paused
	on("jobs all fly report --label failed --open --yes").must(t, Usage, `no verb "fly"`)
	on("jobs all stop report {\"why\":1} --label failed --open --yes").must(t, Refused, "0 done, 0 skipped, 1 refused", "the last:")
	on("-o json jobs all resume report --label failed --open --yes").must(t, Fine, `"matches": 1`, `"done": 1`)
	on("jobs ls --label failed").must(t, Fine, "no such jobs")
	on("dead discard --open --yes").must(t, Fine, "0 dead letters: 0 done")

	store, err := storage.Open(storage.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	var b storage.Batch
	id := storage.ID{Class: "cart", Name: "torn"}
	b.SetDead(store.ShardOf(id), id, 7, []byte("no JSON"))
	if _, err = store.Commit(&b); errors.Join(err, store.Close()) != nil {
		t.Fatal(err)
	}
	on("dead discard").must(t, Refused, "act on 0 dead letters", "1 dead letter that cannot be read", "dead letter 7 of cart/torn")
	on("dead discard --open --yes").must(t, Refused, "0 done, 0 skipped, 1 refused", "dead letter 7 of cart/torn")
}
