package recovery_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/recovery"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// ticker is a job type. raw writes rows into its objects that a correct runtime would
// never store.
var ticker = continuous.New(continuous.Config[int]{
	Name: "ticker", Schedule: jobs.Every(time.Hour), StartLater: true,
	Run: func(context.Context, *continuous.Run[int]) error { return nil },
})

type broken struct {
	Meta  map[string]any
	Armed bool
	Open  bool
	Due   time.Time // of its alarm; zero: in an hour, if it is armed
	Label string
}

// named returns metadata with the type and the names that each job's has, as long as it has none.
func named(st *object.State, meta map[string]any) map[string]any {
	full := map[string]any{"type": "continuous", "name": st.ID().Class, "id": st.ID().Name}
	maps.Copy(full, meta)
	return full
}

type rawObject struct{ st *object.State }

func (rawObject) Alarm(context.Context, object.AlarmInfo) error { return nil }

var (
	raw = object.Define("ticker", func(_ context.Context, st *object.State) (*rawObject, error) { return &rawObject{st}, nil })
	put = object.Handle(raw, "put", func(r *rawObject, ctx context.Context, b broken) (int, error) {
		var errs []error
		if b.Meta != nil {
			errs = append(errs, r.st.Storage().Put(ctx, "meta", named(r.st, b.Meta)), r.st.Storage().Put(ctx, "state", 0),
				r.st.Storage().Put(ctx, "cursor", jobs.StartCursor(r.st.Now())))
		}
		if b.Armed {
			at := b.Due
			if at.IsZero() {
				at = r.st.Now().Add(time.Hour)
			}
			errs = append(errs, r.st.SetAlarm(ctx, at))
		}
		errs = append(errs, r.st.Driver().SetLabel(ctx, b.Label))
		if b.Open {
			errs = append(errs, r.st.Driver().OpenExecution(ctx, nil))
		}
		return 0, errors.Join(errs...)
	})
)

func open(t *testing.T, dir string, def object.Definition) *object.Host {
	t.Helper()
	h, err := object.Open(object.Options{Dir: dir}, def)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func shut(t *testing.T, h *object.Host) {
	t.Helper()
	if err := h.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// damage makes a store with a healthy job and one of each kind of broken ones.
func damage(t *testing.T) (dir string) {
	dir = t.TempDir()
	h := open(t, dir, raw)
	for name, b := range map[string]broken{
		"healthy":     {Meta: map[string]any{"status": "running"}, Armed: true},
		"no-job":      {Armed: true},
		"orphan":      {Meta: map[string]any{"status": "running"}},
		"unreachable": {Meta: map[string]any{"status": "executing", "executingAt": "2026-01-01T00:00:00Z"}, Open: true},
		"unmarked":    {Meta: map[string]any{"status": "executing", "executingAt": "2026-01-01T00:00:00Z"}, Armed: true},
		"restless":    {Meta: map[string]any{"status": "paused"}, Armed: true},
		"torn":        {Meta: map[string]any{"status": "running", "executingAt": "2026-01-01T00:00:00Z"}, Armed: true},
	} {
		if _, err := put.Call(t.Context(), h, name, b); err != nil {
			t.Fatal(err)
		}
	}
	shut(t, h)
	return dir
}

// list gives the findings as lines, in order.
func list(s recovery.Scrubbed) string {
	var lines []string
	for _, f := range s.Findings {
		lines = append(lines, f.String())
	}
	slices.Sort(lines)
	return fmt.Sprintf("%d objects, %d suspects\n%s", s.Objects, s.Suspects, strings.Join(lines, "\n"))
}

func same(t *testing.T, name, got string, want ...string) {
	t.Helper()
	if got != strings.Join(want, "\n") {
		t.Errorf("%s: got\n%s\nwant\n%s", name, got, strings.Join(want, "\n"))
	}
}

// Proves R6: a scrub of a store at rest finds objects that break J2, J3 and J5, and
// counts those that may break R3.
func TestScrubStore(t *testing.T) {
	store, err := storage.Open(storage.Options{Dir: damage(t)})
	if err != nil {
		t.Fatal(err)
	}
	seen, err := recovery.ScrubStore(store)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "cold", list(seen), "7 objects, 1 suspects",
		"ticker/restless: an alarm is set and status is paused (J3)",
		"ticker/torn: executingAt is set and status is running (J2)",
		"ticker/unmarked: status is executing and no execution is open (J5)",
		"ticker/unreachable: an execution is open and no alarm is set (J5)")
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}

// Proves R6, J3, R3: a job that rests has an alarm if and only if its metadata has a time, and
// at that time, also if a wake-up has failed and comes later; one that is stuck has an alarm for
// its next try.
func TestScrubOfResting(t *testing.T) {
	const at = "2100-01-01T00:00:00.000000001Z"
	due, err := time.Parse(time.RFC3339Nano, at)
	if err != nil {
		t.Fatal(err)
	}
	retry := map[string]any{"retryAt": at}
	jobs := map[string]map[string]any{
		"paused": {"status": "paused"}, "paused-until": {"status": "paused", "pausedUntil": at},
		"completed": {"status": "completed"}, "completed-until": {"status": "completed", "retireAt": at},
		"cancelled-until": {"status": "cancelled", "retireAt": at}, "failed-until": {"status": "failed", "retireAt": at},
		"failed-owing": {"status": "failed", "retireAt": at, "hooks": 1},
		"stuck":        {"status": "stuck"}, "stuck-until": {"status": "stuck", "run": retry},
	}
	for name, c := range map[string]struct {
		armed bool
		due   time.Time
		want  []string
	}{
		"none": {false, time.Time{}, []string{
			"ticker/cancelled-until: status is cancelled until " + at + " and no alarm is set (J3)",
			"ticker/completed-until: status is completed until " + at + " and no alarm is set (J3)",
			"ticker/failed-until: status is failed until " + at + " and no alarm is set (J3)",
			"ticker/paused-until: status is paused until " + at + " and no alarm is set (J3)",
			"ticker/stuck-until: status is stuck, a retry is due and no alarm is set (R3)",
		}},
		"right": {true, due, []string{
			"ticker/completed: an alarm is set and status is completed (J3)",
			"ticker/paused: an alarm is set and status is paused (J3)",
			"ticker/stuck: an alarm is set and status is stuck (J3)",
		}},
		"late": {true, due.Add(1), []string{
			"ticker/cancelled-until: status is cancelled until " + at + " and the alarm is set to 2100-01-01T00:00:00.000000002Z (J3)",
			"ticker/completed-until: status is completed until " + at + " and the alarm is set to 2100-01-01T00:00:00.000000002Z (J3)",
			"ticker/completed: an alarm is set and status is completed (J3)",
			"ticker/failed-until: status is failed until " + at + " and the alarm is set to 2100-01-01T00:00:00.000000002Z (J3)",
			"ticker/paused-until: status is paused until " + at + " and the alarm is set to 2100-01-01T00:00:00.000000002Z (J3)",
			"ticker/paused: an alarm is set and status is paused (J3)",
			"ticker/stuck: an alarm is set and status is stuck (J3)",
		}},
	} {
		dir := t.TempDir()
		h := open(t, dir, raw)
		for id, meta := range jobs {
			b := broken{Meta: meta, Armed: c.armed, Due: c.due, Label: meta["status"].(string)}
			if _, err := put.Call(t.Context(), h, id, b); err != nil {
				t.Fatal(err)
			}
		}
		shut(t, h)
		store, err := storage.Open(storage.Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		seen, err := recovery.ScrubStore(store)
		if err != nil {
			t.Fatal(err)
		}
		same(t, name, list(seen), append([]string{"9 objects, 0 suspects"}, c.want...)...)
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Proves J3, A2: a wake-up of a resting job that fails is tried again later, and the scrubber
// does not take that for a wrong alarm.
func TestScrubOfAWakeUpThatFails(t *testing.T) {
	dir := t.TempDir()
	failing := object.Define("ticker", func(_ context.Context, st *object.State) (*rawFailing, error) { return &rawFailing{st}, nil })
	fail := object.Handle(failing, "put", func(r *rawFailing, ctx context.Context, at time.Time) (int, error) {
		meta := map[string]any{"status": "completed", "retireAt": at}
		return 0, errors.Join(r.st.Storage().Put(ctx, "meta", named(r.st, meta)), r.st.SetAlarm(ctx, at), r.st.Driver().SetLabel(ctx, "completed"))
	})
	h := open(t, dir, failing)
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	if _, err := fail.Call(t.Context(), h, "a", at); err != nil {
		t.Fatal(err)
	}
	for due := at; due.Equal(at); {
		in, err := h.Inspect(t.Context(), failing.ID("a"))
		if err != nil || in.Alarm == nil {
			t.Fatal(in.Alarm, err)
		}
		due = in.Alarm.Due
	}
	shut(t, h)
	store, err := storage.Open(storage.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if seen, err := recovery.ScrubStore(store); err != nil || len(seen.Findings) > 0 {
		t.Errorf("%s, %v", list(seen), err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}

type rawFailing struct{ st *object.State }

func (rawFailing) Alarm(context.Context, object.AlarmInfo) error { return errors.New("not now") }

// Examine finds in one object the same as a scrub, and says which finding is only a
// suspicion.
func TestExamine(t *testing.T) {
	store, err := storage.Open(storage.Options{Dir: damage(t)})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"healthy": "<nil>",
		"torn":    "ticker/torn: executingAt is set and status is running (J2)",
		"orphan":  "ticker/orphan: status is running and no alarm is set (R3)",
	} {
		o, err := store.Find(storage.ID{Class: "ticker", Name: name})
		if err != nil {
			t.Fatal(err)
		}
		found, err := recovery.Examine(store, o)
		if err != nil || fmt.Sprint(found) != want || found != nil && found.Suspect != (name == "orphan") {
			t.Errorf("%s: %v, %v, want %s", name, found, err, want)
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}

// Proves R6, R3: a scrub of a live store with Repair arms a job without an alarm, from
// its schedule, and a second scrub finds it well.
func TestScrubRepairs(t *testing.T) {
	h := open(t, damage(t), ticker)
	defer shut(t, h)
	seen, err := recovery.Scrub(t.Context(), h, recovery.ScrubOptions{Repair: true, Pause: time.Microsecond})
	if err != nil {
		t.Fatal(err)
	}
	if got := list(seen); !strings.Contains(got, "ticker/orphan: status is running and no alarm is set (R3), repaired") {
		t.Errorf("the orphan is not repaired:\n%s", got)
	}
	in, err := h.Inspect(t.Context(), ticker.ID("orphan"))
	if err != nil || in.Alarm == nil || time.Until(in.Alarm.Due) > time.Hour {
		t.Errorf("the orphan is armed for %+v, %v", in.Alarm, err)
	}
	seen, err = recovery.Scrub(t.Context(), h, recovery.ScrubOptions{Classes: []string{"ticker"}, Pause: time.Microsecond})
	if err != nil || seen.Suspects != 0 || seen.Objects != 7 {
		t.Errorf("a second scrub: %s, %v", list(seen), err)
	}
	report := recovery.Recovered(h)
	if report.Causes()[string(recovery.CauseOrphan)] == 0 {
		t.Errorf("the report has no orphan: %+v", report)
	}
}

// Proves R6: a scrub ends with its context, and takes no healthy store for a
// broken one while jobs run in it.
func TestScrubUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := continuous.New(continuous.Config[int]{
			Name: "busy", Schedule: jobs.Every(time.Millisecond),
			Run: func(_ context.Context, run *continuous.Run[int]) error { run.State++; return nil },
		})
		h, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}}, busy)
		if err != nil {
			t.Fatal(err)
		}
		defer shut(t, h)
		for n := range 20 {
			if _, err := busy.Start(t.Context(), h, fmt.Sprint(n), 0); err != nil {
				t.Fatal(err)
			}
		}
		for range 100 {
			seen, err := recovery.Scrub(t.Context(), h, recovery.ScrubOptions{Repair: true, Pause: time.Millisecond})
			if err != nil || len(seen.Findings) > 0 || seen.Objects != 20 {
				t.Fatalf("%s, %v", list(seen), err)
			}
		}
		if runs, err := busy.State(t.Context(), h, "0"); err != nil || runs < 50 {
			t.Errorf("beside the scrubs a job ran %d times, %v", runs, err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		enough := errors.New("enough")
		cancel(enough)
		err = recovery.ScrubEvery(ctx, h, time.Hour, recovery.ScrubOptions{}, func(recovery.Scrubbed) { t.Error("a finding") })
		if !errors.Is(err, enough) {
			t.Errorf("ScrubEvery ends with %v", err)
		}
	})
}

// Proves R6: the report as a table.
func ExampleReport_Write() {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	r := recovery.Report{Total: 2, Lines: []object.Recovery{
		{ID: storage.ID{Class: "thumbs", Name: "3"}, At: at, Cause: "crash", Age: 1500 * time.Millisecond, Attempt: 1, Action: "re-run"},
		{ID: storage.ID{Class: "refresh", Name: "user-1"}, At: at, Cause: "orphan", Age: time.Hour, Action: "arm"},
	}}
	var b strings.Builder
	if err := r.Write(&b, 0); err != nil {
		fmt.Println(err)
	}
	fmt.Print(b.String())
	// Output:
	// AT                    OBJECT          CAUSE   AGE     ATTEMPT  ACTION
	// 2026-03-01T12:00:00Z  thumbs/3        crash   1.5s    1        re-run
	// 2026-03-01T12:00:00Z  refresh/user-1  orphan  1h0m0s  0        arm
	// recovered 2, crash 1, orphan 1
}

func ExampleCheck() {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	a := recovery.Check(recovery.Snapshot{Now: now, Epoch: 8, Began: now, Open: true, OpenEpoch: 7, Since: now.Add(-time.Second)}, recovery.Limits{})
	fmt.Println(a.Verb, a.Cause, a.At.Sub(now))
	// Output: re-run crash 100ms
}
