package journeys

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/testing/prove"
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

// Journey 4 under load: the service makes a backup while customers deposit, is killed, and its directory is removed. The restored
// copy has all that was acknowledged before the backup began. Its first call should be answered within two minutes.
func TestHostBurntDownUnderLoad(t *testing.T) {
	repository, copied := filepath.Join(t.TempDir(), "repository"), filepath.Join(t.TempDir(), "copy")
	s := start(t, filepath.Join(t.TempDir(), "data"), "-backups", repository)
	balance := func(s *service, i int) int {
		t.Helper()
		n, err := strconv.Atoi(strings.TrimSpace(s.holdfast(0, "call", fmt.Sprint("account/c", i), "balance")))
		must(t, err)
		return n
	}
	const customers = 8
	stop, ended := make(chan struct{}), make(chan int)
	for i := range customers {
		go func() {
			ended <- customer(fmt.Sprint("c", i), func() (url, token string) { return s.url, s.token }, func() {}, stop)
		}()
	}
	var before [customers]int
	for i := range before {
		for before[i] < 20 {
			before[i] = balance(s, i)
		}
	}
	has(t, s.holdfast(0, "backup", "create"), "verified")
	var after [customers]int
	for i := range after {
		if after[i] = balance(s, i); after[i] <= before[i] {
			t.Errorf("the balance of c%d was %d before the backup and %d after it: there was no load", i, before[i], after[i])
		}
	}
	close(stop)
	for range customers {
		<-ended
	}
	must(t, s.cmd.Process.Kill())
	_ = s.cmd.Wait() // it was killed
	must(t, os.RemoveAll(s.dir))

	began := time.Now()
	holdfast(t, 0, "--dir", copied, "restore", "--from", repository)
	has(t, holdfast(t, 0, "--dir", copied, "verify"), "nothing found")
	holdfast(t, 0, "--dir", copied, "go")
	s = start(t, copied)
	for i := range customers {
		if n := balance(s, i); n < before[i] || n > after[i] {
			t.Errorf("the balance of c%d is %d, want %d, which was acknowledged before the backup, to %d", i, n, before[i], after[i])
		}
		if i == 0 {
			prove.Timed(t, time.Since(began), 2*time.Minute)
		}
	}
	s.stop()
	holdfast(t, 0, "--dir", copied, "verify")
}
