package lint

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

// realTime lists the functions that read the clock or wait for it, by import path. In a synctest bubble
// they use virtual time. Anywhere else a test that calls one may depend on the machine's speed.
var realTime = map[string][]string{
	"time":    {"Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick", "Now", "Since", "Until"},
	"context": {"WithTimeout", "WithTimeoutCause", "WithDeadline", "WithDeadlineCause"},
}

// deadlines lists the methods that limit by real time how long a connection waits.
var deadlines = []string{"SetDeadline", "SetReadDeadline", "SetWriteDeadline"}

// helpers are the trees of packages that only tests and proofs use.
var helpers = []string{"internal/testing", "internal/pgtest", "internal/prove", "storage/storagetest", "storage/shardlog/shardlogtest"}

// declared is one declaration of a package: a function, a method, a type or a variable.
type declared struct {
	source source
	name   string   // Name, or Type.Name for a method
	node   ast.Node // *ast.FuncDecl, *ast.TypeSpec or *ast.ValueSpec
}

func (d declared) pkg() string { return d.source.file.Name.Name }

// typ returns the type of a method, or "".
func (d declared) typ() string { return d.name[:max(strings.Index(d.name, "."), 0)] }

// short returns the name without the type of a method.
func (d declared) short() string { return d.name[strings.Index(d.name, ".")+1:] }

// clocked finds the calls of the real clock in one package's tests. It follows names from the functions
// that go test or another package may call. A function that is only used in bubbles isn't reached, and
// neither is a literal that is passed to a bubble.
type clocked struct {
	inside  map[ast.Node]bool     // declarations that call a bubble themselves
	named   map[string][]declared // by name; methods under their plain name
	bubbles map[string]int        // functions that run one argument in a bubble, by "package name", with its index
	methods map[string][]declared // by "package type"
	reached map[ast.Node]bool     // declarations
	uses    map[string]bool       // names that reached code uses: "package name", and ".name" if it is selected
	queue   []declared
	found   map[string][]string // calls, by "path function"
}

// clockedOf returns the calls of the real clock in a directory's files, by "path function".
func clockedOf(files []source) map[string][]string {
	c := &clocked{inside: map[ast.Node]bool{}, named: map[string][]declared{}, bubbles: map[string]int{}, methods: map[string][]declared{}, reached: map[ast.Node]bool{}, uses: map[string]bool{}, found: map[string][]string{}}
	var all []declared
	for _, s := range files {
		all = append(all, declarations(s)...)
	}
	for _, d := range all {
		c.named[d.short()] = append(c.named[d.short()], d)
		if d.typ() != "" {
			key := d.pkg() + " " + d.typ()
			c.methods[key] = append(c.methods[key], d)
		}
	}
	for c.findBubbles(all) {
	}
	for _, d := range all {
		names := importNames(d.source)
		ast.Inspect(d.node, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				_, in := c.bubble(d, names, call)
				c.inside[d.node] = c.inside[d.node] || in
			}
			return true
		})
	}
	for _, d := range all {
		if d.root() {
			c.reach(d)
		}
	}
	for len(c.queue) > 0 {
		d := c.queue[0]
		c.queue = c.queue[1:]
		c.walk(d, d.node)
	}
	return c.found
}

// declarations returns the declarations of one file.
func declarations(s source) (all []declared) {
	for _, decl := range s.file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			name := decl.Name.Name
			if decl.Recv != nil {
				name = receiver(decl) + "." + name
			}
			all = append(all, declared{s, name, decl})
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					all = append(all, declared{s, spec.Name.Name, spec})
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						all = append(all, declared{s, name.Name, spec})
					}
				}
			}
		}
	}
	return all
}

// receiver returns the name of a method's type.
func receiver(f *ast.FuncDecl) string {
	x := f.Recv.List[0].Type
	for {
		switch t := x.(type) {
		case *ast.StarExpr:
			x = t.X
		case *ast.IndexExpr:
			x = t.X
		case *ast.IndexListExpr:
			x = t.X
		case *ast.Ident:
			return t.Name
		default:
			return ""
		}
	}
}

// root reports whether go test or another package may call a function.
func (d declared) root() bool {
	f, ok := d.node.(*ast.FuncDecl)
	if !ok || f.Recv != nil {
		return ok && !d.source.test() && ast.IsExported(f.Name.Name)
	}
	if !d.source.test() {
		return ast.IsExported(d.name) || d.name == "main" || d.name == "init"
	}
	return d.name == "init" || slices.ContainsFunc([]string{"Test", "Fuzz", "Benchmark", "Example"}, func(prefix string) bool { return strings.HasPrefix(d.name, prefix) })
}

// reach follows a declaration later.
func (c *clocked) reach(d declared) {
	if !c.reached[d.node] {
		c.reached[d.node] = true
		c.queue = append(c.queue, d)
	}
}

// use follows the declarations of a name in a package, but its methods. A method counts once its type is used
// and its name is selected. One that is exported may be called through an interface, so its type is enough.
func (c *clocked) use(pkg, name string) {
	if key := pkg + " " + name; !c.uses[key] {
		c.uses[key] = true
		for _, d := range c.named[name] {
			if d.pkg() == pkg && d.typ() == "" {
				c.reach(d)
			}
		}
		for _, d := range c.methods[key] {
			if ast.IsExported(d.short()) || c.uses["."+d.short()] {
				c.reach(d)
			}
		}
	}
}

// choose follows the methods of a name.
func (c *clocked) choose(name string) {
	if !c.uses["."+name] {
		c.uses["."+name] = true
		for _, d := range c.named[name] {
			if d.typ() != "" && c.uses[d.pkg()+" "+d.typ()] {
				c.reach(d)
			}
		}
	}
}

// walk follows the names of reached code and keeps its calls of the clock.
func (c *clocked) walk(d declared, node ast.Node) {
	names, local := importNames(d.source), locals(d.node)
	var look func(n ast.Node) bool
	look = func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			c.call(d, n, func(n ast.Node) { ast.Inspect(n, look) })
			return false
		case *ast.FuncLit:
			return !c.inside[d.node]
		case *ast.SelectorExpr:
			p, name := selected(names, n)
			if slices.Contains(realTime[p], name) || slices.Contains(deadlines, n.Sel.Name) {
				key := d.source.path + " " + d.name
				c.found[key] = append(c.found[key], n.Sel.Name)
			}
			if p == module+"/"+d.source.dir() {
				c.use(strings.TrimSuffix(d.pkg(), "_test"), name)
			}
			c.choose(n.Sel.Name)
			ast.Inspect(n.X, look)
			return false
		case *ast.Ident:
			if !local[n.Name] {
				c.use(d.pkg(), n.Name)
			}
		}
		return true
	}
	ast.Inspect(node, look)
}

// call follows a call, but not the argument that runs in a bubble. A literal runs where it is called or given
// to a method such as Run. Elsewhere, in a function that makes a bubble, it belongs to what runs in it.
func (c *clocked) call(d declared, n *ast.CallExpr, look func(ast.Node)) {
	at, bubble := c.bubble(d, importNames(d.source), n)
	run := runsIt(n)
	for i, x := range append([]ast.Expr{n.Fun}, n.Args...) {
		switch f, lit := x.(*ast.FuncLit); {
		case bubble && i == at+1:
		case lit && (i == 0 || run):
			look(f.Body)
		default:
			look(x)
		}
	}
}

// locals returns the names that a function declares in itself.
func locals(node ast.Node) map[string]bool {
	found := map[string]bool{}
	add := func(all ...*ast.Ident) {
		for _, id := range all {
			found[id.Name] = true
		}
	}
	if _, ok := node.(*ast.FuncDecl); !ok {
		return found
	}
	ast.Inspect(node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			add(n.Names...)
		case *ast.ValueSpec:
			add(n.Names...)
		case *ast.AssignStmt:
			for _, x := range n.Lhs {
				if id, ok := x.(*ast.Ident); ok && n.Tok == token.DEFINE {
					add(id)
				}
			}
		case *ast.RangeStmt:
			for _, x := range []ast.Expr{n.Key, n.Value} {
				if id, ok := x.(*ast.Ident); ok && n.Tok == token.DEFINE {
					add(id)
				}
			}
		}
		return true
	})
	return found
}

// runsIt reports whether a call runs a literal that is passed to it as a part of the test.
func runsIt(call *ast.CallExpr) bool {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	return ok && slices.Contains([]string{"Run", "Fuzz", "Cleanup"}, sel.Sel.Name)
}

// bubble returns the index of the argument that a call runs in a bubble.
func (c *clocked) bubble(d declared, names map[string]string, call *ast.CallExpr) (int, bool) {
	switch fun := call.Fun.(type) {
	case *ast.SelectorExpr:
		p, name := selected(names, fun)
		return 1, p == "testing/synctest" && name == "Test" || p == rapid && name == "SyncTest"
	case *ast.Ident:
		at, ok := c.bubbles[d.pkg()+" "+fun.Name]
		return at, ok && at < len(call.Args)
	}
	return 0, false
}

// findBubbles adds the functions that use one of their parameters only in a bubble, and reports whether it
// found any.
func (c *clocked) findBubbles(all []declared) (found bool) {
	for _, d := range all {
		f, ok := d.node.(*ast.FuncDecl)
		key := d.pkg() + " " + d.name
		if _, known := c.bubbles[key]; !ok || known || f.Recv != nil || f.Body == nil {
			continue
		}
		at := 0
		for _, field := range f.Type.Params.List {
			for _, name := range field.Names {
				if _, isFunc := field.Type.(*ast.FuncType); isFunc && c.onlyInBubbles(d, f.Body, name.Name) {
					c.bubbles[key], found = at, true
				}
				at++
			}
		}
	}
	return found
}

// onlyInBubbles reports whether a function uses a parameter, and only in bubbles.
func (c *clocked) onlyInBubbles(d declared, body ast.Node, param string) bool {
	names := importNames(d.source)
	inside, outside := 0, 0
	var look func(n ast.Node, in bool)
	look = func(n ast.Node, in bool) {
		ast.Inspect(n, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				at, ok := c.bubble(d, names, n)
				if !ok {
					return true
				}
				for i, arg := range n.Args {
					look(arg, in || i == at)
				}
				return false
			case *ast.Ident:
				if n.Name == param && in {
					inside++
				} else if n.Name == param {
					outside++
				}
			}
			return true
		})
	}
	look(body, false)
	return inside > 0 && outside == 0
}

// loadTests returns the files of all modules that only tests use, by directory.
func loadTests(t *testing.T) map[string][]source {
	t.Helper()
	byDir := map[string][]source{}
	all := loadAll(t)
	for _, module := range []string{"bench", "bench/peers", "tools"} {
		found, err := filesOf(module)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found...)
	}
	for _, s := range all {
		if s.test() || within(s.dir(), helpers...) {
			byDir[s.dir()] = append(byDir[s.dir()], s)
		}
	}
	return byDir
}

// clockList names the functions that may ask the clock.
const clockList = "internal/lint/testdata/clocks.txt"

// allowedClocks returns the "path function" of each line of a clockList, with its line, and the lines that
// are none.
func allowedClocks(text string) (allowed map[string]string, problems []string) {
	allowed = map[string]string{}
	dir := ""
	for _, line := range strings.Split(text, "\n") {
		place, listed := strings.CutPrefix(line, "\t")
		key, reason, _ := strings.Cut(place, ": ")
		key = path.Join(dir, key)
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case !listed:
			dir = line
		case reason == "" || strings.Count(key, " ") != 1:
			problems = append(problems, fmt.Sprintf("%q is no file, function and reason", line))
		case allowed[key] != "":
			problems = append(problems, key+" is listed twice")
		default:
			allowed[key] = reason
		}
	}
	return allowed, problems
}

// clockProblems compares the calls of the clock with the list.
func clockProblems(byDir map[string][]source, list string) []string {
	allowed, problems := allowedClocks(list)
	for _, dir := range slices.Sorted(maps.Keys(byDir)) {
		for place, calls := range clockedOf(byDir[dir]) {
			if allowed[place] == "" {
				problems = append(problems, fmt.Sprintf("%s calls %s on the machine's clock: wait for the event, or run it in a synctest bubble; %s tells more", place, strings.Join(calls, ", "), clockList))
			}
			delete(allowed, place)
		}
	}
	for place := range allowed {
		problems = append(problems, fmt.Sprintf("%s does not ask the clock: remove it from %s", place, clockList))
	}
	slices.Sort(problems)
	return problems
}

// No verdict of a test depends on how fast the machine is.
func TestTestsKeepOffTheClock(t *testing.T) {
	report(t, clockProblems(loadTests(t), read(t, clockList)))
}

func TestClocksAreSeen(t *testing.T) {
	const text = `package x
import ("context"; "testing"; "testing/synctest"; "time")
func bubble(t *testing.T, n int, f func()) { synctest.Test(t, func(*testing.T) { open(); f() }) }
func open() { time.Sleep(1) }
func both() { time.Now() }
func handler() func() { return func() { time.Tick(1) } }
type log struct{}
func (log) Append(d time.Duration) { time.After(d) }
func (log) wait() { time.NewTimer(1) }
func TestA(t *testing.T) {
	late := func() { time.Sleep(1); both() } // runs in the bubble
	bubble(t, 1, func() { late(); handler(); time.Sleep(1); log{}.Append(1) })
	synctest.Test(t, body)
	t.Run("", func(t *testing.T) { time.Until(time.Time{}) })
	func() { time.Since(time.Time{}) }()
}
func body(t *testing.T) { time.Sleep(1) }
func TestB(t *testing.T) { late := func() { time.AfterFunc(1, nil) }; late(); both(); use(log{}) }
func use(interface{ Append(time.Duration) }) {}
func TestC(c conn) { open := 1; _ = open; c.SetReadDeadline(time.Time{}); context.WithTimeout(nil, 1) }
`
	byDir := map[string][]source{"x": {sample(t, "x/x_test.go", text)}}
	wantProblems(t, clockProblems(byDir, ""),
		"x/x_test.go TestA calls Until, Since", "x/x_test.go TestB calls AfterFunc", "x/x_test.go TestC calls SetReadDeadline, WithTimeout",
		"x/x_test.go both calls Now", "x/x_test.go log.Append calls After")
	const list = "# why\nx\n\tx_test.go TestA: a\n\tx_test.go TestB: b\n\tx_test.go TestC: c\n\tx_test.go both: d\n\tx_test.go log.Append: e\n"
	wantProblems(t, clockProblems(byDir, list))
	wantProblems(t, clockProblems(byDir, list+"\tx_test.go open: f\n\tx_test.go both: g\n\tx_test.go body\n"),
		"is no file", "both is listed twice", "open does not ask")
}
