package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/testing/prove"
)

// library is the module of the library.
const library = "github.com/holdfast-dev/holdfast"

// clone is a copy of the repository in which a release is made.
type clone struct {
	t   *testing.T
	dir string
}

// newClone copies the files that git knows, as they are now, into a repository of their own.
func newClone(t *testing.T) *clone {
	t.Helper()
	c := &clone{t, t.TempDir()}
	root := &clone{t, filepath.Join("..", "..", "..")}
	for _, name := range strings.Split(strings.TrimRight(root.git("ls-files", "-co", "--exclude-standard", "-z"), "\x00"), "\x00") {
		b, err := os.ReadFile(filepath.Join(root.dir, name))
		if errors.Is(err, os.ErrNotExist) { // it was removed and that is not committed
			continue
		}
		to := filepath.Join(c.dir, name)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(to), 0o755)
		}
		if err == nil {
			err = os.WriteFile(to, b, 0o755) // the scripts are run
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	c.git("init", "-q")
	c.git("add", "-A")
	c.git("commit", "-qm", "all")
	return c
}

// git runs a command of git, and returns its output.
func (c *clone) git(args ...string) string {
	c.t.Helper()
	out, err := c.run("git", args...)
	if err != nil {
		c.t.Fatalf("git %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return out
}

// run runs a program in the clone, in which git and the go command know nothing of the user.
func (c *clone) run(name string, args ...string) (out string, err error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = c.dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull,
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
	var b bytes.Buffer
	cmd.Stdout, cmd.Stderr = &b, &b
	err = cmd.Run()
	return b.String(), err
}

// release runs the script of the release.
func (c *clone) release(version string) (out string, err error) {
	return c.run(filepath.Join(c.dir, "scripts", "release.sh"), version)
}

// A release tags all modules, changes no branch, and the command of its tag is installed by the go command alone. It is
// refused without a version, with changes, and a second time; then it leaves no tag.
func TestRelease(t *testing.T) {
	prove.Only(t) // it compiles everything as a release, which takes minutes
	c := newClone(t)
	head := c.git("rev-parse", "HEAD")
	refused := func(version, want string) {
		t.Helper()
		if out, err := c.release(version); err == nil || !strings.Contains(out, want) || strings.Count(out, "\n") != 1 {
			t.Errorf("a release of %q: %v: %s", version, err, out)
		}
	}
	for _, version := range []string{"0.0.1", "v0.0", "v0.0.01", "v0.0.1-x"} {
		refused(version, "is no version")
	}
	if err := os.WriteFile(filepath.Join(c.dir, "new"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	refused("v0.0.1", "has changes")
	if err := os.Remove(filepath.Join(c.dir, "new")); err != nil {
		t.Fatal(err)
	}
	for _, tag := range []string{"server/v0.0.1", "storage/shardlog/pglog/v0.0.1"} {
		c.git("tag", tag)
		refused("v0.0.1", "there is a tag "+tag)
		c.git("tag", "-d", tag)
	}
	if tags := c.git("tag"); tags != "" {
		t.Errorf("what was refused has left the tags %s", tags)
	}
	if out, err := c.release("v0.0.1"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	refused("v0.0.1", "there is a tag v0.0.1")
	if now := c.git("rev-parse", "HEAD"); now != head || c.git("rev-parse", "v0.0.1") != head || c.git("status", "--porcelain") != "" || strings.Count(c.git("worktree", "list"), "\n") != 1 {
		t.Errorf("HEAD is %s and was %s", now, head)
	}
	for _, module := range []string{"server", "storage/shardlog/pglog"} {
		if mod := c.git("show", module+"/v0.0.1:"+module+"/go.mod"); strings.Contains(mod, "replace") || !strings.Contains(mod, library+" v0.0.1\n") {
			t.Errorf("go.mod of %s is %s", module, mod)
		}
		if sum := c.git("show", module+"/v0.0.1:"+module+"/go.sum"); !strings.Contains(sum, library+" v0.0.1 h1:") {
			t.Errorf("go.sum of %s does not know the library", module)
		}
	}
	const pglog = library + "/storage/shardlog/pglog v0.0.1"
	if mod, sum := c.git("show", "server/v0.0.1:server/go.mod"), c.git("show", "server/v0.0.1:server/go.sum"); !strings.Contains(mod, pglog+"\n") || !strings.Contains(sum, pglog+" h1:") {
		t.Errorf("the server does not take the log in PostgreSQL of its own release: %s", mod)
	}
	c.installs("v0.0.1")
}

// installs installs the command of a version from the clone, as if the tags were published, and runs it.
func (c *clone) installs(version string) {
	t := c.t
	t.Helper()
	cache, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	proxies, err := exec.Command("go", "env", "GOPROXY").Output()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	install := exec.Command("go", "install", "-trimpath", "-modcacherw", library+"/server/cmd/holdfast@"+version)
	install.Dir = bin
	install.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=", "GOBIN="+bin, "GOMODCACHE="+t.TempDir(), "GOPRIVATE="+library,
		"GOPROXY=file://"+strings.TrimSpace(string(cache))+"/cache/download,"+strings.TrimSpace(string(proxies)),
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url.file://"+c.dir+".insteadOf", "GIT_CONFIG_VALUE_0=https://"+library)
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("go install: %v: %s", err, out)
	}
	out, err := exec.Command(filepath.Join(bin, "holdfast"), "--dir", filepath.Join(bin, "none"), "verify").CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 3 || bytes.Count(out, []byte("\n")) != 1 {
		t.Errorf("the command that was installed: %v: %s", err, out)
	}
	cluster := exec.Command(filepath.Join(bin, "holdfast"), "cluster", "status")
	cluster.Env = append(os.Environ(), "HOLDFAST_DSN=postgres://a@127.0.0.1:1/a")
	if out, err := cluster.CombinedOutput(); !errors.As(err, &exit) || exit.ExitCode() != 3 || !bytes.Contains(out, []byte("connection refused")) {
		t.Errorf("its cluster status without a server: %v: %s", err, out)
	}
}
