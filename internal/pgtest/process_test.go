package pgtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// sleeper starts a process that works in a directory below dir.
func sleeper(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sleep", "1000")
	cmd.Dir = filepath.Join(dir, "data")
	if err := os.MkdirAll(cmd.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// temp is a directory as /proc shows it.
func temp(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// The keeper ends the processes below its directory, those that are stopped too, removes it, and touches no other.
func TestKeeperEndsItsOwn(t *testing.T) {
	parent := temp(t)
	mine, others := filepath.Join(parent, "a"), filepath.Join(parent, "ab")
	end, stopped, live := sleeper(t, mine), sleeper(t, mine), sleeper(t, others)
	defer func() {
		_ = live.Process.Kill()
		_ = live.Wait()
	}()
	if err := stopped.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	k, err := keep(mine)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	for _, cmd := range []*exec.Cmd{end, stopped} {
		go func() { ended <- cmd.Wait() }()
	}
	if err := k.end(); err != nil {
		t.Fatal(err)
	}
	<-ended
	<-ended
	if _, err := os.Stat(mine); !os.IsNotExist(err) {
		t.Errorf("the directory is there: %v", err)
	}
	if err := live.Process.Signal(syscall.Signal(0)); err != nil || len(processes(filepath.Join(others, "data"))) != 1 {
		t.Errorf("the process of another directory: %v", err)
	}
}

// The keeper cleans up when the process that started it is killed with -9.
func TestKeeperOutlivesItsProcess(t *testing.T) {
	const variable = "PGTEST_KEEPER_DIR"
	if dir := os.Getenv(variable); dir != "" {
		if _, err := keep(dir); err != nil {
			t.Fatal(err)
		}
		sleeper(t, dir)
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	dir := filepath.Join(temp(t), "a")
	child := exec.Command(os.Args[0], "-test.run", "^TestKeeperOutlivesItsProcess$")
	child.Env = append(os.Environ(), variable+"="+dir)
	if err := child.Run(); err == nil || err.Error() != "signal: killed" {
		t.Fatalf("the child ended with %v", err)
	}
	for gone := false; !gone; {
		_, err := os.Stat(dir)
		gone = os.IsNotExist(err)
	}
	if left := processes(filepath.Join(dir, "data")); len(left) > 0 {
		t.Errorf("the processes %v are left", left)
	}
}
