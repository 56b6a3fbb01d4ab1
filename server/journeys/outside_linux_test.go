package journeys

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/testing/outside"
)

// Journey 10: a worker in plain HTTP claims a task and extends its lease. It is killed, the lease ends, and another
// worker takes the task over and ends it.
func TestOutsideWorker(t *testing.T) {
	for name, worker := range map[string]func(*testing.T) *exec.Cmd{
		"Go": func(*testing.T) *exec.Cmd {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), workerEnv+"=1")
			return cmd
		},
		"Python": func(t *testing.T) *exec.Cmd {
			cmd := exec.Command(outside.Python(t), "worker.py")
			cmd.Env = os.Environ()
			return cmd
		},
	} {
		t.Run(name, func(t *testing.T) {
			first, second := worker(t), worker(t)
			s := start(t, t.TempDir())
			task := s.enqueue("print", `"a letter"`)

			lines := s.worker(first, "HANG=1")
			until(t, lines, "claimed "+task, nil)
			until(t, lines, "heartbeat", nil)
			for !strings.Contains(s.holdfast(0, "why", "task", "print/"+task), "held-outside") { // it has lost its lease, and claims again
			}
			must(t, first.Process.Kill())

			until(t, s.worker(second), "done", nil)
			must(t, second.Wait())
			has(t, s.holdfast(0, "tasks", "wait", "print/"+task), `"printed a letter"`)
			s.stop()
		})
	}
}

// worker starts a worker and returns its output.
func (s *service) worker(cmd *exec.Cmd, env ...string) *bufio.Reader {
	s.t.Helper()
	cmd.Env = append(append(cmd.Env, "URL="+s.url, "TOKEN="+s.token), env...)
	cmd.Stderr = &bytes.Buffer{}
	out, err := cmd.StdoutPipe()
	must(s.t, err, cmd.Start())
	s.t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	})
	return bufio.NewReader(out)
}
