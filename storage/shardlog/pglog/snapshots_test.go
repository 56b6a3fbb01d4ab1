package pglog

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/pgtest"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/shardlogtest"
)

// put stores blobs with their names as contents.
func put(t *testing.T, l *Log, shard int, names ...string) {
	t.Helper()
	for _, name := range names {
		must(t, l.Put(context.Background(), shard, name, strings.NewReader(name)))
	}
}

// of is a snapshot at the end of the log of an owner.
func of(w *shardlogtest.Writer, blobs ...string) shardlog.Snapshot {
	return shardlog.Snapshot{Last: w.State.Last, Chain: w.State.Chain, Manifest: []byte("m"), Blobs: blobs}
}

// doing runs a call beside the test.
func doing(call func() error) <-chan result {
	return beside(func() (shardlog.State, error) { return shardlog.State{}, call() })
}

// blobsAre compares the names of the blobs of a shard.
func blobsAre(t *testing.T, l *Log, shard int, want ...string) {
	t.Helper()
	found, err := l.List(context.Background(), shard)
	must(t, err)
	var names []string
	for _, b := range found {
		names = append(names, b.Name)
	}
	if fmt.Sprint(names) != fmt.Sprint(want) {
		t.Errorf("shard %d has the blobs %q, want %q", shard, names, want)
	}
}

// A beat, a look and the forgetting of nodes wait neither for the row of a shard that an append or a registration holds, nor for the standby. A new incarnation waits for the
// standby, because its number must not be given again.
func TestBeatWaitsForNoShard(t *testing.T) {
	pair := shared(t)
	l := open(t, options(t, pair))
	ctx := context.Background()
	w := shardlogtest.Claim(t, l, 0, "a")
	put(t, l, 0, "x")
	first, err := l.Beat(ctx, 0, shardlog.Node{ID: "n"})
	must(t, err)
	n := first.Nodes[0]
	record := w.Record("1")
	for purpose, call := range map[string]func() error{
		"append": func() error { return l.Append(ctx, 0, w.State.Chain, record) },
		"read":   func() error { return l.Register(ctx, 0, w.State.Term, shardlog.Snapshot{Blobs: []string{"x"}}) },
	} {
		thaw := frozen(t, pair.Standby)
		done := doing(call)
		backends(t, pair.Primary, purpose, "SyncRep", 1)
		n.Beat++
		look, err := l.Beat(ctx, 0, n)
		if err != nil || len(look.Nodes) != 1 || look.Nodes[0] != n {
			t.Errorf("the beat beside a call of %s: %+v, %v", purpose, look, err)
		}
		if look, err := l.Look(ctx, 0); err != nil || len(look.Nodes) != 1 || look.Nodes[0] != n {
			t.Errorf("the look beside a call of %s: %+v, %v", purpose, look, err)
		}
		select {
		case r := <-done:
			t.Errorf("the call of %s has returned without the standby: %v", purpose, r.err)
		default:
		}
		thaw()
		if r := <-done; r.err != nil {
			t.Errorf("the call of %s: %v", purpose, r.err)
		}
	}
	_, err = l.Beat(ctx, 0, shardlog.Node{ID: "m"})
	must(t, err)
	other := open(t, l.o)
	thaw := frozen(t, pair.Standby)
	begun := doing(func() error { _, err := l.Beat(ctx, 0, shardlog.Node{ID: "m"}); return err })
	backends(t, pair.Primary, "beat", "SyncRep", 1)
	must(t, other.Forget(ctx, 0)) // waits for no beat
	if look, err := other.Look(ctx, 0); err != nil || len(look.Nodes) != 1 || look.Nodes[0].ID != "m" {
		t.Errorf("beside the first beat of m there are %+v: %v", look.Nodes, err)
	}
	thaw()
	if r := <-begun; r.err != nil {
		t.Errorf("the first beat: %v", r.err)
	}
}

// A registration that waits for a collection sees what that has removed, and a collection that waits for a registration sees its snapshot.
func TestCollectAndRegisterWaitForEachOther(t *testing.T) {
	pair := shared(t)
	o := options(t, pair)
	l, other := open(t, o), open(t, o)
	ctx := context.Background()
	w := shardlogtest.Claim(t, l, 0, "a")
	must(t, w.Append("1"))
	term := w.State.Term
	register := func(log *Log, name string) func() error {
		return func() error { return log.Register(ctx, 0, term, of(w, name)) }
	}
	collect := func(log *Log) func() error { return func() error { return log.Collect(ctx, 0, term) } }
	after := func(first, second func() error) (firstErr, secondErr error) {
		t.Helper()
		thaw := frozen(t, pair.Standby)
		holds := doing(first)
		backends(t, pair.Primary, "%", "SyncRep", 1) // a claim has another connection
		waits := doing(second)
		backends(t, pair.Primary, "read", "Lock", 1)
		thaw()
		return (<-holds).err, (<-waits).err
	}

	put(t, l, 0, "x", "left")
	if err, next := after(register(l, "x"), collect(other)); err != nil || next != nil {
		t.Errorf("the registration: %v, and the collection behind it: %v", err, next)
	}
	blobsAre(t, l, 0, "x")

	put(t, l, 0, "y")
	if err, next := after(collect(l), register(other, "y")); err != nil || !errors.Is(next, shardlog.ErrMissing) {
		t.Errorf("the collection: %v, and the registration behind it: %v, want ErrMissing", err, next)
	}
	blobsAre(t, l, 0, "x")
	if found, err := l.Snapshots(ctx, 0); err != nil || len(found) != 1 || found[0].Blobs[0] != "x" {
		t.Errorf("the snapshots are %+v, %v", found, err)
	}

	if err, next := after(func() error { _, err := l.Claim(ctx, 0, "b", term); return err }, register(other, "x")); err != nil || !errors.Is(next, shardlog.ErrFenced) {
		t.Errorf("the claim: %v, and the registration of the owner before: %v, want ErrFenced", err, next)
	}
}

// durably are the calls that return only when the standby has what they have done, in an order in which each can be made, and made again.
func durably(l *Log) []struct {
	name, purpose string
	call          func(ctx context.Context) error
} {
	base := shardlog.Snapshot{Last: 1, Chain: 7}
	return []struct {
		name, purpose string
		call          func(ctx context.Context) error
	}{
		{"Begin", "read", func(ctx context.Context) error { return l.Begin(ctx, 0, base) }},
		{"Register", "read", func(ctx context.Context) error {
			return l.Register(ctx, 1, 1, shardlog.Snapshot{Manifest: []byte("m")})
		}},
		{"Collect", "read", func(ctx context.Context) error { return l.Collect(ctx, 1, 1) }},
		{"Quarantine", "read", func(ctx context.Context) error { return l.Quarantine(ctx, 2, "record 1") }},
		{"NoteLate", "read", func(ctx context.Context) error { return l.NoteLate(ctx, 2, "record 1") }},
		{"Recover", "read", func(ctx context.Context) error { _, err := l.Recover(ctx, 2, 1, 0, nil); return err }},
		{"first Beat", "beat", func(ctx context.Context) error { _, err := l.Beat(ctx, 0, shardlog.Node{ID: "n"}); return err }},
	}
}

// A wait for the standby that is cancelled leaves each durable call unknown, and so does a setting that has changed.
func TestDurableCallsOfTheDirectory(t *testing.T) {
	pair := shared(t)
	l := open(t, options(t, pair))
	ctx := context.Background()
	shardlogtest.Claim(t, l, 1, "a")
	for _, k := range durably(l) {
		thaw := frozen(t, pair.Standby)
		done := doing(func() error { return k.call(ctx) })
		pid := backends(t, pair.Primary, k.purpose, "SyncRep", 1)
		ask(t, pair.Primary, `select pg_cancel_backend($1)`, pid)
		if r := <-done; !errors.Is(r.err, shardlog.ErrUnknown) {
			t.Errorf("a cancelled wait of %s: %v, want ErrUnknown", k.name, r.err)
		}
		again := doing(func() error { return k.call(ctx) })
		backends(t, pair.Primary, k.purpose, "SyncRep", 1) // a repeat with nothing to do waits too
		thaw()
		if r := <-again; r.err != nil {
			t.Errorf("%s again: %v", k.name, r.err)
		}
	}
	set(t, pair.Primary, "synchronous_standby_names", "")
	for _, k := range durably(l) {
		if err := k.call(ctx); !errors.Is(err, shardlog.ErrUnknown) || !strings.Contains(err.Error(), "synchronous_standby_names is empty") {
			t.Errorf("%s without a standby: %v, want ErrUnknown", k.name, err)
		}
	}
	if _, err := l.Beat(ctx, 0, shardlog.Node{ID: "n", Incarnation: 1 << 40}); err != nil {
		t.Errorf("a beat without a standby: %v", err)
	}
	must(t, l.Put(ctx, 1, "x", strings.NewReader("x")))
}

// cutting is a log behind a proxy that cuts, and one that is not.
func cutting(t *testing.T) (p *pgtest.Proxy, behind, direct *Log) {
	t.Helper()
	pair := shared(t)
	p, err := pgtest.NewProxy(pair.Primary)
	must(t, err)
	t.Cleanup(p.Close)
	o := options(t, pair)
	direct = open(t, o)
	o.DSN = pgtest.DSN(p.Port)
	return p, open(t, o), direct
}

// The answers to Register, Begin and Recover are cut off before and after PostgreSQL has done them. Each is unknown, is done or not as a
// whole, and its repeat succeeds and changes nothing more.
func TestCutAnswersOfTheDirectory(t *testing.T) {
	ctx := context.Background()
	for about, moment := range map[string]pgtest.Moment{"before": pgtest.Before, "after": pgtest.After} {
		p, l, direct := cutting(t)
		w := shardlogtest.Claim(t, direct, 0, "a")
		must(t, w.Append("1"))
		put(t, direct, 0, "x")
		put(t, direct, 1, "x")
		lost := shardlogtest.Claim(t, direct, 2, "a")
		var records []shardlog.Record
		for _, payload := range []string{"1", "2"} { // the log never gets them, so it has lost them
			r := lost.Record(payload)
			lost.State.Last, lost.State.Chain = r.At, r.Chain
			records = append(records, r)
		}
		must(t, direct.Quarantine(ctx, 2, "record 2"))
		base := shardlog.Snapshot{Last: 1, Chain: 7, Blobs: []string{"x"}}
		snapshots := func(shard int) func() bool {
			return func() bool {
				found, err := direct.Snapshots(ctx, shard)
				must(t, err)
				return len(found) == 1
			}
		}
		for _, k := range []struct {
			name, text string // of the last statement
			call       func() error
			done       func() bool
		}{
			{"Register", "exists (select from place)", func() error { return l.Register(ctx, 0, w.State.Term, of(w, "x")) }, snapshots(0)},
			{"Begin", "exists (select from fresh)", func() error { return l.Begin(ctx, 1, base) }, snapshots(1)},
			{"Recover", "s.last + 1 <> p.first", func() error { _, err := l.Recover(ctx, 2, lost.State.Term+1, 0, records); return err },
				func() bool { return len(shardlogtest.Records(t, direct, 2)) == 2 }},
		} {
			before := p.Done()
			p.Cut(moment, map[string]int{k.text: 1})
			if err := k.call(); !errors.Is(err, shardlog.ErrUnknown) {
				t.Errorf("%s, cut %s it was done: %v, want ErrUnknown", k.name, about, err)
			}
			if p.Done() != before+1 {
				t.Fatalf("no statement of %s was cut", k.name)
			}
			if k.done() != (moment == pgtest.After) {
				t.Errorf("%s, cut %s it was done: done is %t", k.name, about, k.done())
			}
			for range 2 {
				if err := k.call(); err != nil || !k.done() {
					t.Errorf("%s again, cut %s it was done: %v", k.name, about, err)
				}
			}
		}
		if h := shardlogtest.Head(t, direct, 2); h.Last != 2 || h.Lost != "" || h.Term != lost.State.Term+1 {
			t.Errorf("after the recovery the head is %+v", h)
		}
	}
}
