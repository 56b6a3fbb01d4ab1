package object_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// looker is that a host and a Reader both are.
type looker interface {
	StoredClasses(ctx context.Context) ([]string, error)
	Objects(ctx context.Context, class string, o object.ObjectsOptions) ([]object.ObjectInfo, error)
	Inspect(ctx context.Context, id storage.ID) (object.Inspection, error)
	Keys(ctx context.Context, id storage.ID, o object.KeysOptions) (object.KeyPage, error)
	Events(ctx context.Context, id storage.ID, after uint64, limit int) ([]object.Event, error)
	DeadLetters(ctx context.Context, o object.DeadLettersOptions) (object.DeadLetterPage, error)
	DeadLetter(ctx context.Context, id storage.ID, seq uint64) (object.DeadLetter, error)
}

// lookers are the host of a fixture, and a Reader of its store.
func (f *fixture) lookers() map[string]looker {
	return map[string]looker{"host": f.host, "reader": object.NewReader(f.host.Store())}
}

// answers is all that can be seen of objects, as JSON, without the part that is of a process.
func answers(t *testing.T, l looker, ids ...storage.ID) string {
	t.Helper()
	var all []any
	note := func(v any, err error) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	ctx := context.Background()
	v, err := l.StoredClasses(ctx)
	note(v, err)
	letters, err := l.DeadLetters(ctx, object.DeadLettersOptions{})
	note(letters, err)
	for _, d := range letters.Letters {
		one, err := l.DeadLetter(ctx, d.ID, d.Seq)
		note(one, err)
	}
	for _, id := range ids {
		objects, err := l.Objects(ctx, id.Class, object.ObjectsOptions{Sizes: true})
		note(objects, err)
		keys, err := l.Keys(ctx, id, object.KeysOptions{Values: true})
		note(keys, err)
		events, err := l.Events(ctx, id, 0, 10)
		note(events, err)
		in, err := l.Inspect(ctx, id)
		in.Live, in.Waiting, in.Paused = false, 0, ""
		note(in, err)
	}
	text, err := json.MarshalIndent(all, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Proves O15, A11: a Reader of a store at rest gives the answers that the host gave, of objects of
// any class.
func TestReaderOfAStoreAtRest(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, old := withParked(t)
		ids := []storage.ID{f.id("a"), f.id("dead"), f.id("none"), old}
		f.handleAlarm(func(*thing, context.Context, object.AlarmInfo) error { return object.Permanent(errors.New("no")) })
		f.must("dead", setAlarm(time.Second))
		pass(time.Minute)
		f.must("a", both(setLabel("failed"), func(th *thing, ctx context.Context) (any, error) {
			return nil, th.st.Driver().OpenExecution(ctx, []byte("data"))
		}))
		since, epoch := time.Now(), f.host.Epoch()
		want := answers(t, f.host, ids...)
		f.close()
		s, err := storage.Open(storage.Options{Engine: f.mem, Shards: 2})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		r := object.NewReader(s)
		if got := answers(t, r, ids...); got != want {
			t.Errorf("O15: a reader tells\n%s\nand the host told\n%s", got, want)
		}
		in, err := r.Inspect(context.Background(), f.id("a"))
		if err != nil || !in.Execution || !in.ExecutionSince.Equal(since) || in.ExecutionEpoch != epoch || in.Label != "failed" || len(in.Events) != 1 || in.Events[0].SizeBytes != 1 {
			t.Errorf("O15: inspected %+v, %v", in, err)
		}
		if dead, err := r.DeadLetters(context.Background(), object.DeadLettersOptions{}); err != nil || len(dead.Letters) != 1 || dead.Letters[0].ID != f.id("dead") {
			t.Errorf("A11: the letters are %+v, %v", dead, err)
		}
	})
}

// Proves O15: a Reader without a store, or with one that has ended, returns an error, and so
// does a context that has ended.
func TestReaderThatCannotRead(t *testing.T) {
	f := newFixture(t).open()
	r := object.NewReader(f.host.Store())
	cause := errors.New("the client has gone")
	gone, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	look := map[string]func(r object.Reader, ctx context.Context) error{
		"StoredClasses": func(r object.Reader, ctx context.Context) error { return second(r.StoredClasses(ctx)) },
		"Objects": func(r object.Reader, ctx context.Context) error {
			return second(r.Objects(ctx, "thing", object.ObjectsOptions{}))
		},
		"Inspect": func(r object.Reader, ctx context.Context) error { return second(r.Inspect(ctx, f.id("a"))) },
		"Keys": func(r object.Reader, ctx context.Context) error {
			return second(r.Keys(ctx, f.id("a"), object.KeysOptions{}))
		},
		"Events": func(r object.Reader, ctx context.Context) error { return second(r.Events(ctx, f.id("a"), 0, 1)) },
		"DeadLetters": func(r object.Reader, ctx context.Context) error {
			return second(r.DeadLetters(ctx, object.DeadLettersOptions{}))
		},
		"DeadLetter": func(r object.Reader, ctx context.Context) error { return second(r.DeadLetter(ctx, f.id("a"), 1)) },
	}
	for name, look := range look {
		if err := look(r, gone); !errors.Is(err, cause) {
			t.Errorf("O12: %s with a context that has ended: %v", name, err)
		}
		if err := look(object.Reader{}, context.Background()); err == nil || !strings.Contains(err.Error(), "make it by NewReader") {
			t.Errorf("O15: %s of the zero Reader: %v", name, err)
		}
		var want error
		if name == "DeadLetter" {
			want = object.ErrNoDeadLetter
		}
		if err := look(r, context.Background()); !errors.Is(err, want) || (err == nil) != (want == nil) {
			t.Errorf("O15: %s: %v", name, err)
		}
	}
	f.close()
	for name, look := range look {
		if err := look(r, context.Background()); !errors.Is(err, storage.ErrClosed) {
			t.Errorf("O15: %s of a store that is closed: %v", name, err)
		}
	}
}

// Proves O1, O15: each list refuses a name, a cursor or a bound that is none, names it, and
// takes those that are just right. The errors name the class or the object.
func TestListsCheckTheirOptions(t *testing.T) {
	f := newFixture(t).open()
	defer f.close()
	f.must("a", put("k", "v"))
	long := func(n int) string { return strings.Repeat("x", n) }
	type objects = object.ObjectsOptions
	type keys = object.KeysOptions
	type letters = object.DeadLettersOptions
	now := time.Unix(1_800_000_000, 0)
	for name, l := range f.lookers() {
		ctx := context.Background()
		list := func(class string, o objects) error { return second(l.Objects(ctx, class, o)) }
		keysOf := func(name string, o keys) error { return second(l.Keys(ctx, f.id(name), o)) }
		dead := func(o letters) error { return second(l.DeadLetters(ctx, o)) }
		for _, c := range []struct {
			err  error
			is   error
			want string // empty: no error
		}{
			{list("thing", objects{}), nil, ""},
			{list("thing", objects{Limit: object.MaxPage}), nil, ""},
			{list("thing", objects{Limit: object.MaxPage + 1}), nil, "class thing: object: Objects: Limit must be at most 1000: 1001"},
			{list("thing", objects{Limit: -1}), nil, "class thing: object: Objects: Limit must not be negative: -1"},
			{list("", objects{}), object.ErrBadName, "object: bad name: class name is empty"},
			{list("a/b", objects{}), object.ErrBadName, "holds NUL or a slash"},
			{list("thing", objects{After: long(1024), Prefix: long(1024)}), nil, ""},
			{list("thing", objects{After: long(1025)}), object.ErrBadName, "After: object: bad name: name has 1025 bytes"},
			{list("thing", objects{Prefix: long(1025)}), object.ErrBadName, "Prefix: object: bad name: name has 1025 bytes"},
			{list("thing", objects{After: "\xff"}), object.ErrBadName, "is not UTF-8"},
			{list("thing", objects{Prefix: "\xff"}), object.ErrBadName, "is not UTF-8"},
			{list("thing", objects{Label: long(64)}), nil, ""},
			{list("thing", objects{Label: long(65)}), nil, "class thing: object: Objects: label has 65 bytes, the limit is 64"},
			{keysOf("a", keys{Limit: object.MaxPage, MaxBytes: object.MaxPageBytes}), nil, ""},
			{keysOf("a", keys{Limit: object.MaxPage + 1}), nil, "thing/a: object: Keys: Limit must be at most 1000: 1001"},
			{keysOf("a", keys{Limit: -1}), nil, "Limit must not be negative: -1"},
			{keysOf("a", keys{MaxBytes: -1}), nil, "MaxBytes must not be negative: -1"},
			{keysOf("none", keys{MaxBytes: object.MaxPageBytes + 1}), nil, "thing/none: object: Keys: MaxBytes must be at most 16777216: 16777217"},
			{keysOf("\xff", keys{}), object.ErrBadName, "is not UTF-8"},
			{dead(letters{Limit: object.MaxPage, Class: "none", Name: "none", Kind: "none"}), nil, ""},
			{dead(letters{Limit: object.MaxPage + 1}), nil, "object: DeadLetters: Limit must be at most 1000: 1001"},
			{dead(letters{Limit: -1}), nil, "Limit must not be negative: -1"},
			{dead(letters{Class: "a/b"}), object.ErrBadName, "holds NUL or a slash"},
			{dead(letters{Class: "a", Name: "\xff"}), object.ErrBadName, "is not UTF-8"},
			{dead(letters{Name: "a"}), nil, `Name is "a", but there is no Class`},
			{dead(letters{After: []byte("next")}), object.ErrBadCursor, "not a cursor of this list: 6e657874"},
			{dead(letters{DiedSince: now, DiedBefore: now.Add(1)}), nil, ""},
			{dead(letters{DiedSince: now, DiedBefore: now}), nil, "it must be before DiedBefore"},
			{second(l.Inspect(ctx, f.id(""))), object.ErrBadName, "name is empty"},
			{second(l.Events(ctx, f.id("\xff"), 0, 1)), object.ErrBadName, "is not UTF-8"},
			{second(l.DeadLetter(ctx, f.id("\xff"), 1)), object.ErrBadName, "is not UTF-8"},
			{second(l.DeadLetter(ctx, f.id("a"), 1)), object.ErrNoDeadLetter, "thing/a: object: no such dead letter"},
		} {
			if c.want == "" && c.err != nil || c.want != "" && (c.err == nil || !strings.Contains(c.err.Error(), c.want)) || c.is != nil && !errors.Is(c.err, c.is) {
				t.Errorf("O15: %s: %v, want %q", name, c.err, c.want)
			}
		}
	}
}

// Proves O15: without a limit a page has 100 objects, and with the largest 1,000; sizes are
// told if they are asked for.
func TestPagesOfObjects(t *testing.T) {
	f := newFixture(t).open()
	defer f.close()
	for i := range 1001 {
		f.must(fmt.Sprintf("n%04d", i), put("k", "v"), object.Unconfirmed())
	}
	ctx := context.Background()
	for limit, want := range map[int]int{0: 100, 1: 1, 999: 999, 1000: 1000} {
		page, err := f.host.Objects(ctx, "thing", object.ObjectsOptions{Limit: limit})
		if err != nil || len(page) != want || page[want-1].ID.Name != fmt.Sprintf("n%04d", want-1) {
			t.Errorf("O15: a page of %d has %d objects, %v", limit, len(page), err)
		}
	}
	for _, sizes := range []bool{false, true} {
		page, err := f.host.Objects(ctx, "thing", object.ObjectsOptions{Prefix: "n003", After: "n0037", Sizes: sizes})
		if err != nil || len(page) != 2 || page[0].ID.Name != "n0038" || (page[0].SizeBytes > 0) != sizes {
			t.Errorf("O15: with sizes %v: %+v, %v", sizes, page, err)
		}
	}
}

// Proves O15: keys come in pages in the order of their bytes, the empty key too. A page ends
// at its limit, or before the key that would make it larger than MaxBytes, which counts the
// values if they are in it, and has one key at least.
func TestPagesOfKeys(t *testing.T) {
	f := newFixture(t).open()
	defer f.close()
	all := []string{"", "\x00", "a", "a\x00", "a1", "a2", "b", "\xff", "\xff\xff"}
	f.must("a", func(th *thing, ctx context.Context) (any, error) {
		for i, key := range all {
			if err := th.st.Storage().PutBytes(ctx, key, make([]byte, 10*i)); err != nil {
				return nil, err
			}
		}
		return nil, nil
	})
	ctx := context.Background()
	for _, prefix := range []string{"", "a", "a1", "\xff", "none"} {
		var mine []string
		for _, key := range all {
			if strings.HasPrefix(key, prefix) {
				mine = append(mine, key)
			}
		}
		for _, values := range []bool{false, true} {
			for _, limit := range []int{1, 2, 3, len(mine), len(mine) + 1, 0} {
				for _, most := range []int{0, 1, 5, 50, 100, 130} {
					var got []string
					o := object.KeysOptions{Prefix: prefix, Limit: limit, MaxBytes: most, Values: values}
					for more := limit >= 0; more; more = o.Start != "" {
						page, err := f.host.Keys(ctx, f.id("a"), o)
						if err != nil {
							t.Fatal(err)
						}
						if page.Next != "" && page.Next <= o.Start {
							t.Fatalf("O15: %+v goes on at %q", o, page.Next)
						}
						got = append(got, checkKeyPage(t, page, o, all)...)
						o.Start = page.Next
					}
					if !slices.Equal(got, mine) {
						t.Errorf("O15: %+v lists %q, want %q", o, got, mine)
					}
				}
			}
		}
	}
	if page, err := f.host.Keys(ctx, f.id("none"), object.KeysOptions{}); err != nil || len(page.Keys) > 0 || page.Next != "" {
		t.Errorf("O15: the keys of no object: %+v, %v", page, err)
	}
	if page, err := f.host.Keys(ctx, f.id("a"), object.KeysOptions{Start: "b", Prefix: "a"}); err != nil || len(page.Keys) > 0 || page.Next != "" {
		t.Errorf("O15: the keys of no range: %+v, %v", page, err)
	}
}

// checkKeyPage fails the test unless a page keeps its bounds and ends where they are reached. It
// returns the keys of the page. The value of each key has ten bytes for each key before it in all.
func checkKeyPage(t *testing.T, page object.KeyPage, o object.KeysOptions, all []string) (keys []string) {
	t.Helper()
	bytes := 0
	room := func(key string) int {
		if n := 10 * slices.Index(all, key); o.Values {
			return len(key) + n
		}
		return len(key)
	}
	for _, k := range page.Keys {
		keys, bytes = append(keys, k.Key), bytes+room(k.Key)
		if k.SizeBytes != 10*slices.Index(all, k.Key) || len(k.Value) > 0 != (o.Values && k.SizeBytes > 0) || o.Values && len(k.Value) != k.SizeBytes {
			t.Errorf("O15: %+v: key %q has %d bytes and a value of %d", o, k.Key, k.SizeBytes, len(k.Value))
		}
	}
	limit, most := o.Limit, o.MaxBytes
	if limit == 0 {
		limit = object.DefaultPage
	}
	if most == 0 {
		most = 1 << 20
	}
	if len(keys) > limit || bytes > most && len(keys) > 1 {
		t.Errorf("O15: %+v: a page has %d keys with %d bytes", o, len(keys), bytes)
	}
	if page.Next != "" && len(keys) < limit && bytes+room(page.Next) <= most {
		t.Errorf("O15: %+v: a page of %d keys and %d bytes ends before %q, which fits", o, len(keys), bytes, page.Next)
	}
	return keys
}

// Proves O15: a page of keys without values reads 64 MiB at most, and then goes on behind.
func TestPageOfLargeKeys(t *testing.T) {
	const large = 16 << 20
	for more, want := range []int{5, 4} { // all but the last fill 64 MiB, or one byte more
		f := newFixture(t).open()
		s := f.host.Store()
		o := storage.Object{ID: f.id("a"), Shard: s.ShardOf(f.id("a")), Number: s.NewNumber(), Epoch: s.Epoch()}
		for i, size := range []int{large - 1, large - 1, large - 1, large - 2, more} {
			var b storage.Batch
			b.SetHeader(o)
			b.SetData(o, fmt.Sprint(i), make([]byte, size))
			if _, err := s.Commit(&b); err != nil {
				t.Fatal(err)
			}
		}
		page, err := f.host.Keys(context.Background(), f.id("a"), object.KeysOptions{})
		if err != nil || len(page.Keys) != want || page.Next != []string{4: "4", 5: ""}[want] {
			t.Errorf("O15: a page of large keys has %d, and the next begins at %q, %v; want %d", len(page.Keys), page.Next, err, want)
		}
		in, err := f.host.Inspect(context.Background(), f.id("a"))
		if err != nil || len(in.Keys) != want || in.NextKey != page.Next {
			t.Errorf("O15: Inspect shows %d keys, and the next is %q, %v", len(in.Keys), in.NextKey, err)
		}
		f.close()
	}
}

// Proves O15: Inspect shows the newest 20 events without their payload, the newest first.
func TestInspectShowsTheNewestEvents(t *testing.T) {
	f := newFixture(t).open()
	defer f.close()
	for i := range 21 {
		f.must("a", func(th *thing, ctx context.Context) (any, error) {
			return nil, th.st.Emit(ctx, fmt.Sprint("e", i), strings.Repeat("x", i))
		}, object.Unconfirmed())
		in, err := f.host.Inspect(context.Background(), f.id("a"))
		events, err2 := f.host.Events(context.Background(), f.id("a"), 0, 100)
		if err != nil || err2 != nil || len(in.Events) != min(i+1, 20) || in.Exists {
			t.Fatalf("O15: %d events: %+v, %v, %v", i+1, in, err, err2)
		}
		for k, e := range in.Events {
			want := events[i-k]
			if e.Seq != want.Seq || e.Kind != want.Kind || !e.At.Equal(want.At) || e.SizeBytes != len(want.Data) {
				t.Errorf("O15: event %d from the end is %+v, want %+v", k, e, want)
			}
		}
	}
}
