package scale

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
)

// TestEachScenarioWorks runs each scenario as small as it gets. The figures mean
// nothing, but the bounds for any size hold, and nothing is left behind.
func TestEachScenarioWorks(t *testing.T) {
	always := []string{"none", "≤ 10000 and the callers"}
	for _, s := range Scenarios {
		t.Run(s.Name, func(t *testing.T) {
			dir := t.TempDir()
			r, err := s.Run(t.Context(), Options{Dir: dir, Percent: 0.01, For: 50 * time.Millisecond, Period: 300 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Figures) == 0 {
				t.Error("nothing was measured")
			}
			for _, f := range r.Figures {
				for _, bound := range always {
					if f.Bound == bound && !f.Held {
						t.Errorf("%s is %v: %s", f.Name, f.Value, f.Bound)
					}
				}
			}
			for _, c := range r.Curves {
				if c.Name == "" || c.X == "" || c.Y == "" {
					t.Errorf("curve without names: %+v", c)
				}
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

func TestChoose(t *testing.T) {
	some, err := Choose("fire, load")
	if err != nil || len(some) != 2 || some[0].Name != "fire" || some[1].Name != "load" {
		t.Errorf("%v, %v", some, err)
	}
	if all, err := Choose(""); err != nil || len(all) != len(Scenarios) {
		t.Errorf("%v, %v", all, err)
	}
	if _, err := Choose("tiny"); err == nil {
		t.Error("a scenario that does not exist was chosen")
	}
}

// TestWeights compares the shares of queues while all have tasks, and finds a queue that
// waits too long.
func TestWeights(t *testing.T) {
	var good, greedy []start
	for range 1000 {
		for _, q := range []string{"one", "two", "two", "five", "five", "five", "five", "five"} {
			good = append(good, start{queue: q})
			greedy = append(greedy, start{queue: strings.Replace(q, "one", "two", 1)})
		}
	}
	var r Result
	judgeWeights(&r, good, 5000)
	if !r.Held() {
		t.Errorf("%+v", r.Figures)
	}
	r = Result{}
	judgeWeights(&r, greedy, 5000)
	if r.Held() {
		t.Errorf("queue one never began: %+v", r.Figures)
	}
}

func TestPriorities(t *testing.T) {
	for _, c := range []struct {
		order []start
		want  float64
	}{
		{[]start{{"", 10}, {"", 10}, {"", 5}, {"", 0}}, 0},
		{[]start{{"", 0}, {"", 10}, {"", 5}, {"", 10}}, 50},
	} {
		var r Result
		judgePriorities(&r, c.order)
		if got := r.Figures[0].Value; got != c.want {
			t.Errorf("%v: %v %% began early, want %v", c.order, got, c.want)
		}
	}
}

// TestStalls joins calls that end close together, and leaves short ones out.
func TestStalls(t *testing.T) {
	s := stalls{disk: measure.NewDisk()}
	at := time.Unix(1_800_000_000, 0)
	for _, c := range []struct{ at, late time.Duration }{{0, 10}, {5, 60}, {6, 80}, {300, 70}} {
		s.done(at.Add(c.at*time.Millisecond), c.late*time.Millisecond)
	}
	if len(s.found) != 2 || s.found[0].calls != 2 || s.found[0].worst != 80*time.Millisecond {
		t.Errorf("%+v", s.found)
	}
}

func TestPoints(t *testing.T) {
	rates := slope([][2]float64{{0, 0}, {1, 100}, {2, 100}, {3, 400}})
	if want := [][2]float64{{100, 100}, {400, 300}}; len(rates) != 2 || rates[0] != want[0] || rates[1] != want[1] {
		t.Errorf("rates %v, want %v", rates, want)
	}
	var many [][2]float64
	for i := range 1000 {
		many = append(many, [2]float64{float64(i), 1})
	}
	few := thin(many, 10)
	if len(few) != 10 || few[0][0] != 0 || few[9][0] != 999 {
		t.Errorf("%v", few)
	}
}

// TestJSONAndTable keep all that a result says.
func TestJSONAndTable(t *testing.T) {
	r := &Result{Scenario: "fire", What: "what", Seconds: 2, Curves: []Curve{{"a", "x", "y", [][2]float64{{1, 2}}}}}
	r.check("heap", 600, "MiB", "≤ 512", false)
	r.note("a %s", "note")
	var out bytes.Buffer
	if err := measure.WriteJSON(&out, []*Result{r}); err != nil {
		t.Fatal(err)
	}
	back, err := measure.ReadJSON[*Result](&out)
	if err != nil || len(back) != 1 || back[0].Held() || back[0].Curves[0].Points[0][1] != 2 {
		t.Fatalf("%+v, %v", back, err)
	}
	if err := WriteTable(&out, back); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"fire", "600 MiB", "≤ 512", "missed", "a note"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, out.String())
		}
	}
}
