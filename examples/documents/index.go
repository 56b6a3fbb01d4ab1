package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"slices"
	"strconv"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
)

// program is the two workflows and the shards over a tree.
type program struct {
	tree   fs.FS
	runs   *workflow.Workflow[request, totals]
	groups *workflow.Workflow[group, sums]
	shards *object.Class[shard]
	add    *object.Method[delivery, struct{}]
	list   *object.Method[struct{}, []count]
}

// request is the input of a run. It has the sizes too, because a run goes on with those
// that it began with, also under a later version of the program.
type request struct {
	Limit  int `json:"limit"`  // read at most so many packages; 0: all
	Group  int `json:"group"`  // packages of a child
	Shards int `json:"shards"` // objects that add up the terms
}

// Sizes of a run of the program.
const (
	groupSize  = 100
	shardCount = 64
)

// group is the input of a child.
type group struct {
	Run      string   `json:"run"`
	Number   int      `json:"number"`
	Groups   int      `json:"groups"` // of the run
	Shards   int      `json:"shards"`
	Packages []string `json:"packages"`
}

func (g group) id() string { return groupID(g.Run, g.Number) }

func groupID(run string, number int) string { return run + "/" + strconv.Itoa(number) }

// totals are the output of a run.
type totals struct {
	Packages int `json:"packages"`
	sums
	Terms int     `json:"terms"` // different ones
	Top   []count `json:"top"`
}

// size is how much a run has to do, shown once the packages are known.
type size struct {
	Packages int `json:"packages"`
	Groups   int `json:"groups"`
	Shards   int `json:"shards"`
}

var (
	mergedSignal = workflow.NewSignal[merged]("merged")
	sizeVar      = workflow.NewVar[size]("size")
	mergedVar    = workflow.NewVar[int]("merged")   // shards that have the counts of all groups
	packagesVar  = workflow.NewVar[int]("packages") // that a child has read
)

// crashesMax is how many crashes a run or a message may be charged with. It is more than
// will ever be, because the crashes here are kills from outside, and no fault of the run.
const crashesMax = 1 << 30

// newProgram makes the program. At most atOnce children read at a time; the others are
// queued.
func newProgram(tree fs.FS, atOnce int) *program {
	p := &program{tree: tree}
	class := object.ClassOptions{MaxAlarmCrashes: crashesMax}
	config := workflow.Config{
		Signals:       workflow.Signals{mergedSignal},
		Retention:     jobs.Retention{Completed: jobs.Forever}, // kept for ever, because a run that began anew would add to its old shards
		MaxRecoveries: crashesMax,
		Class:         class,
	}
	p.runs = workflow.New[request, totals]("index", config)
	p.runs.Func(p.index)
	config.Concurrency = atOnce
	p.groups = workflow.New[group, sums]("group", config)
	p.groups.Func(p.group)
	p.shards = object.Define("shard", p.newShard, class)
	p.add = object.Handle(p.shards, "add", (*shard).add, object.Sent(func(delivery) struct{} { return struct{}{} }))
	p.list = object.Handle(p.shards, "list", (*shard).list)
	return p
}

func (p *program) definitions() []object.Definition {
	return []object.Definition{p.runs, p.groups, p.shards}
}

// runID names the run for a tree and a limit. So a store may hold several.
func runID(root string, limit int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d", root, limit))
	return fmt.Sprintf("%x", sum[:8])
}

// index is the workflow of a run.
func (p *program) index(ctx *workflow.Context, in request) (totals, error) {
	packages, err := workflow.Step(ctx, "find", func(ctx context.Context) ([]string, error) {
		return findPackages(ctx, p.tree, in.Limit, packagesMax)
	})
	if err != nil {
		return totals{}, err
	}
	groups := groupsOf(ctx.ID(), packages, in)
	sizeVar.Set(ctx, size{len(packages), len(groups), in.Shards})
	read, err := workflow.Each(ctx, "groups", groups, 0, func(ctx *workflow.Context, g group) (sums, error) {
		return workflow.Child(ctx, p.groups, g.id(), g)
	})
	if err != nil {
		return totals{}, err
	}
	t := totals{Packages: len(packages)}
	for _, s := range read {
		t.sums.add(s)
	}
	return t, t.merge(ctx, in.Shards)
}

// groupsOf cuts the packages into the inputs of children.
func groupsOf(run string, packages []string, in request) []group {
	var groups []group
	for some := range slices.Chunk(packages, in.Group) {
		groups = append(groups, group{Run: run, Number: len(groups), Shards: in.Shards, Packages: some})
	}
	for i := range groups {
		groups[i].Groups = len(groups)
	}
	return groups
}

// merge waits for all shards. A child ends before the shards have its counts, because its
// messages are handled later.
func (t *totals) merge(ctx *workflow.Context, shards int) error {
	words := 0
	for n := range shards {
		m, err := mergedSignal.Wait(ctx, 0)
		if err != nil {
			return err
		}
		t.Terms += m.Terms
		t.Top = top(append(t.Top, m.Top...))
		words += m.Words
		mergedVar.Set(ctx, n+1)
	}
	if words != t.Words {
		return fmt.Errorf("the children have counted %d words, and the shards %d", t.Words, words)
	}
	return nil
}

// group is the workflow of a child.
func (p *program) group(ctx *workflow.Context, g group) (sums, error) {
	all := newReading()
	for n, dir := range g.Packages {
		r, err := workflow.Step(ctx, "read", func(ctx context.Context) (reading, error) {
			return readPackage(ctx, p.tree, dir)
		})
		if err != nil {
			return sums{}, fmt.Errorf("package %s: %w", dir, err)
		}
		all.add(r)
		packagesVar.Set(ctx, n+1)
	}
	_, err := workflow.Atomic(ctx, "send", func(ctx context.Context, tx *workflow.Tx) (struct{}, error) {
		return struct{}{}, p.send(ctx, tx.Outbox(), g, all.Terms)
	})
	return all.Sums, err
}

// send sends each shard its part of the counts of a group.
func (p *program) send(ctx context.Context, outbox object.Caller, g group, terms map[string]int) error {
	for number, part := range split(terms, g.Shards) {
		if _, err := p.add.Call(ctx, outbox, shardName(g.Run, number), delivery{g.Run, g.Groups, part}); err != nil {
			return err
		}
	}
	return nil
}
