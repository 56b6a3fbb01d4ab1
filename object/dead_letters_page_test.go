package object_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// storeLetters stores letters behind the back of the host, in one commit.
func (f *fixture) storeLetters(all ...object.DeadLetter) {
	f.t.Helper()
	s := f.host.Store()
	var b storage.Batch
	for _, d := range all {
		text := fmt.Sprintf(`{"kind":%q,"died":%q,"reason":%q,"lastError":%q,"stack":%q}`,
			d.Kind, d.Died.Format(time.RFC3339Nano), d.Reason, d.LastError, d.Stack)
		b.SetDead(s.ShardOf(d.ID), d.ID, d.Seq, []byte(text))
	}
	if _, err := s.Commit(&b); err != nil {
		f.t.Fatal(err)
	}
}

// dead lists the letters that the options mean, over all pages, and counts the pages.
func (f *fixture) dead(o object.DeadLettersOptions) (all []object.DeadLetter, pages int) {
	f.t.Helper()
	for more := true; more; more = len(o.After) > 0 {
		page, err := f.host.DeadLetters(context.Background(), o)
		if err != nil {
			f.t.Fatal(err)
		}
		if o.Limit > 0 && len(page.Letters) > o.Limit {
			f.t.Errorf("A11: a page has %d letters, the limit is %d", len(page.Letters), o.Limit)
		}
		all, o.After, pages = append(all, page.Letters...), page.Next, pages+1
	}
	return all, pages
}

// Proves A11: a list has the letters that all of its filters mean, with both bounds of the
// time, in pages of any size.
func TestDeadLettersByFilter(t *testing.T) {
	f := newFixture(t).open()
	defer f.close()
	noon := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	var all []object.DeadLetter
	for i, kind := range []string{object.DeadAlarm, object.DeadMessage, "task"} {
		for k, reason := range []string{"retries used up", "retries", "permanent error"} {
			for m, text := range []string{"no such street", "no", ""} {
				for d := range 3 {
					all = append(all, object.DeadLetter{
						ID:  storage.ID{Class: []string{"thing", "other"}[m%2], Name: []string{"a", "b"}[d%2]},
						Seq: uint64(len(all) + 1), Kind: kind, Reason: reason, LastError: text, Died: noon.Add(time.Duration(i+k+d) * time.Second),
					})
				}
			}
		}
	}
	f.storeLetters(all...)
	times := []time.Time{{}, noon, noon.Add(time.Second), noon.Add(5 * time.Second), noon.Add(time.Hour)}
	for _, where := range [][2]string{{}, {"thing"}, {"thing", "b"}, {"other", "a"}, {"none"}} {
		for _, kind := range []string{"", "alarm", "task", "tas"} {
			for _, texts := range [][2]string{{}, {"retries"}, {"retries used", "no"}, {"", "no such"}, {"used"}} {
				for i, since := range times {
					before := times[(i+1)%len(times)]
					o := object.DeadLettersOptions{Class: where[0], Name: where[1], Kind: kind, Reason: texts[0], Error: texts[1], DiedSince: since, DiedBefore: before}
					var want []uint64
					for _, d := range all {
						if (o.Class == "" || d.ID.Class == o.Class) && (o.Name == "" || d.ID.Name == o.Name) && (kind == "" || kind == d.Kind) &&
							strings.HasPrefix(d.Reason, o.Reason) && strings.HasPrefix(d.LastError, o.Error) &&
							(since.IsZero() || !d.Died.Before(since)) && (before.IsZero() || d.Died.Before(before)) {
							want = append(want, d.Seq)
						}
					}
					o.Limit = 1 + i*20
					var got []uint64
					found, _ := f.dead(o)
					for _, d := range found {
						got = append(got, d.Seq)
					}
					slices.Sort(got)
					if !slices.Equal(got, want) {
						t.Fatalf("A11: %+v: %v, want %v", o, got, want)
					}
				}
			}
		}
	}
}

// Proves A11: a page reads 4,096 letters at most, also if none passes the filter, and the next
// one goes on behind them. Without a limit it has 100.
func TestPageOfDeadLettersReadsABoundedNumber(t *testing.T) {
	f := newFixture(t).open()
	defer f.close()
	var all []object.DeadLetter
	for i := range 4096 {
		all = append(all, object.DeadLetter{ID: f.id("a"), Seq: uint64(i + 1), Kind: "task", Reason: "common"})
	}
	f.storeLetters(all...)
	rare := object.DeadLettersOptions{Class: "thing", Name: "a", Reason: "rare"}
	// The last letter that is read may be the last of all, so there is a second page, without letters.
	if found, pages := f.dead(rare); len(found) != 0 || pages != 2 {
		t.Errorf("A11: %d letters in %d pages among 4,096", len(found), pages)
	}
	f.storeLetters(object.DeadLetter{ID: f.id("a"), Seq: 4097, Kind: "task", Reason: "rare"})
	page, err := f.host.DeadLetters(context.Background(), rare)
	if err != nil || len(page.Letters) != 0 || len(page.Next) == 0 {
		t.Errorf("A11: the first page has %d letters and the cursor %x, %v", len(page.Letters), page.Next, err)
	}
	if found, pages := f.dead(rare); len(found) != 1 || pages != 2 {
		t.Errorf("A11: %d letters in %d pages among 4,097", len(found), pages)
	}
	for limit, want := range map[int]int{0: 100, 1: 1, 1000: 1000} {
		page, err := f.host.DeadLetters(context.Background(), object.DeadLettersOptions{Limit: limit})
		if err != nil || len(page.Letters) != want || len(page.Next) == 0 {
			t.Errorf("A11: a page of %d has %d letters, %v", limit, len(page.Letters), err)
		}
	}
	if _, pages := f.dead(object.DeadLettersOptions{Limit: 1000}); pages != 5 {
		t.Errorf("A11: 4,097 letters take %d pages of 1,000", pages)
	}
}

// Proves A11: a page of large letters reads 16 MiB and the letter that passes that, so Inspect holds no more either.
func TestPageOfLargeDeadLetters(t *testing.T) {
	const large = 4 << 20
	for less, want := range []int{4, 5} { // four letters reach 16 MiB, or miss one byte
		f := newFixture(t).open()
		for i := range 6 {
			text := `{"kind":"task"}` + strings.Repeat(" ", large)
			size := large
			if i == 3 {
				size -= less
			}
			f.storeDead("a", uint64(i+1), text[:size])
		}
		page, err := f.host.DeadLetters(context.Background(), object.DeadLettersOptions{})
		if err != nil || len(page.Letters) != want || len(page.Next) == 0 {
			t.Errorf("A11: a page has %d letters of 4 MiB, %v, want %d", len(page.Letters), err, want)
		}
		if in, err := f.host.Inspect(context.Background(), f.id("a")); err != nil || len(in.DeadLetters) != want {
			t.Errorf("A11: Inspect has %d letters of 4 MiB, %v, want %d", len(in.DeadLetters), err, want)
		}
		f.close()
	}
}

// Proves O15, A11: pages go on where the page before ended when the process dies between them,
// at any point: each object and each letter is in one page.
func TestPagesAfterACrashAtEveryPoint(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		class := object.Define("c", func(_ context.Context, st *object.State) (*tally, error) { return &tally{st}, nil })
		set := object.Handle(class, "set", func(c *tally, ctx context.Context, label string) (int, error) {
			_, err := c.st.Driver().Bury(ctx, lost(`"`+label+`"`))
			return 0, errors.Join(err, c.st.Storage().Put(ctx, "k", label), c.st.Driver().SetLabel(ctx, label))
		})
		s.Host(class)
		call := func(name, label string) {
			s.OK(s.Retry(func() error {
				_, err := set.Call(s.Context(), s, name, label, object.Idempotent(label, time.Hour))
				return err
			}))
		}
		var names, letters []string
		objects, dead := object.ObjectsOptions{Label: "failed", Limit: 2}, object.DeadLettersOptions{Class: "c", Limit: 2}
		page := func() (more bool) {
			var found []object.ObjectInfo
			var gone object.DeadLetterPage
			s.OK(s.Retry(func() error {
				return s.WithHost(func(ctx context.Context, h *object.Host) (err error) {
					if found, err = h.Objects(ctx, "c", objects); err == nil {
						gone, err = h.DeadLetters(ctx, dead)
					}
					return err
				})
			}))
			for _, o := range found {
				names, objects.After = append(names, o.ID.Name), o.ID.Name
			}
			for _, d := range gone.Letters {
				letters = append(letters, fmt.Sprint(d.ID.Name, d.Seq))
			}
			if len(gone.Next) > 0 {
				dead.After = gone.Next
			}
			return len(gone.Next) > 0
		}
		for _, name := range []string{"a", "b", "c", "d"} {
			call(name, "failed")
		}
		page()
		call("b", "paused") // it was listed
		call("z", "failed") // it is listed later
		for page() {
		}
		slices.Sort(letters)
		var of strings.Builder
		for _, letter := range slices.Compact(slices.Clone(letters)) {
			of.WriteByte(letter[0])
		}
		s.Always("each object is in one page", slices.Equal(names, []string{"a", "b", "c", "d", "z"}), names)
		s.Always("each letter is in one page", of.Len() == len(letters) && (of.String() == "abcdz" || of.String() == "abbcdz"), letters) // the second of b may come too late
	}, harness.NoLostAck, harness.NoTornBatch)
}

// Proves A11, S9: a letter that cannot be read is an error that names it. The page that comes with the error has
// the letters before it, and the next page goes on behind it. So it hides no other letter.
func TestPagesGoOnBehindADamagedLetter(t *testing.T) {
	f := newFixture(t).open()
	defer f.close()
	for seq := range uint64(6) {
		f.storeLetters(object.DeadLetter{ID: f.id("a"), Seq: 10 + seq, Kind: object.DeadAlarm})
	}
	damaged := []uint64{10, 12, 13, 15}
	var b storage.Batch
	for _, seq := range damaged {
		b.SetDead(f.host.Store().ShardOf(f.id("a")), f.id("a"), seq, []byte("{"))
	}
	if _, err := f.host.Store().Commit(&b); err != nil {
		t.Fatal(err)
	}
	for name, list := range map[string]func(context.Context, object.DeadLettersOptions) (object.DeadLetterPage, error){
		"host": f.host.DeadLetters, "reader": object.NewReader(f.host.Store()).DeadLetters,
	} {
		var found, missed []uint64
		for o, more := (object.DeadLettersOptions{}), true; more; more = len(o.After) > 0 {
			page, err := list(t.Context(), o)
			for _, d := range page.Letters {
				found = append(found, d.Seq)
			}
			if err != nil {
				seq := damaged[min(len(missed), len(damaged)-1)]
				if !errors.Is(err, storage.ErrCorrupt) || !strings.Contains(err.Error(), fmt.Sprintf("dead letter %d of thing/a", seq)) {
					t.Fatalf("A11: %s: %v does not name %d", name, err, seq)
				}
				missed = append(missed, seq)
			}
			o.After = page.Next
		}
		if !slices.Equal(found, []uint64{11, 14}) || !slices.Equal(missed, damaged) {
			t.Errorf("A11: %s: the list has %d and errors of %d", name, found, missed)
		}
	}
	if _, err := f.host.DeadLetters(t.Context(), object.DeadLettersOptions{After: []byte("x")}); !errors.Is(err, object.ErrBadCursor) {
		t.Errorf("A11: a cursor of no page: %v", err)
	}
}
