package journal_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/object/journal"
	"github.com/holdfast-dev/holdfast/storage"
)

// older reads the form that a deed had before: a list of key and number.
func older(version int, data []byte) (d deed, err error) {
	if version != 0 {
		return d, fmt.Errorf("version %d is not known", version)
	}
	err = json.Unmarshal(data, &d)
	d.N /= 2 // so that a row that is not upcast, or twice, shows
	return d, err
}

func olderState(version int, data []byte) (s state, err error) {
	if version != 0 {
		return s, fmt.Errorf("version %d is not known", version)
	}
	err = json.Unmarshal(data, &s)
	s.Pad = "up"
	return s, err
}

// twice are deeds as code of version 0 stores them for those of today.
func twice(deeds []deed) (out []deed) {
	for _, d := range deeds {
		d.N *= 2
		out = append(out, d)
	}
	return out
}

// refuses checks that the object does not start, and that its rows stay as they are.
func (d *desk) refuses(want string, o options) {
	d.t.Helper()
	d.deploy(o)
	_, err := d.turn(func(*book, context.Context) (any, error) { return nil, nil })
	if !errors.Is(err, object.ErrConstructor) || !strings.Contains(err.Error(), want) {
		d.t.Errorf("the object started with %v, want %q", err, want)
	}
}

// Proves E3: rows of an older version are brought up, and those with no way up, or of a
// newer version, stop the object with the number and the version of the row. The code that
// can read them finds all rows as they were.
func TestVersions(t *testing.T) {
	d := newDesk(t, options{SnapshotEvery: 3})
	d.each(twice(these(1, 2))...)
	d.refuses("book/b: object: constructor failed: journal: event 1 has version 0, and nothing leads from there to version 1 (Options.Version): set Options.Upcast", options{Version: 1})
	d.refuses("event 1 of version 0: no such deed", options{Version: 1, Upcast: func(int, []byte) (deed, error) { return deed{}, errBad }})
	d.refuses("event 1 of version 0: panic: no such deed", options{Version: 1, Upcast: func(int, []byte) (deed, error) { panic(errBad) }})
	d.deploy(options{Version: 2, Upcast: older, SnapshotEvery: 4})
	d.is(these(1, 2)...)
	d.each(the(3))
	d.is(these(1, 3)...)
	d.refuses("event 3 has version 2, and this code knows versions up to 1 (Options.Version): newer code has written it", options{Version: 1, Upcast: older})
	d.deploy(options{Version: 2, Upcast: older, SnapshotEvery: 4})
	d.each(the(4)) // a snapshot
	d.refuses("snapshot 4 has version 0, and nothing leads from there to version 1 (Options.StateVersion): set Options.UpcastState", options{StateVersion: 1})
	d.deploy(options{StateVersion: 1, Version: 2, UpcastState: olderState, SnapshotEvery: 1})
	d.must(func(b *book, _ context.Context) (any, error) {
		want := folded(these(1, 4)...)
		if want.Pad = "up"; !same(b.j.State(), want) {
			t.Errorf("the snapshot that was brought up is %+v, want %+v", b.j.State(), want)
		}
		return nil, nil
	})
	d.each(the(5))
	d.refuses("snapshot 5 has version 1, and this code knows versions up to 0 (Options.StateVersion): newer", options{Version: 2})
}

// Proves E2 and E3: with all events kept, a snapshot of an older version needs no way up: the
// state is folded anew, under new rules if Apply has such, and stored by the next snapshot.
func TestOldSnapshotsOfAWholeJournalAreFoldedAnew(t *testing.T) {
	d := newDesk(t, options{SnapshotEvery: 2, Keep: -1})
	d.each(these(1, 5)...)
	folds := 0
	loud := func(s state, e deed) (state, error) {
		folds++
		e.Pad = "!"
		return apply(s, e)
	}
	o := options{Apply: loud, SnapshotEvery: 2, Keep: -1, StateVersion: 1}
	d.deploy(o)
	pad := func(want string) {
		t.Helper()
		d.must(func(b *book, ctx context.Context) (any, error) {
			if got := b.j.State().Pad; got != want {
				t.Errorf("the state has %q, want %q", got, want)
			}
			for seq := range uint64(len(want) + 1) {
				if s, err := b.j.At(ctx, seq); err != nil || s.Pad != want[:seq] {
					t.Errorf("as of event %d it has %q, %v", seq, s.Pad, err)
				}
			}
			return nil, nil
		})
	}
	pad("!!!!!")
	d.each(the(6))
	if _, snapshots := d.rows(); !slices.Equal(snapshots, []uint64{2, 4, 6}) {
		t.Error(snapshots)
	}
	d.reset()
	folds = 0
	d.must(func(b *book, _ context.Context) (any, error) { return nil, nil })
	if folds != 0 {
		t.Errorf("%d events were folded after the new snapshot", folds)
	}
	pad("!!!!!!")
	o.Keep = 0
	d.deploy(o)
	d.each(the(7), the(8)) // the first snapshot under the new Keep
	if events, snapshots := d.rows(); len(events) > 0 || !slices.Equal(snapshots, []uint64{8}) {
		t.Errorf("events %v and snapshots %v are left", events, snapshots)
	}
}

// Proves E3: a snapshot that the code cannot read is no base, so the events that Keep asks for
// can be folded at each length of the journal.
func TestOldSnapshotIsNoBase(t *testing.T) {
	d := newDesk(t, options{SnapshotEvery: 2, Keep: -1})
	d.each(these(1, 6)...)
	const keep = 3
	d.deploy(options{SnapshotEvery: 2, Keep: keep, StateVersion: 1})
	for last := uint64(7); last <= 14; last++ {
		d.each(the(int(last)))
		d.must(func(b *book, ctx context.Context) (any, error) {
			for seq := last - keep; seq <= last; seq++ {
				if _, err := b.j.At(ctx, seq); err != nil {
					t.Errorf("of %d events, as of event %d: %v", last, seq, err)
				}
			}
			for e, err := range b.j.Since(ctx, math.MaxUint64) {
				t.Errorf("after the greatest number there is %+v, %v", e, err)
			}
			return nil, nil
		})
	}
	if events, snapshots := d.rows(); len(events) > keep+2 || snapshots[0] < 8 {
		t.Errorf("events %v and snapshots %v are left", events, snapshots)
	}
}

// Proves E3: a row that is missing or damaged is an error that names it.
func TestDamageIsSeen(t *testing.T) {
	for want, harm := range map[string]func(b *book, ctx context.Context) error{
		"event 4 is missing": func(b *book, ctx context.Context) error {
			return b.st.Storage().Remove(ctx, "\x00e/\x00\x00\x00\x00\x00\x00\x00\x04")
		},
		"event 1 is missing": func(b *book, ctx context.Context) error {
			return b.st.Storage().Remove(ctx, "\x00e!\x00\x00\x00\x00\x00\x00\x00\x03")
		},
		"event 5: files are damaged: 01": func(b *book, ctx context.Context) error {
			return b.st.Storage().PutBytes(ctx, "\x00e/\x00\x00\x00\x00\x00\x00\x00\x05", []byte{1})
		},
		"event 5: files are damaged: 0200007b7d": func(b *book, ctx context.Context) error {
			return b.st.Storage().PutBytes(ctx, "\x00e/\x00\x00\x00\x00\x00\x00\x00\x05", []byte{2, 0, 0, '{', '}'})
		},
		"snapshot 3: files are damaged: 01": func(b *book, ctx context.Context) error {
			return b.st.Storage().PutBytes(ctx, "\x00e!\x00\x00\x00\x00\x00\x00\x00\x03", []byte{1, 0, 3})
		},
		`key "\x00e/five" has no sequence number`: func(b *book, ctx context.Context) error {
			return b.st.Storage().PutBytes(ctx, "\x00e/five", nil)
		},
		`key "\x00e!five" has no sequence number`: func(b *book, ctx context.Context) error {
			return b.st.Storage().PutBytes(ctx, "\x00e!five", nil)
		},
	} {
		d := newDesk(t, options{SnapshotEvery: 3})
		d.each(these(1, 5)...)
		d.must(func(b *book, ctx context.Context) (any, error) { return nil, harm(b, ctx) })
		_, _ = d.turn(func(*book, context.Context) (any, error) { panic("on purpose") })
		_, err := d.turn(func(*book, context.Context) (any, error) { return nil, nil })
		if !errors.Is(err, object.ErrConstructor) || !errors.Is(err, storage.ErrCorrupt) || !strings.Contains(err.Error(), want) {
			t.Errorf("the object started with %v, want %q", err, want)
		}
	}
}

// lossy is a codec that loses the field Pad, and cannot encode N 13 nor decode N 14.
type lossy struct{ object.JSON }

func (c lossy) Encode(v any) ([]byte, error) {
	switch d := v.(type) {
	case deed:
		if d.N == 13 {
			return nil, errBad
		}
		d.Pad = ""
		v = d
	case state:
		d.Pad = ""
		v = d
		if d.Events == 13 {
			return nil, errBad
		}
	}
	return c.JSON.Encode(v)
}

func (c lossy) Decode(b []byte, v any) error {
	if err := c.JSON.Decode(b, v); err != nil {
		return err
	}
	if d, ok := v.(*deed); ok && d.N == 14 {
		return errBad
	}
	if s, ok := v.(*state); ok && s.Events == 14 {
		panic(errBad)
	}
	return nil
}

// Proves E1: memory has the state that the rows decode to, so a value that does not survive its
// codec is seen at once. One that cannot be read back is refused and changes nothing.
func TestMemoryIsWhatTheRowsDecodeTo(t *testing.T) {
	d := newDesk(t, options{}, func(o *object.Options) { o.Codec = lossy{} })
	if err := d.append(deed{Key: "1", N: 1, Pad: "lost"}); err != nil {
		t.Fatal(err)
	}
	for n, want := range map[int]string{13: "event 2: encode: no such deed", 14: "event 2 does not decode as it is encoded: no such deed"} {
		if err := d.append(the(n)); !errors.Is(err, errBad) || !strings.Contains(err.Error(), want) {
			t.Error(err)
		}
	}
	d.is(the(1))

	padded := func(s state, e deed) (state, error) {
		e.Pad = "x"
		return apply(s, e)
	}
	d.deploy(options{Apply: padded, SnapshotEvery: 4}, func(o *object.Options) { o.Codec = lossy{} })
	for n := 2; n <= 12; n++ {
		d.each(the(n))
	}
	d.must(func(b *book, _ context.Context) (any, error) {
		if got := b.j.State().Pad; got != "" {
			t.Errorf("after a snapshot memory has %q, which is not stored", got)
		}
		return nil, nil
	})
	d.deploy(options{SnapshotEvery: 1}, func(o *object.Options) { o.Codec = lossy{} })
	if err := d.append(the(20)); err == nil || !strings.Contains(err.Error(), "snapshot 13: encode: no such deed") {
		t.Error(err)
	}
	if err := d.append(these(20, 21)...); err == nil || !strings.Contains(err.Error(), "snapshot 14 does not decode as it is encoded: panic: no such deed") {
		t.Error(err)
	}
	d.is(these(1, 12)...)
}

// total is an object with numbers as events and their sum as its state.
type total struct {
	st *object.State
	j  *journal.Journal[int, int]
}

// FORMAT.md has the bytes of the rows that the code writes.
func TestLayout(t *testing.T) {
	format, err := os.ReadFile("../../FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	class := object.Define("total", func(ctx context.Context, st *object.State) (*total, error) {
		j, err := journal.Attach(ctx, st, journal.Options[int, int]{
			SnapshotEvery: 2, Keep: 2, Version: 3, StateVersion: 5,
			Apply: func(sum, n int) (int, error) { return sum + n, nil },
		})
		return &total{st, j}, err
	})
	rows := object.Handle(class, "rows", func(b *total, ctx context.Context, _ struct{}) (rows []string, err error) {
		for range 3 {
			if err := b.j.Append(ctx, 499, 499); err != nil {
				return nil, err
			}
		}
		for item, err := range b.st.Storage().List(ctx, object.ListOptions{}) {
			if err != nil {
				return nil, err
			}
			rows = append(rows, fmt.Sprintf("`%x` | `%x`", item.Key, item.Value))
		}
		return rows, nil
	})
	harness.Run(t, func(s *harness.Sim) {
		s.Host(class)
		s.Always("the time of the rows", s.Now().Equal(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), s.Now())
		found, err := rows.Call(s.Context(), s, "b", struct{}{})
		s.OK(err)
		s.Always("two snapshots and two events", len(found) == 4, found)
		for _, row := range []string{found[1], found[3]} { // snapshot 6 and event 6
			s.Always("FORMAT.md has the bytes", strings.Contains(string(format), row), row)
		}
	})
}
