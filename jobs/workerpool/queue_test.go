package workerpool

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/jobs"
)

// Through any additions and removals, a window is always the first part of the stored
// set, and it gives all of the set in its order.
func TestWindowIsTheFirstPartOfTheSet(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWindow(rapid.IntRange(1, 5).Draw(rt, "max"))
		var set []place // the stored set
		order := uint64(0)
		fill := func() {
			if !w.wants() {
				return
			}
			var es []entry
			for _, p := range set {
				if (w.edge == place{} || p.compare(w.edge) > 0) && len(es) < w.max {
					es = append(es, entry{place: p, num: p.order})
				}
			}
			w.load(es)
		}
		rt.Repeat(map[string]func(*rapid.T){
			"add": func(rt *rapid.T) {
				order++
				p := place{rapid.Uint64Range(1, 4).Draw(rt, "major"), order}
				i, _ := slices.BinarySearchFunc(set, p, place.compare)
				set = slices.Insert(set, i, p)
				w.add(entry{place: p, num: order})
			},
			"take": func(rt *rapid.T) {
				fill()
				e, ok := w.first()
				if ok != (len(set) > 0) || ok && e.place != set[0] {
					rt.Fatalf("first is %v, %v; the set is %v", e, ok, set)
				}
				if ok {
					w.pop()
					set = set[1:]
				}
			},
			"remove": func(rt *rapid.T) {
				if len(set) > 0 {
					i := rapid.IntRange(0, len(set)-1).Draw(rt, "i")
					w.evict(set[i])
					set = slices.Delete(set, i, i+1)
				}
			},
			"": func(rt *rapid.T) {
				w.trim()
				fill()
				if len(w.entries) > w.max || len(w.entries) > len(set) || !w.more && len(w.entries) != len(set) {
					rt.Fatalf("window %v of %v, max %d", w, set, w.max)
				}
				for i, e := range w.entries {
					if e.place != set[i] {
						rt.Fatalf("window %v, set %v", w.entries, set)
					}
				}
			},
		})
	})
}

// Proves W4. Queues that always have tasks are served by weight. A queue that gets its
// first task late has its share from then on, and no more.
func TestLinesShareByWeight(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var ls lines
		weights := rapid.SliceOfN(rapid.Uint64Range(1, 20), 1, 6).Draw(rt, "weights")
		sum := uint64(0)
		for i, weight := range weights {
			l := ls.named(string(rune('a' + i)))
			l.weight, l.window.more = weight, false
			sum += weight
		}
		late := rapid.IntRange(0, 200).Draw(rt, "late") // when the last queue gets its first task
		last := len(weights) - 1
		got := make([]uint64, len(weights))
		order, since := uint64(0), 0
		for n := range 600 {
			for i, l := range ls.all {
				if _, ok := l.window.first(); !ok && (i < last || n >= late) {
					order++
					ls.add(l, entry{place: place{1, order}})
				}
			}
			if n == late {
				clear(got)
				since = n
			}
			if l := ls.next(); l != nil {
				got[slices.Index(ls.all, l)]++
				ls.take(l)
			}
		}
		turns := float64(600 - since)
		for i, weight := range weights {
			want := turns * float64(weight) / float64(sum)
			if diff := float64(got[i]) - want; diff < -float64(len(weights))-1 || diff > float64(len(weights))+1 {
				rt.Fatalf("queue %d of weights %v was served %d times of %v, want about %.1f", i, weights, got[i], turns, want)
			}
		}
	})
}

func TestRowsSurviveTheirCodec(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		at := time.Unix(0, rapid.Int64Range(1, 1<<60).Draw(rt, "at")).UTC()
		r := row{
			num: rapid.Uint64().Draw(rt, "num"), state: State(rapid.IntRange(0, 4).Draw(rt, "state")),
			order: rapid.Uint64().Draw(rt, "order"), priority: rapid.IntRange(-1000, 1000).Draw(rt, "priority"),
			notBefore: rapid.Int64().Draw(rt, "notBefore"), enqueued: rapid.Int64().Draw(rt, "enqueued"),
			endedAt: rapid.Int64().Draw(rt, "ended"), attempts: rapid.Int32Range(0, 99).Draw(rt, "attempts"),
			key: rapid.String().Draw(rt, "key"), queue: rapid.String().Draw(rt, "queue"),
			input: rapid.SliceOf(rapid.Byte()).Draw(rt, "input"), output: rapid.SliceOf(rapid.Byte()).Draw(rt, "output"),
		}
		if rapid.Bool().Draw(rt, "failed") {
			r.rare = rare{
				Run:        jobs.Run{Number: 1, Attempt: 2, Failures: 1, RetryAt: at, LastError: "no"},
				Failures:   []Failure{{2, at, rapid.StringMatching(`[a-z]*`).Draw(rt, "error")}},
				Cancelling: rapid.Bool().Draw(rt, "cancelling"),
			}
		}
		b, err := r.append(nil)
		if err != nil {
			rt.Fatal(err)
		}
		back, err := decodeRow(r.num, b)
		if err != nil || !reflect.DeepEqual(*back, r) {
			rt.Fatalf("%+v\ncame back as %+v, %v", r, back, err)
		}
		cut := rapid.IntRange(0, len(b)-1).Draw(rt, "cut")
		if _, err := decodeRow(r.num, b[:cut]); err == nil {
			rt.Fatalf("a row cut to %d of %d bytes was read", cut, len(b))
		}
	})
}

func TestCountersSurviveTheirCodec(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := counters{mode: Mode(rapid.IntRange(0, 2).Draw(rt, "mode")), emptyDue: rapid.Bool().Draw(rt, "empty"), changed: rapid.Int64().Draw(rt, "changed")}
		for _, n := range c.numbers() {
			*n = rapid.Uint64().Draw(rt, "n")
		}
		ls, back := lines{pass: 7}, lines{}
		ls.named("b").pass, ls.named("").pass = 8, 9
		var got counters
		if err := got.decode(c.append(nil, &ls), &back); err != nil || got != c {
			rt.Fatalf("%+v came back as %+v, %v", c, got, err)
		}
		if back.pass != 7 || back.find("b").pass != 8 || back.find("").pass != 9 {
			rt.Fatalf("passes came back as %+v", back)
		}
	})
}

// Case 18. Tasks spread evenly, and a change of the number of partitions moves
// few keys.
func TestKeysSpreadOverPartitions(t *testing.T) {
	for n := 1; n < 9; n++ {
		count, moved := make([]int, n), 0
		for i := range 9000 {
			h := hash([]byte{byte(i), byte(i >> 8), 1})
			count[jump(h, n)]++
			if jump(h, n) != jump(h, n+1) {
				moved++
			}
		}
		for i, c := range count {
			if c < 9000/n*8/10 || c > 9000/n*12/10 {
				t.Errorf("partition %d of %d gets %d of 9000", i, n, c)
			}
		}
		if want := 9000 / (n + 1); moved > want*12/10 {
			t.Errorf("%d keys move from %d to %d partitions, want about %d", moved, n, n+1, want)
		}
	}
	for _, h := range []uint64{0, 1 << 63, ^uint64(0)} {
		if i := jump(h, 7); i < 0 || i > 6 {
			t.Errorf("jump(%d, 7) = %d", h, i)
		}
	}
}

func TestTaskIDs(t *testing.T) {
	id := TaskID{3, 17}
	if got, err := ParseTaskID(id.String()); err != nil || got != id {
		t.Errorf("ParseTaskID(%q) = %v, %v", id, got, err)
	}
	for _, bad := range []string{"", "3", "-", "3-", "3-0", "03-1", "3-+1", "-1-1", "9999-1", "3-1 "} {
		if id, err := ParseTaskID(bad); err == nil {
			t.Errorf("ParseTaskID(%q) = %v", bad, id)
		}
	}
}

// SetWindow makes the windows of a pool small, before a host is opened with it.
func (p *Pool[In, Out]) SetWindow(n int) { p.pool.set.window = n }
