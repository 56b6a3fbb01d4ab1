package admin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/admin"
	"github.com/holdfast-dev/holdfast/admin/transfer"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/jobs/debounce"
	"github.com/holdfast-dev/holdfast/jobs/verbs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// shop is a program with a job type of each kind, and a class that is none.
type shop struct {
	reports *continuous.Job[int]
	hooks   *debounce.Job[string, struct{}]
	images  *workerpool.Pool[int, int]
	orders  *workflow.Workflow[int, int]
	carts   *object.Class[object.State]
	put     *object.Method[string, int]
}

func define() shop {
	s := shop{
		reports: continuous.New(continuous.Config[int]{
			Name: "report", Exhausted: jobs.Fail, StartLater: true,
			Run: func(_ context.Context, run *continuous.Run[int]) error {
				if run.State < 0 {
					return errors.New("no paper")
				}
				run.State++
				return nil
			},
		}),
		hooks: debounce.New(debounce.Config[string, struct{}]{
			Name: "hook", Quiet: time.Hour, Flush: func(context.Context, *debounce.Flush[string, struct{}]) error { return nil },
		}),
		images: workerpool.New(workerpool.Config[int, int]{
			Name: "image", Partitions: 1,
			Work: func(_ context.Context, t *workerpool.Task[int]) (int, error) {
				return 0, object.Permanent(fmt.Errorf("image %d is torn", t.In))
			},
		}),
		orders: workflow.New[int, int]("order", workflow.Config{}),
		carts:  object.Define("cart", func(_ context.Context, st *object.State) (*object.State, error) { return st, nil }),
	}
	s.orders.Func(func(ctx *workflow.Context, in int) (int, error) {
		n, err := workflow.Step(ctx, "pay", func(context.Context) (int, error) {
			if in < 0 {
				return 0, object.Permanent(errors.New("card refused"))
			}
			return in, nil
		})
		return n, err
	})
	s.put = object.Handle(s.carts, "put", func(st *object.State, ctx context.Context, key string) (int, error) {
		return 0, st.Storage().Put(ctx, key, jobs.Meta{Name: "other", ID: "x", Status: jobs.Failed})
	})
	return s
}

func (s shop) definitions() []object.Definition {
	return []object.Definition{s.reports, s.hooks, s.images, s.orders, s.carts}
}

func check(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// hostile is an id that would break a cursor of plain text.
const hostile = "a/b \"\n\x1b"

// fill makes jobs of each kind and status, and waits until they rest.
func fill(t *testing.T, s shop, host *object.Host) {
	t.Helper()
	ctx := t.Context()
	for _, id := range []string{"a", "b", "c", "d", hostile} {
		_, err := s.reports.Start(ctx, host, id, 7)
		check(t, err)
	}
	check(t, s.reports.Pause(ctx, host, "b"), s.reports.Stop(ctx, host, "c", "no longer needed"))
	_, err := s.reports.Start(ctx, host, "f", -1)
	check(t, err, s.reports.Trigger(ctx, host, "f"))
	wait(t, host, s.reports.ID("f"), jobs.EventFailed)
	for _, id := range []string{"h1", "h2"} {
		_, err := s.hooks.Add(ctx, host, id, "x")
		check(t, err)
	}
	check(t, s.hooks.Pause(ctx, host, "h2"))
	for id, in := range map[string]int{"o1": 1, "o2": -1} {
		_, err := s.orders.Start(ctx, host, id, in)
		check(t, err)
		_, _ = s.orders.Wait(ctx, host, id)
	}
	ref, err := s.images.Enqueue(ctx, host, 4)
	check(t, err)
	_, _ = s.images.Wait(ctx, host, ref.ID)
	for _, name := range []string{"meta", "m2"} {
		_, err := s.put.Call(ctx, host, name, jobs.MetaKey)
		check(t, err)
	}
}

// wait waits for an event of an object.
func wait(t *testing.T, host *object.Host, id storage.ID, kind string) {
	t.Helper()
	for e, err := range host.Watch(t.Context(), id, 0) {
		check(t, err)
		if e.Kind == kind {
			return
		}
	}
}

// walk lists all pages and returns the jobs as words.
func walk(t *testing.T, a *admin.Admin, o admin.JobsOptions) (all []string) {
	t.Helper()
	for {
		page, err := a.Jobs(t.Context(), o)
		check(t, err)
		if o.Limit > 0 && len(page.Jobs) > o.Limit {
			t.Errorf("a page of %d jobs has %d", o.Limit, len(page.Jobs))
		}
		for _, j := range page.Jobs {
			all = append(all, fmt.Sprintf("%s %q %s %s%s", j.Kind, j.ID, j.Status, j.LastError, j.Reason))
		}
		if o.After = page.Next; page.Next == "" {
			return all
		}
	}
}

// Proves G2: one job is told from its rows, and an object that is none is refused.
func TestOneJob(t *testing.T) {
	s := define()
	host, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}}, s.definitions()...)
	check(t, err)
	fill(t, s, host)
	ctx := t.Context()
	a := admin.Live(host) // without the definitions
	found, err := a.Job(ctx, s.reports.ID("c"))
	want, bad := s.reports.Status(ctx, host, "c")
	check(t, err, bad)
	if found.Meta != want.Meta || !found.Alarm.IsZero() || found.Meta.StopReason != "no longer needed" {
		t.Errorf("%+v, want %+v", found, want.Meta)
	}
	_, err = s.hooks.Add(ctx, host, "h1", "again") // due in an hour
	check(t, err)
	if found, err = a.Job(ctx, s.hooks.ID("h1")); err != nil || found.Alarm.IsZero() {
		t.Errorf("no alarm: %+v, %v", found, err)
	}
	for _, id := range []storage.ID{{Class: "report", Name: "absent"}, {Class: "absent", Name: "a"}, {Class: "cart", Name: "x"}, s.images.ID("0")} {
		if found, err = a.Job(ctx, id); !errors.Is(err, jobs.ErrNotFound) {
			t.Errorf("%s: %+v, %v", id, found, err)
		}
	}
	if _, err = a.Job(ctx, storage.ID{Class: "report"}); !errors.Is(err, object.ErrBadName) {
		t.Errorf("no name: %v", err)
	}
	check(t, host.Shutdown(ctx))
}

// Proves G2: each list of jobs, in pages of each length, is that of the stored jobs, on a host, on a
// host that does not define their classes, and on the directory.
func TestJobs(t *testing.T) {
	s, dir := define(), t.TempDir()
	host, err := object.Open(object.Options{Dir: dir}, s.definitions()...)
	check(t, err)
	live := admin.Live(host, s.definitions()...)
	if got := walk(t, live, admin.JobsOptions{}); got != nil {
		t.Errorf("an empty store has the jobs %q", got)
	}
	fill(t, s, host)
	hooks := []string{`debounce "hook/h1" running `, `debounce "hook/h2" paused `}
	orders := []string{`workflow "order/o1" completed `, `workflow "order/o2" failed step "pay": card refused`}
	reports := []string{
		`continuous "report/a" running `, `continuous "report/a/b \"\n\x1b" running `, `continuous "report/b" paused `,
		`continuous "report/c" stopped no longer needed`, `continuous "report/d" running `, `continuous "report/f" failed no papergiven up: attempts`,
	}
	lists := []struct {
		o    admin.JobsOptions
		want []string
	}{
		{admin.JobsOptions{}, slices.Concat(hooks, orders, reports)},
		{admin.JobsOptions{Label: "failed"}, []string{orders[1], reports[5]}},
		{admin.JobsOptions{Label: "paused"}, []string{hooks[1], reports[2]}},
		{admin.JobsOptions{Label: "stuck"}, nil},
		{admin.JobsOptions{Class: "report"}, reports},
		{admin.JobsOptions{Class: "report", Label: "stopped"}, reports[3:4]},
		{admin.JobsOptions{Class: "report", Prefix: "a"}, reports[:2]},
		{admin.JobsOptions{Prefix: "o"}, orders},
		{admin.JobsOptions{Class: "cart"}, nil},
		{admin.JobsOptions{Class: "image"}, nil},
		{admin.JobsOptions{Class: "nothing"}, nil},
	}
	same := func(a *admin.Admin) {
		t.Helper()
		for _, l := range lists {
			for _, limit := range []int{0, 1, 2, 3, 10, object.MaxPage} {
				o := l.o
				o.Limit = limit
				if got := walk(t, a, o); !slices.Equal(got, l.want) {
					t.Errorf("%+v:\n%s\nwant\n%s", o, strings.Join(got, "\n"), strings.Join(l.want, "\n"))
				}
			}
		}
	}
	same(live) // with classes that had no object at its first list
	check(t, host.Shutdown(t.Context()))

	store, err := storage.OpenReadOnly(storage.Options{Dir: dir})
	check(t, err)
	same(admin.Cold(object.NewReader(store)))
	check(t, store.Close())

	other, err := object.Open(object.Options{Dir: dir}, define().carts)
	check(t, err)
	same(admin.Live(other))
	check(t, other.Shutdown(t.Context()))
}

// Proves G2: a job of a class that the host does not define is in the list as soon as an import has brought it, also if the host
// has listed its jobs before.
func TestJobsAfterAnImport(t *testing.T) {
	s, ctx := define(), t.Context()
	from, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}}, s.definitions()...)
	check(t, err)
	fill(t, s, from)
	to, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}}, define().carts)
	check(t, err)
	a := admin.Live(to)
	for _, step := range []struct {
		id   storage.ID
		want []string
	}{
		{s.reports.ID("c"), []string{`continuous "report/c" stopped no longer needed`}},
		{s.hooks.ID("h2"), []string{`debounce "hook/h2" paused `, `continuous "report/c" stopped no longer needed`}},
	} {
		walk(t, a, admin.JobsOptions{})
		var file bytes.Buffer
		check(t, transfer.Export(ctx, from, step.id, &file, transfer.ExportOptions{}))
		_, err := transfer.Import(ctx, to, bytes.NewReader(file.Bytes()), transfer.ImportOptions{})
		check(t, err)
		if got := walk(t, a, admin.JobsOptions{}); !slices.Equal(got, step.want) {
			t.Errorf("after the import of %s: %q, want %q", step.id, got, step.want)
		}
	}
	check(t, errors.Join(from.Shutdown(ctx), to.Shutdown(ctx)))
}

// Proves G2: options that do not fit are refused, and a page reads 2,000 objects at most.
func TestJobsBounds(t *testing.T) {
	s := define()
	host, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}}, s.definitions()...)
	check(t, err)
	a := admin.Live(host, s.definitions()...)
	for _, o := range []admin.JobsOptions{
		{Limit: -1}, {Limit: object.MaxPage + 1}, {Label: "running"}, {Label: "terminated"}, {Label: "initializing"}, {Label: "x"},
		{After: "?"}, {After: "e30"}, {After: "eyJjbGFzcyI6ImEiLCJuYW1lIjoiYiJ9", Class: "b"},
	} {
		if _, err := a.Jobs(t.Context(), o); !errors.Is(err, jobs.ErrInvalid) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if _, err := a.Jobs(t.Context(), admin.JobsOptions{Class: "a\x00b"}); !errors.Is(err, object.ErrBadName) {
		t.Error(err)
	}
	for n := range 2000 {
		_, err := s.put.Call(t.Context(), host, fmt.Sprintf("%04d", n), "x")
		check(t, err)
		if n < 1998 {
			continue
		}
		page, err := a.Jobs(t.Context(), admin.JobsOptions{Class: "cart"})
		check(t, err)
		if more := page.Next != ""; len(page.Jobs) != 0 || more != (n == 1999) {
			t.Errorf("of %d objects: %+v", n+1, page)
		}
	}
	check(t, host.Shutdown(t.Context()))
}

// Proves G2: verbs and views by name reach the job types that the program defines, and a directory
// has the views that rows tell and no verb.
func TestDoAndView(t *testing.T) {
	s, dir := define(), t.TempDir()
	host, err := object.Open(object.Options{Dir: dir}, s.definitions()...)
	check(t, err)
	fill(t, s, host)
	a, ctx := admin.Live(host, s.definitions()...), t.Context()
	var types []string
	for _, table := range a.Types() {
		types = append(types, table.Class())
	}
	if !slices.Equal(types, []string{"hook", "image", "order", "report"}) {
		t.Errorf("types %q", types)
	}
	_, err = a.Do(ctx, s.reports.ID("b"), "resume", nil)
	check(t, err)
	if st, err := s.reports.Status(ctx, host, "b"); err != nil || st.Meta.Status != jobs.Running {
		t.Errorf("after resume: %+v, %v", st, err)
	}
	if raw, err := a.View(ctx, s.reports.ID("b"), "state", nil); err != nil || string(raw) != "7" {
		t.Errorf("state %s, %v", raw, err)
	}
	if _, err := a.Do(ctx, s.carts.ID("meta"), "resume", nil); !errors.Is(err, admin.ErrNoType) || !strings.Contains(err.Error(), "hook, image, order, report") {
		t.Error(err)
	}
	if _, err := a.View(ctx, storage.ID{Class: "x"}, "status", nil); !errors.Is(err, admin.ErrNoType) {
		t.Error(err)
	}
	if _, err := admin.Live(host, s.carts).Do(ctx, s.reports.ID("b"), "pause", nil); !errors.Is(err, admin.ErrNoType) || !strings.Contains(err.Error(), "defines none") {
		t.Error(err)
	}
	tasks, err := a.View(ctx, storage.ID{Class: "image"}, "tasks", nil)
	check(t, err)
	status, err := s.reports.Status(ctx, host, "b")
	check(t, err, host.Shutdown(ctx))

	store, err := storage.OpenReadOnly(storage.Options{Dir: dir})
	check(t, err)
	cold := admin.Cold(object.NewReader(store))
	if _, err := cold.Do(ctx, s.reports.ID("b"), "pause", nil); !errors.Is(err, admin.ErrNoProgram) {
		t.Error(err)
	}
	if len(cold.Types()) != 0 {
		t.Error("a directory defines types")
	}
	meta, err := json.Marshal(map[string]any{"meta": status.Meta})
	check(t, err)
	for _, c := range []struct {
		id        storage.ID
		view, arg string
		want      string
		is        error
	}{
		{s.reports.ID("b"), "status", "", string(meta), nil},
		{s.reports.ID("b"), "state", "", "7", nil},
		{s.orders.ID("o1"), "history", "", `{"rows":[{"name":"entry 0 step \"pay\"","text":"1"}]}`, nil},
		{storage.ID{Class: "image"}, "tasks", "", string(tasks), nil},
		{s.orders.ID("o1"), "state", "", "", jobs.ErrInvalid},
		{s.reports.ID("b"), "history", "", "", jobs.ErrInvalid},
		{s.carts.ID("meta"), "status", "", "", jobs.ErrNotFound},
		{s.reports.ID("nobody"), "state", "", "", jobs.ErrNotFound},
		{s.reports.ID("b"), "pending", "", "", verbs.ErrUnknown},
		{s.reports.ID("b"), "tasks", "", "", jobs.ErrInvalid},
		{storage.ID{Class: "image"}, "tasks", `{"limit": -1}`, "", jobs.ErrInvalid},
	} {
		got, err := cold.View(ctx, c.id, c.view, []byte(c.arg))
		if !errors.Is(err, c.is) || c.is == nil && (err != nil || string(got) != c.want) {
			t.Errorf("%s of %s: %s, %v; want %s, %v", c.view, c.id, got, err, c.want, c.is)
		}
	}
	check(t, store.Close())
}
