package shardlogtest

import (
	"context"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// lose puts a shard into quarantine.
func (d *directory) lose(t TB, shard int, where string) {
	t.Helper()
	must(t, "quarantine", func() error { return d.c.Engine.Quarantine(context.Background(), shard, where) })
}

// recovers calls Recover until its outcome is known.
func (d *directory) recovers(shard int, term, before uint64, records ...shardlog.Record) (h shardlog.State, err error) {
	err = again(func() error {
		h, err = d.c.Engine.Recover(context.Background(), shard, term, before, records)
		return err
	})
	return h, err
}

// lost: a quarantine stops the owner and bars claims. The first process to find the loss is heard.
func lost(t TB, d *directory) {
	const where = "record 3 of chain 1f, seen by a node's receipt"
	w := d.claim(t, d.next(), "a")
	w.must(t, "1", "2")
	snapshot := d.of(t, w, "x")
	d.registered(t, w, snapshot)
	d.lose(t, w.Shard, where)
	h := Head(t, d.c.Engine, w.Shard)
	want := w.State
	want.Term, want.Owner, want.Lost = h.Term, "", where
	if h != want || h.Term <= w.State.Term {
		t.Errorf("the head in quarantine is %+v, before it was %+v", h, w.State)
	}
	for _, text := range []string{where, "record 2, seen later"} {
		d.lose(t, w.Shard, text)
		d.headIs(t, w.Shard, h)
	}
	w.fenced(t, "an append in quarantine", w.Record("x"))
	d.refused(t, w.Shard, h.Term)
	if look := d.look(t, w.Shard); look.State != h || look.Late != "" {
		t.Errorf("the look in quarantine shows %+v and late %q, the head is %+v", look.State, look.Late, h)
	}
	d.holds(t, w.Shard, "1", "2")
	d.snapshotsAre(t, w.Shard, snapshot)
	d.list(t, w.Shard, "x")

	exported := d.claim(t, d.next(), "exported 1f")
	d.lose(t, exported.Shard, where)
	if h := Head(t, d.c.Engine, exported.Shard); h.Owner != exported.State.Owner || !h.Exported() {
		t.Errorf("the head of an exported log in quarantine is %+v: the log could be claimed again", h)
	}

	unclaimed := d.next()
	d.lose(t, unclaimed, where)
	d.refused(t, unclaimed, 0)
	d.refused(t, unclaimed, Head(t, d.c.Engine, unclaimed).Term)
	whole := d.claim(t, d.next(), "a")
	err := again(func() error { return d.c.Engine.Quarantine(context.Background(), whole.Shard, "") })
	refusedBy(t, "a quarantine without a place", err, shardlog.ErrRefused)
	whole.must(t, "1")
}

// noteLate notes a loss that was found too late.
func (d *directory) noteLate(t TB, shard int, where string) {
	t.Helper()
	must(t, "note a late loss", func() error { return d.c.Engine.NoteLate(context.Background(), shard, where) })
}

// lateIs compares the note of a shard and its head.
func (d *directory) lateIs(t TB, shard int, want string, head shardlog.State) {
	t.Helper()
	if look := d.look(t, shard); look.Late != want || look.State != head {
		t.Errorf("the look shows late %q and %+v, want %q and %+v", look.Late, look.State, want, head)
	}
	d.headIs(t, shard, head)
}

// late: a late note bars nothing. The first one stays, also through a claim and a quarantine, until it is cleared.
func late(t TB, d *directory) {
	w := d.claim(t, d.next(), "a")
	w.must(t, "1")
	d.noteLate(t, w.Shard, "record 1, an hour ago")
	d.noteLate(t, w.Shard, "record 2, later")
	d.lateIs(t, w.Shard, "record 1, an hour ago", w.State)
	w.must(t, "2")
	d.registered(t, w, d.of(t, w, "x"))
	d.collected(t, w.Shard, w.State.Term)
	b := d.claim(t, w.Shard, "b")
	b.must(t, "3")
	d.lateIs(t, w.Shard, "record 1, an hour ago", b.State)
	d.lateIs(t, d.next(), "", shardlog.State{First: 1})

	h, err := d.recovers(w.Shard, b.State.Term, 0)
	if err != nil || h != b.State {
		t.Errorf("the clearing of a note returned %+v, %v, want %+v", h, err, b.State)
	}
	d.lateIs(t, w.Shard, "", b.State)
	b.must(t, "4") // its owner goes on
	d.noteLate(t, w.Shard, "record 4")
	d.lateIs(t, w.Shard, "record 4", b.State)
	err = again(func() error { return d.c.Engine.NoteLate(context.Background(), w.Shard, "") })
	refusedBy(t, "a note without a place", err, shardlog.ErrRefused)
	d.lose(t, w.Shard, "record 5")
	d.lateIs(t, w.Shard, "record 4", Head(t, d.c.Engine, w.Shard))
}

// loses has an owner append five records in two terms, of which the log loses the last three, and the quarantine for it.
func (d *directory) loses(t TB) (owner *Writer, records []shardlog.Record, h shardlog.State) {
	t.Helper()
	a := d.claim(t, d.next(), "a")
	a.must(t, "1", "2", "3")
	b := d.claim(t, a.Shard, "b")
	b.must(t, "4", "5")
	records = Records(t, d.c.Engine, a.Shard)
	d.rewind(t, a.Shard, 2)
	d.lose(t, a.Shard, "record 5, seen by b")
	h = Head(t, d.c.Engine, a.Shard)
	if h.Last != 2 || h.Chain != records[1].Chain || len(records) != 5 {
		t.Fatalf("the head of a log that has lost records 3 to 5 is %+v", h)
	}
	return b, records, h
}

// rewind loses the records after a position.
func (d *directory) rewind(t TB, shard int, to shardlog.Position) {
	t.Helper()
	if err := d.c.Rewind(shard, to); err != nil {
		t.Fatalf("rewind shard %d to record %d: %v", shard, to, err)
	}
}

// putBack: the records that were lost come back as they were, and the quarantine ends. The owner before stays fenced.
func putBack(t TB, d *directory) {
	b, records, h := d.loses(t)
	d.noteLate(t, b.Shard, "record 1")
	want := h
	want.Last, want.Chain, want.Lost = 5, b.State.Chain, ""
	for range 2 { // the second is a repeat
		got, err := d.recovers(b.Shard, h.Term, h.Chain, records[2:]...)
		if err != nil || got != want {
			t.Fatalf("the recovery returned %+v, %v, want %+v", got, err, want)
		}
		d.lateIs(t, b.Shard, "", want)
	}
	newer := append([]shardlog.Record(nil), records[2:]...)
	newer[2].Term = h.Term
	_, err := d.recovers(b.Shard, h.Term, h.Chain, newer...)
	refusedBy(t, "the recovery again, with the last record in another term", err, shardlog.ErrFenced)
	for i, r := range d.holds(t, b.Shard, "1", "2", "3", "4", "5") {
		if r.Term != records[i].Term {
			t.Errorf("record %d has come back with term %d, it had %d", r.At, r.Term, records[i].Term)
		}
	}
	b.fenced(t, "the owner before the loss", b.Record("x"))
	c := d.claim(t, b.Shard, "c")
	if c.State.Term != h.Term+1 {
		t.Errorf("the claim after the recovery has term %d, the quarantine had %d", c.State.Term, h.Term)
	}
	c.must(t, "6")
	_, err = d.recovers(b.Shard, h.Term, h.Chain, records[2:]...)
	refusedBy(t, "the recovery again after a claim", err, shardlog.ErrFenced)
	d.holds(t, b.Shard, "1", "2", "3", "4", "5", "6")
}

// putBackRefused: records that do not continue the log change nothing, and the quarantine stays.
func putBackRefused(t TB, d *directory) {
	b, records, h := d.loses(t)
	third := records[2]
	changed := func(change func(r *shardlog.Record)) []shardlog.Record {
		r := third
		change(&r)
		return []shardlog.Record{r, records[3]}
	}
	for _, k := range []struct {
		about        string
		term, before uint64
		records      []shardlog.Record
		want         error
	}{
		{"of the term before", h.Term - 1, h.Chain, records[2:], shardlog.ErrFenced},
		{"of the term after", h.Term + 1, h.Chain, records[2:], shardlog.ErrFenced},
		{"without the first", h.Term, third.Chain, records[3:], shardlog.ErrFenced},
		{"with one that the log has", h.Term, records[0].Chain, records[1:], shardlog.ErrFenced},
		{"with a gap", h.Term, h.Chain, []shardlog.Record{third, records[4]}, shardlog.ErrHole},
		{"with the chain of another payload", h.Term, h.Chain, changed(func(r *shardlog.Record) { r.Payload = []byte("x") }), shardlog.ErrHole},
		{"with a term that falls", h.Term, h.Chain, changed(func(r *shardlog.Record) { r.Term = records[3].Term + 1 }), shardlog.ErrHole},
		{"with a term after that of the quarantine", h.Term, h.Chain, []shardlog.Record{{At: 3, Term: h.Term + 1, Chain: third.Chain, Payload: third.Payload}}, shardlog.ErrHole},
		{"after a chain that the log does not end with", h.Term, 7, []shardlog.Record{{At: 3, Term: 1, Chain: shardlog.Next(7, nil)}}, shardlog.ErrFenced},
	} {
		_, err := d.recovers(b.Shard, k.term, k.before, k.records...)
		refusedBy(t, "records "+k.about, err, k.want)
		d.headIs(t, b.Shard, h)
	}
	d.holds(t, b.Shard, "1", "2")

	// The next owner has written the lost record 2 once more, and record 3 would follow it with an older term.
	a := d.claim(t, d.next(), "a")
	a.must(t, "1", "2", "3")
	records = Records(t, d.c.Engine, a.Shard)
	d.rewind(t, a.Shard, 1)
	next := d.claim(t, a.Shard, "b")
	next.must(t, "2")
	d.lose(t, a.Shard, "record 3")
	_, err := d.recovers(a.Shard, next.State.Term+1, next.State.Chain, records[2])
	refusedBy(t, "a record of an older term than the last", err, shardlog.ErrFenced)
	d.holds(t, a.Shard, "1", "2")

	// An owner has appended after the loss and before the quarantine.
	late, records, h := d.loses(t)
	if _, err := d.recovers(late.Shard, h.Term, 0); err != nil {
		t.Fatalf("accept the loss: %v", err)
	}
	_, err = d.recovers(late.Shard, h.Term, h.Chain, records[2:]...)
	refusedBy(t, "records without a quarantine", err, shardlog.ErrFenced)
	c := d.claim(t, late.Shard, "c")
	c.must(t, "other 3")
	d.lose(t, late.Shard, "record 5")
	_, err = d.recovers(late.Shard, c.State.Term+1, h.Chain, records[2:]...)
	refusedBy(t, "records whose places an owner has taken", err, shardlog.ErrFenced)
	d.holds(t, late.Shard, "1", "2", "other 3")
	if got := Head(t, d.c.Engine, late.Shard); got.Lost == "" {
		t.Errorf("the quarantine has ended: %+v", got)
	}
}

// acceptLoss: without records, or with one that was never there, the log goes on from its end. Snapshots that do not belong to it are gone.
func acceptLoss(t TB, d *directory) {
	for _, with := range [][]string{nil, {"3 of the recovery"}} {
		w := d.claim(t, d.next(), "a")
		w.must(t, "1")
		first := d.of(t, w, "a")
		d.registered(t, w, first)
		w.must(t, "2", "3")
		d.registered(t, w, d.of(t, w, "b"))
		w.must(t, "4")
		d.registered(t, w, d.of(t, w, "c"))
		d.rewind(t, w.Shard, 2)
		d.lose(t, w.Shard, "record 4")
		next := &Writer{Log: d.c.Engine, Shard: w.Shard, State: Head(t, d.c.Engine, w.Shard)}
		before, want := next.State.Chain, next.State
		var records []shardlog.Record
		for _, payload := range with {
			r := next.Record(payload)
			records = append(records, r)
			want.Last, want.Chain = r.At, r.Chain
		}
		want.Lost = ""
		for range 2 {
			h, err := d.recovers(w.Shard, want.Term, before, records...)
			if err != nil || h != want {
				t.Fatalf("the recovery returned %+v, %v, want %+v", h, err, want)
			}
		}
		d.headIs(t, w.Shard, want)
		d.snapshotsAre(t, w.Shard, first)
		c := d.claim(t, w.Shard, "c")
		d.collected(t, w.Shard, c.State.Term)
		d.list(t, w.Shard, "a")
		c.must(t, "end")
		d.holds(t, w.Shard, append(append([]string{"1", "2"}, with...), "end")...)
		w.fenced(t, "the owner before the loss", w.Record("x"))
	}
}
