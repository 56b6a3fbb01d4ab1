package journeys

import (
	"os"
	"path/filepath"
	"testing"
)

// Journey 4: a backup, and the host burns down. The service is killed with tasks that it has acknowledged, its
// directory is backed up and removed, the backup is restored elsewhere, and verify finds nothing. The copy
// sleeps until go; then every task is there and runs, and a new one gets an id of its own.
func TestHostBurntDown(t *testing.T) {
	repository, copied := filepath.Join(t.TempDir(), "repository"), filepath.Join(t.TempDir(), "copy")
	s := start(t, filepath.Join(t.TempDir(), "data"))
	s.holdfast(0, "jobs", "do", "pause", "thumb")
	var tasks []string
	for _, in := range []string{`{"name": "cat.jpg"}`, `{"name": "dog.jpg"}`, `{"name": "cow.jpg"}`} {
		tasks = append(tasks, s.enqueue("thumb", in))
	}
	must(t, s.cmd.Process.Kill())
	_ = s.cmd.Wait() // it was killed
	s.holdfast(0, "backup", "create", "--to", repository)
	must(t, os.RemoveAll(s.dir))

	at := func(code int, args ...string) string {
		return holdfast(t, code, append([]string{"--dir", copied}, args...)...)
	}
	at(0, "restore", "--from", repository)
	has(t, at(0, "verify"), "nothing found")
	has(t, at(0, "why", "task", "thumb/"+tasks[0]), "dormant", "holdfast go")
	at(0, "go")

	s = start(t, copied)
	s.holdfast(0, "jobs", "do", "resume", "thumb")
	for i, name := range []string{"cat", "dog", "cow"} {
		has(t, s.holdfast(0, "tasks", "wait", "thumb/"+tasks[i]), `"small-`+name+`.jpg"`)
	}
	has(t, s.holdfast(0, "tasks", "wait", "thumb/"+s.enqueue("thumb", `{"name": "pig.jpg"}`)), `"small-pig.jpg"`)
	s.stop()
	at(0, "verify")
}
