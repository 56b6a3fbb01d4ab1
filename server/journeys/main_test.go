package journeys

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-dev/holdfast/server/internal/patience"
)

// built is the directory with the programs; one build serves all journeys.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "holdfast-journeys-")
	if err != nil {
		return "", err
	}
	const module = "github.com/holdfast-dev/holdfast/server/"
	out, err := exec.Command("go", "build", "-buildvcs=false", patience.Build, "-o", dir, module+"cmd/holdfast", module+"examples/service").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("go build: %w: %s", err, out)
	}
	return dir, err
})

func TestMain(m *testing.M) {
	if os.Getenv(workerEnv) != "" {
		if err := work(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	patience.Have()
	code := m.Run()
	if dir, err := built(); err == nil {
		_ = os.RemoveAll(dir) // a leftover is the business of the system
	}
	os.Exit(code)
}

// program returns a command of a program that was built.
func program(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	dir, err := built()
	must(t, err)
	return exec.Command(filepath.Join(dir, name), args...)
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// service is a process of the example service.
type service struct {
	t          *testing.T
	dir        string // of its store, with its socket
	url, token string
	text       string // that it said at its start
	cmd        *exec.Cmd
	said       *bufio.Reader
}

// start starts the service on a directory, without load.
func start(t *testing.T, dir string, flags ...string) *service {
	t.Helper()
	s := &service{t: t, dir: dir, cmd: program(t, "service", append([]string{"-addr", "127.0.0.1:0", "-dir", dir, "-socket", "-idle"}, flags...)...)}
	s.cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
	var errs bytes.Buffer
	s.cmd.Stderr = &errs
	out, err := s.cmd.StdoutPipe()
	must(t, err, s.cmd.Start())
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill() // it may have ended
		_ = s.cmd.Wait()
	})
	s.said = bufio.NewReader(out)
	text := until(t, s.said, "Ctrl-C", &errs)
	found := regexp.MustCompile(`listens on (http://\S+), with .*\n.*with the token (\S+),`).FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("the service said %s", text)
	}
	s.url, s.token, s.text = found[1], found[2], text
	return s
}

// until reads lines until one has a text, and returns all of them.
func until(t *testing.T, in *bufio.Reader, want string, errs *bytes.Buffer) (text string) {
	t.Helper()
	for {
		line, err := in.ReadString('\n')
		if text += line; strings.Contains(line, want) {
			return text
		}
		if err != nil {
			t.Fatalf("%v after %q; %s", err, text, errs)
		}
	}
}

// stop ends the service as Ctrl-C does.
func (s *service) stop() {
	s.t.Helper()
	must(s.t, s.cmd.Process.Signal(os.Interrupt))
	rest, err := io.ReadAll(s.said)
	if err := errors.Join(err, s.cmd.Wait()); err != nil || !strings.Contains(string(rest), "ended in order") {
		s.t.Fatalf("the end: %v, %s", err, rest)
	}
}

// holdfast runs the command on the directory of the service, and returns the output. It wants a code of exit.
func (s *service) holdfast(code int, args ...string) string {
	s.t.Helper()
	return holdfast(s.t, code, append([]string{"--dir", s.dir}, args...)...)
}

// holdfast runs the command and returns the output. It wants a code of exit.
func holdfast(t *testing.T, code int, args ...string) string {
	t.Helper()
	out, err := program(t, "holdfast", args...).CombinedOutput()
	got, exit := 0, new(exec.ExitError)
	if errors.As(err, &exit) {
		got, err = exit.ExitCode(), nil
	}
	if err != nil || got != code {
		t.Fatalf("holdfast %q: exit %d, want %d: %v\n%s", args, got, code, err, out)
	}
	return string(out)
}

// enqueue adds a task and returns its id.
func (s *service) enqueue(pool, in string) string {
	s.t.Helper()
	var ref struct{ ID string }
	must(s.t, json.Unmarshal([]byte(s.holdfast(0, "tasks", "enqueue", pool, in)), &ref))
	return ref.ID
}

// has fails the test unless a text has all parts.
func has(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in\n%s", part, text)
		}
	}
}
