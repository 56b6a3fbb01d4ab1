package lint

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
)

// codeLimits bound the functions, and their bytes, that a package compiles for one more job type or class. marks are in the
// names of its own types or fields, and so in the names of these functions.
var codeLimits = []struct {
	kind, marks      string
	functions, bytes int
}{
	{"worker pool", "PoolIn|PoolOut|poolIn|poolOut", 225, 60000},
	{"workflow", "FlowIn|FlowOut|flowIn|flowOut", 120, 23500},
	{"signal", "SignalValue|flowSign", 25, 6000},
	{"step", "StepValue|flowStep", 4, 1750},
	{"debounce job", "QuietEvent|QuietState|quietEv|quietSum", 118, 29000},
	{"continuous job", "LoopState|loopState", 107, 20200},
	{"class with a method", "ClassArg|ClassRes|ClassObj|classArg|classRes|classObj", 34, 6200},
	{"all of them together, with what they share", ".", 890, 172000},
}

// A user with fifty job types compiles the generic code of each. So a generic type is a thin layer over code without type
// parameters: a method that needs no type is not in it, and neither is a step of a method that needs none. A worker pool
// compiled 548 functions, a workflow 283.
func TestJobTypesAreThin(t *testing.T) {
	object := compiled(t, filepath.Join("testdata", "jobtypes.go"),
		"./jobs/workerpool", "./jobs/workflow", "./jobs/debounce", "./jobs/continuous")
	out, err := exec.Command("go", "tool", "nm", "-size", object).Output()
	if err != nil {
		t.Fatal(err)
	}
	functions := regexp.MustCompile(`(?m)^ *[0-9a-f]+ +(\d+) [Tt] (.*)$`).FindAllStringSubmatch(string(out), -1)
	for _, l := range codeLimits {
		marks, n, size := regexp.MustCompile(l.marks), 0, 0
		for _, f := range functions {
			if marks.MatchString(f[2]) {
				bytes, _ := strconv.Atoi(f[1])
				n, size = n+1, size+bytes
			}
		}
		t.Logf("%s: %d functions of %d bytes", l.kind, n, size)
		if n > l.functions || size > l.bytes {
			t.Errorf("%s: %d functions of %d bytes, the limits are %d and %d: move what needs no type out of the generic code",
				l.kind, n, size, l.functions, l.bytes)
		}
	}
}

// compiled compiles a file that imports these packages of the module, and returns the name of the object file.
func compiled(t *testing.T, file string, packages ...string) string {
	t.Helper()
	args := []string{"list", "-export", "-deps", "-f", "{{if .Export}}packagefile {{.ImportPath}}={{.Export}}{{end}}"}
	if info, ok := debug.ReadBuildInfo(); ok { // the packages are built as for this test, so they are in the build cache
		for _, s := range info.Settings {
			if (s.Key == "-race" || s.Key == "-trimpath") && s.Value == "true" {
				args = append(args, s.Key)
			}
		}
	}
	list := exec.Command("go", append(args, packages...)...)
	list.Dir = filepath.Join("..", "..")
	var mistakes bytes.Buffer
	list.Stderr = &mistakes
	imports, err := list.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", list, err, &mistakes)
	}
	dir := t.TempDir()
	config, object := filepath.Join(dir, "imports"), filepath.Join(dir, "object")
	if err := os.WriteFile(config, imports, 0o600); err != nil {
		t.Fatal(err)
	}
	compile := exec.Command("go", "tool", "compile", "-p", "jobtypes", "-importcfg", config, "-complete", "-pack", "-o", object, file)
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(compile.Args, " "), err, out)
	}
	return object
}
