package lint

import (
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// free are the trees that may use the clock, random numbers and goroutines of Go itself:
// seam is made of them, harness controls them, and the rest (programs of users, and suites
// for tests) is not part of a host.
var free = []string{"seam", "harness", "storage/storagetest", "storage/shardlog/shardlogtest", "examples", "storage/shardlog/pglog/demo", "storage/shardlog/pglog/examples"}

// runners are the trees of programs that run other programs. They wait for those with
// goroutines, contexts and signals of Go itself, but take time and random numbers from seam.
var runners = []string{"internal"}

// ofRunners are the remedies that hold for runners too.
var ofRunners = []string{clock, sleep, timers, random}

// forbidden names the part of seam to use instead, by import path and name. The name ""
// is the whole package.
var forbidden = map[string]map[string]string{
	"time": {
		"Now": clock, "Since": clock, "Until": clock,
		"Sleep": sleep, "After": timers, "AfterFunc": timers,
		"NewTimer": timers, "NewTicker": timers, "Tick": timers,
	},
	"context": {
		"WithTimeout": deadline, "WithTimeoutCause": deadline,
		"WithDeadline": deadline, "WithDeadlineCause": deadline,
		"AfterFunc": "it starts a goroutine; wait for the context with Executor.Wait",
	},
	"sync": {
		"Cond": waits, "NewCond": waits, "WaitGroup": waits,
	},
	"math/rand":   {"": random},
	"crypto/rand": {"": random},
	"os/signal":   {"": "signals belong to the program; take a context"},
}

const (
	clock    = "use Seams.Clock.Now"
	sleep    = "use Seams.Sleep"
	timers   = "use Seams.Clock.AfterFunc"
	deadline = "use Seams.WithDeadline"
	waits    = "wait with Executor.Wait on a channel"
	random   = "use Seams.Rand"
)

// randAllowed are the names of math/rand/v2 that draw nothing from the runtime. A PCG gets its
// seed from the caller.
var randAllowed = []string{"Source", "Rand", "PCG", "New", "NewPCG"}

// exempt lists, by file and finding, the reason for which a rule does not hold.
var exempt = map[[2]string]string{}

// seamProblems are the places of one file that a simulation cannot control.
func seamProblems(s source) []string {
	if s.test() || within(s.dir(), free...) {
		return nil
	}
	var problems []string
	find := func(n ast.Node, what, remedy string) {
		if within(s.dir(), runners...) && !slices.Contains(ofRunners, remedy) {
			return
		}
		if exempt[[2]string{s.path, what}] == "" {
			problems = append(problems, s.at(n.Pos(), "%s passes the simulation by: %s", what, remedy))
		}
	}
	names := importNames(s)
	for _, spec := range s.file.Imports {
		p, _ := strconv.Unquote(spec.Path.Value)
		if remedy := forbidden[p][""]; remedy != "" {
			find(spec, p, remedy)
		}
	}
	polls := pollingReceives(s.file)
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			find(n, "go statement", "use Executor.Go")
		case *ast.SelectStmt:
			if !hasDefault(n) {
				find(n, "select without default", waits)
			}
		case *ast.UnaryExpr:
			if n.Op == token.ARROW && !polls[n] {
				find(n, "channel receive", waits)
			}
		case *ast.SelectorExpr:
			if p, name := selected(names, n); p == "math/rand/v2" && !slices.Contains(randAllowed, name) {
				find(n, "rand."+name, random)
			} else if remedy := forbidden[p][name]; remedy != "" {
				find(n, p+"."+name, remedy)
			}
		}
		return true
	})
	return problems
}

// importNames gives the import path for each name that the file knows a package by.
func importNames(s source) map[string]string {
	names := map[string]string{}
	for _, spec := range s.file.Imports {
		p, _ := strconv.Unquote(spec.Path.Value)
		switch {
		case spec.Name != nil:
			names[spec.Name.Name] = p
		case p == "math/rand/v2":
			names["rand"] = p
		default:
			names[path.Base(p)] = p
		}
	}
	return names
}

// selected is the package and the name of a selector, if it selects from a package.
func selected(names map[string]string, n *ast.SelectorExpr) (path, name string) {
	if id, ok := n.X.(*ast.Ident); ok {
		return names[id.Name], n.Sel.Name
	}
	return "", ""
}

func hasDefault(n *ast.SelectStmt) bool {
	return slices.ContainsFunc(n.Body.List, func(c ast.Stmt) bool { return c.(*ast.CommClause).Comm == nil })
}

// pollingReceives are the receives in cases of a select. They do not wait by themselves:
// the select does, if it has no default.
func pollingReceives(file *ast.File) map[*ast.UnaryExpr]bool {
	polls := map[*ast.UnaryExpr]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if c, ok := n.(*ast.CommClause); ok && c.Comm != nil {
			ast.Inspect(c.Comm, func(n ast.Node) bool {
				if u, ok := n.(*ast.UnaryExpr); ok && u.Op == token.ARROW {
					polls[u] = true
				}
				return true
			})
		}
		return true
	})
	return polls
}

func TestHostsTakeTimeAndTasksFromSeam(t *testing.T) {
	for _, s := range loadHouse(t) {
		report(t, seamProblems(s))
	}
}

// An exemption without a reason would hide the next mistake.
func TestExemptionsAreNeeded(t *testing.T) {
	kept := exempt
	defer func() { exempt = kept }()
	exempt = nil
	var found []string
	for _, s := range loadHouse(t) {
		found = append(found, seamProblems(s)...)
	}
	for key, reason := range kept {
		if !slices.ContainsFunc(found, func(p string) bool {
			return strings.HasPrefix(p, key[0]+":") && strings.Contains(p, ": "+key[1]+" passes")
		}) {
			t.Errorf("%s no longer holds %s (%s): remove it from exempt", key[0], key[1], reason)
		}
	}
}

func TestSeamsAreSeen(t *testing.T) {
	const host = `package alarm
import (
	"context"
	mrand "math/rand"
	"math/rand/v2"
	"sync"
	"time"
)
func f(ctx context.Context, c chan int, src rand.Source, w *sync.WaitGroup) {
	go f(ctx, c, src, w)
	now := time.Now
	<-c
	select { case <-c: default: }
	select { case <-c: }
	context.WithTimeout(ctx, 0)
	_ = rand.New(src)
	rand.IntN(3)
	mrand.Int()
	_ = now
	_ = time.Second
}`
	wantProblems(t, seamProblems(sample(t, "alarm/x.go", host)),
		"math/rand passes", "sync.WaitGroup", "go statement", "time.Now", "channel receive", "select without default",
		"context.WithTimeout", "rand.IntN")
	wantProblems(t, seamProblems(sample(t, "internal/x/x.go", host)), "math/rand passes", "time.Now", "rand.IntN")
	wantProblems(t, seamProblems(sample(t, "harness/x.go", host)))
}
