package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// refused is one or several turns of a job. The test refuses each of their writes, one
// after the other.
type refused struct {
	options engine.JobOptions
	before  []string // verbs of the first process
	open    bool     // its run, or its call of OnExhausted, never ends in the first process
	verb    string   // of the second process; empty: only its alarms
	fail    error    // the error of runs in the second process, and in the first if it has no open run
	end     engine.Wish
	hook    bool  // there is an OnExhausted
	told    error // the error of OnExhausted in the second process
}

// errLong is long, so that the end of an execution writes more than its recovery before
// it, and can be refused alone.
var errLong = errors.New(strings.Repeat("no luck ", 100))

var (
	twoTries = engine.Options{Retry: jobs.Retry{MaxAttempts: 2, Backoff: jobs.Constant(time.Minute)}}
)

var refusedTurns = map[string]refused{
	"create":                {verb: "create"},
	"run":                   {before: []string{"create"}, verb: "run"},
	"run of a retry":        {options: engine.JobOptions{Options: twoTries}, before: []string{"create"}, fail: errLong, verb: "run"},
	"run of an open run":    {before: []string{"create"}, open: true, verb: "run"},
	"pause":                 {before: []string{"create"}, verb: "pause"},
	"pause of an open run":  {before: []string{"create"}, open: true, verb: "pause"},
	"resume":                {before: []string{"create", "pause"}, verb: "resume"},
	"resume of an open run": {before: []string{"create", "pause"}, open: true, verb: "resume"},
	"stop":                  {before: []string{"create"}, verb: "stop"},
	"stop of an open run":   {before: []string{"create"}, open: true, verb: "stop"},
	"resume of a stopped":   {before: []string{"create", "stop"}, verb: "resume"},
	"terminate":             {before: []string{"create"}, verb: "terminate"},
	"terminate an open run": {before: []string{"create"}, open: true, verb: "terminate"},
	"success":               {before: []string{"create"}, open: true},
	"success, then paused":  {before: []string{"create", "pause"}, open: true},
	"stops itself":          {before: []string{"create"}, open: true, end: engine.Stop},
	"terminates itself":     {before: []string{"create"}, open: true, end: engine.Terminate},
	"failure":               {options: engine.JobOptions{Options: twoTries}, before: []string{"create"}, open: true, fail: errLong},
	"snooze":                {before: []string{"create"}, open: true, fail: jobs.Snooze(time.Minute)},
	"given up":              {before: []string{"create"}, open: true, fail: errLong},
	"given up and failed":   {options: engine.JobOptions{Exhausted: jobs.Fail}, before: []string{"create"}, open: true, fail: errLong},
	"given up and purged":   {options: engine.JobOptions{Exhausted: jobs.Purge}, before: []string{"create"}, open: true, fail: errLong},
	"given up, with a hook": {before: []string{"create"}, open: true, fail: errLong, hook: true},
	"hook that fails":       {before: []string{"create"}, open: true, fail: errLong, hook: true, told: errLong},
	"hook before the purge": {options: engine.JobOptions{Exhausted: jobs.Purge}, before: []string{"create"}, open: true, fail: errLong, hook: true},
}

var creationID = regexp.MustCompile(`"life":"[^"]*"|[0-9a-f]+-[0-9a-f]{8}/`)

// stored is all that is stored of the job, and its events; its alarm only if asked for.
func stored(t *testing.T, h *object.Host, id storage.ID, alarm bool) string {
	var b strings.Builder
	in, err := h.Inspect(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	page, err := h.Keys(t.Context(), id, object.KeysOptions{Limit: object.MaxPage, Values: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range page.Keys {
		fmt.Fprintf(&b, "%s %s\n", item.Key, creationID.ReplaceAll(item.Value, nil))
	}
	fmt.Fprintf(&b, "exists %t, open %t\n", in.Exists, in.Execution)
	if alarm && in.Alarm != nil {
		fmt.Fprintf(&b, "alarm %v\n", in.Alarm.Due)
	}
	events, err := h.Events(t.Context(), id, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		fmt.Fprintf(&b, "event %s %s\n", e.Kind, e.Data)
	}
	return b.String()
}

// play runs the turns in a process with a limit for the bytes that a turn may write, for
// some time, and returns all that is stored then. err is that of the verb.
func (r refused) play(t *testing.T, limit int, during time.Duration) (state string, err error) {
	synctest.Test(t, func(t *testing.T) {
		second := false
		o := r.options
		if r.hook {
			o.OnExhausted = func(ctx context.Context, _ *jobs.Exhaustion) error {
				if !second {
					<-ctx.Done()
					return ctx.Err()
				}
				time.Sleep(10 * time.Millisecond)
				return r.told
			}
		}
		k := newErrandKind(&errandKind{options: o, period: time.Hour, work: func(ctx context.Context, _ engine.Execution) (engine.Result, error) {
			if r.open && !second && !r.hook {
				<-ctx.Done()
				return engine.Result{}, ctx.Err()
			}
			time.Sleep(10 * time.Millisecond)
			return engine.Result{Wish: r.end, Reason: "enough"}, r.fail
		}})
		mem, over := memstore.New(), cut()
		open := func(limit int) *object.Host {
			h, err := object.Open(object.Options{Storage: storage.Options{Engine: mem, Shards: 1}, MaxBatchBytes: limit, Logger: slog.New(slog.DiscardHandler)}, k)
			if err != nil {
				t.Fatal(err)
			}
			return h
		}
		h := open(0)
		for _, verb := range r.before {
			if _, err := k.do.Call(t.Context(), h, "a", verb); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		time.Sleep(50 * time.Millisecond)
		left := mem.Crash(0)
		_ = h.Shutdown(over)
		mem, second = left, true
		h = open(limit)
		if r.verb != "" {
			_, err = k.do.Call(t.Context(), h, "a", r.verb)
		} else {
			time.Sleep(during)
			synctest.Wait()
		}
		state = stored(t, h, k.ID("a"), r.verb != "" && !r.open)
		_ = h.Shutdown(over)
	})
	return state, err
}

// cut is a context that has ended.
func cut() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// Proves S7, O6, J5, J6: a write of a job's turn is refused because the turn writes too
// much, and then the turn stores nothing. That holds for each write of a turn: neither a
// verb nor an end is stored by half.
func TestRefusedWrites(t *testing.T) {
	for name, r := range refusedTurns {
		t.Run(name, func(t *testing.T) {
			var whole []string
			for _, during := range []time.Duration{0, 105, 115, 125, 300} {
				state, err := r.play(t, 0, during*time.Millisecond)
				if err != nil {
					t.Fatal(err)
				}
				whole = append(whole, state)
			}
			if r.verb != "" {
				r0 := r
				r0.verb = "none"
				whole[0], _ = r0.play(t, 0, 0)
			}
			end := whole[len(whole)-1]
			if end == whole[0] {
				t.Fatalf("nothing was stored:\n%s", end)
			}
			step := 24 // bytes: few writes of a turn are nearer to one another
			if r.verb != "" {
				step = 6
			}
			for limit, last := step, ""; last != end; limit += step {
				var err error
				last, err = r.play(t, limit, 300*time.Millisecond)
				switch {
				case !slices.Contains(whole, last):
					t.Fatalf("limit %d, error %v: stored is\n%s\nwant one of\n%s", limit, err, last, strings.Join(whole, "\n"))
				case err == nil && r.verb != "" && last != end:
					t.Fatalf("limit %d: the verb is answered, and stored is\n%s\nwant\n%s", limit, last, end)
				case err != nil && (!errors.Is(err, object.ErrBatchTooLarge) || last != whole[0]):
					t.Fatalf("limit %d: the verb ends with %v, and stored is\n%s\nwant\n%s", limit, err, last, whole[0])
				}
			}
		})
	}
}
