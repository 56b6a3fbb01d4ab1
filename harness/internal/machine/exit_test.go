package machine_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness/internal/machine"
)

func leave() { runtime.Goexit() }

// Case HN4: a task that calls runtime.Goexit fails the run under its own name, and
// does not end the goroutine of the driver.
func TestTaskThatEndsItsGoroutine(t *testing.T) {
	m, p := start(t, machine.Config{})
	unwound := false
	p.Go("mailer", func() {
		defer func() { unwound = true }()
		leave()
	})
	if out := m.Drive(machine.Epoch.Add(time.Second), nil); out != machine.Failed {
		t.Fatalf("outcome %v", out)
	}
	exit, ok := errors.AsType[*machine.TaskExit](m.Failure())
	if !ok || exit.Task != "mailer" || !unwound {
		t.Fatalf("failure %v, unwound %t", m.Failure(), unwound)
	}
	for _, want := range []string{`task "mailer"`, "machine_test.leave", "return an error"} {
		if said := exit.Error(); !strings.Contains(said, want) {
			t.Errorf("the failure does not say %q:\n%s", want, said)
		}
	}
}

// A task of a dead process may end as it likes, and the next process runs.
func TestDeadTaskThatEndsItsGoroutine(t *testing.T) {
	m, p := start(t, machine.Config{})
	p.Go("mailer", func() {
		defer runtime.Goexit()
		_ = p.Wait(context.Background(), make(chan struct{}))
	})
	m.Drive(machine.Epoch.Add(time.Second), nil)
	p.Kill()
	ran := false
	m.Start(2).Go("next", func() { ran = true })
	m.Drive(machine.Epoch.Add(2*time.Second), nil)
	if m.Failure() != nil || !ran {
		t.Errorf("failure %v, the next process ran: %t", m.Failure(), ran)
	}
}
