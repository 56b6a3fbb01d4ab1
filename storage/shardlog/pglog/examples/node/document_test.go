package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/pgtest"
	"github.com/holdfast-dev/holdfast/internal/testing/outside"
)

const root = "../../../../.."

// block finds the commands of a document.
var block = regexp.MustCompile("(?m)^```sh\n((?:.*\n)*?)```$")

// The commands of docs/CLUSTER.md run from beginning to end, in a copy of the repository that has nothing but the files of git, and a node
// takes over from one that was killed, and from one that was drained.
func TestCommandsOfTheDocument(t *testing.T) {
	pair, err := pgtest.Start(outside.Postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	defer pair.Close()
	dir := t.TempDir()
	copied := exec.Command("bash", "-c", `set -o pipefail; git ls-files -coz --exclude-standard | tar -c --null --ignore-failed-read -T - | tar -x -C "$0"`, dir)
	copied.Dir = root
	if out, err := copied.CombinedOutput(); err != nil {
		t.Fatalf("copy the repository: %v: %s", err, out)
	}
	script := commands(t, filepath.Join(dir, "docs", "CLUSTER.md"))
	run := exec.Command("bash", "-euo", "pipefail", "-c", script)
	run.Dir = dir
	run.Env = append(os.Environ(), "HOLDFAST_DSN="+pgtest.DSN(pair.Primary.Port), "GOFLAGS=-buildvcs=false -trimpath") // so that the cache serves each copy
	run.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var answers, said bytes.Buffer
	run.Stdout, run.Stderr = &answers, &said
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	err = run.Wait()
	_ = syscall.Kill(-run.Process.Pid, syscall.SIGKILL) // nodes that a command which failed has left
	if err != nil {
		t.Fatalf("the commands of docs/CLUSTER.md: %v\n%s\n%s", err, &answers, &said)
	}
	rest := answers.String()
	for _, want := range []string{"CLUSTER", "\n1\n", "serves", "\n2\n", "DRAINED", "\n3\n", "the store is in data", "visits", "the store is in the cluster", "\n4\n"} {
		at := strings.Index(rest, want)
		if at < 0 {
			t.Fatalf("the commands printed no %q behind the rest:\n%s\n%s", want, &answers, &said)
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
