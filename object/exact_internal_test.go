package object

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/internal/testing/loglines"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// The defaults of the documentation, to the unit.
func TestDefaultsOfOptions(t *testing.T) {
	o, err := Options{Dir: "d"}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	type bounds struct {
		idle, retention                         time.Duration
		live, inFlight, recovery, key, val, all int
		messages                                int
	}
	got := bounds{o.IdleAfter, o.EventRetention, o.MaxLive, o.AlarmsInFlight, o.RecoveryConcurrency, o.MaxKeyBytes, o.MaxValueBytes, o.MaxBatchBytes, o.MaxMessages}
	if want := (bounds{time.Minute, 24 * time.Hour, 100_000, 2048, 64, 2048, 2 << 20, 16 << 20, 10_000_000}); got != want {
		t.Errorf("of a host: %+v, want %+v", got, want)
	}
	c := ClassOptions{}.withDefaults(&Options{IdleAfter: 7})
	want := ClassOptions{IdleAfter: 7, MailboxLimit: 1024, MailboxAge: 30 * time.Second, BlockLimit: 30 * time.Second, HoldLimit: 30 * time.Second, MaxAlarmCrashes: 4,
		AlarmRetry:   alarm.Retry{MaxAttempts: 7, Backoff: alarm.Exponential(2*time.Second, 64*time.Second).WithJitter(0.25)},
		MessageRetry: alarm.Retry{MaxAttempts: 10, Backoff: alarm.Exponential(10*time.Second, 10*time.Minute).WithJitter(0.25)}, MaxWaiting: 100_000}
	c.OnDeadLetter = nil
	if !reflect.DeepEqual(c, want) {
		t.Errorf("of a class: %+v, want %+v", c, want)
	}
	set := ClassOptions{IdleAfter: 1, MailboxLimit: 1, MailboxAge: 1, BlockLimit: 1, HoldLimit: 1, MaxAlarmCrashes: 1,
		AlarmRetry: alarm.Retry{MaxAttempts: 1, Backoff: alarm.Constant(1)}, MaxWaiting: 1,
		MessageRetry: alarm.Retry{MaxAttempts: 1, Backoff: alarm.Constant(1)}}
	if got := set.withDefaults(&Options{IdleAfter: 7}); !reflect.DeepEqual(got, set) {
		t.Errorf("options that are set have changed: %+v", got)
	}
}

// Each option that is less than zero is refused, and 0 and 1 are not.
func TestNegativeOptions(t *testing.T) {
	for name, o := range map[string]func(n int) Options{
		"WaitForLock":         func(n int) Options { return Options{WaitForLock: time.Duration(n)} },
		"IdleAfter":           func(n int) Options { return Options{IdleAfter: time.Duration(n)} },
		"EventRetention":      func(n int) Options { return Options{EventRetention: time.Duration(n)} },
		"MaxLive":             func(n int) Options { return Options{MaxLive: n} },
		"AlarmsInFlight":      func(n int) Options { return Options{AlarmsInFlight: n} },
		"RecoveryConcurrency": func(n int) Options { return Options{RecoveryConcurrency: n} },
		"MaxKeyBytes":         func(n int) Options { return Options{MaxKeyBytes: n} },
		"MaxValueBytes":       func(n int) Options { return Options{MaxValueBytes: n} },
		"MaxBatchBytes":       func(n int) Options { return Options{MaxBatchBytes: n} },
		"and at most 32 MiB":  func(n int) Options { return Options{MaxBatchBytes: 32<<20 - min(n, 0)} },
	} {
		for n, wrong := range map[int]bool{-1: true, 0: false, 1: false} {
			opts := o(n)
			opts.Dir = "d"
			if _, err := opts.withDefaults(); (err != nil) != wrong {
				t.Errorf("%s of %d: %v", name, n, err)
			}
		}
	}
	for name, c := range map[string]func(n int) ClassOptions{
		"IdleAfter":       func(n int) ClassOptions { return ClassOptions{IdleAfter: time.Duration(n)} },
		"MailboxAge":      func(n int) ClassOptions { return ClassOptions{MailboxAge: time.Duration(n)} },
		"BlockLimit":      func(n int) ClassOptions { return ClassOptions{BlockLimit: time.Duration(n)} },
		"MailboxLimit":    func(n int) ClassOptions { return ClassOptions{MailboxLimit: n} },
		"MaxAlarmCrashes": func(n int) ClassOptions { return ClassOptions{MaxAlarmCrashes: n} },
		"WorkLimit":       func(n int) ClassOptions { return ClassOptions{WorkLimit: WorkLimit{AtOnce: n}} },
	} {
		for n, wrong := range map[int]bool{-1: true, 0: false, 1: false} {
			if err := c(n).validate(); (err != nil) != wrong {
				t.Errorf("%s of %d in a class: %v", name, n, err)
			}
		}
	}
	if _, err := (Options{}).withDefaults(); err == nil {
		t.Error("no directory is no error")
	}
}

// Proves S9: an open-execution mark that is cut off anywhere before its data, or has
// another version, is damage.
func TestDamagedOpenMark(t *testing.T) {
	want := openMark{epoch: 300, at: time.Unix(0, 1<<40), id: storage.ID{Class: "cart", Name: "bob"}, data: []byte("data")}
	whole := encodeOpenMark(want)
	if got, err := decodeOpenMark(whole); err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("%+v, %v", got, err)
	}
	header := len(whole) - len(want.data)
	for n := range len(whole) + 1 {
		if _, err := decodeOpenMark(whole[:n]); errors.Is(err, storage.ErrCorrupt) != (n < header) {
			t.Errorf("the first %d bytes of %d: %v", n, header, err)
		}
	}
	whole[0]++
	if _, err := decodeOpenMark(whole); !errors.Is(err, storage.ErrCorrupt) {
		t.Errorf("another version: %v", err)
	}
}

// Proves A8, S9: the rows of an inquiry are read as they were written, and a part of
// them is damage.
func TestInquiryRowRoundTrip(t *testing.T) {
	a, b := subject{id: storage.ID{Class: "c", Name: "a"}, gen: 3}, subject{id: storage.ID{Class: "c", Name: "b"}, key: "run"}
	for _, want := range []inquiry{
		{phase: holding, epoch: 9, cleared: 5, strays: 2, charges: map[subject]int{}},
		{phase: trying, epoch: 300, cleared: 299, trial: 1, began: time.Unix(7, 5), charges: map[subject]int{b: 2},
			plan: []group{{set: restSet, members: []subject{a}}, {set: 2, members: []subject{b}}}},
		{phase: trying, began: time.Unix(0, 1), charges: map[subject]int{a: 1}, plan: []group{{set: 1, members: []subject{a, b}}}},
	} {
		head, plan := want.appendHead(nil), want.appendPlan(nil)
		var got inquiry
		if err := errors.Join(got.decodeHead(head), got.decodePlan(plan)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("read %+v, %v, want %+v", got, err, want)
		}
		for n := range head {
			if err := new(inquiry).decodeHead(head[:n]); !errors.Is(err, storage.ErrCorrupt) {
				t.Errorf("the first %d bytes of the head: %v", n, err)
			}
		}
		for n := 1; n < len(plan); n++ {
			if err := new(inquiry).decodePlan(plan[:n]); !errors.Is(err, storage.ErrCorrupt) {
				t.Errorf("the first %d bytes of the plan: %v", n, err)
			}
		}
		head[0]++
		plan[0]++
		if err := new(inquiry).decodeHead(head); !errors.Is(err, storage.ErrCorrupt) {
			t.Errorf("another version of the head: %v", err)
		}
		if err := new(inquiry).decodePlan(plan); !errors.Is(err, storage.ErrCorrupt) {
			t.Errorf("another version of the plan: %v", err)
		}
	}
	if err := new(inquiry).decodePlan(nil); err != nil {
		t.Errorf("no plan: %v", err)
	}
}

// Proves A8: merge makes one group of each set. The rest comes first, and then the
// smallest group, whatever the numbers of the sets.
func TestMergeOrdersBySize(t *testing.T) {
	one, two, three := someSubjects("one", 1), someSubjects("two", 2), someSubjects("three", 3)
	got := merge([]group{{1, three}, {2, one[:1]}, {restSet, two[:1]}, {7, two}, {restSet, three[:1]}})
	want := []group{{restSet, []subject{two[0], three[0]}}, {2, one}, {3, two}, {4, three}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// A bucket counts as indexed from the commit of its entry on. Buckets with a removal time
// in the past are forgotten when the next one is added.
func TestBucketsOfMarks(t *testing.T) {
	var b buckets
	for range 2 {
		if b.add(100, 10) {
			t.Error("a bucket is indexed before its entry is")
		}
	}
	b.setIndexed(100)
	b.setIndexed(101) // no member
	if !b.add(100, 10) {
		t.Error("a bucket whose entry is stored is not indexed")
	}
	b.add(50, 10)
	b.add(200, 50)
	if want := []bucket{{50, false}, {100, true}, {200, false}}; !reflect.DeepEqual(b.all, want) {
		t.Errorf("at the removal of one: %v, want %v", b.all, want)
	}
	b.add(300, 101)
	if want := []bucket{{200, false}, {300, false}}; !reflect.DeepEqual(b.all, want) {
		t.Errorf("after the removal of two: %v, want %v", b.all, want)
	}
}

// Proves A8: a group with no member left is passed over, and counted as tried.
func TestTrialsPassOverWhatHasGone(t *testing.T) {
	c := &handClock{now: handZero}
	x, gone := &suspect{subject: subject{gen: 1}}, &suspect{subject: subject{gen: 2}}
	s := &suspects{
		host: &Host{seams: seam.Seams{Clock: c}}, held: map[subject]*suspect{x.subject: x},
		queue: []trial{{members: []*suspect{gone}}, {members: []*suspect{gone, x}, at: handZero}, {members: []*suspect{gone}}},
	}
	s.row.phase = holding
	if do := s.next(); do == nil || s.row.trial != 1 || len(s.queue) != 2 {
		t.Errorf("next is to do something: %v, trial %d, %d groups are left", do != nil, s.row.trial, len(s.queue))
	}
	s.queue[0].at = handZero.Add(1)
	if do := s.next(); do != nil || !reflect.DeepEqual(c.armed(), []time.Duration{1}) {
		t.Errorf("before its time: does something: %v, timers at %v", do != nil, c.armed())
	}
	delete(s.held, x.subject)
	if do := s.next(); do == nil || len(s.queue) != 0 || s.row.trial != 3 {
		t.Errorf("when all have gone: does something: %v, %d groups, trial %d", do != nil, len(s.queue), s.row.trial)
	}
}

// Proves A8: the life of the process before decides how long suspects are held back, and
// how long a trial lasts. The stored row tells which suspects were on trial when that
// process died.
func TestTimesOfTrials(t *testing.T) {
	x := subject{id: storage.ID{Class: "c", Name: "x"}, gen: 1}
	for name, c := range map[string]struct {
		lived, tried    time.Duration // the life of the process before, and of its trial; 0: it had none
		control, window time.Duration
	}{
		"a short life":              {time.Second, 0, 3 * time.Second, 10 * time.Second},
		"a life":                    {time.Minute, 0, 2 * time.Minute, 2 * time.Minute},
		"a long life":               {2 * time.Hour, 0, time.Hour, 10 * time.Minute},
		"a trial in a life":         {time.Minute, 20 * time.Second, 2 * time.Minute, 40 * time.Second},
		"a clock that was set back": {-time.Hour, 0, 3 * time.Second, 10 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			mem := memstore.New()
			first, err := storage.Open(storage.Options{Engine: mem, Shards: 1})
			if err != nil {
				t.Fatal(err)
			}
			q := inquiry{epoch: first.Epoch(), phase: holding, plan: []group{{1, []subject{x}}}, charges: map[subject]int{}}
			if c.tried > 0 {
				q.phase, q.began = trying, time.Now().Add(c.lived-c.tried)
			}
			clock := &handClock{now: first.OpenedAt().Add(c.lived)}
			second, err := storage.Open(storage.Options{Engine: mem.Crash(0), Shards: 1, Seams: seam.Seams{Clock: clock}})
			if err != nil {
				t.Fatal(err)
			}
			var s suspects
			s.begin(&Host{store: second, seams: seam.Seams{Clock: clock}}, q)
			at := second.OpenedAt()
			if gather, control := s.gather.Sub(at), s.control.Sub(at); gather != 3*time.Second || control != c.control || s.window != c.window {
				t.Errorf("%s: held for %v, a charged one for %v, a trial lasts %v; want 3 s, %v, %v", name, gather, control, s.window, c.control, c.window)
			}
			if s.tried[x] != (c.tried > 0) {
				t.Errorf("%s: it was on trial: %v", name, s.tried[x])
			}
			if err := errors.Join(first.Close(), second.Close()); err != nil {
				t.Error(err)
			}
		})
	}
}

// The queue of an object counts its requests, those at the front too.
func TestQueuedIsCounted(t *testing.T) {
	a := &activation{}
	r := func() *Request { return &Request{} }
	for i, do := range []func(){
		func() { a.push(r()) }, func() { a.push(r()) }, func() { a.pushFront(r()) },
	} {
		if do(); int(a.queued) != i+1 {
			t.Fatalf("after %d requests %d are queued", i+1, a.queued)
		}
	}
	for want := 2; want >= 0; want-- {
		if a.pop() == nil || int(a.queued) != want {
			t.Fatalf("%d are queued, want %d", a.queued, want)
		}
	}
	if a.pop() != nil || a.tail != nil {
		t.Error("an empty queue has a request")
	}
	a.pushFront(r())
	a.push(r())
	for range 2 {
		if a.pop() == nil {
			t.Error("a request is lost")
		}
	}
	if a.queued != 0 {
		t.Errorf("%d are queued", a.queued)
	}
}

// The calls that wait are summed over the objects of a class, with the age of the
// oldest.
func TestWaitingOfAClass(t *testing.T) {
	clock := &handClock{now: handZero}
	h, err := Open(Options{Storage: storage.Options{Engine: memstore.New(), Shards: 1}},
		Define("c", func(context.Context, *State) (*struct{}, error) { return new(struct{}), nil }))
	if err != nil {
		t.Fatal(err)
	}
	h.seams.Clock = clock
	c := h.hosted["c"]
	for name, ages := range map[string][]time.Duration{"a": {3 * time.Second, time.Second}, "b": {2 * time.Second}, "c": nil} {
		a, err := c.find(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, age := range ages {
			a.push(&Request{queuedAt: handZero.Add(-age)})
		}
	}
	if calls, age := c.waiting(); calls != 3 || age != 3 {
		t.Errorf("%d calls wait, the oldest for %v s", calls, age)
	}
	if err := h.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

// One timer serves all objects in memory: it is set anew for an object that may leave
// sooner, and the one before is stopped.
func TestOneTimerForIdleObjects(t *testing.T) {
	clock := &handClock{now: handZero}
	l := &lru{host: &Host{seams: seam.Seams{Clock: clock}}}
	armed := func(step string, want ...time.Duration) {
		t.Helper()
		if got := clock.armed(); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: timers at %v, want %v", step, got, want)
		}
	}
	l.plan(time.Minute)
	armed("the first", 30*time.Second)
	l.plan(time.Minute)
	l.plan(time.Hour)
	armed("those that stay longer", 30*time.Second)
	l.plan(time.Second)
	armed("one that may leave sooner", 500*time.Millisecond)
	l.plan(1)
	armed("at least a millisecond", time.Millisecond)
	l.sweeping = true
	for _, asked := range []time.Duration{5, 9, 3} {
		l.plan(asked)
	}
	if l.asked != 3 || len(clock.timers) != 3 {
		t.Errorf("a sweep is asked for %v, %d timers", l.asked, len(clock.timers))
	}
}

// Proves O8: the search for a circle visits each turn once, however many ways lead to it.
func TestSearchVisitsEachTurnOnce(t *testing.T) {
	const turns = 64 // each waits for the next one twice, so there are 2^64 ways
	w := &waits{callers: make(map[*turn]*caller)}
	all := make([]*turn, turns)
	for i := range all {
		all[i] = new(turn)
	}
	for i := range turns - 1 {
		next := awaited{turn: all[i+1]}
		w.callers[all[i]] = &caller{turn: all[i], act: &activation{}, on: []awaited{next, next}}
	}
	if (&search{waits: w, goal: new(turn)}).visit(awaited{turn: all[0]}) {
		t.Error("a way leads to a turn that no turn waits for")
	}
	if !(&search{waits: w, goal: all[turns-1]}).visit(awaited{turn: all[0]}) {
		t.Error("no way leads to the last turn")
	}
}

// Proves R6: the report tells of each suspect that is held back, and of none that is on
// trial.
func TestHeldBackIsReported(t *testing.T) {
	var r loglines.Recorder
	h := &Host{seams: seam.Seams{Clock: &handClock{now: handZero}}, options: Options{Logger: r.Logger()}}
	x := subject{id: storage.ID{Class: "c", Name: "x"}, key: " c/x/7"} // of an execution without a subject
	tried := subject{gen: 2}
	s := &suspects{host: h, busy: true, held: make(map[subject]*suspect), trying: map[subject]bool{tried: true}}
	s.found.charges = map[subject]int{x: 3}
	if !s.hold(&suspect{subject: x}) {
		t.Error("a suspect is not held back")
	}
	if s.hold(&suspect{subject: tried}) {
		t.Error("a suspect is held back while it is on trial")
	}
	lines, total := h.report.last()
	want := Recovery{ID: x.id, At: handZero, Cause: "crashes in a row", Attempt: 3, Action: "held back"}
	if total != 1 || lines[0] != want {
		t.Errorf("the report has %+v, want %+v", lines, want)
	}
	if got, want := r.Text(slog.LevelWarn), `WARN work that may kill its process class=c object=x execution=c/x/7 action=held back charges=3`; got != want {
		t.Errorf("the log says %s, want %s", got, want)
	}
	if len(s.held) != 1 || len(s.late) != 1 {
		t.Errorf("%d are held, %d late", len(s.held), len(s.late))
	}
}

// Proves A8: suspects that come late wait until all trials that are planned are over.
func TestLateSuspectsWaitForTheTrials(t *testing.T) {
	c := &handClock{now: handZero}
	x, late := &suspect{subject: subject{gen: 1}, set: 1}, &suspect{subject: subject{gen: 2}, set: 1}
	s := &suspects{
		host: &Host{seams: seam.Seams{Clock: c}}, held: map[subject]*suspect{x.subject: x, late.subject: late},
		queue: []trial{{members: []*suspect{x}, at: handZero.Add(time.Second)}}, late: []*suspect{late},
	}
	s.row.phase = holding
	if do := s.next(); do != nil || len(s.queue) != 1 || len(s.late) != 1 {
		t.Errorf("while one is planned: does something: %v, %d trials, %d late", do != nil, len(s.queue), len(s.late))
	}
	delete(s.held, x.subject)
	if do := s.next(); do == nil || len(s.queue) != 1 || len(s.late) != 0 || s.queue[0].members[0] != late || !s.stale {
		t.Errorf("after it: does something: %v, %d trials, %d late", do != nil, len(s.queue), len(s.late))
	}
	delete(s.held, late.subject)
	s.stale = false
	if s.next(); s.stale {
		t.Error("a plan of nothing is stored")
	}
}

// onLog is a handler that calls a function at each line.
type onLog struct {
	slog.Handler
	line func()
}

func (h onLog) Enabled(context.Context, slog.Level) bool { return true }
func (h onLog) Handle(context.Context, slog.Record) error {
	h.line()
	return nil
}

// Proves A8, O6: a work is held back at the very moment when its trial begins, or its
// instance ends. The work leaves nothing behind in the list of its instance, and is run
// or given up once.
func TestTrialBeginsWhileAWorkIsHeld(t *testing.T) {
	x := &suspect{subject: subject{id: storage.ID{Class: "c", Name: "x"}, gen: 1}}
	for name, c := range map[string]struct {
		meanwhile func(*suspects, *State)
		ended     bool  // the instance has ended before
		busy      int64 // of the host, which counted the work as busy
	}{
		"trial": {func(s *suspects, _ *State) {
			if !s.remove(x) {
				t.Error("the trial does not find it")
			}
			x.canceller.forget() // as run does
		}, false, 1},
		"end":   {func(_ *suspects, st *State) { st.end(ErrTimeout) }, false, 0},
		"ended": {func(*suspects, *State) {}, true, 0},
	} {
		h := &Host{seams: seam.Seams{Clock: &handClock{now: handZero}}}
		h.lru.init(h)
		s := &h.flightLog.suspects
		s.host, s.busy, s.held = h, true, make(map[subject]*suspect)
		a := &activation{host: h, object: storage.Object{ID: x.subject.id}}
		st := newState(a)
		h.options.Logger = slog.New(onLog{slog.DiscardHandler, func() { c.meanwhile(s, st) }})
		h.lifecycle.busy.Add(1)
		a.holds.Add(1)
		x.routine = &Routine{state: st, suspect: x}
		if c.ended {
			st.end(ErrTimeout)
		}
		if !s.holdRoutine(x.routine) {
			t.Errorf("%s: it is not held back", name)
		}
		if st.cancellers != nil || len(s.held) != 0 || h.lifecycle.busy.Load() != c.busy || int64(a.holds.Load()) != c.busy {
			t.Errorf("%s: listed %v, held %d, busy %d, holds %d", name, st.cancellers != nil, len(s.held), h.lifecycle.busy.Load(), a.holds.Load())
		}
	}
}

// Proves M3.
// Messages on trial come before all other requests, in their order, and after a turn that
// was lent out.
func TestTrialsKeepTheirOrder(t *testing.T) {
	a := &activation{}
	of := &message{}
	trial := func() *Request {
		return &Request{op: &delivery{message: &message{trial: of}}}
	}
	back, call, other, third := &Request{op: handOver{}}, &Request{}, &Request{op: &delivery{message: &message{}}}, trial()
	first, second := trial(), trial()
	a.pushTrial(first) // into an empty queue
	a.push(call)
	a.push(other)
	a.pushTrial(second)
	a.pushFront(back)
	a.pushTrial(third)
	next := trial()
	next.message().trial = next.message()
	a.pushTrial(next) // of a later group
	for i, want := range []*Request{back, next, first, second, third, call, other} {
		if got := a.pop(); got != want {
			t.Errorf("request %d is another one", i)
		}
	}
	if a.queued != 0 || a.head != nil || a.tail != nil {
		t.Errorf("%d are left", a.queued)
	}
}

// An activation takes the memory of 288 bytes, a size in which Go allocates; one byte more would
// take 320, for each live object.
func TestActivationFitsItsSizeClass(t *testing.T) {
	if size := unsafe.Sizeof(activation{}); size > 288 {
		t.Errorf("an activation has %d bytes, more than 288", size)
	}
}
