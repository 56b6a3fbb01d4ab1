package machine_test

import (
	"context"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/harness/internal/machine"
	"github.com/holdfast-dev/holdfast/seam"
)

// Code that takes its own death for an error and tries for ever is left where it
// stands, and named.
func TestTaskThatIgnoresItsDeath(t *testing.T) {
	m, p := start(t, machine.Config{OnPoint: func(*machine.Process, seam.Point) bool { return true }})
	tries := 0
	try := func() {
		defer func() { _ = recover() }()
		tries++
		_ = p.Wait(context.Background(), nil)
	}
	p.Go("stubborn", func() {
		for {
			try()
		}
	})
	p.Go("dying", func() { p.At(seam.Point{}) })
	if out := m.Drive(machine.Epoch, nil); out != machine.Died {
		t.Fatalf("outcome %v", out)
	}
	if err := m.Failure(); err == nil || !strings.Contains(err.Error(), `task "stubborn" goes on after its process died`) {
		t.Errorf("failure: %v", err)
	}
	if tries > 2000 {
		t.Errorf("%d tries were let through", tries)
	}
}
