package object_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// desk is an object that numbers the letters that it sends to each other desk, and keeps
// the numbers of those that it gets, by sender.
type desk struct {
	st *object.State
	deskState
}

type deskState struct {
	Sent map[string]int   // to each receiver
	Got  map[string][]int // the letters of each sender, in order
	// Delayed is how many delayed letters the desk has sent, and Early how many it has got
	// before their time.
	Delayed, Early int
	Odd            []int // letters of the kinds that fail for some time, and delayed ones
}

// letter is what desks send.
type letter struct {
	From string
	N    int
	Kind string
	Not  time.Time // before which it must not be handled
}

// post asks a desk to send letters.
type post struct {
	To    string
	Kinds []string
}

// office is a class of desks.
type office struct {
	s     *harness.Sim
	desks *object.Class[desk]
	get   *object.Method[letter, int]
	later *object.Method[letter, int] // a version of the program has it, and another has not
	send  *object.Method[post, int]
	// annex is a class of desks that a version of the program has, and another has not.
	annex    *object.Class[desk]
	annexGet *object.Method[letter, int]
}

// lettersDelay is how long delayed letters wait.
const lettersDelay = 20 * time.Second

// newDesk is the constructor of desks.
func newDesk(ctx context.Context, st *object.State) (*desk, error) {
	d := &desk{st: st, deskState: deskState{Sent: map[string]int{}, Got: map[string][]int{}}}
	_, err := st.Storage().GetInto(ctx, "desk", &d.deskState)
	return d, err
}

func newOffice(s *harness.Sim, withLater bool) *office {
	o := &office{s: s, desks: object.Define("desk", newDesk, exactly(10)), annex: object.Define("annex", newDesk, exactly(10))}
	o.annexGet = object.Handle(o.annex, "get", o.receive)
	o.get = object.Handle(o.desks, "get", o.receive)
	later := o.desks
	if !withLater {
		later = object.Define("desk", func(context.Context, *object.State) (*desk, error) { return nil, nil })
	}
	o.later = object.Handle(later, "later", o.receive)
	o.send = object.Handle(o.desks, "send", func(d *desk, ctx context.Context, p post) (int, error) {
		for _, kind := range p.Kinds {
			d.Sent[p.To]++
			get, to := o.get, p.To
			if kind == "later" {
				get = o.later
			}
			l := letter{From: d.st.Name(), N: d.Sent[p.To], Kind: kind}
			var opts []object.CallOption
			if strings.HasPrefix(kind, "delayed") {
				d.Sent[p.To], d.Delayed = d.Sent[p.To]-1, d.Delayed+1
				l.Not = d.st.Now().Add(lettersDelay)
				opts = append(opts, object.After(lettersDelay))
			}
			switch kind {
			case "delayed, to later code":
				get = o.later
			case "delayed, to the annex":
				get = o.annexGet
			}
			if err := get.Send(ctx, d.st, to, l, opts...); err != nil {
				return 0, err
			}
		}
		return 0, d.store(ctx)
	})
	return o
}

func (d *desk) store(ctx context.Context) error { return d.st.Storage().Put(ctx, "desk", d.deskState) }

// receive handles a letter as its kind says.
func (o *office) receive(d *desk, ctx context.Context, l letter) (int, error) {
	if d.st.Now().Before(l.Not) {
		d.Early++
	}
	late := d.st.Now().Before(storiesBegin.Add(15 * time.Second))
	switch {
	case l.Kind == "fails" && d.st.Now().Before(storiesBegin.Add(5*time.Second)), l.Kind == "fails after a write" && late:
		if l.Kind != "fails" {
			d.Odd = append(d.Odd, l.N)
			if err := d.store(ctx); err != nil {
				return 0, err
			}
		}
		return 0, errOnPurpose
	case l.Kind == "pauses" && late:
		return 0, object.ErrOverloaded
	case l.Kind == "holds":
		if err := o.s.SleepContext(ctx, 5*time.Second); err != nil {
			return 0, err
		}
	case l.Kind == "syncs":
		if err := errors.Join(d.st.Storage().Put(ctx, "synced", l.N), d.st.Sync(ctx)); err != nil {
			return 0, err
		}
		if err := d.st.Release(ctx, func(ctx context.Context) error { return o.s.SleepContext(ctx, time.Second) }); err != nil {
			return 0, err
		}
	}
	if l.Kind == "fails" || l.Kind == "fails after a write" || strings.HasPrefix(l.Kind, "delayed") {
		d.Odd = append(d.Odd, l.N)
		return 0, d.store(ctx)
	}
	d.Got[l.From] = append(d.Got[l.From], l.N)
	return 0, d.store(ctx)
}

// storiesBegin is the time at which simulations begin.
var storiesBegin = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// post sends letters, once, also if the process dies meanwhile.
func (o *office) post(key, from, to string, kinds ...string) {
	o.s.OK(o.s.Retry(func() error {
		_, err := o.send.Call(o.s.Context(), o.s, from, post{to, kinds}, object.Idempotent(key, 24*time.Hour))
		return err
	}))
}

// plain is n letters that fail nowhere.
func plain(n int) []string { return make([]string, n) }

// eachDesk calls f with each stored desk.
func eachDesk(st *storage.Store, f func(name string, d deskState)) error {
	var bad error
	each := func(o storage.Object) bool {
		var d deskState
		if _, bad = harness.Stored(st, o.ID, "desk", &d); bad != nil {
			return false
		}
		f(o.ID.Name, d)
		return true
	}
	err := errors.Join(st.Objects("desk", "", each), st.Objects("annex", "", each))
	return errors.Join(err, bad)
}

// accounted checks that each letter that was sent has arrived or is under way.
func accounted(st *storage.Store) error {
	sent, got, early := 0, 0, 0
	err := eachDesk(st, func(_ string, d deskState) {
		for _, n := range d.Sent {
			sent += n
		}
		for _, all := range d.Got {
			got += len(all)
		}
		sent, got, early = sent+d.Delayed, got+len(d.Odd), early+d.Early
	})
	n, more := underWay(st)
	if err = errors.Join(err, more); err == nil && early > 0 {
		err = fmt.Errorf("%d letters came before their time", early)
	}
	if err == nil && sent != got+n {
		err = fmt.Errorf("%d letters were sent, %d have arrived, and %d are under way", sent, got, n)
	}
	return err
}

// letters are the letters that each desk has got of each other one.
func letters(st *storage.Store) (map[string][]int, error) {
	lists := make(map[string][]int)
	err := eachDesk(st, func(name string, d deskState) {
		for from, all := range d.Got {
			lists[from+" to "+name] = all
		}
	})
	return lists, err
}

// story crashes a scenario at each point and pair of points, over a map and over Pebble, and
// at random.
func story(t *testing.T, budget int, faults harness.Faults, scenario harness.Scenario) {
	t.Helper()
	checks := []harness.Option{
		harness.NoLostAck, harness.NoTornBatch, harness.NoLostMessage, harness.Invariant("letters", accounted),
		harness.Ordered(letters), harness.AllowFaults(faults),
	}
	with := func(o ...harness.Option) []harness.Option {
		return slices.Concat(checks, []harness.Option{crashes.Budget(budget)}, o)
	}
	t.Run("map", func(t *testing.T) { harness.Exhaust(t, scenario, with(harness.Depth(2))...) })
	t.Run("pebble", func(t *testing.T) { harness.Exhaust(t, scenario, with(harness.PebbleStore())...) })
	t.Run("random", func(t *testing.T) {
		harness.Check(t, func(s *harness.Sim, _ *rapid.T) { scenario(s) }, checks...)
	})
}

// arrived checks at the end how many letters the pair has passed on, and how many odd ones.
func (o *office) arrived(from, to string, want, odd int) {
	o.arrivedAt(o.desks.ID(to), from, want, odd)
}

// arrivedAt is arrived for a desk of any class.
func (o *office) arrivedAt(to storage.ID, from string, want, odd int) {
	o.s.Finally("all have arrived at "+to.String(), func() error {
		var d deskState
		if _, err := harness.Stored(o.s.Store(), to, "desk", &d); err != nil {
			return err
		}
		if len(d.Got[from]) != want || len(d.Odd) != odd {
			return fmt.Errorf("%s has %v of %s and %v", to, d.Got[from], from, d.Odd)
		}
		return nil
	})
}

// Proves M1, M2, M4. Cases MS1, MS2, MS3: a chain of ten messages, crashed everywhere.
func TestMessageChainAcrossCrashes(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		p := newWallets()
		s.Host(p.class)
		s.OK(s.Retry(func() error {
			_, err := p.pay.Call(s.Context(), s, "a", payment{"b", 10, 9}, object.Idempotent("1", time.Hour))
			return err
		}))
		s.Advance(time.Minute)
	}, harness.NoLostAck, harness.NoTornBatch, harness.NoLostMessage, harness.Invariant("no money is made or lost", balanced), crashes.Budget(storyPlans),
		harness.AllowFaults(harness.Faults{LateMessage: 2, FailCommit: 1}))
}

// storyPlans is how many plans each story tries on each store.
const storyPlans = 300

// Proves M2, M3, M5. Case MS4: a letter that fails for some time, and one that fails after a
// write, with five behind them. A second delivery of a retry changes nothing.
func TestFailingMessageAcrossCrashes(t *testing.T) {
	story(t, storyPlans, harness.Faults{DupMessage: 2, LateMessage: 1}, failingLetters)
}

func failingLetters(s *harness.Sim) {
	o := newOffice(s, true)
	s.Host(o.desks)
	o.post("1", "a", "b", "fails")
	o.post("2", "c", "b", "fails after a write")
	o.post("3", "d", "b", plain(5)...)
	s.Advance(8 * time.Second)
	o.post("4", "e", "b", "holds") // so that both deliveries of a retry wait for the desk
	s.Advance(3 * time.Minute)
	o.arrived("d", "b", 5, 2)
}

// Proves M3. A failure that is not the handler's keeps the order across crashes.
func TestPausedReceiverAcrossCrashes(t *testing.T) {
	story(t, storyPlans, harness.Faults{LateMessage: 2}, func(s *harness.Sim) {
		o := newOffice(s, true)
		s.Host(o.desks)
		o.post("1", "a", "b", "pauses", "", "pauses", "")
		o.post("2", "a", "b", plain(2)...)
		s.Advance(3 * time.Minute)
		o.arrived("a", "b", 6, 0)
	})
}

// Proves M3, M6. Case MS5: letters to a class and to a method that come back in a later
// process.
func TestMessagesToCodeThatComesBack(t *testing.T) {
	story(t, storyPlans, harness.Faults{}, func(s *harness.Sim) {
		o := newOffice(s, false)
		p := newWallets()
		s.Host(o.desks)
		o.post("1", "a", "b", "later", "")
		s.Advance(time.Minute)
		newer := newOffice(s, true)
		s.Restart(harness.WithCode(newer.desks, p.class))
		newer.post("2", "a", "b", plain(2)...)
		s.Advance(3 * time.Minute)
		newer.arrived("a", "b", 4, 0)
	})
}

// Proves M2, O7: a handler with a Sync and a Release in its middle; those behind it pass
// during the Release, so they come from other desks.
func TestMessageWithSyncAcrossCrashes(t *testing.T) {
	story(t, storyPlans, harness.Faults{}, func(s *harness.Sim) {
		o := newOffice(s, true)
		s.Host(o.desks)
		o.post("1", "a", "b", "syncs")
		o.post("2", "c", "b", plain(3)...)
		s.Advance(time.Minute)
		o.post("3", "d", "b", "syncs")
		s.Advance(time.Minute)
		o.arrived("a", "b", 1, 0)
		o.arrived("d", "b", 1, 0)
	})
}

// Proves M3, M7: a backlog of 200 letters to one desk, of which at most 64 are under way.
func TestBacklogAcrossCrashes(t *testing.T) {
	story(t, 60, harness.Faults{}, func(s *harness.Sim) {
		o := newOffice(s, true)
		s.Host(o.desks)
		for i := range 4 {
			o.post(fmt.Sprint(i), fmt.Sprint("a", i%2), "b", plain(50)...)
		}
		s.Advance(time.Minute)
		o.arrived("a0", "b", 100, 0)
		o.arrived("a1", "b", 100, 0)
	})
}

// Proves M3, S12: commits of many senders against a reader at the end of its backlog, with
// tasks that switch at points.
func TestManySendersAgainstAReader(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed+1), func(t *testing.T) {
			harness.Exhaust(t, manySenders, harness.Seed(seed+1), crashes.Budget(100), harness.AllowFaults(harness.Faults{LateMessage: 4}),
				harness.NoLostAck, harness.NoTornBatch, harness.NoLostMessage, harness.Invariant("letters", accounted), harness.Ordered(letters))
		})
	}
}

func manySenders(s *harness.Sim) {
	o := newOffice(s, true)
	s.Host(o.desks)
	for i := range 4 {
		s.Go(fmt.Sprint("client ", i), func() {
			for j := range 3 {
				o.post(fmt.Sprint(i, ".", j), fmt.Sprint("a", i), "b", plain(1+j)...)
			}
		})
	}
	s.Advance(time.Minute)
	for i := range 4 {
		o.arrived(fmt.Sprint("a", i), "b", 6, 0)
	}
}
