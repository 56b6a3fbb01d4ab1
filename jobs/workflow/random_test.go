package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
)

// op is an operation of a random program. A program is the input of a run, which interprets
// it.
type op struct {
	Kind   string // step, atomic, sleep, signal, each, child, go or first
	Name   string
	Fails  int  // attempts of a step that fail; forever: all of them
	Undone bool // the step has an undo
	Goes   bool // on after an error
	Sleeps time.Duration
	Items  int // of each
	AtOnce int
	Body   []op // of each item, of the child, or of the branch that is waited for
	Beside []op // of the function beside that branch, or of a First's loser before its long sleep
	Other  bool // the loser comes first
	Left   bool // no one waits for the branch
}

// forever is more attempts than a step has.
const forever = 9

// drawOps draws a program. Operations whose effects depend on the order of branches stand only
// where one thing follows another; alone says that it is so.
func drawOps(rt *rapid.T, depth int, alone, root bool) (ops []op) {
	kinds := []string{"step", "step", "step", "sleep"}
	if alone {
		kinds = append(kinds, "atomic")
	}
	if root {
		kinds = append(kinds, "signal", "signal")
	}
	if depth > 0 {
		kinds = append(kinds, "each", "each", "child", "child", "go", "go", "first")
	}
	for range rapid.SampledFrom([]int{1, 2, 3, 4, 5}).Draw(rt, "operations") {
		o := op{Kind: rapid.SampledFrom(kinds).Draw(rt, "kind"), Name: rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "name")}
		switch o.Kind {
		case "step":
			fails := []int{0, 0, 1, 2}
			if alone { // else the branches beside it are cancelled somewhere
				fails = append(fails, forever)
			}
			o.Fails = rapid.SampledFrom(fails).Draw(rt, "fails")
			o.Undone = !rapid.Bool().Draw(rt, "lasts")
		case "sleep":
			o.Sleeps = rapid.SampledFrom([]time.Duration{0, time.Millisecond, time.Second, 2 * time.Second, time.Hour}).Draw(rt, "sleeps")
		case "each":
			o.Items, o.AtOnce = rapid.SampledFrom([]int{0, 1, 2, 3}).Draw(rt, "items"), rapid.SampledFrom([]int{1, 2, 3}).Draw(rt, "at once")
			o.Body = drawOps(rt, depth-1, alone && o.AtOnce == 1, false)
		case "child":
			o.Body = drawOps(rt, depth-1, true, false)
			if !alone {
				o.Goes = true
			}
		case "go", "first":
			o.Body, o.Beside = drawOps(rt, depth-1, false, false), drawOps(rt, depth-1, false, false)
			o.Other, o.Left = rapid.Bool().Draw(rt, "other"), o.Kind == "go" && rapid.SampledFrom([]bool{false, false, true}).Draw(rt, "left")
		}
		o.Goes = o.Goes || rapid.SampledFrom([]bool{false, false, true}).Draw(rt, "goes on")
		ops = append(ops, o)
	}
	return ops
}

// program runs random programs.
type program struct {
	s *harness.Sim
	w *workflow.Workflow[[]op, []string]
}

func newProgram(s *harness.Sim) *program {
	p := &program{s: s, w: workflow.New[[]op, []string]("order", workflow.Config{Signals: workflow.Signals{approved}})}
	p.w.Func(func(c *workflow.Context, ops []op) ([]string, error) { return p.run(c, ops, "") })
	return p
}

// run interprets operations in a scope, whose path makes the ids of children and the names of
// undos unique.
func (p *program) run(c *workflow.Context, ops []op, path string) (trace []string, err error) {
	for i, o := range ops {
		did, err := p.do(c, o, path+strconv.Itoa(i))
		trace = append(trace, did...)
		if err != nil {
			trace = append(trace, err.Error())
			if !o.Goes {
				return trace, err
			}
		}
	}
	return trace, nil
}

func (p *program) do(c *workflow.Context, o op, place string) (did []string, err error) {
	switch o.Kind {
	case "step":
		v, err := workflow.Step(c, o.Name, func(ctx context.Context) (string, error) {
			key := workflow.Key(ctx)
			p.s.World().Do(key, nil)
			if p.s.World().Count(key) <= o.Fails || o.Fails == forever {
				return "", errors.New("no")
			}
			return place, nil
		})
		if err == nil && o.Undone {
			workflow.Undo(c, o.Name, func(context.Context) error {
				p.s.World().Do("undone "+c.ID()+" "+place, nil)
				return nil
			})
		}
		return []string{v}, err
	case "atomic":
		v, err := workflow.Atomic(c, o.Name, func(ctx context.Context, tx *workflow.Tx) (int, error) {
			raw, _, err := tx.Get(ctx, "n")
			n, _ := strconv.Atoi(string(raw))
			return n + 1, errors.Join(err, tx.Put(ctx, "n", []byte(strconv.Itoa(n+1))))
		})
		return []string{fmt.Sprint("atomic ", v)}, err
	case "sleep":
		return nil, workflow.Sleep(c, o.Sleeps)
	case "signal":
		v, err := approved.Wait(c, 0)
		return []string{"signal " + v}, err
	case "child":
		return workflow.Child(c, p.w, c.ID()+"-"+place, o.Body)
	case "go":
		return p.branch(c, o, place)
	case "first":
		return p.first(c, o, place)
	}
	items := make([]int, o.Items)
	for i := range items {
		items[i] = i
	}
	parts, err := workflow.Each(c, o.Name, items, o.AtOnce, func(c *workflow.Context, i int) ([]string, error) {
		return p.run(c, o.Body, fmt.Sprintf("%s[%d].", place, i))
	})
	return slices.Concat(parts...), err
}

// branch runs a branch beside other operations.
func (p *program) branch(c *workflow.Context, o op, place string) (did []string, err error) {
	b := workflow.Go(c, o.Name, func(c *workflow.Context) ([]string, error) { return p.run(c, o.Body, place+"b.") })
	did, err = p.run(c, o.Beside, place+"s.")
	if err != nil || o.Left {
		return did, err
	}
	its, err := b.Wait(c)
	return append(did, its...), err
}

// first runs a branch against one that sleeps for longer than any other.
func (p *program) first(c *workflow.Context, o op, place string) (did []string, err error) {
	wins := func(c *workflow.Context) ([]string, error) { return p.run(c, o.Body, place+"w.") }
	loses := func(c *workflow.Context) ([]string, error) {
		if did, err := p.run(c, o.Beside, place+"l."); err != nil {
			return did, err
		}
		if err := workflow.Sleep(c, 10_000*time.Hour); err != nil {
			return nil, err
		}
		return p.run(c, []op{{Kind: "step", Name: "never"}}, place+"l.")
	}
	bodies := []func(c *workflow.Context) ([]string, error){wins, loses}
	if o.Other {
		slices.Reverse(bodies)
	}
	a, b := workflow.Go(c, o.Name, bodies[0]), workflow.Go(c, o.Name, bodies[1])
	i, err := workflow.First(c, a, b)
	if err != nil {
		return nil, err
	}
	its, err := []*workflow.Branch[[]string]{a, b}[i].Wait(c)
	return append([]string{fmt.Sprint("first ", i)}, its...), err
}

// interpreter is the model: it runs a program as plain code, without a crash and without time.
type interpreter struct {
	keys    map[string]int // of steps, with the most times that they are done without a crash
	may     map[string]int // the same of steps that may be cut off
	undone  []string       // in order
	mayUndo []string       // that may be cut off
	cut     bool           // the present operations may be cut off
	ordered bool           // the order of the undos is certain
	signals int            // taken
}

// plainRun is a run of the model.
type plainRun struct {
	id     string
	atomic int
	undos  []string
	// mayUndo may have been cut off.
	mayUndo []string
	asked   map[string]int // steps by scope and name
	begun   map[string]int // Each by scope and name
}

// run runs a program, and its undos if it fails.
func (m *interpreter) run(id string, ops []op) (trace []string, err error) {
	r := &plainRun{id: id, asked: map[string]int{}, begun: map[string]int{}}
	trace, err = m.ops(r, ops, "", "")
	if err != nil {
		slices.Reverse(r.undos)
		m.undone = append(m.undone, r.undos...)
	}
	if err != nil || m.cut { // a child that is cut off is cancelled, though it would not fail
		m.mayUndo = append(m.mayUndo, r.mayUndo...)
	}
	return trace, err
}

func (m *interpreter) ops(r *plainRun, ops []op, scope, path string) (trace []string, err error) {
	for i, o := range ops {
		did, err := m.do(r, o, scope, path+strconv.Itoa(i))
		trace = append(trace, did...)
		if err != nil {
			trace = append(trace, err.Error())
			if !o.Goes {
				return trace, err
			}
		}
	}
	return trace, nil
}

func (m *interpreter) do(r *plainRun, o op, scope, place string) (did []string, err error) {
	switch o.Kind {
	case "step":
		r.asked[scope+o.Name]++
		key := fmt.Sprintf("%s:%s%s#%d", r.id, scope, o.Name, r.asked[scope+o.Name])
		if m.cut {
			m.may[key] = min(o.Fails, 2) + 1
		} else {
			m.keys[key] = min(o.Fails, 2) + 1
		}
		if o.Fails == forever {
			return []string{""}, fmt.Errorf("step %q: no", o.Name)
		}
		if undo := "undone " + r.id + " " + place; o.Undone && m.cut {
			r.mayUndo = append(r.mayUndo, undo)
		} else if o.Undone {
			r.undos = append(r.undos, undo)
		}
		return []string{place}, nil
	case "atomic":
		r.atomic++
		return []string{fmt.Sprint("atomic ", r.atomic)}, nil
	case "signal":
		m.signals++
		return []string{fmt.Sprint("signal ", m.signals)}, nil
	case "child":
		id := r.id + "-" + place
		did, err := m.run(id, o.Body)
		if err != nil {
			return nil, fmt.Errorf("child order/%s: %w", id, err)
		}
		return did, nil
	case "each":
		return m.each(r, o, scope, place)
	case "go":
		m.ordered = false
		path := r.branch(scope, o.Name) + "[0]/"
		did, err = m.cutOff(o.Left, func() ([]string, error) { return m.ops(r, o.Body, path, place+"b.") })
		beside, besideErr := m.ops(r, o.Beside, scope, place+"s.")
		if besideErr != nil || o.Left {
			return beside, besideErr
		}
		if err != nil {
			return beside, fmt.Errorf("branch %q: %w", o.Name, err)
		}
		return append(beside, did...), nil
	case "first":
		return m.first(r, o, scope, place)
	}
	return nil, nil
}

// cutOff calls do, with operations that may be cut off if cut is true.
func (m *interpreter) cutOff(cut bool, do func() ([]string, error)) ([]string, error) {
	before := m.cut
	m.cut = before || cut
	defer func() { m.cut = before }()
	return do()
}

func (m *interpreter) first(r *plainRun, o op, scope, place string) (did []string, err error) {
	m.ordered = false
	wins, loses := r.branch(scope, o.Name)+"[0]/", r.branch(scope, o.Name)+"[0]/"
	winner := 0
	if o.Other {
		wins, loses, winner = loses, wins, 1
	}
	did, err = m.ops(r, o.Body, wins, place+"w.")
	if _, lost := m.cutOff(true, func() ([]string, error) { return m.ops(r, o.Beside, loses, place+"l.") }); lost != nil {
		return nil, fmt.Errorf("the loser of %s fails, which no program is drawn for: %w", place, lost)
	}
	if err != nil {
		err = fmt.Errorf("branch %q: %w", o.Name, err)
		did = nil
	}
	return append([]string{fmt.Sprint("first ", winner)}, did...), err
}

// branch is the path of a branch or of an Each without its index.
func (r *plainRun) branch(scope, name string) string {
	path := scope + name
	if r.begun[path]++; r.begun[path] > 1 {
		path += fmt.Sprint("#", r.begun[path])
	}
	return path
}

func (m *interpreter) each(r *plainRun, o op, scope, place string) (did []string, err error) {
	m.ordered = m.ordered && o.AtOnce == 1
	path := r.branch(scope, o.Name)
	for i := range o.Items {
		part, err := m.ops(r, o.Body, fmt.Sprintf("%s[%d]/", path, i), fmt.Sprintf("%s[%d].", place, i))
		if err != nil {
			return nil, fmt.Errorf("item %d: %w", i, err)
		}
		did = append(did, part...)
	}
	return did, nil
}

// randomEffects are the effects of a simulation, in the words of the model: the steps, with how often
// they were done, and the undos in the order of their first time.
func randomEffects(s *harness.Sim) (keys map[string]int, undone []string) {
	keys = map[string]int{}
	for _, e := range s.World().Log() {
		if strings.HasPrefix(e.Key, "undone ") {
			if !slices.Contains(undone, e.Key) {
				undone = append(undone, e.Key)
			}
			continue
		}
		parts := strings.SplitN(e.Key, "/", 5) // class, id, life, generation, and the step in its scope
		keys[parts[1]+":"+parts[4]]++
	}
	return keys, undone
}

// Proves F1, F3, F5, F6, F7, F9, F17, F18. A random program ends as plain code does, whatever crashes:
// with the same values in the same order, the same steps under the same keys, and the same
// undos.
func TestRandomPrograms(t *testing.T) {
	harness.Check(t, func(s *harness.Sim, rt *rapid.T) {
		ops := drawOps(rt, 2, true, true)
		m := &interpreter{keys: map[string]int{}, may: map[string]int{}, ordered: true}
		want, failed := m.run("1", ops)
		p := newProgram(s)
		s.Host(p.w)
		start(s, p.w, "1", ops)
		for i := range m.signals {
			s.OK(s.Retry(func() error {
				return approved.Send(s.Context(), s, p.w, "1", fmt.Sprint(i+1), object.Idempotent(fmt.Sprint(i), 0))
			}))
			s.Advance(time.Second)
		}
		s.Advance(100 * time.Hour)
		out, err := ends(s, p.w, "1")
		if failed != nil {
			s.Always("the error", errors.Is(err, workflow.ErrFailed) && strings.HasSuffix(err.Error(), ": order/1: "+failed.Error()), err, " is not ", failed)
		} else {
			s.Always("the output", err == nil && slices.Equal(out, want), out, err, " is not ", want)
		}
		s.Finally("the effects", func() error { return m.compare(s) })
	}, harness.NoLostMessage, harness.NoLostAck, harness.NoTornBatch, harness.OneAlarm, harness.NeverOrphaned)
}

// compare compares the effects of a simulation with those of the model.
func (m *interpreter) compare(s *harness.Sim) error {
	keys, undone := randomEffects(s)
	for key, most := range m.keys {
		if n := keys[key]; n < 1 || n > most+s.Crashes() {
			return fmt.Errorf("step %s was done %d times of %d, with %d crashes", key, n, most, s.Crashes())
		}
	}
	for key, n := range keys {
		if m.keys[key] == 0 && (m.may[key] == 0 || n > m.may[key]+s.Crashes()) {
			return fmt.Errorf("step %s was done %d times, which is not of %v, nor maybe %v", key, n, m.keys, m.may)
		}
	}
	want := m.undone
	undone = slices.DeleteFunc(undone, func(key string) bool { return slices.Contains(m.mayUndo, key) })
	if !m.ordered {
		slices.Sort(undone)
		want = slices.Sorted(slices.Values(want))
	}
	if !slices.Equal(slices.Compact(slices.Clone(undone)), slices.Compact(slices.Clone(want))) {
		return fmt.Errorf("the undos %q are not %q", undone, want)
	}
	return nil
}
