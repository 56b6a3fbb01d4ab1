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

	"github.com/holdfast-dev/holdfast/object"
)

// Proves S2, S4, S5, S6: storage against a map, with nested transactions, over
// several turns.
func TestStorageMatchesAMap(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		f := newFixture(t).open()
		defer f.close()
		model := map[string]string{}
		key := rapid.StringMatching(`[a-c]{0,3}`)
		for range rapid.IntRange(1, 6).Draw(rt, "turns") {
			f.must("x", func(th *thing, ctx context.Context) (any, error) {
				steps(rt, ctx, th.st.Storage(), &model, key, 0)
				return nil, nil
			})
		}
	})
}

// steps draws operations and checks each against the model.
func steps(rt *rapid.T, ctx context.Context, s *object.Storage, model *map[string]string, key *rapid.Generator[string], depth int) {
	fatal := func(err error) {
		rt.Helper()
		if err != nil {
			rt.Fatal(err)
		}
	}
	for range rapid.IntRange(0, 8).Draw(rt, "steps") {
		switch rapid.IntRange(0, 7).Draw(rt, "op") {
		case 0, 1:
			k, v := key.Draw(rt, "key"), rapid.StringN(0, 5, 10).Draw(rt, "value")
			fatal(s.PutBytes(ctx, k, []byte(v)))
			(*model)[k] = v
		case 2:
			k := key.Draw(rt, "key")
			_, want := (*model)[k]
			got, err := s.Delete(ctx, k)
			fatal(err)
			if got != want {
				rt.Fatalf("Delete(%q) = %v, want %v", k, got, want)
			}
			delete(*model, k)
		case 3:
			k := key.Draw(rt, "key")
			v, ok, err := s.Get(ctx, k)
			fatal(err)
			if want, in := (*model)[k]; ok != in || string(v) != want {
				rt.Fatalf("Get(%q) = %q, %v, want %q, %v", k, v, ok, want, in)
			}
		case 4:
			p := key.Draw(rt, "prefix")
			fatal(s.DeletePrefix(ctx, p))
			for k := range *model {
				if strings.HasPrefix(k, p) {
					delete(*model, k)
				}
			}
		case 5:
			if rapid.IntRange(0, 3).Draw(rt, "all") == 0 {
				fatal(s.DeleteAll(ctx))
				clear(*model)
			}
		case 6:
			checkList(rt, ctx, s, *model, key)
		case 7:
			if depth < 3 {
				transact(rt, ctx, s, model, key, depth)
			}
		}
	}
}

func transact(rt *rapid.T, ctx context.Context, s *object.Storage, model *map[string]string, key *rapid.Generator[string], depth int) {
	before := map[string]string{}
	for k, v := range *model {
		before[k] = v
	}
	undo := errors.New("undo")
	fail := rapid.Bool().Draw(rt, "undo")
	var kept *object.Storage
	err := s.Transaction(ctx, func(ctx context.Context, tx *object.Storage) error {
		kept = tx
		steps(rt, ctx, tx, model, key, depth+1)
		if fail {
			return undo
		}
		return nil
	})
	if fail != (err == undo) {
		rt.Fatalf("Transaction returned %v", err)
	}
	if fail {
		*model = before
	}
	if _, _, err := kept.Get(ctx, "a"); !errors.Is(err, object.ErrTxDone) {
		rt.Fatalf("a transaction that has ended: %v", err)
	}
}

func checkList(rt *rapid.T, ctx context.Context, s *object.Storage, model map[string]string, key *rapid.Generator[string]) {
	o := object.ListOptions{
		Start: key.Draw(rt, "start"), StartAfter: key.Draw(rt, "after"), End: key.Draw(rt, "end"), Prefix: key.Draw(rt, "prefix"),
		Reverse: rapid.Bool().Draw(rt, "reverse"), Limit: rapid.IntRange(0, 3).Draw(rt, "limit"),
	}
	var want []string
	for k, v := range model {
		if k >= o.Start && (o.StartAfter == "" || k > o.StartAfter) && (o.End == "" || k < o.End) && strings.HasPrefix(k, o.Prefix) {
			want = append(want, k+"="+v)
		}
	}
	slices.SortFunc(want, func(a, b string) int {
		return strings.Compare(a[:strings.Index(a, "=")], b[:strings.Index(b, "=")])
	})
	if o.Reverse {
		slices.Reverse(want)
	}
	if o.Limit > 0 && len(want) > o.Limit {
		want = want[:o.Limit]
	}
	var got []string
	for item, err := range s.List(ctx, o) {
		if err != nil {
			rt.Fatal(err)
		}
		got = append(got, item.Key+"="+string(item.Value))
	}
	if !slices.Equal(got, want) {
		rt.Fatalf("List(%+v) = %q, want %q", o, got, want)
	}
}

// Proves S4: a list shows the moment of the call.
func TestListIsASnapshot(t *testing.T) {
	f := newFixture(t).open()
	defer f.close()
	f.must("a", put("1", "a"))
	f.must("a", func(th *thing, ctx context.Context) (any, error) {
		s := th.st.Storage()
		_ = s.PutBytes(ctx, "2", []byte("b"))
		list := s.List(ctx, object.ListOptions{})
		_ = s.PutBytes(ctx, "3", []byte("c"))
		_, _ = s.Delete(ctx, "1")
		var keys []string
		for item, err := range list {
			if err != nil {
				t.Error(err)
			}
			keys = append(keys, item.Key)
			_ = s.PutBytes(ctx, "0", nil)
		}
		if got := strings.Join(keys, ""); got != "12" {
			t.Errorf("the list shows %q, want 12", got)
		}
		return nil, nil
	})
}

// Proves S3, S7.
func TestLimits(t *testing.T) {
	f := newFixture(t)
	f.options.MaxKeyBytes, f.options.MaxValueBytes, f.options.MaxBatchBytes = 10, 100, 500
	f.open()
	defer f.close()
	try := func(fn func(s *object.Storage, ctx context.Context) error) error {
		_, err := f.call("a", func(th *thing, ctx context.Context) (any, error) { return nil, fn(th.st.Storage(), ctx) })
		return err
	}
	many := func(n int) (entries []object.Entry) {
		for i := range n {
			entries = append(entries, object.Entry{Key: fmt.Sprint(i), Value: strings.Repeat("x", 90)})
		}
		return entries
	}
	for what, c := range map[string]struct {
		fn   func(s *object.Storage, ctx context.Context) error
		want error
	}{
		"key":   {func(s *object.Storage, ctx context.Context) error { return s.Put(ctx, strings.Repeat("k", 11), 1) }, object.ErrKeyTooLarge},
		"value": {func(s *object.Storage, ctx context.Context) error { return s.PutBytes(ctx, "k", make([]byte, 101)) }, object.ErrValueTooLarge},
		"turn":  {func(s *object.Storage, ctx context.Context) error { return s.PutBatch(ctx, many(6)) }, object.ErrBatchTooLarge},
		"batch": {func(s *object.Storage, ctx context.Context) error {
			return s.PutBatch(ctx, []object.Entry{{Key: "ok", Value: 1}, {Key: "bad", Value: make([]byte, 200)}})
		}, object.ErrValueTooLarge},
		"unserialisable": {func(s *object.Storage, ctx context.Context) error {
			if err := s.PutBatch(ctx, []object.Entry{{Key: "ok", Value: 1}, {Key: "bad", Value: func() {}}}); err == nil {
				t.Error("a function was stored")
			}
			return object.ErrTxDone
		}, object.ErrTxDone},
	} {
		// The handler swallows the error: nothing may have been written all the same.
		err := try(func(s *object.Storage, ctx context.Context) error {
			if err := c.fn(s, ctx); !errors.Is(err, c.want) {
				t.Errorf("%s: %v, want %v", what, err, c.want)
			}
			return nil
		})
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if in, _ := f.host.Inspect(context.Background(), f.id("a")); in.Exists {
			t.Errorf("%s: something was stored: %v", what, in.Keys)
		}
	}
	if err := try(func(s *object.Storage, ctx context.Context) error { return s.PutBatch(ctx, many(4)) }); err != nil {
		t.Error(err)
	}
}

// Proves S5, S6.
func TestDeleteAllAndAlarm(t *testing.T) {
	f := newFixture(t).open()
	defer f.close()
	alarmOf := func() bool {
		in, _ := f.host.Inspect(context.Background(), f.id("a"))
		return in.Alarm != nil
	}
	f.must("a", setAlarm(time.Hour))
	f.must("a", put("k", "v"))
	f.must("a", func(th *thing, ctx context.Context) (any, error) {
		err := th.st.Storage().Transaction(ctx, func(ctx context.Context, tx *object.Storage) error {
			_ = tx.DeleteAll(ctx)
			return errors.New("undo")
		})
		if err == nil {
			t.Error("no error")
		}
		return nil, nil
	})
	if !alarmOf() || f.stored("a", "k") != "v" {
		t.Error("a transaction that was undone removed something")
	}
	f.must("a", func(th *thing, ctx context.Context) (any, error) {
		return nil, errors.Join(th.st.Storage().DeleteAll(ctx), th.st.SetAlarm(ctx, th.st.Now().Add(time.Minute)))
	})
	if !alarmOf() || f.stored("a", "k") != "" {
		t.Error("an alarm set after DeleteAll does not stay")
	}
	f.must("a", func(th *thing, ctx context.Context) (any, error) { return nil, th.st.Storage().DeleteAll(ctx) })
	if in, _ := f.host.Inspect(context.Background(), f.id("a")); in.Exists {
		t.Error("DeleteAll left something")
	}
	if err := f.host.Store().Check(); err != nil {
		t.Error(err)
	}
}

// An object leaves no row if its last turn removes all it has, in each way in which that
// can happen. Proves O1.
func TestEmptiedObjectLeavesNoRow(t *testing.T) {
	for name, turns := range map[string][2]action{
		"its alarm fires": {setAlarm(time.Minute), nil},
		"its last key goes before its alarm": {
			func(th *thing, ctx context.Context) (any, error) {
				return nil, errors.Join(th.st.Storage().Put(ctx, "k", 1), th.st.SetAlarm(ctx, th.st.Now().Add(time.Minute)))
			},
			func(th *thing, ctx context.Context) (any, error) {
				_, err := th.st.Storage().Delete(ctx, "k")
				return nil, err
			},
		},
		"its last key and its alarm go": {
			func(th *thing, ctx context.Context) (any, error) {
				return nil, errors.Join(th.st.Storage().Put(ctx, "k", 1), th.st.SetAlarm(ctx, th.st.Now().Add(time.Hour)))
			},
			func(th *thing, ctx context.Context) (any, error) {
				_, err := th.st.Storage().Delete(ctx, "k")
				return nil, errors.Join(err, th.st.DeleteAlarm(ctx))
			},
		},
		"its execution ends": {
			func(th *thing, ctx context.Context) (any, error) {
				return nil, th.st.Driver().OpenExecution(ctx, []byte("x"))
			},
			func(th *thing, ctx context.Context) (any, error) { return nil, th.st.Driver().CloseExecution(ctx) },
		},
		"a new object takes back what it wrote": {
			func(th *thing, ctx context.Context) (any, error) {
				err := th.st.Storage().Put(ctx, "k", 1)
				_, gone := th.st.Storage().Delete(ctx, "k")
				return nil, errors.Join(err, gone)
			},
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := newFixture(t).open()
				f.must("a", turns[0])
				f.close()
				f.open() // nothing is in memory
				defer f.close()
				if turns[1] != nil {
					f.must("a", turns[1])
				}
				pass(2 * time.Minute)
				for line := range strings.Lines(dump(t, f)) {
					if !strings.HasPrefix(line, "ffff") {
						t.Errorf("left: %s", line)
					}
				}
			})
		})
	}
}

// Proves S1: names and keys that could run into one another do not.
func TestKeyspacesAreApart(t *testing.T) {
	f := newFixture(t).open()
	defer f.close()
	hostile := []string{"a", "a\x00", "a\x00b", "\x00", "a/b", "aa", "b", "\xc3\xbf\xc3\xbf"}
	for _, name := range hostile {
		for _, key := range hostile {
			f.must(name, put(key, name+"|"+key))
		}
	}
	f.must("a", func(th *thing, ctx context.Context) (any, error) { return nil, th.st.Storage().DeleteAll(ctx) })
	for _, name := range hostile {
		for _, key := range append(hostile, "") {
			want := name + "|" + key
			if name == "a" || key == "" {
				want = ""
			}
			if got := f.must(name, get(key)); got != want {
				t.Errorf("object %q key %q holds %q, want %q", name, key, got, want)
			}
		}
	}
}

func TestGetBatchAndTypedValues(t *testing.T) {
	f := newFixture(t).open()
	defer f.close()
	type point struct{ X, Y int }
	f.must("a", func(th *thing, ctx context.Context) (any, error) {
		s := th.st.Storage()
		if err := s.PutBatch(ctx, []object.Entry{{Key: "p", Value: point{1, 2}}, {Key: "s", Value: "text"}}); err != nil {
			return nil, err
		}
		got, err := s.GetBatch(ctx, "p", "s", "none")
		if err != nil || len(got) != 2 || string(got["s"]) != `"text"` {
			t.Errorf("GetBatch: %q, %v", got, err)
		}
		var p point
		if ok, err := s.GetInto(ctx, "p", &p); !ok || err != nil || p != (point{1, 2}) {
			t.Errorf("GetInto: %v, %v, %v", p, ok, err)
		}
		if ok, err := s.GetInto(ctx, "none", &p); ok || err != nil || p != (point{1, 2}) {
			t.Errorf("GetInto of an absent key: %v, %v, %v", p, ok, err)
		}
		if _, err := s.GetInto(ctx, "s", &p); err == nil || !strings.Contains(err.Error(), `thing/a: decode key "s"`) {
			t.Errorf("GetInto of another type: %v", err)
		}
		n, err := s.DeleteBatch(ctx, "p", "none", "s")
		if n != 2 || err != nil {
			t.Errorf("DeleteBatch: %d, %v", n, err)
		}
		return nil, nil
	})
}
