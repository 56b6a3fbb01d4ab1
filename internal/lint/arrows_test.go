package lint

import (
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

// arrow lists the imports that a package's own files may have: of this module, and of
// other modules. Tests may import more, see testArrows.
type arrow struct {
	ours   []string
	theirs []string
}

const (
	pebble     = "github.com/cockroachdb/pebble/v2"
	goCron     = "github.com/netresearch/go-cron"
	pgx        = "github.com/jackc/pgx/v5"
	prometheus = "github.com/prometheus/client_golang"
	progress   = "github.com/schollz/progressbar/v3"
	sys        = "golang.org/x/sys"
	terminal   = "golang.org/x/term"
	xsync      = "github.com/puzpuzpuz/xsync/v3"
	xxhash     = "github.com/cespare/xxhash/v2"
	rapid      = "pgregory.net/rapid"
	porcupine  = "github.com/anishathalye/porcupine"
)

// The packages below each layer. A package sees its own layer and those below.
var (
	onEngine    = []string{"seam", "internal/row", "storage/engine"}
	onStorage   = []string{"seam", "internal/row", "storage"}
	onAlarm     = []string{"seam", "internal/row", "storage", "alarm"}
	onObject    = []string{"seam", "internal/row", "storage", "alarm", "object"}
	onJobs      = []string{"seam", "internal/row", "storage", "alarm", "object", "jobs"}
	onRecovery  = []string{"seam", "internal/row", "storage", "alarm", "object", "jobs", "recovery"}
	onJobEngine = []string{"seam", "internal/row", "storage", "alarm", "object", "jobs", "recovery", "jobs/engine", "jobs/verbs"}
	everything  = []string{"*"}

	jobTypes = []string{"jobs/continuous", "jobs/debounce", "jobs/workerpool", "jobs/workflow"}
)

// arrows has a row for each package, or for a tree of them ("examples/*").
var arrows = map[string]arrow{
	".":                   {},
	"docs":                {},
	"seam":                {},
	"storage/engine":      {},
	"storage/pebblestore": {ours: onEngine, theirs: []string{pebble, sys}},
	"storage/memstore":    {ours: onEngine},
	"storage":             {ours: slices.Concat(onEngine, []string{"storage/pebblestore"}), theirs: []string{xxhash}},
	"storage/storagetest": {ours: slices.Concat(onStorage, []string{"internal/crashfs"}), theirs: []string{pebble}},
	"alarm":               {ours: onStorage},
	"object":              {ours: append(slices.Clone(onAlarm), "object/internal/*", "internal/metric"), theirs: []string{prometheus, xsync}},
	"object/internal/*":   {ours: []string{"seam", "storage"}},
	"object/journal":      {ours: onObject},
	"jobs":                {ours: onObject, theirs: []string{goCron}},
	"object/timers":       {ours: onJobs}, // above jobs, because their schedules are those of jobs
	"recovery":            {ours: onJobs},
	"jobs/engine":         {ours: onRecovery},
	"jobs/verbs":          {ours: onJobs},
	"jobs/continuous":     {ours: onJobEngine},
	"jobs/debounce":       {ours: onJobEngine},
	"jobs/workerpool":     {ours: onJobEngine},
	"jobs/breaker":        {ours: onJobs},
	"jobs/internal/*":     {ours: onAlarm},
	"jobs/workflow":       {ours: append(slices.Clone(onJobEngine), "jobs/internal/*", "jobs/breaker")},

	// A store over a replicated log, the log in memory, and the acceptance test of logs.
	"storage/shardlog":              {ours: []string{"seam", "internal/row", "storage", "storage/engine", "storage/pebblestore"}, theirs: []string{xxhash}},
	"storage/shardlog/memlog":       {ours: []string{"storage/shardlog"}},
	"storage/shardlog/shardlogtest": {ours: []string{"storage/shardlog"}},

	// Copies of views in blobs, and the way from one machine into a log and back.
	"storage/shardlog/move":     {ours: []string{"seam", "storage", "storage/engine", "storage/pebblestore", "storage/shardlog", "storage/shardlog/snapshot"}},
	"storage/shardlog/snapshot": {ours: slices.Concat(onEngine, []string{"storage", "storage/pebblestore", "storage/shardlog"})},

	// The nodes of a cluster: hosts over one log, of which one serves.
	"cluster": {ours: slices.Concat(onObject, []string{"storage/engine", "storage/pebblestore", "storage/shardlog", "storage/shardlog/snapshot"})},

	// The log in PostgreSQL, a module of its own, and the servers that its tests run.
	"storage/shardlog/pglog":            {ours: []string{"seam", "storage/shardlog"}, theirs: []string{pgx}},
	"storage/shardlog/pglog/demo":       {ours: everything},
	"storage/shardlog/pglog/examples/*": {ours: everything},

	// Unit tests of workflows in one call: test code of users, over the simulation.
	"jobs/workflow/workflowtest": {ours: append(slices.Clone(onJobEngine), "jobs/workflow", "jobs/internal/*", "harness")},

	// Lists and verbs for operators, over all job types.
	"admin": {ours: append(slices.Clone(onJobEngine), "jobs/workerpool", "jobs/workflow/workflowrow")},

	// One object as a file, from one store to another.
	"admin/transfer": {ours: append(slices.Clone(onJobEngine), "jobs/workerpool")},

	// Stored rows of a workflow in words, for package harness and tools.
	"jobs/workflow/workflowrow": {ours: []string{"jobs/internal/history"}},

	// Copies of stores: the store itself and its files, and nothing of objects.
	"admin/backup": {ours: append(slices.Clone(onStorage), "storage/pebblestore")},

	// A host or a directory as an operator sees it.
	"admin/why": {ours: append(slices.Clone(onJobEngine), "jobs/breaker", "jobs/debounce", "jobs/workerpool", "jobs/workflow")},

	// The simulation builds whole hosts, also on Pebble over a file system in memory.
	"harness":            {ours: everything, theirs: []string{pebble, rapid, porcupine}},
	"harness/internal/*": {ours: []string{"seam", "storage", "storage/engine", "storage/memstore", "harness/internal/*"}},

	"examples/*": {ours: everything, theirs: []string{progress, terminal, prometheus}},
	// A file system that loses power, which storagetest and harness stand on.
	"internal/crashfs": {theirs: []string{pebble}},
	"internal/lint":    {},
	"internal/metric":  {},
	// Servers of PostgreSQL for the tests of all modules.
	"internal/pgtest": {},
	"internal/row":    {},
	// Programs and tests that prove something of the whole.
	"internal/prove/*": {ours: everything, theirs: []string{pebble, sys}},
	// Helpers that the tests of several packages share.
	"internal/testing/crashes":  {ours: []string{"harness", "internal/testing/prove", "storage"}, theirs: []string{rapid}},
	"internal/testing/failing":  {ours: []string{"seam", "storage", "storage/*"}},
	"internal/testing/fulldisk": {theirs: []string{pebble}},
	"internal/testing/leaks":    {theirs: []string{"go.uber.org/goleak"}},
	"internal/testing/loglines": {},
	"internal/testing/machine":  {ours: []string{"internal/crashfs", "storage", "storage/*"}, theirs: []string{pebble}},
	"internal/testing/memnet":   {},
	"internal/testing/outside":  {ours: []string{"internal/pgtest"}},
	"internal/testing/prove":    {},
	"internal/testing/seeds":    {ours: []string{"internal/testing/prove"}, theirs: []string{rapid}},
	"internal/testing/silent":   {ours: []string{"storage/shardlog"}},
}

// row is the row of arrows that governs a package.
func row(dir string) (arrow, bool) {
	if a, ok := arrows[dir]; ok {
		return a, true
	}
	for tree := dir; tree != "."; tree = path.Dir(tree) {
		if a, ok := arrows[path.Dir(tree)+"/*"]; ok {
			return a, true
		}
	}
	return arrow{}, false
}

// may says whether a list of a row allows a path.
func may(allowed []string, p string) bool {
	return slices.ContainsFunc(allowed, func(a string) bool {
		return a == "*" || a == p || strings.HasSuffix(a, "/*") && within(p, strings.TrimSuffix(a, "/*"))
	})
}

// arrowProblems are the imports of one file that point the wrong way.
func arrowProblems(s source) []string {
	var problems []string
	allowed, ok := row(s.dir())
	if !ok {
		return []string{s.at(s.file.Package, "package %s has no row in the table of internal/lint; add one that says what it may import", s.dir())}
	}
	for _, spec := range s.file.Imports {
		p := strings.Trim(spec.Path.Value, `"`)
		if remedy := misdirected(s, allowed, p); remedy != "" {
			problems = append(problems, s.at(spec.Pos(), "%s must not import %s: %s", s.dir(), p, remedy))
		}
	}
	return problems
}

// misdirected is the remedy for an import, or "" if it is right.
func misdirected(s source, allowed arrow, p string) string {
	ours, inside := strings.CutPrefix(p, module+"/")
	switch {
	case !strings.Contains(strings.Split(p, "/")[0], "."): // the standard library
		return ""
	case s.test() && s.dir() == "admin/backup" && p == pebble+"/vfs", s.test() && s.dir() == "admin/backup" && p == pebble+"/vfs/errorfs":
		return "" // its tests are of files: power cuts, failing operations
	case s.test() && s.dir() == "cluster" && p == pebble+"/vfs":
		return "" // a machine of its simulation has a disk in memory
	case within(p, pebble) && !within(s.dir(), "storage", "harness", "internal"):
		return "only storage/pebblestore knows Pebble; ask storage for what you need"
	case inside && within(s.dir(), jobTypes...) && within(ours, jobTypes...) && !within(s.dir(), ours):
		return "job types do not know one another; what they share belongs in jobs or jobs/engine"
	case s.test():
		return ""
	case inside && within(ours, "harness") && !within(s.dir(), "harness", "internal/testing/crashes", "jobs/workflow/workflowtest"),
		inside && within(ours, "internal/testing", "jobs/workflow/workflowtest") && !within(s.dir(), "internal/testing"),
		inside && ours == "storage/storagetest", inside && ours == "storage/shardlog/shardlogtest":
		return "only tests import " + ours + "; move what needs it to a _test.go file"
	case inside && !may(allowed.ours, ours):
		return "the arrows go seam, storage/engine, storage/pebblestore and memstore, storage, alarm, object, jobs, recovery, jobs/engine, job types, examples; move the code to the layer that may, or pass a value in"
	case !inside && !slices.ContainsFunc(allowed.theirs, func(m string) bool { return within(p, m) }):
		return "no row of the table allows it here; use what the package has, or argue for it in CONTRIBUTING.md and the table of internal/lint"
	}
	return ""
}

func TestImportsGoOneWay(t *testing.T) {
	for _, s := range loadHouse(t) {
		report(t, arrowProblems(s))
	}
}

// Every row is for a package that exists, once the tree is whole.
func TestArrowsNameRealPackages(t *testing.T) {
	dirs := map[string]bool{}
	for _, s := range loadHouse(t) {
		dirs[s.dir()] = true
	}
	for _, name := range slices.Sorted(maps.Keys(arrows)) {
		tree, isTree := strings.CutSuffix(name, "/*")
		if !dirs[name] && !(isTree && hasTree(dirs, tree)) {
			t.Errorf("the table of arrows has a row for %s, which has no Go file; remove the row", name)
		}
	}
}

func hasTree(dirs map[string]bool, tree string) bool {
	for d := range dirs {
		if d != tree && within(d, tree) {
			return true
		}
	}
	return false
}

func TestArrowsAreSeen(t *testing.T) {
	const text = `package x
import (
	"fmt"
	"` + module + `/harness"
	"` + module + `/jobs/debounce"
	"` + module + `/object"
	"` + module + `/storage/shardlog/shardlogtest"
	"` + pebble + `/vfs"
	"example.com/elsewhere"
)`
	wantProblems(t, arrowProblems(sample(t, "alarm/x.go", text)),
		"only tests import", "jobs/debounce", "the arrows go", "only tests import", "only storage/pebblestore knows Pebble", "no row of the table")
	wantProblems(t, arrowProblems(sample(t, "alarm/x_test.go", text)), "only storage/pebblestore knows Pebble")
	wantProblems(t, arrowProblems(sample(t, "jobs/continuous/x_test.go", text)), "do not know one another", "only storage/pebblestore knows Pebble")
	wantProblems(t, arrowProblems(sample(t, "elsewhere/x.go", text)), "has no row")
}
