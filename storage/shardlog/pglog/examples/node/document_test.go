package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/pgtest"
	"github.com/holdfast-dev/holdfast/internal/testing/outside"
)

const root = "../../../../.."

// block finds the commands of a document.
var block = regexp.MustCompile("(?m)^```sh\n((?:.*\n)*?)```$")

// builder is the go command of the test: it builds in the repository, with the flags of the test, so the cache serves what the tests have
// compiled, and it writes into the directory of the commands.
const builder = `#!/bin/sh
[ "$1 $2 $4" = "build -C -o" ] || { echo "the test doesn't know go $*" >&2; exit 1; }
unset PWD
exec %q build -C %q/"$3" -buildvcs=false -o "$(pwd)/$3/$5" "$6"
`

// late are the texts of errors for which a slow machine is enough.
var late = []string{"PostgreSQL did not answer in time", "deadline exceeded"}

// The commands of docs/CLUSTER.md run from beginning to end, and a node takes over from one that was killed, and from one that was drained. They
// begin anew if PostgreSQL or a node was too slow for their limits of time.
func TestCommandsOfTheDocument(t *testing.T) {
	bin := outside.Postgres(t)
	script := commands(t, filepath.Join(root, "docs", "CLUSTER.md"))
	for {
		answers, said, err := follow(t, bin, script)
		if err == nil {
			check(t, answers, said)
			return
		}
		if !slices.ContainsFunc(late, func(text string) bool { return strings.Contains(said, text) }) {
			t.Fatalf("the commands of docs/CLUSTER.md: %v\n%s\n%s", err, answers, said)
		}
		t.Logf("too slow, so once more: %v\n%s", err, said)
	}
}

// follow runs a script in a directory and on servers of its own, and returns all that it printed.
func follow(t *testing.T, bin, script string) (answers, said string, err error) {
	t.Helper()
	pair, err := pgtest.Start(bin)
	if err != nil {
		t.Fatal(err)
	}
	defer pair.Close()
	dir := t.TempDir()
	repository, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	compiler, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	tools := filepath.Join(dir, "tools")
	for _, d := range []string{"bin", "server", "storage/shardlog/pglog", "tools"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(tools, "go"), fmt.Appendf(nil, builder, compiler, repository), 0o755); err != nil {
		t.Fatal(err)
	}
	run := exec.Command("bash", "-euo", "pipefail", "-c", script)
	run.Dir = dir
	run.Env = append(os.Environ(), "HOLDFAST_DSN="+pgtest.DSN(pair.Primary.Port), "PATH="+tools+":"+os.Getenv("PATH"))
	run.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var out, errs bytes.Buffer
	run.Stdout, run.Stderr = &out, &errs
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	err = run.Wait()
	_ = syscall.Kill(-run.Process.Pid, syscall.SIGKILL) // nodes that a command which failed has left
	return out.String(), errs.String(), err
}

// check looks for the answers in their order.
func check(t *testing.T, answers, said string) {
	t.Helper()
	rest := answers
	for _, want := range []string{"CLUSTER", "\n1\n", "serves", "\n2\n", "DRAINED", "\n3\n", "the store is in data", "visits", "the store is in the cluster", "\n4\n"} {
		at := strings.Index(rest, want)
		if at < 0 {
			t.Fatalf("the commands printed no %q behind the rest:\n%s\n%s", want, answers, said)
		}
		rest = rest[at+len(want)-1:] // a line end may be the begin of the next
	}
}

// commands are those of a document, with ports of this machine that are free.
func commands(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var script strings.Builder
	for _, m := range block.FindAllStringSubmatch(string(text), -1) {
		script.WriteString(m[1])
	}
	if script.Len() == 0 {
		t.Fatalf("%s has no commands", path)
	}
	all := script.String()
	for _, port := range []string{"7071", "7072"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		all = strings.ReplaceAll(all, port, fmt.Sprint(l.Addr().(*net.TCPAddr).Port))
		_ = l.Close() // the node takes it
	}
	return all
}
