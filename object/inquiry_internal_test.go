package object

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/storage"
)

func someSubjects(prefix string, n int) (xs []subject) {
	for i := range n {
		xs = append(xs, subject{id: storage.ID{Class: "c", Name: fmt.Sprint(prefix, i)}, key: "k"})
	}
	return xs
}

// story is an inquiry as a process in opening 9 left it.
func story(p phase, strays, trial int, plan ...group) inquiry {
	return inquiry{epoch: 9, cleared: 5, phase: p, strays: strays, trial: trial, plan: plan, charges: map[subject]int{}}
}

// Proves A8: the inquiry after each kind of crash.
func TestJudge(t *testing.T) {
	a, b, c, x := someSubjects("a", 3), someSubjects("b", 2), someSubjects("c", 4), someSubjects("x", 1)
	crash := storage.Previous{Epoch: 9, Crashes: 4}
	charged := story(trying, 0, 1, group{restSet, c}, group{1, x}, group{2, b})
	charged.charges[x[0]] = 2
	waiting := story(holding, 0, 0, group{1, x})
	waiting.charges[x[0]] = 2
	tests := []struct {
		name  string
		q     inquiry
		crash storage.Previous
		want  inquiry
	}{
		{"no suspects, only the openings since the last end in order count", inquiry{}, crash, inquiry{cleared: 5, need: 2}},
		{"what was cleared stays so", inquiry{epoch: 9, cleared: 7}, crash, inquiry{cleared: 7, need: 2}},
		{"an end in order clears all", charged, storage.Previous{Epoch: 9, Clean: true}, inquiry{cleared: 9, need: 2}},
		{"a row from before an end in order says nothing", charged, storage.Previous{Epoch: 12, Crashes: 2}, inquiry{cleared: 10, need: 2}},
		{"all held, three times: others may have done it, and join", story(holding, 2, 0, group{1, a}, group{1, b}), crash,
			inquiry{cleared: 5, strays: 3, need: 1, plan: []group{{1, append(someSubjects("a", 3), b...)}}}},
		{"all held, four times: the cause is outside", story(holding, 3, 0, group{1, a}), crash, inquiry{cleared: 9, need: 2}},
		{"a crash in the control forgets the charges", waiting, crash, inquiry{cleared: 5, strays: 1, need: 1, plan: []group{{1, x}}}},
		{"a group is divided further, those behind it are the rest", story(trying, 0, 1, group{1, x}, group{1, a}, group{1, b}, group{1, c}), crash,
			inquiry{cleared: 8, need: 2, plan: []group{{restSet, append(someSubjects("b", 2), c...)}, {2, a}}}},
		{"the rest is guilty, and waits behind a narrower set", story(trying, 0, 0, group{restSet, c}, group{1, x}), crash,
			inquiry{cleared: 8, need: 2, plan: []group{{1, x}, {onceRest + 2, c}}}},
		{"what was the rest is divided further, and no part of it is the rest again",
			story(trying, 0, 0, group{onceRest + 1, a}, group{onceRest + 1, b}, group{2, c}), crash,
			inquiry{cleared: 8, need: 2, plan: []group{{onceRest + 1, b}, {onceRest + 2, a}, {3, c}}}},
		{"one that runs alone is charged, other sets wait", charged, crash,
			inquiry{cleared: 8, need: 2, plan: []group{{1, x}, {2, b}}, charges: map[subject]int{x[0]: 3}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.q.judge(tt.crash, false); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("A8: got\n%+v, want\n%+v", got, tt.want)
			}
		})
	}
}

// Proves A8: two crashes since the suspects were last cleared make a suspect. One is
// enough if the inquiry needs only one.
func TestSuspected(t *testing.T) {
	for _, tt := range []struct {
		need, cuts int
		epoch      uint64
		want       bool
	}{{2, 1, 6, false}, {2, 2, 5, false}, {2, 2, 6, true}, {1, 1, 5, false}, {1, 1, 6, true}, {2, 0, 0, false}} {
		q := inquiry{cleared: 5, need: tt.need}
		if got := q.suspected(tt.cuts, tt.epoch); got != tt.want {
			t.Errorf("A8: %+v: %v", tt, got)
		}
	}
}

// The rows of an inquiry are read as they were written. A row that is cut short, or has
// another version, is damage.
func TestInquiryRows(t *testing.T) {
	q := story(trying, 3, 1, group{restSet, someSubjects("a", 2)}, group{1, someSubjects("b", 1)})
	q.charges[someSubjects("b", 1)[0]] = 3
	q.began = time.Unix(0, 77)
	var got inquiry
	if err := got.decodeHead(q.appendHead(nil)); err != nil {
		t.Fatal(err)
	}
	if err := got.decodePlan(q.appendPlan(nil)); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, q) {
		t.Errorf("read %+v, wrote %+v", got, q)
	}
	head, plan := q.appendHead(nil), q.appendPlan(nil)
	for n := range head {
		if err := new(inquiry).decodeHead(head[:n]); err == nil {
			t.Errorf("%d bytes of the head are read as a whole", n)
		}
	}
	for n := 1; n < len(plan); n++ {
		if err := new(inquiry).decodePlan(plan[:n]); err == nil {
			t.Errorf("%d bytes of the plan are read as a whole", n)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 1000 { // it ends for any bytes
		b := append([]byte(nil), plan...)
		b[r.IntN(len(b))] = byte(r.Uint32())
		_ = new(inquiry).decodePlan(b)
	}
}
